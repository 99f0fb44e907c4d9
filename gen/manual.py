#!/usr/bin/env python3
"""Writes the manual pages of section 3 from tables/: what a call looks like, what it does in a sentence or two, what its
arguments are, what is checked, where errors go. The rest is the standard's to say. Python standard library only.

    manual.py --tables DIR --out DIR --version V
"""
import argparse
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tables import Tables  # noqa: E402

AREAS = {'hot': 'point-to-point communication', 'p2p': 'point-to-point communication', 'coll': 'collective communication',
         'comm': 'communicators, groups and sessions', 'type': 'datatypes', 'misc': 'environment', 'rma': 'one-sided communication',
         'io': 'files', 'tool': 'the tool interface'}

# What a parameter of each kind is, and what is checked of it.
KINDS = {
    'buf': 'a buffer; not NULL unless nothing is transferred or the datatype holds addresses',
    'buf_coll': 'a buffer; MPI_IN_PLACE where the call allows it',
    'count': 'a number of elements, not negative', 'count_any': 'a number of elements, not negative; callers may also pass an MPI_Count', 'counts': 'numbers of elements, none of them negative', 'displs': 'displacements',
    'nonneg': 'a number, not negative', 'int': 'a number', 'any': 'as the standard says', 'raw': 'as the standard says',
    'addr': 'an address', 'varargs': 'as the standard says', 'ints': 'numbers', 'types': 'datatypes', 'infos': 'info objects',
    'type': 'a committed datatype', 'type_any': 'a datatype', 'type_named': 'a datatype', 'type_null': 'a datatype or MPI_DATATYPE_NULL',
    'comm': 'a communicator', 'comm_named': 'a communicator or MPI_COMM_NULL', 'win_named': 'a window or MPI_WIN_NULL', 'comm_null': 'a communicator or MPI_COMM_NULL',
    'group': 'a group', 'op': 'a reduction operation', 'errh': 'an error handler', 'win': 'a window', 'file': 'a file',
    'file_null': 'a file or MPI_FILE_NULL', 'session': 'a session', 'request': 'a request', 'message': 'a message',
    'request_null': 'a request or MPI_REQUEST_NULL', 'info': 'an info object or MPI_INFO_NULL', 'info_req': 'an info object',
    'dest': 'the rank of the destination, or MPI_PROC_NULL', 'source': 'the rank of the source, MPI_ANY_SOURCE or MPI_PROC_NULL',
    'tag_send': 'a tag, not negative', 'tag_recv': 'a tag, or MPI_ANY_TAG', 'root': 'the rank of the root',
    'rank': 'a rank of the communicator', 'target': 'the rank of the target', 'keyval': 'a key', 'callback': 'a function',
    'string': 'a string, not NULL', 'requests': 'requests; not NULL unless there are none', 'requests_in': 'requests; not NULL unless there are none',
    'status': 'a status, or MPI_STATUS_IGNORE', 'statuses': 'statuses, or MPI_STATUSES_IGNORE', 'status_in': 'a status',
    'flag': 'true (1) or false (0)', 'size': 'a number of bytes',
}
OWNERS = {
    'comm': "the communicator's error handler", 'win': "the window's error handler", 'file': "the file's error handler",
    'session': "the session's error handler", 'self': "MPI_COMM_SELF's error handler", 'errhandler': 'the error handler that is passed',
    'request': 'the error handler of the communicator, window or file that the request belongs to',
}
LENGTHS = {'peers': 'one for each process that can be sent to', 'members': 'one for each process of the local group',
           'sources': 'one for each neighbour that sends', 'destinations': 'one for each neighbour that receives'}
SIGNIFICANT = {'root': 'significant at the root', 'leaf': 'significant where data goes to the root or comes from it',
               'part': 'significant where a rank takes part'}


def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text[:1] in ".'" else text


def describe(param):
    """('in', 'a tag, not negative')"""
    kind, suffix = re.fullmatch(r'(\w+?)(_out|_inout)?', param.kind).groups()
    if kind in ('requests_in',):
        suffix = None
    text = KINDS[kind]
    direction = {'_out': 'out', '_inout': 'in and out'}.get(suffix)
    if direction is None and kind in ('buf', 'buf_coll'):
        direction = 'in' if param.type.startswith('const') else 'out'
    if direction is None and kind in ('status', 'statuses'):
        direction = 'out'
    if kind == 'requests':
        direction = 'in and out'
    if param.length:
        text += f'; {LENGTHS.get(param.length, f"as many as {param.length} says")}'
    if param.cond:
        text += f'; {SIGNIFICANT[param.cond]}'
    if param.in_place_of:
        text += f'; not with MPI_IN_PLACE as {param.in_place_of}'
    return direction or 'in', text


def read_descriptions(folder):
    """What each call does, by its name; its nonblocking, persistent and large forms have it from there."""
    with open(os.path.join(folder, 'descriptions.json'), encoding='utf-8') as f:
        return {name: text for group in json.load(f).values() for name, text in group.items()}


def what_it_does(name, texts):
    if name in texts:
        return texts[name]
    if name.endswith('_c'):
        return what_it_does(name.removesuffix('_c'), texts)
    base = name.removesuffix('_init')
    if base in texts:
        return ('Makes a persistent request. Each MPI_Start of it begins, with these arguments, what '
                f'{base} does. {base} {texts[base][0].lower()}{texts[base][1:]}')
    for base in (re.sub(r'^MPI_I(\w)', lambda m: 'MPI_' + m[1].upper(), name), re.sub(r'_i(\w+)', r'_\1', name, count=1)):
        if base in texts:
            return (f'Begins what {base} does and returns at once with a request. What it works on must be left alone, and what it '
                    'gives must not be used, before a call such as MPI_Wait or MPI_Test has completed the request. '
                    f'{base} {texts[base][0].lower()}{texts[base][1:]}')
    raise KeyError(f'tables/descriptions.json says nothing of {name}')


def relatives(function, names):
    """The blocking, nonblocking and persistent forms of the same call."""
    stem = re.sub(r'_init$', '', function.name[4:])
    stems = {stem, stem[1:].capitalize() if stem[:1] == 'I' and len(stem) > 1 else stem}
    found = []
    for s in sorted(stems):
        found += [n for n in (f'MPI_{s}', f'MPI_I{s[0].lower()}{s[1:]}', f'MPI_{s}_init') if n in names and n != function.name]
    return sorted(set(found))


def page(function, large, names, texts, version):
    both = [function] + ([large] if large else [])
    title = ', '.join(f.name for f in both)
    out = [f'.TH {function.name.upper()} 3 "" "Weft {version}" "MPI 5.0"', '.SH NAME', f'{roff(title)} \\- {AREAS[function.area]}',
           '.SH SYNOPSIS', '.nf', '#include <mpi.h>', '']
    out += [f'{roff(f.declaration())};' for f in both] + ['.fi']
    out += ['.SH DESCRIPTION', roff(what_it_does(function.name, texts))]
    if function.params:
        out.append('.SH PARAMETERS')
        for p in function.params:
            direction, text = describe(p)
            out += ['.TP', f'.I {roff(p.name)}', f'{roff(text)} ({direction})']
    out.append('.SH RETURN VALUE')
    if function.errors == 'none':
        out.append(f'The value itself, of type {roff(function.returns)}. The call cannot fail.')
    elif function.errors == 'tool':
        out.append('MPI_SUCCESS or an error code; no error handler is called.')
    else:
        out.append(f'MPI_SUCCESS or an error code. Errors are first given to {roff(OWNERS[function.errors])}.')
    notes = []
    if function.when == 'any':
        notes.append('May be called at any time, also before MPI is initialised and after it is finalised.')
    if function.deprecated:
        notes.append(f'Deprecated since {function.deprecated}.')
    if large:
        notes.append(f'{large.name} differs in the width of its counts alone.')
    if not function.impl:
        notes.append('This version of Weft checks the arguments and then raises MPI_ERR_UNSUPPORTED_OPERATION.')
    if function.area == 'tool':
        notes.append('This version of Weft has no variables, events, sources and categories yet: all counts are 0.')
    if notes:
        out += ['.SH NOTES'] + [roff(n) for n in notes]
    others = relatives(function, names)
    out += ['.SH SEE ALSO', ', '.join([f'.BR {roff(n)} (3)' for n in others]).replace(', .BR', ',\n.BR') if others else 'The MPI 5.0 standard.']
    if others:
        out.append('and the MPI 5.0 standard.')
    return '\n'.join(out) + '\n'


def twin(function, by_name):
    """The _c form, where it shares a page: it does unless it has other parameters."""
    large = by_name.get(function.name + '_c')
    return large if large and [p.name for p in large.params] == [p.name for p in function.params] else None


def write_pages(tables, texts, folder, version):
    """One page for a function and its _c form, whose own page then refers to it."""
    functions = tables.functions
    if isinstance(functions, dict):
        functions = list(functions.values())
    by_name = {f.name: f for f in functions}
    os.makedirs(folder, exist_ok=True)
    for f in functions:
        plain = by_name.get(f.name[:-2]) if f.large else None
        if plain is not None and twin(plain, by_name) is f:
            text = f'.so man3/{plain.name}.3\n'
        else:
            text = page(f, twin(f, by_name), by_name, texts, version)
        with open(os.path.join(folder, f.name + '.3'), 'w', encoding='utf-8') as out:
            out.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--tables', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--version', required=True)
    args = parser.parse_args()
    write_pages(Tables(args.tables), read_descriptions(args.tables), args.out, args.version)


if __name__ == '__main__':
    main()
