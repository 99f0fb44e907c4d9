"""Writes mpi.h: every type, constant and prototype of the ABI, for C and C++, and what programs need beside them: Fortran's
handles, and on demand the names that MPI-3.0 removed. Both are inline, so that a program needs nothing but the ABI."""
import os

FORTRAN = """
/* Fortran's handles, INTEGERs of the default size: inline functions on the standard's integers for handles. Define
   WEFT_NO_FORTRAN_HANDLES before including this header if a Fortran layer brings its own. */
#if !defined(WEFT_NO_FORTRAN_HANDLES)
typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;

#define MPI_F_STATUS_IGNORE ((MPI_Fint *)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *)0)
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status *)0)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *)0)
"""
STATUSES = """
/* A status in Fortran is MPI_F_STATUS_SIZE integers in the order of C's fields, or the same structure. */
MPI_INLINE_ int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status) {
    int i;
    if (!c_status || !f_status) return MPI_ERR_ARG;
    f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
    f_status[MPI_F_TAG] = c_status->MPI_TAG;
    f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
    for (i = 0; i < MPI_F_STATUS_SIZE - 3; i++) f_status[3 + i] = c_status->MPI_internal[i];
    return MPI_SUCCESS;
}
MPI_INLINE_ int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status) {
    int i;
    if (!c_status || !f_status) return MPI_ERR_ARG;
    c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
    c_status->MPI_TAG = f_status[MPI_F_TAG];
    c_status->MPI_ERROR = f_status[MPI_F_ERROR];
    for (i = 0; i < MPI_F_STATUS_SIZE - 3; i++) c_status->MPI_internal[i] = f_status[3 + i];
    return MPI_SUCCESS;
}
MPI_INLINE_ int MPI_Status_c2f08(const MPI_Status *c_status, MPI_F08_status *f08_status) {
    if (!c_status || !f08_status) return MPI_ERR_ARG;
    *f08_status = *c_status;
    return MPI_SUCCESS;
}
MPI_INLINE_ int MPI_Status_f082c(const MPI_F08_status *f08_status, MPI_Status *c_status) {
    return MPI_Status_c2f08(f08_status, c_status);
}
MPI_INLINE_ int MPI_Status_f2f08(const MPI_Fint *f_status, MPI_F08_status *f08_status) {
    return MPI_Status_f2c(f_status, f08_status);
}
MPI_INLINE_ int MPI_Status_f082f(const MPI_F08_status *f08_status, MPI_Fint *f_status) {
    return MPI_Status_c2f(f08_status, f_status);
}
#endif
"""


def fortran_handles(functions):
    """The C and Fortran forms of every handle that has an integer, and statuses."""
    out = [FORTRAN]
    for f in functions:
        if not f.name.endswith('_toint'):
            continue
        stem, handle = f.name.removesuffix('_toint'), f.params[0]
        out += [f'MPI_INLINE_ MPI_Fint {stem}_c2f({handle.type} {handle.name}) {{ return {f.name}({handle.name}); }}',
                f'MPI_INLINE_ {handle.type} {stem}_f2c(MPI_Fint {handle.name}) {{ return {stem}_fromint({handle.name}); }}']
    return out + [STATUSES]


def removed_names():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'removed.h'), encoding='utf-8') as f:
        return f.read()


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
        '/* For functions that this header defines. */',
        '#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)', '#define MPI_INLINE_ static inline',
        '#elif defined(__GNUC__)', '#define MPI_INLINE_ static __inline__', '#else', '#define MPI_INLINE_ static', '#endif', '',
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
    out += fortran_handles(tables.functions) + [removed_names()]
    out += ['#if defined(__cplusplus)', '}', '#endif', '', '#endif', '']
    return '\n'.join(out)
