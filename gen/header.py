"""Writes mpi.h: every type, constant and prototype of the ABI, for C and C++."""


def handle_macro(name, type_name, value):
    return f'#define {name:<34} (({type_name})0x{value:08x})' if value >= 0 else f'#define {name:<34} (({type_name}){value})'


def write_header(tables):
    abi = tables.abi
    deprecated = abi['deprecated_constants']
    out = [
        '/* mpi.h: the C interface of MPI %d.%d on its standard ABI %d.%d. Generated from tables/mpi_abi.json. */'
        % (*abi['mpi_version'], *abi['abi_version']),
        '#ifndef MPI_H_INCLUDED', '#define MPI_H_INCLUDED', '#define MPI_H_ABI', '',
        '#include <stdint.h>', '',
        '/* Define WEFT_WARN_DEPRECATED before including this header to be told of deprecated functions. */',
        '#if defined(WEFT_WARN_DEPRECATED) && defined(__GNUC__)',
        '#define MPI_DEPRECATED_(since) __attribute__((deprecated("deprecated since " since)))',
        '#else', '#define MPI_DEPRECATED_(since)', '#endif', '',
        '#if defined(__cplusplus)', 'extern "C" {', '#endif', '',
        '/* Integer types */',
    ]
    for name, ctype in abi['integer_types'].items():
        abi_name = name.replace('MPI_', 'MPI_ABI_')
        out.append(f'#define {abi_name} {abi["aliases"].get(abi_name, ctype)}')
    out += [f'typedef {name.replace("MPI_", "MPI_ABI_")} {name};' for name in abi['integer_types']]
    out += ['', '/* Handles */']
    out += [f'typedef {ctype}{name};' for name, ctype in abi['handle_types'].items()]
    out += ['', 'typedef struct MPI_Status {']
    out += [f'    {field};' for field in abi['status']['fields']]
    out += ['} MPI_Status;', '']
    for name, members in abi['enum_types'].items():
        out.append(f'typedef enum {name} {{')
        out += [f'    {m} = {abi["integers"][m]},' for m in members[:-1]]
        out += [f'    {members[-1]} = {abi["integers"][members[-1]]}', f'}} {name};']
    out += ['', '/* Callbacks */']
    for c in abi['callbacks']:
        note = f' MPI_DEPRECATED_("{deprecated[c["name"]]}")' if c['name'] in deprecated else ''
        out.append(f'typedef {c["returns"]} ({c["name"]})({c["params"]}){note};')
    out += [f'typedef {target} {name};' for name, target in abi['typedefs'].items()]
    out += ['', '/* Integer constants */']
    in_enums = {m for members in abi['enum_types'].values() for m in members}
    for name, value in abi['integers'].items():
        if name not in in_enums:
            out.append(f'#define {name:<34} {value if value >= 0 else f"({value})"}')
    out += ['', '/* Predefined handles */']
    out += [handle_macro(name, h['type'], h['value']) for name, h in abi['handles'].items()]
    out += [f'#define {name:<34} {target}' for name, target in abi['aliases'].items() if not name.startswith('MPI_ABI_')]
    out += ['', '/* Special addresses */']
    out += [f'#define {name:<34} (({a["type"]}){a["value"]})' for name, a in abi['addresses'].items()]
    for prefix, title in (('', 'Functions'), ('P', 'The same under their profiling names')):
        out += ['', f'/* {title} */']
        for f in tables.functions:
            note = f' MPI_DEPRECATED_("{f.deprecated}")' if f.deprecated else ''
            out.append(f'{f.declaration(prefix)}{note};')
    out += ['', '#if defined(__cplusplus)', '}', '#endif', '', '#endif', '']
    return '\n'.join(out)
