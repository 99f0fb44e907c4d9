"""The header and the library against the facts of the ABI: names, values, signatures, struct tags, symbols, NEEDED."""
import os
import re

import common
from common import ABI, LIB, LIBRARY, Programs, run


def parameter(p):
    base, bracket, rest = p['type'].partition('[')
    return base.strip() + (' ' if bracket else '') + bracket + rest


def pointer_type(f, name):
    params = ', '.join(parameter(p) for p in f['params']) or 'void'
    return f'{f["returns"]} (*{name})({params})'


class Header(Programs):
    def test_constants(self):
        lines = ['#include <mpi.h>', '#include <stddef.h>']
        # An address is no constant expression for an assertion: it initialises an object that the program compares.
        for name, value in ABI['integers'].items():
            lines.append(f'_Static_assert({name} == {value}, "{name}");')
        for name in ABI['integer_types']:
            lines.append(f'_Static_assert(sizeof({name}) == 8 && ({name})-1 < 0, "{name}");')
        lines.append(f'_Static_assert(sizeof(MPI_Status) == {ABI["status"]["bytes"]}, "status");')
        for i, field in enumerate(('MPI_SOURCE', 'MPI_TAG', 'MPI_ERROR', 'MPI_internal')):
            lines.append(f'_Static_assert(offsetof(MPI_Status, {field}) == {4 * i}, "{field}");')
        lines.append('int main(void) {\n    int bad = 0;')
        for name, h in {**ABI['handles'], **ABI['addresses']}.items():
            lines.append(f'    {{ {h["type"]} v = {name}; if ((long)v != {h["value"]}) bad = 1; }}')
        for name, target in ABI['aliases'].items():
            if not name.startswith('MPI_ABI_'):
                lines.append(f'    if ({name} != {target}) bad = 1;')
        lines.append('    return bad;\n}')
        self.must([self.compile(self.write('constants.c', '\n'.join(lines)), '-std=c11', '-Wall', '-Wextra', '-Werror')])

    def test_prototypes(self):
        for suffix, standard in (('c', '-std=c99'), ('cpp', '-std=c++11')):
            lines = ['#include <mpi.h>', 'int main(void) {']
            for f in ABI['functions']:
                for prefix in ('', 'P'):
                    lines.append(f'    {{ {pointer_type(f, "f")} = {prefix}{f["name"]}; (void)f; }}')
            lines.append('    return 0;\n}')
            source = self.write(f'prototypes.{suffix}', '\n'.join(lines) + '\n')
            self.link(source, standard, '-Wall', '-Wextra', '-Werror', '-pedantic')

    def test_callbacks_and_types(self):
        lines = ['#include <mpi.h>']
        for i, c in enumerate(ABI['callbacks']):
            lines.append(f'{c["returns"]} f{i}({c["params"]});\nstatic {c["name"]} *const p{i} = f{i};')
        for i, (name, target) in enumerate(ABI['typedefs'].items()):
            lines.append(f'static {name} *const t{i} = ({target} *)0;')
        for i, (name, ctype) in enumerate(ABI['handle_types'].items()):
            lines.append(f'static {name} const h{i} = ({ctype})0;')
        self.compile(self.write('callbacks.c', '\n'.join(lines) + '\n'), '-fsyntax-only', '-Werror', '-Wall',
                     '-Wno-unused-variable', '-Wno-unused-const-variable')

    def test_mangling_of_struct_tags(self):
        lines = ['#include <mpi.h>']
        lines += [f'void take{i}({name}) {{}}' for i, name in enumerate(ABI['handle_types'])]
        lines += ['void status(MPI_Status *) {}', 'int main() { return 0; }']
        program = self.compile(self.write('mangling.cpp', '\n'.join(lines)))
        names = run(['nm', program]).stdout
        for i, ctype in enumerate(ABI['handle_types'].values()):
            tag = re.fullmatch(r'struct (\w+) \*', ctype).group(1)
            self.assertIn(f'take{i}P{len(tag)}{tag}', names)
        self.assertIn('_Z6statusP10MPI_Status', names)

    def test_deprecated_is_silent_unless_asked(self):
        source = self.write('old.c', '#include <mpi.h>\nint f(void) { int n; return MPI_Type_size_x(MPI_INT, (void *)&n); }\n')
        base = [common.args.cc, '-I', common.INCLUDE, '-fsyntax-only', source]
        self.assertEqual(run(base).stderr, '')
        self.assertIn('deprecated', run(base + ['-DWEFT_WARN_DEPRECATED']).stderr)


class Library(Programs):
    def symbols(self):
        out = {}
        for line in self.must(['nm', '-D', '--defined-only', LIBRARY]).stdout.splitlines():
            _, kind, name = line.split()
            out[name] = kind
        return out

    def test_every_function_is_exported_twice(self):
        symbols = self.symbols()
        for f in ABI['functions']:
            self.assertEqual(symbols.get('P' + f['name']), 'T', f'P{f["name"]}')
            self.assertEqual(symbols.get(f['name']), 'W', f['name'])

    def test_nothing_else_is_exported(self):
        wanted = {f['name'] for f in ABI['functions']}
        for name in self.symbols():
            self.assertRegex(name, r'^(MPI_|PMPI_|MPIX_|PMPIX_|OPI_|weft_)')
            if name.startswith(('MPI_', 'PMPI_')):
                self.assertIn(name.removeprefix('P'), wanted)

    def test_needs_nothing_but_libc(self):
        dynamic = self.must(['readelf', '-d', LIBRARY]).stdout
        needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic))
        sanitizers = {n for n in needed if n.startswith(('libasan', 'libubsan', 'libtsan'))}
        self.assertLessEqual(needed - sanitizers, {'libc.so.6', 'ld-linux-x86-64.so.2', 'libm.so.6', 'libpthread.so.0',
                                                   'libdl.so.2', 'librt.so.1'})
        self.assertEqual(re.findall(r'\(SONAME\).*\[(.*)\]', dynamic), [ABI['soname']])
        self.assertEqual(os.readlink(os.path.join(LIB, 'libmpi_abi.so')), ABI['soname'])

    def test_no_dynamic_initialisers_and_no_unwinder(self):
        undefined = self.must(['nm', '-D', '--undefined-only', LIBRARY]).stdout
        for runtime in ('_Znw', '_Zdl', '__cxa_throw', '__cxa_guard', '_Unwind_', '__gxx_personality'):
            self.assertNotIn(runtime, undefined)

    def test_list_of_functions(self):
        source = self.write('list.c', '#include <stdio.h>\n#include <weft.h>\n'
                            'int main(void) { puts(weft_version()); fputs(weft_api_list(), stdout); return 0; }\n')
        lines = self.must([self.link(source)]).stdout.splitlines()
        listed = dict(line.split() for line in lines[1:])
        self.assertEqual(set(listed), {f['name'] for f in ABI['functions']})
        self.assertLessEqual(set(listed.values()), {'0', '1'})

    def test_loads_locally_and_closes_without_harm(self):
        source = self.write('load.c', r'''
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    for (int i = 0; i < 3; i++) {
        void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (!lib) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        if (dlsym(RTLD_DEFAULT, "MPI_Get_version")) return 2;
        int (*get_version)(int *, int *) = (int (*)(int *, int *))dlsym(lib, "MPI_Get_version");
        int major = 0, minor = -1;
        if (!get_version || get_version(&major, &minor) != 0 || major != 5 || minor != 0) return 3;
        if (dlclose(lib) != 0) return 4;
        if (get_version(&major, &minor) != 0) return 5;   /* nodelete: its code stays */
    }
    return argc != 2;
}
''')
        self.must([self.compile(source, '-ldl'), LIBRARY])

    def test_static_archive(self):
        if not os.path.exists(os.path.join(LIB, 'libmpi_abi.a')):
            self.skipTest('no static archive was built')
        source = self.write('static.c', '#include <mpi.h>\nint main(void) { int a, b; MPI_Get_version(&a, &b); return a != 5; }\n')
        flags = ['-O2', os.path.join(LIB, 'libmpi_abi.a'), '-lpthread', '-ldl']
        plain = self.compile(source, '-fno-lto', *flags)
        self.must([plain])
        self.assertNotIn('libmpi_abi', self.must(['readelf', '-d', plain]).stdout)
        # The same with link-time optimisation, where the archive carries code for it: the aliases must survive.
        if 'WEFT_FAT_LTO:BOOL=ON' in open(os.path.join(common.args.build, 'CMakeCache.txt'), encoding='utf-8').read():
            text = open(source, encoding='utf-8').read().replace('return', 'PMPI_Get_version(&a, &b); return')
            self.must([self.compile(self.write('optimised.c', text), '-flto', *flags)])

    def test_the_archive_hides_its_allocator(self):
        """A program may have mimalloc of its own."""
        if not os.path.exists(os.path.join(LIB, 'libmpi_abi.a')):
            self.skipTest('no static archive was built')
        names = re.findall(r'^[0-9a-f]+ [A-Z] (_*mi_\w+)', self.must(['nm', '-g', '--defined-only', os.path.join(LIB, 'libmpi_abi.a')]).stdout, re.M)
        self.assertEqual(names, [])


TOOL = r'''
#include <mpi.h>
#include <stdio.h>
int MPI_Get_version(int *version, int *subversion) {
    int e = PMPI_Get_version(version, subversion);
    printf("tool saw %d.%d\n", *version, *subversion);
    *version += 100;
    return e;
}
'''


class Profiling(Programs):
    def test_a_preloaded_tool_intercepts(self):
        tool = self.path('libtool.so')
        self.must([common.args.cc, '-shared', '-fPIC', '-I', common.INCLUDE, self.write('tool.c', TOOL), '-o', tool])
        app = self.link(self.write('app.c', '#include <mpi.h>\n#include <stdio.h>\nint main(void) { int a, b; '
                                   'MPI_Get_version(&a, &b); printf("program saw %d.%d\\n", a, b); return 0; }\n'))
        self.assertEqual(self.must([app]).stdout, 'program saw 5.0\n')
        done = self.must([app], env={**os.environ, 'LD_PRELOAD': tool})
        self.assertEqual(done.stdout, 'tool saw 5.0\nprogram saw 105.0\n')


if __name__ == '__main__':
    common.main()
