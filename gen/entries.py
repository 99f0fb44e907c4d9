"""Writes the entry points: strong PMPI_X and weak MPI_X, which resolve handles, check arguments by kind and call the
implementation that the function's row names. What a kind means to the machine is said here, once."""

HANDLES = {'comm': 'Comm', 'group': 'Group', 'op': 'Op', 'errh': 'Errhandler', 'win': 'Win', 'file': 'File',
           'session': 'Session', 'message': 'Message', 'request': 'Request', 'info': 'Info', 'type': 'Type'}
CPP = {'comm': 'obj::Comm', 'group': 'obj::Group', 'op': 'op::Op', 'errh': 'obj::Errhandler', 'win': 'obj::Win',
       'file': 'obj::File', 'session': 'obj::Session', 'message': 'obj::Message', 'request': 'obj::Request',
       'info': 'obj::Info', 'type': 'type::Type'}
OWNERS = ('comm', 'comm_named', 'comm_inout', 'win', 'win_named', 'win_inout', 'file', 'file_inout', 'session',
          'session_inout')


def family(kind):
    """comm_inout -> ('comm', 'inout'); None for kinds that are no handle."""
    head, _, tail = kind.partition('_')
    return (head, tail) if head in HANDLES and tail in ('', 'inout', 'out', 'null', 'req', 'any', 'named', 'null_inout') else None


def resolve(p, same=None):
    """The line that turns a handle into an object, or None. `same`: a parameter that usually has the same handle."""
    fam = family(p.kind)
    if fam is None or p.kind in ('comm_null', 'file_null'):
        return None
    head, tail = fam
    cpp = f'{"const " if head == "op" and tail == "" else ""}{CPP[head]}'
    if tail == 'out':
        return f'{CPP[head]}* {p.name}_ = nullptr;'
    handle = p.name
    if tail.endswith('inout'):
        handle = f'bindings::load({p.name})'
    known = f'{handle} == {same.name} ? {same.name}_ : ' if same else ''
    return f'{cpp}* {p.name}_ = {known}obj::{head}_of(proc, {handle});'


def resolve_all(f):
    """The lines that turn all handles into objects. An attempt that checks its arguments wants one datatype on both sides."""
    first = f.of_kind('type') if f.attempt_checks else None
    return [line for line in (resolve(p, first if p.kind == 'type' and p is not first else None) for p in f.params) if line]


def settle(f, p):
    """The line that finds out what a count means whose type callers do not agree upon; the pieces are the argument before it."""
    if p.count is None or p.count.kind != 'count_any':
        return None
    n = p.count.name
    return f'const int64_t {n}_ = bindings::count_meant({n}, {f.params[p.count.index - 1].name}, {p.name}, {p.datatype.name}_);'


def forgiven(f):
    """Lines of a rejection: where there is nothing to transfer, a null datatype is as good as any. Reductions need one that
    their operation is defined on."""
    if f.of_kind('op'):
        return []
    out = []
    for p in f.params:
        if p.count is not None and p.count.kind == 'count' and p.datatype.kind == 'type':
            args = ', '.join('MPI_BYTE' if q is p.datatype else q.name for q in f.params)
            out.append(f'    if ({p.count.name} == 0 && {p.datatype.name} == MPI_DATATYPE_NULL) return P{f.name}({args});')
    return out


def condition(p, owner):
    parts = []
    if p.cond:
        parts.append(f'bindings::at_{p.cond}(*{owner}_, root)')
    if p.in_place_of:
        parts.append(f'{p.in_place_of} != MPI_IN_PLACE')
    return ' && '.join(parts)


LENGTHS = {'peers': 'bindings::peers(*{0})', 'members': 'bindings::members(*{0})', 'sources': 'bindings::sources(*{0})',
           'destinations': 'bindings::destinations(*{0})'}


def length(p, owner):
    """How many elements an array has."""
    return LENGTHS[p.length].format(owner) if p.length in LENGTHS else p.length


def check(f, p):
    """The C++ expression that is true for a good argument, or None where every value is good."""
    n, k = p.name, p.kind
    comm = f.of_kind('comm')
    owner = f'{comm.name}_' if comm else None
    fam = family(k)
    if fam and k not in ('comm_null', 'file_null'):
        head, tail = fam
        if tail == 'out':
            return f'{n} != nullptr'
        base = {'type': f'bindings::usable({n}_)', 'type_any': f'bindings::known({n}_)', 'type_named': f'bindings::is_type({n}_)',
                'comm_named': f'bindings::is_comm_or_null({n}_)', 'win_named': f'bindings::is_win_or_null({n}_)',
                'type_null': f'bindings::is_type_or_null({n}_)',
                'type_inout': f'bindings::is_type({n}_)', 'info': f'bindings::good_or_null({n}_)', 'info_req': f'bindings::good_info({n}_)',
                'info_inout': f'bindings::good_info({n}_)',
                'request': f'bindings::good_request({n}_)', 'request_inout': f'bindings::good_request({n}_)'}
        return base.get(k, f'bindings::good<Kind::{"errhandler" if head == "errh" else head}>({n}_)')
    if k in ('count', 'count_any', 'nonneg', 'tag_send'):
        return f'{p.value} >= 0'
    if k == 'tag_recv':
        return f'bindings::good_recv_tag({n})'
    if k == 'dest' and owner:
        return f'{owner}->valid_peer({n})'
    if k == 'source' and owner:
        return f'bindings::good_source(*{owner}, {n})'
    if k == 'root' and owner:
        return f'bindings::good_root(*{owner}, {n})'
    if k == 'rank' and owner:
        return f'bindings::good_rank(*{owner}, {n})'
    if k == 'buf' and p.count:
        pieces = f'{f.params[p.count.index - 1].name} == 0 ? 0 : ' if p.count.kind == 'count_any' else ''
        return f'bindings::good_buffer({n}, {pieces}{p.count.value}, {p.datatype.name}_)'
    if k == 'buf_coll' and p.blocks:
        # Of the blocks that all members reduce each receives its own.
        mine = p.blocks.length == 'members' and not p.type.startswith('const')
        blocks = f'bindings::ints({p.blocks.name})' + (f'.from({owner}->rank), 1' if mine else f', {length(p.blocks, owner)}')
        types = p.datatype.name + ('_' if p.datatype.kind == 'type' else '')
        return f'bindings::good_blocks({n}, {blocks}, {types}, *{owner})'
    if k in ('counts', 'types') and p.length:
        # What a call makes a type of need not be committed.
        what = k if k == 'counts' or p.length in LENGTHS else 'known_types'
        if what == 'types':
            counts = next(q for q in reversed(f.params[:p.index]) if q.kind == 'counts')
            return f'bindings::good_types({n}, {length(p, owner)}, bindings::ints({counts.name}))'
        return f'bindings::good_{what}({n}, {length(p, owner)})'
    if p.length:
        return f'bindings::good_array({n}, {length(p, owner)})'
    if k == 'buf_coll' and p.count:
        return f'bindings::good_coll_buffer({n}, {p.count.value}, {p.datatype.name}_, *{owner})'
    if k in ('requests', 'requests_in'):
        return f'bindings::good_requests({n}, {f.params[p.index - 1].name})'
    if k in ('string', 'string_out', 'flag_out', 'int_out', 'count_out', 'size_out', 'int_inout', 'addr_out', 'status_in',
             'status_inout', 'keyval_out', 'keyval_inout'):
        return f'{n} != nullptr'
    return None


def checks(f):
    """All checks, the owner's first, then the other handles, then the rest: a later one may rely on the objects."""
    comm = f.of_kind('comm')

    def rank(p):
        return 0 if p is comm else 1 if family(p.kind) else 4 if p.kind in ('buf', 'buf_coll') else 3 if p.length else 2
    out = []
    if f.when == 'active' and not f.of_kind(*OWNERS):
        out.append('bindings::active(proc)')
    for p in sorted(f.params, key=rank):
        expression = check(f, p)
        if expression is None:
            continue
        cond = condition(p, comm.name if comm else None)
        out.append(f'(!({cond}) || {expression})' if cond else expression)
    return out


def argument(f, p):
    n, k = p.name, p.kind
    fam = family(k)
    if fam and k not in ('comm_null', 'file_null'):
        head, tail = fam
        if tail in ('inout', 'out', 'null_inout'):
            return f'&{n}_'
        if k == 'info':
            return f'{n}_'
        return f'*{n}_'
    if k == 'comm_null':
        return f'obj::comm_or_null(proc, {n})'
    if k == 'file_null':
        return f'obj::file_or_null(proc, {n})'
    if k in ('buf', 'buf_coll'):
        data = f'const_cast<void*>(static_cast<const void*>({n}))'
        return f'type::Buffer{{{data}, {p.count.value}, {p.datatype.name}_}}' if p.count else data
    if k in ('dest', 'source') and p.tag:
        return f'p2p::Envelope{{{n}, {p.tag.name}}}'
    if k in ('counts', 'displs') or (k == 'ints' and p.wide_twin):
        return f'bindings::ints({n})'
    if k in ('status', 'statuses'):
        return f'reinterpret_cast<obj::Status*>({n})'
    if k in ('requests', 'requests_in'):
        return f'reinterpret_cast<obj::Request*{" const" if k == "requests_in" else ""}*>({n})'
    if k == 'status_in':
        return f'*reinterpret_cast<const obj::Status*>({n})'
    if k == 'status_inout':
        return f'*reinterpret_cast<obj::Status*>({n})'
    if local(p):
        return f'&{n}_'
    return n


def local(p, attempt=False):
    """(declaration, what follows success) for results that pass through a local; None for the others. An attempt never
    makes the message that is nobody's."""
    n = p.name
    fam = family(p.kind)
    if fam and fam[1] in ('inout', 'out', 'null_inout'):
        new = '_new' if p.kind == 'request_out' or (attempt and p.kind == 'message_out') else ''
        return None, f'*{n} = obj::handle_of{new}({n}_);'
    if p.kind == 'flag_out':
        return f'bool {n}_ = false;', f'*{n} = {n}_;'
    if p.kind == 'count_out':
        return f'int64_t {n}_ = 0;', f'bindings::store_or_undefined({n}, {n}_);'
    if p.kind == 'size_out' or (p.kind == 'int_inout' and p.wide_twin):
        start = f'*{n}' if p.kind == 'int_inout' else '0'
        return f'int64_t {n}_ = {start};', f'if (!bindings::store({n}, {n}_)) return bindings::too_large(fn, OWNER, {p.index});'
    return None


def call_arguments(f, text):
    """(callee, [C++ arguments]) from a row's impl: `ns::name` alone takes all parameters in order."""
    callee, bracket, rest = text.partition('(')
    if not bracket:
        return callee, [argument(f, p) for p in f.params if not p.absorbed and p.kind != 'varargs']
    args = []
    for token in [t.strip() for t in rest.removesuffix(')').split(',') if t.strip()]:
        p = f.param(token)
        args.append(argument(f, p) if p else ('true' if f.large else 'false') if token == 'large' else token)
    return callee, args


def error_owner(f):
    """The expression for the object whose error handler is used; null: MPI_COMM_SELF's."""
    if f.errors == 'errhandler':
        return f.of_kind('errh').name + '_'
    if f.errors in ('comm', 'win', 'file', 'session'):
        p = f.of_kind(f.errors, f.errors + '_inout')
        if p:
            return p.name + '_'
    return 'nullptr'


def words(f):
    return ', '.join(f'bindings::word({p.name})' for p in f.params if p.kind != 'varargs')


def names(f):
    return ', '.join(p.name for p in f.params if p.kind != 'varargs')


def entry(f, prefix=''):
    """The entry point's declaration. One that mpi.h declares otherwise has a name of its own, for the compiler alone."""
    if f.of_kind('count_any'):
        prefix = 'any_' + prefix
    return f.declaration(prefix, register=True).replace('(void)', '()')


def write_function(f):
    out = []
    has_values = any(p.kind != 'varargs' for p in f.params)
    values = f'const intptr_t v[] = {{{words(f)}}};' if has_values else 'const intptr_t* v = nullptr;'
    head = entry(f, 'P')
    if f.of_kind('count_any'):
        out.append(f'{head} __asm__("P{f.name}") __attribute__((visibility("default")));')
    if f.impl is None:
        body = f'return bindings::unsupported(functions[{f.number}], v);'
        if f.returns != 'int' or f.errors == 'none':
            values, body = '', f'return {{}};'
        return [f'{head} {{', f'    {values}', f'    {body}', '}'] if values else [f'{head} {{ {body} }}']
    callee, args = call_arguments(f, f.impl)
    if f.errors == 'none':
        call = f'{callee}({", ".join(["*obj::process"] + args)})'
        return [f'{head} {{ return {call}; }}']
    conditions = checks(f)
    plain = f.declaration('WHAT_', register=True).replace('(void)', '()').replace(', ...', '')
    if conditions:
        reject = plain.replace('WHAT_', 'reject_')
        out += [f'static WEFT_COLD {reject} {{', *forgiven(f), f'    {values}', f'    return bindings::reject(functions[{f.number}], v);', '}']
    start = ['    obj::Process& proc = *obj::process;'] + [f'    {line}' for line in resolve_all(f)]
    start += [f'    {line}' for line in (settle(f, p) for p in f.params) if line]
    results = [r for r in map(local, f.params) if r]
    locals_ = [f'    {declaration}' for declaration, _ in results if declaration]
    check_lines = []
    if conditions:
        joined = '\n                 && '.join(conditions)
        check_lines = [f'    if (WEFT_CHECKS && WEFT_UNLIKELY(!({joined})))', f'        return reject_{f.name}({names(f)});']
    fails = f'    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(functions[{f.number}], {error_owner(f)}, e);'
    work = locals_ + [f'    Err e = {callee}({", ".join(["proc"] + args)});']
    # A request that completed with an error is complete all the same: which one, and that it is gone, is told before.
    stored = store_results(f, results)
    work += stored + [fails] if f.errors == 'request' else [fails] + stored
    work += ['    return MPI_SUCCESS;', '}']
    if f.attempt is None:
        return out + [f'{head} {{'] + start + check_lines + work
    # The attempt runs without a frame of its own: whatever needs one is in a function that the same arguments go to. The
    # entry point itself is small enough for link-time optimisation to take it into a program, and the attempt with it.
    attempt, attempt_args = call_arguments(f, f.attempt)
    out += [f'static __attribute__((noinline)) {plain.replace("WHAT_", "slow_")} {{'] + start
    out += (check_lines if f.attempt_checks else []) + work
    out += [f'static {plain.replace("WHAT_", "fast_")} {{'] + start + ([] if f.attempt_checks else check_lines) + locals_
    # The empty assembly keeps that call from becoming a jump: a stack then names the MPI function, for whoever reads it.
    out += [f'    if (WEFT_UNLIKELY(!{attempt}({", ".join(["proc"] + attempt_args)}))) {{',
            f'        int result = slow_{f.name}({names(f)});', '        asm volatile("" : "+r"(result));',
            '        return result;', '    }']
    results = [r for r in (local(p, attempt=True) for p in f.params) if r]
    out += store_results(f, results) + ['    return MPI_SUCCESS;', '}']
    return out + [f'{head} {{ return fast_{f.name}({names(f)}); }}']


def store_results(f, results):
    return ['    ' + after.replace('fn, OWNER', f'functions[{f.number}], {error_owner(f)}') for _, after in results]


def write_entries(tables, area):
    functions = [f for f in tables.functions if f.area == area]
    spaces = {f.impl.partition('(')[0].rpartition('::')[0] for f in functions if f.impl}
    includes = sorted({h for s in spaces for h in tables.includes[s]} | {'p2p/p2p.hpp'})
    out = [f'// The entry points of area "{area}". Generated from tables/; see gen/entries.py.',
           '#pragma GCC visibility push(default)', '#include <mpi.h>', '#pragma GCC visibility pop', '',
           '#include "api/bindings.hpp"']
    out += [f'#include "{h}"' for h in includes]
    out += ['', 'namespace {', 'using namespace weft;', 'using bindings::functions;', '}', '', 'extern "C" {', '']
    for f in functions:
        out += write_function(f)
        name = f' __asm__("{f.name}")' if f.of_kind('count_any') else ''
        visible = ', visibility("default")' if name else ''
        out += [f'{entry(f)}{name} __attribute__((weak, alias("P{f.name}"){visible}));', '']
    return '\n'.join(out + ['}', ''])


def write_api_table(tables):
    out = ['// What the bindings know of each function, for its cold paths, and the list of what is implemented.',
           '// Generated from tables/; see gen/entries.py.', '#include "api/bindings.hpp"', '',
           'namespace weft::bindings {', '', 'namespace {', 'constexpr Arg arguments[] = {']
    first = []
    total = 0
    for f in tables.functions:
        first.append(total)
        for p in f.params:
            cond = p.cond or 'always'
            in_place = f.param(p.in_place_of).index if p.in_place_of else -1
            count = p.count.index if p.count else -1
            datatype = p.datatype.index if p.datatype else -1
            if p.kind in ('requests', 'requests_in', 'count_any'):
                count = p.index - 1
            elif p.blocks:
                count, datatype = p.blocks.index, p.datatype.index
            elif p.length and p.length not in LENGTHS:
                count = f.param(p.length).index
            length = 'none' if not p.length else p.length if p.length in LENGTHS else 'argument'
            out.append(f'    {{"{p.name}", ArgKind::{p.kind if p.kind != "int" else "int_"}, Significant::{cond}, {in_place}, {count}, {datatype}, '
                       f'Length::{length}, {"true" if p.wide else "false"}}},')
            total += 1
    out += ['};', '}  // namespace', '', 'const Function functions[] = {']
    for f, start in zip(tables.functions, first):
        owner = next((p.index for p in f.params if p.kind in (f.errors, f.errors + '_inout') or
                      (f.errors == 'errhandler' and p.kind == 'errh')), -1)
        number = sum(1 for p in f.params if p.kind != 'varargs')
        errors = {'none': 'none'}.get(f.errors, f.errors)
        out.append(f'    {{"{f.name}", arguments + {start}, {number}, Errors::{errors}, {owner}, '
                   f'{"true" if f.when == "any" else "false"}, {"true" if f.impl else "false"}}},')
    out += ['};', f'const int n_functions = {len(tables.functions)};', '', '}  // namespace weft::bindings', '',
            '// One line for each function: its name, and 1 if it is implemented, else 0.',
            'extern "C" __attribute__((visibility("default"))) const char* weft_api_list(void) {', '    return']
    out += [f'        "{f.name} {1 if f.impl else 0}\\n"' for f in tables.functions]
    out[-1] += ';'
    return '\n'.join(out + ['}', ''])
