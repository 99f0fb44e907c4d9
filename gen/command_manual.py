#!/usr/bin/env python3
"""Writes a command's manual page from what the command says of itself when asked for help. Python standard library only.

    command_manual.py --name weft --summary TEXT --version V [--variables] COMMAND...     the page goes to stdout

Of the help: lines of `usage:` are the synopsis, lines that begin with two blanks and a word are options or commands, lines
below that begin further right go on, and all others are paragraphs. --variables adds the control variables.
"""
import argparse
import json
import os
import re
import subprocess


def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text.startswith(('.', "'")) else text


def ask(command, *words):
    # Nobody's settings belong into the page.
    env = {k: v for k, v in os.environ.items() if not k.startswith(('WEFT_', 'MPI_'))}
    return subprocess.run([*command, *words], check=True, capture_output=True, text=True, env=env).stdout


def synopsis_and_body(help_text):
    synopsis, body = [], []
    for line in help_text.splitlines():
        usage = re.match(r'usage: (.*)', line, re.I)
        item = re.match(r'  (\S.*?)(?:  +(\S.*))?$', line)
        if usage:
            synopsis.append(usage[1])
        elif line.startswith('   ') and body:
            body[-1] += ' ' + roff(line.strip())
        elif item:
            body.append(f'.TP\n.B {roff(item[1])}\n{roff(item[2] or "")}'.rstrip())
        elif line.strip():
            body.append(f'.PP\n{roff(line.strip())}')
    return synopsis, body


def variables(command):
    out = ['.SH ENVIRONMENT', 'The control variables of the library; \\fBweft info \\-\\-cvars\\fR shows their values and where those come from.']
    for name, row in json.loads(ask(command, 'info', '--cvars', '--json')).items():
        out.append(f'.TP\n.B {name}={roff(row["value"])}\n{roff(row["what"])} Evidence: {roff(row["evidence"])}.')
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--name', required=True)
    parser.add_argument('--summary', required=True)
    parser.add_argument('--version', required=True)
    parser.add_argument('--variables', action='store_true')
    parser.add_argument('command', nargs='+')
    args = parser.parse_args()
    synopsis, body = synopsis_and_body(ask(args.command, '-h'))
    page = [f'.TH {args.name.upper()} 1 "" "Weft {args.version}"', '.SH NAME', f'{args.name} \\- {roff(args.summary)}', '.SH SYNOPSIS']
    page += [f'.B {roff(line)}' for line in synopsis] + ['.SH DESCRIPTION'] + body
    if args.variables:
        page += variables(args.command)
    print('\n'.join(page))


if __name__ == '__main__':
    main()
