"""Reads tables/: the facts of the ABI and what each function's parameters mean. Knows kinds, never a function by name."""
import json
import os
import re


class Param:
    """One parameter: its C type and name from the ABI, its kind, and when it is significant."""

    def __init__(self, index, fact, kind):
        self.index = index
        self.type = fact['type'].strip()
        self.name = fact['name'].strip()
        match = re.fullmatch(r'(\w+)(?:\[(\w+)\])?(?:@(\w+))?(?:\?(\w+))?', kind)
        if not match:
            raise ValueError(f'malformed kind {kind!r}')
        self.kind, self.length, self.cond, self.in_place_of = match.groups()
        self.wide_twin = False    # the other form of the function has a wider type here
        self.count = self.datatype = self.tag = None    # of a buffer; of a rank
        self.blocks = None        # of a buffer of blocks: its counts
        self.absorbed = False     # travels inside another argument

    @property
    def value(self):
        """Of a number of elements: the expression that says how many there are."""
        return f'{self.name}_' if self.kind == 'count_any' else self.name

    @property
    def wide(self):
        """Of an array of numbers: are they of 64 bits?"""
        return self.type.split('[')[0].split()[-1] in ('MPI_Count', 'MPI_Aint')

    def declaration(self, register=False):
        """As mpi.h has it, or as wide as the register it comes in."""
        if self.type == '...':
            return '...'
        base, bracket, rest = ('MPI_Count' if register and self.kind == 'count_any' else self.type).partition('[')
        return f'{base.rstrip()}{"" if base.endswith("*") else " "}{self.name}{bracket}{rest}'


class Function:
    def __init__(self, fact, row, number):
        self.name = fact['name']
        self.returns = fact['returns']
        self.deprecated = fact.get('deprecated')
        self.number = number
        self.area = row['area']
        self.when = row.get('when', 'active')
        self.impl = row.get('impl')
        self.attempt = row.get('try')
        self.attempt_checks = row.get('try_checks', False)   # all arguments, so that the attempt comes before the checks
        self.large = self.name.endswith('_c')
        kinds = row['kinds'].split()
        if self.large:
            kinds = ['count' if k == 'count_any' else k for k in kinds]
        if len(kinds) != len(fact['params']):
            raise ValueError(f'{self.name}: {len(kinds)} kinds for {len(fact["params"])} parameters')
        self.params = [Param(i, f, k) for i, (f, k) in enumerate(zip(fact['params'], kinds))]
        self._group()
        self.errors = row.get('errors') or self._default_errors()

    def param(self, name):
        return next((p for p in self.params if p.name == name), None)

    def of_kind(self, *kinds):
        return next((p for p in self.params if p.kind in kinds), None)

    def declaration(self, prefix='', register=False):
        params = ', '.join(p.declaration(register) for p in self.params) or 'void'
        return f'{self.returns} {prefix}{self.name}({params})'

    def _group(self):
        """A buffer takes the next count and the next type after it; a rank takes a tag that follows at once."""
        for p in self.params:
            after = self.params[p.index + 1:]
            if p.kind in ('buf', 'buf_coll'):
                count = next((q for q in after if q.kind in ('count', 'count_any', 'counts')), None)
                if count is not None and count.kind == 'counts':
                    p.blocks = count
                    p.datatype = next(q for q in self.params[count.index + 1:] if q.kind in ('type', 'types'))
                elif count is not None:
                    p.count = count
                    p.datatype = next(q for q in self.params[count.index + 1:] if q.kind in ('type', 'type_any'))
                    p.count.absorbed = p.datatype.absorbed = True
            elif p.kind in ('dest', 'source') and after and after[0].kind in ('tag_send', 'tag_recv'):
                p.tag = after[0]
                p.tag.absorbed = True

    def _default_errors(self):
        owners = {'comm': 'comm', 'comm_named': 'comm', 'comm_inout': 'comm', 'win': 'win', 'win_named': 'win', 'win_inout': 'win', 'file': 'file',
                  'file_inout': 'file', 'file_null': 'file', 'session': 'session', 'session_inout': 'session'}
        return next((owners[p.kind] for p in self.params if p.kind in owners), 'self')


class Tables:
    def __init__(self, folder):
        with open(os.path.join(folder, 'mpi_abi.json'), encoding='utf-8') as f:
            self.abi = json.load(f)
        with open(os.path.join(folder, 'functions.json'), encoding='utf-8') as f:
            rows = json.load(f)
        self.includes = rows.pop('_includes')
        facts = {f['name']: f for f in self.abi['functions']}
        unknown = set(rows) - set(facts)
        if unknown:
            raise ValueError(f'rows for functions that the ABI lacks: {sorted(unknown)}')
        self.functions = []
        for number, name in enumerate(sorted(facts)):
            row = rows.get(name) or rows[name.removesuffix('_c')]
            self.functions.append(Function(facts[name], row, number))
        self._find_wide_twins(facts)

    def _find_wide_twins(self, facts):
        for f in self.functions:
            twin = facts.get(f.name.removesuffix('_c') if f.large else f.name + '_c')
            other = {p['name']: p['type'] for p in twin['params']} if twin else {}
            for p in f.params:
                p.wide_twin = other.get(p.name, p.type) != p.type

    def areas(self):
        return sorted({f.area for f in self.functions})
