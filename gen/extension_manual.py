#!/usr/bin/env python3
"""Writes the manual pages of what Weft offers beyond the standard, from the comments and declarations of weft.h: a page for the calls
that share a comment. A comment before another one is about all calls up to the next such one. Python standard library only.

    extension_manual.py --header FILE --out DIR --version V
"""
import argparse
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from manual import roff  # noqa: E402

DECLARATION = re.compile(r'(?:[\w ]+?[ *]+)(\w+)\(.*\)')
CONSTANT = re.compile(r'#define (MPIX_\w+) ')


def pieces(text):
    """('comment' or 'code', its text), in order; of the part that C++ sees, too."""
    body = text[text.index('extern "C" {'):]
    body = body[body.index('#endif') + len('#endif'):body.rindex('#if defined(__cplusplus)')]
    for comment, code in re.findall(r'/\*(.*?)\*/|([^/]+)', body, re.S):
        if comment:
            yield 'comment', ' '.join(comment.split())
        elif code.strip():
            yield 'code', code


def declarations(code):
    """(name, declaration) of each call and constant, without the names of the profiling interface."""
    found = []
    for line in re.sub(r',\s*\n\s+', ', ', code).splitlines():
        line = line.strip().removesuffix(';')
        match = CONSTANT.match(line) or DECLARATION.fullmatch(line)
        if match and not match[1].startswith('PMPIX_'):
            found.append((match[1], line if line.startswith('#') else line + ';'))
    return found


def groups(text):
    """(what is said of all calls here, what is said of these, their declarations)"""
    chapter, comment = '', ''
    for kind, piece in pieces(text):
        if kind == 'comment':
            chapter, comment = comment or chapter, piece
        else:
            yield chapter, comment, declarations(piece)
            comment = ''


def said(text):
    """Names of parameters, between backquotes in a comment, are set in italics."""
    return re.sub(r'`([^`]+)`', r'\\fI\1\\fR', roff(text))


def page(chapter, comment, declared, version):
    names = [name for name, _ in declared]
    out = [f'.TH {names[0].upper()} 3 "" "Weft {version}" "Weft"', '.SH NAME', f'{roff(", ".join(names))} \\- an extension of Weft',
           '.SH SYNOPSIS', '.nf', '#include <weft.h>', '', *[roff(line) for _, line in declared], '.fi', '.SH DESCRIPTION', said(comment)]
    if chapter:
        out += ['.SH NOTES', said(chapter)]
    if any(name.startswith('MPIX_') and '(' in line and line[0] != '#' for name, line in declared):
        out += ['.PP', 'Each call has a second name that begins with PMPIX_, for tools that take the place of the first.']
    return '\n'.join(out) + '\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--header', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('--version', required=True)
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    with open(args.header, encoding='utf-8') as f:
        text = f.read()
    for chapter, comment, declared in groups(text):
        for i, (name, _) in enumerate(declared):
            with open(os.path.join(args.out, name + '.3'), 'w', encoding='utf-8') as out:
                out.write(f'.so man3/{declared[0][0]}.3\n' if i else page(chapter, comment, declared, args.version))


if __name__ == '__main__':
    main()
