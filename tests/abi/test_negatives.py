"""Every function with one bad argument at a time: the error class must be that of the argument's kind, whatever the
function. The calls never get past the argument checks, so functions that are not implemented are held to the same rules."""
import json
import os
import re

import common
from common import ABI, Programs

with open(os.path.join(common.args.source, 'tables', 'functions.json'), encoding='utf-8') as rows_file:
    ROWS = json.load(rows_file)
ROWS.pop('_includes')

DEAD = '(void *)0x0ff0'   # no handle: below 0x1000 and not assigned
# Where the build looks: an address that cannot be read, and one between two words.
GARBAGE = ['(void *)nowhere', '((char *)space + 4)'] if common.args.check_handles else []
WRONG = ['dead', 'garbage', 'between'][:1 + len(GARBAGE)]   # variables that hold these

# Per kind: a good value, and the bad ones with the class each must raise. Values may use the variables of main().
HANDLES = {
    'comm': ('MPI_COMM_SELF', 'MPI_COMM_NULL', 'MPI_ERR_COMM'),
    'group': ('MPI_GROUP_EMPTY', 'MPI_GROUP_NULL', 'MPI_ERR_GROUP'),
    'op': ('MPI_SUM', 'MPI_OP_NULL', 'MPI_ERR_OP'),
    'errh': ('MPI_ERRORS_RETURN', 'MPI_ERRHANDLER_NULL', 'MPI_ERR_ERRHANDLER'),
    'type': ('MPI_INT', 'MPI_DATATYPE_NULL', 'MPI_ERR_TYPE'),
    'type_any': ('MPI_INT', 'MPI_DATATYPE_NULL', 'MPI_ERR_TYPE'),
    'type_named': ('MPI_INT', 'MPI_DATATYPE_NULL', 'MPI_ERR_TYPE'),
    'info_req': ('info', 'MPI_INFO_NULL', 'MPI_ERR_INFO'),
    'request': ('request', 'MPI_REQUEST_NULL', 'MPI_ERR_REQUEST'),
    'win': ('good_win', 'MPI_WIN_NULL', 'MPI_ERR_WIN'),
}
NULL_POINTER = {'string', 'string_out', 'flag_out', 'int_out', 'int_inout', 'count_out', 'size_out', 'addr_out', 'status_in',
                'status_inout', 'keyval_out', 'keyval_inout', 'comm_out', 'group_out', 'op_out', 'errh_out', 'info_out',
                'win_out', 'file_out', 'session_out', 'message_out', 'request_out', 'type_out', 'request_null_inout'}
NULLS = {'comm': 'MPI_COMM_NULL', 'group': 'MPI_GROUP_NULL', 'op': 'MPI_OP_NULL', 'errh': 'MPI_ERRHANDLER_NULL',
         'info': 'MPI_INFO_NULL', 'type': 'MPI_DATATYPE_NULL', 'request': 'MPI_REQUEST_NULL', 'win': 'MPI_WIN_NULL',
         'file': 'MPI_FILE_NULL', 'session': 'MPI_SESSION_NULL', 'message': 'MPI_MESSAGE_NULL'}
INOUT_CLASS = {'comm': 'MPI_ERR_COMM', 'group': 'MPI_ERR_GROUP', 'op': 'MPI_ERR_OP', 'errh': 'MPI_ERR_ERRHANDLER',
               'info': 'MPI_ERR_INFO', 'type': 'MPI_ERR_TYPE', 'request': 'MPI_ERR_REQUEST', 'win': 'MPI_ERR_WIN',
               'file': 'MPI_ERR_FILE', 'session': 'MPI_ERR_SESSION', 'message': 'MPI_ERR_REQUEST'}
WITHOUT_GOOD = {'file': 'MPI_ERR_FILE', 'session': 'MPI_ERR_SESSION'}


NEIGHBOURS = ('sources', 'destinations')
GROUPS = ('peers', 'members') + NEIGHBOURS


def kind_of(text):
    return re.match(r'\w+', text)[0]


def length_of(text):
    """How many elements an array has: see tables/README.md. None where the table does not say."""
    match = re.search(r'\[(\w+)\]', text)
    return match and match[1]


def is_wide(p):
    return p['type'].split('[')[0].split()[-1] in ('MPI_Count', 'MPI_Aint')


def is_blocks(kinds, i):
    """Of a buffer: is what comes after it blocks of their own counts?"""
    return next((k for k in kinds[i + 1:] if k in ('count', 'count_any', 'counts')), None) == 'counts'


def good(kind, p):
    if kind == 'type_null':
        return 'MPI_INT'
    if kind in HANDLES:
        return HANDLES[kind][0]
    if kind in ('comm_null', 'comm_named'):
        return 'MPI_COMM_SELF'
    if kind == 'win_named':
        return 'good_win'
    if kind == 'info':
        return 'MPI_INFO_NULL'
    if kind in ('request_null', 'request_null_inout'):
        return 'MPI_REQUEST_NULL' if kind == 'request_null' else '&null_request'
    if kind == 'types':
        return 'good_types'
    if kind == 'counts':
        return 'large_ones' if is_wide(p) else 'ones'
    if kind in ('int', 'count', 'count_any', 'nonneg', 'dest', 'source', 'root', 'rank', 'target', 'tag_send', 'tag_recv', 'keyval'):
        return '1' if kind in ('count', 'count_any', 'nonneg') else '0'
    if kind in ('requests', 'requests_in'):
        return '&null_request'
    if kind in ('string',):
        return '"text"'
    if kind.endswith('_inout') and kind.removesuffix('_inout') in NULLS and kind != 'request_null_inout':
        return f'&good_{kind.removesuffix("_inout")}' if kind in ('comm_inout', 'type_inout', 'errh_inout', 'info_inout', 'win_inout') else None
    if kind in WITHOUT_GOOD:
        return None
    return '(void *)space' if '*' in p['type'] or '[' in p['type'] or 'function' in p['type'] else '0'


def bad(kind, f, kinds, lengths, i):
    """(expression, class) pairs."""
    if kind in ('buf', 'buf_coll') and (is_blocks(kinds, i) or any(k in kinds[i + 1:] for k in ('count', 'count_any'))):
        # Where there are neighbours, none of them may send or receive anything.
        wrong = ['(void *)0', 'MPI_BUFFER_AUTOMATIC'] + (['MPI_IN_PLACE'] if kind == 'buf' else [])
        return [] if 'eighbor' in f['name'] else [(v, 'MPI_ERR_BUFFER') for v in wrong]
    if kind == 'counts':
        wide = 'large_' if is_wide(f['params'][i]) else ''
        return [('(void *)0', 'MPI_ERR_ARG'), (f'{wide}minus', 'MPI_ERR_COUNT')]
    if kind == 'types' and lengths[i]:
        wrong = [('(void *)0', 'MPI_ERR_ARG'), *((f'&{v}_type', 'MPI_ERR_TYPE') for v in ['null', *WRONG])]
        return wrong + ([('uncommitted_types', 'MPI_ERR_TYPE')] if lengths[i] in GROUPS else [])
    if lengths[i]:
        return [('(void *)0', 'MPI_ERR_ARG')]
    if kind in HANDLES:
        _, null, error = HANDLES[kind]
        return [(null, error), ('(void *)0', error), *((v, error) for v in [DEAD, *GARBAGE])]
    if kind in WITHOUT_GOOD:
        return [(v, WITHOUT_GOOD[kind]) for v in [NULLS[kind], DEAD, *GARBAGE]]
    if kind in ('comm_named', 'win_named'):
        return [(v, INOUT_CLASS[kind.removesuffix('_named')]) for v in ['(void *)0', DEAD, *GARBAGE]]
    if kind == 'target':
        return [('1', 'MPI_ERR_RANK'), ('-5', 'MPI_ERR_RANK')]
    if kind == 'info':
        return [(v, 'MPI_ERR_INFO') for v in [DEAD, *GARBAGE]]
    if kind in ('count', 'count_any'):
        return [('-1', 'MPI_ERR_COUNT')]
    if kind == 'nonneg':
        return [('-1', 'MPI_ERR_ARG')]
    if kind == 'tag_send':
        return [('-1', 'MPI_ERR_TAG'), ('MPI_ANY_TAG', 'MPI_ERR_TAG')]
    if kind == 'tag_recv':
        return [('-1', 'MPI_ERR_TAG'), ('-7', 'MPI_ERR_TAG')]
    if kind in ('dest', 'source') and 'comm' in kinds:
        return [('1', 'MPI_ERR_RANK'), ('-5', 'MPI_ERR_RANK')]
    if kind == 'rank' and 'comm' in kinds:
        return [('1', 'MPI_ERR_RANK'), ('-1', 'MPI_ERR_RANK')]
    if kind == 'root' and 'comm' in kinds:
        return [('1', 'MPI_ERR_ROOT'), ('-1', 'MPI_ERR_ROOT'), ('MPI_ROOT', 'MPI_ERR_ROOT')]
    if kind in ('requests', 'requests_in'):
        return [('(void *)0', 'MPI_ERR_ARG'), *((f'&{v}_request', 'MPI_ERR_REQUEST') for v in WRONG)]
    if kind in NULL_POINTER:
        return [('(void *)0', 'MPI_ERR_ARG')]
    if kind.endswith('_inout') and kind.removesuffix('_inout') in INOUT_CLASS:
        head = kind.removesuffix('_inout')
        return [(f'&{v}_{head}', INOUT_CLASS[head]) for v in ['null', *WRONG]]
    return []


def calls():
    for f in ABI['functions']:
        row = ROWS.get(f['name']) or ROWS[f['name'].removesuffix('_c')]
        if row.get('errors') in ('none', 'tool', 'errhandler') or f['returns'] != 'int':
            continue
        texts = row['kinds'].split()
        kinds, lengths = [kind_of(k) for k in texts], [length_of(k) for k in texts]
        values = [good(k, p) for k, p in zip(kinds, f['params'])]
        if any(n in NEIGHBOURS for n in lengths):
            values[kinds.index('comm')] = 'grid'
        for i, kind in enumerate(kinds):
            if any(v is None for j, v in enumerate(values) if j != i):
                continue   # no good value exists yet for another argument (files, sessions)
            for expression, error in bad(kind, f, kinds, lengths, i):
                arguments = [expression if j == i else v for j, v in enumerate(values) if kinds[j] != 'varargs']
                yield f['name'], f['params'][i]['name'], expression, error, f'{f["name"]}({", ".join(arguments)})'


PROGRAM = '''
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
static int failures;
static void expect(int code, int wanted, const char *what) {
    int class = -1;
    MPI_Error_class(code, &class);
    if (class == wanted) return;
    printf("%%s: class %%d instead of %%d\\n", what, class, wanted);
    failures++;
}
int main(void) {
    static long space[4096];
    char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const int ones[2] = {1, 1}, minus[2] = {-1, 1};
    static const MPI_Count large_ones[2] = {1, 1}, large_minus[2] = {-1, 1};
%(handles)s
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Info info;
    MPI_Info_create(&info);
    good_info = info;
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_SELF, 1, ones, ones, 0, &grid);
    MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN);
    MPI_Win_create(space, sizeof space, 1, MPI_INFO_NULL, MPI_COMM_SELF, &good_win);
    MPI_Win_set_errhandler(good_win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, good_win);
    MPI_Datatype uncommitted, good_types[2] = {MPI_INT, MPI_INT}, uncommitted_types[2];
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    uncommitted_types[0] = uncommitted_types[1] = uncommitted;
    MPI_Request request;
    int number = 0;
    MPI_Irecv(&number, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
%(calls)s
    /* Nothing of it did harm. */
    int sent = 42;
    if (MPI_Send(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF) != MPI_SUCCESS) failures++;
    if (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS || number != 42) failures++;
    MPI_Info_free(&info);
    MPI_Type_free(&uncommitted);
    MPI_Comm_free(&grid);
    MPI_Win_unlock_all(good_win);
    if (MPI_Win_free(&good_win) != MPI_SUCCESS) failures++;
    MPI_Finalize();
    if (failures) printf("%%d of %(n)d failed\\n", failures);
    return failures != 0;
}
'''


class Negatives(Programs):
    def test_every_bad_argument_gets_its_class(self):
        lines = []
        for function, name, expression, error, call in calls():
            what = f'{function}({name} = {expression})'.replace('"', "'").replace('%', '%%')
            lines.append(f'    expect({call}, {error}, "{what}");')
        self.assertGreater(len(lines), 3500)
        types = {'errh': 'MPI_Errhandler', 'type': 'MPI_Datatype'}
        handles = []
        for head, null in NULLS.items():
            ctype = types.get(head, f'MPI_{head.capitalize()}')
            value = {'comm': 'MPI_COMM_SELF', 'type': 'MPI_INT', 'errh': 'MPI_ERRORS_RETURN'}.get(head, null)
            handles.append(f'    {ctype} null_{head} = {null}, dead_{head} = ({ctype}){DEAD}, good_{head} = {value};')
            handles += [f'    {ctype} {name}_{head} = ({ctype}){v};' for name, v in zip(WRONG[1:], GARBAGE)]
        text = PROGRAM % {'handles': '\n'.join(handles), 'calls': '\n'.join(lines), 'n': len(lines)}
        done = self.must([self.link(self.write('negatives.c', text), '-std=gnu11', '-w')])
        self.assertEqual(done.stdout, '')


if __name__ == '__main__':
    common.main()
