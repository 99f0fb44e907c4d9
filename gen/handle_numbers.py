"""Writes the numbers of predefined handles for the library's own use, under names that floors below MPI's may speak."""

KINDS = ('Datatype', 'Op', 'Comm', 'Group', 'Win', 'File', 'Session', 'Message', 'Info', 'Errhandler', 'Request')
# Types and operations are called as C++'s own words are.
PREFIXES = {'Datatype': 'type_', 'Op': 'op_'}


def number_name(name, kind):
    """MPI_INT -> type_int, MPI_DATATYPE_NULL -> type_null, MPI_COMM_WORLD -> comm_world."""
    word = name.removeprefix('MPI_').lower().removeprefix('datatype_')
    prefix = PREFIXES.get(kind, '')
    return word if word.startswith(prefix) else prefix + word


def write_numbers(tables):
    out = ['// The numbers of predefined handles, which the ABI fixes. Any floor may include this; constants.',
           '// Generated from tables/mpi_abi.json; see gen/handle_numbers.py.', '#pragma once', '#include <cstdint>', '',
           'namespace weft::number {', '', 'enum : int16_t {']
    for name, handle in tables.abi['handles'].items():
        kind = handle['type'].removeprefix('MPI_')
        if kind in KINDS:
            out.append(f'    {number_name(name, kind)} = {handle["value"]:#x},')
    return '\n'.join(out + ['};', '', '}  // namespace weft::number', ''])
