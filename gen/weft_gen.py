#!/usr/bin/env python3
"""Generates mpi.h, the entry points, the export list and the handles' numbers from tables/. Python standard library only.

    weft_gen.py --list                                   names of the files that go to --out
    weft_gen.py --tables DIR --out DIR --include DIR     writes them, and mpi.h to --include
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from entries import write_api_table, write_entries  # noqa: E402
from handle_numbers import write_numbers           # noqa: E402
from header import write_header                     # noqa: E402
from tables import Tables                           # noqa: E402

EXPORTS = '{ global: MPI_*; PMPI_*; MPIX_*; PMPIX_*; OPI_*; weft_*; local: *; };\n'


def save(path, text):
    """Leaves an unchanged file alone, so that nothing is compiled again for it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding='utf-8') as f:
            if f.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument('--tables', default=os.path.join(here, 'tables'))
    parser.add_argument('--out')
    parser.add_argument('--include')
    parser.add_argument('--list', action='store_true')
    args = parser.parse_args()
    tables = Tables(args.tables)
    if args.list:
        files = [f'entry_{area}.cpp' for area in tables.areas()] + ['entry_table.cpp', 'exports.map', 'handle_numbers.hpp']
        print(';'.join(files), end='')
        return
    for area in tables.areas():
        save(os.path.join(args.out, f'entry_{area}.cpp'), write_entries(tables, area))
    save(os.path.join(args.out, 'entry_table.cpp'), write_api_table(tables))
    save(os.path.join(args.out, 'exports.map'), EXPORTS)
    save(os.path.join(args.out, 'handle_numbers.hpp'), write_numbers(tables))
    save(os.path.join(args.include, 'mpi.h'), write_header(tables))


if __name__ == '__main__':
    main()
