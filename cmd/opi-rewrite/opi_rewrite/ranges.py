"""Which elements of a buffer a piece of a program touches: index ranges as polynomials over the program's own expressions.

A Poly has integer coefficients and Atoms for unknowns: variables, and expressions such as `a->n` or `n / size` taken whole.
"""
import itertools
import re

from .source import Refused

LOOPS = ("FOR_STMT", "WHILE_STMT", "DO_STMT")
CHOICES = ("IF_STMT", "SWITCH_STMT", "CONDITIONAL_OPERATOR")
PARTS = ("COMPOUND_STMT", "BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR", "UNARY_OPERATOR", "PAREN_EXPR", "CSTYLE_CAST_EXPR",
         "ARRAY_SUBSCRIPT_EXPR", "MEMBER_REF_EXPR", "CALL_EXPR", "DECL_STMT", "VAR_DECL", "INIT_LIST_EXPR", "IF_STMT")
JUMPS = ("BREAK_STMT", "CONTINUE_STMT", "RETURN_STMT", "GOTO_STMT", "INDIRECT_GOTO_STMT")
# Calls that leave every integer of the program alone; communication is looked at by its buffers.
PURE = {"fabs", "sqrt", "sin", "cos", "tan", "exp", "log", "pow", "floor", "ceil", "cexp", "cabs", "creal", "cimag", "conj", "abs",
        "printf", "fprintf", "puts", "malloc", "calloc", "free", "MPI_Wtime", "MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Barrier"}
# Calls that write to variables whose addresses they get, and keep no address.
STORES = {"MPI_Comm_rank", "MPI_Comm_size", "MPI_Get_count", "MPI_Get_elements", "MPI_Type_size", "MPI_Alloc_mem", "MPI_Init", "MPI_Init_thread"}
RECEIVES = {"MPI_Recv": 0, "MPI_Irecv": 0, "MPI_Sendrecv": 5}


class Keyed:
    """What is told apart, and ordered, by its key."""

    def __eq__(self, other):
        return self.key == other.key

    def __lt__(self, other):
        return self.key < other.key

    def __hash__(self):
        return hash(self.key)


class Atom(Keyed):
    def __init__(self, node):
        if any(n.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR") and n.type.is_volatile_qualified() for n in node.walk()):
            raise Refused(node.line, f"'{node.text}' is volatile")
        self.text = node.text if node.macro else node.source.squeezed(node.start, node.end)
        self.declarations = tuple(sorted({n.declaration() for n in node.walk()
                                          if n.kind == "DECL_REF_EXPR" and n.cursor.referenced.kind.name in ("VAR_DECL", "PARM_DECL")}))
        self.variable = node.kind == "DECL_REF_EXPR" and not node.macro and bool(self.declarations)  # a constant of an enum has none
        self.key = (self.text, self.declarations)


class Poly:
    def __init__(self, terms=None):
        self.terms = {atoms: c for atoms, c in (terms or {}).items() if c}

    @staticmethod
    def number(value):
        return Poly({(): value})

    @staticmethod
    def atom(atom):
        return Poly({(atom,): 1})

    def __add__(self, other):
        terms = dict(self.terms)
        for atoms, c in other.terms.items():
            terms[atoms] = terms.get(atoms, 0) + c
        return Poly(terms)

    def __mul__(self, other):
        terms = {}
        for (a, c), (b, d) in itertools.product(self.terms.items(), other.terms.items()):
            key = tuple(sorted(a + b))
            terms[key] = terms.get(key, 0) + c * d
        return Poly(terms)

    def __sub__(self, other):
        return self + other * Poly.number(-1)

    def __eq__(self, other):
        return self.terms == other.terms

    def atoms(self):
        return {atom for atoms in self.terms for atom in atoms}

    def constant(self):
        """The value if it has no unknowns, else None."""
        return None if self.atoms() else self.terms.get((), 0)

    def split(self, atom):
        """(c, rest) where this is c * atom + rest; None where the atom is squared or hidden in another one."""
        factor, rest = {}, {}
        for atoms, c in self.terms.items():
            if atoms.count(atom) > 1:
                return None
            if atom in atoms:
                left = list(atoms)
                left.remove(atom)
                factor[tuple(left)] = c
            else:
                rest[atoms] = c
        return Poly(factor), Poly(rest)

    def substitute(self, values):
        """With polynomials for some atoms that are variables; None where one of those is inside a composite atom."""
        result = Poly()
        for atoms, c in self.terms.items():
            term = Poly.number(c)
            for atom in atoms:
                if atom.variable and atom.declarations[0] in values:
                    term = term * values[atom.declarations[0]]
                elif any(d in values for d in atom.declarations):
                    return None
                else:
                    term = term * Poly.atom(atom)
            result = result + term
        return result

    def text(self, suffix=""):
        """As C; with the suffix LL it is evaluated in long long."""
        parts = []
        for atoms, c in sorted(self.terms.items(), key=lambda term: (-len(term[0]), str([a.key for a in term[0]]))):
            factors = [a.text if re.fullmatch(r"\w+(?:(?:->|\.)\w+|\[\w+\])*", a.text) else f"({a.text})" for a in atoms]
            if c < 0:
                parts.append("-")
            elif parts:
                parts.append("+")
            parts.append(" * ".join(([f"{abs(c)}{suffix}"] if abs(c) != 1 or not atoms else []) + factors))
        if not parts:
            return "0"
        if parts[0] == "-":
            parts[:2] = ["-" + parts[1]]
        return " ".join(parts)


def is_integer(type_):
    return type_.get_canonical().kind.name in {"BOOL", "CHAR_U", "UCHAR", "USHORT", "UINT", "ULONG", "ULONGLONG", "CHAR_S", "SCHAR", "SHORT",
                                               "INT", "LONG", "LONGLONG", "ENUM"}


def is_floating(type_):
    return type_.get_canonical().kind.name in ("DOUBLE", "FLOAT", "COMPLEX", "LONGDOUBLE")


def impure(node):
    """The first part of an expression that does more than compute a value, or None."""
    return next((part for part in node.walk() if part.kind in ("CALL_EXPR", "StmtExpr") or part.changes()), None)


def poly_of(node):
    """An integer expression as a polynomial (a Poly is one already). Refused if evaluating it has effects."""
    if isinstance(node, Poly):
        return node
    if impure(node):
        raise Refused(node.line, f"'{node.text}' has effects of its own")
    return _poly(node)


def _poly(node):
    inner = node
    while inner.kind in ("UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR") and not inner.macro:
        below = inner.kids[-1] if inner.kids else None
        if below is None or not is_integer(below.type) or not is_integer(inner.type):
            return Poly.atom(Atom(node))
        if inner.kind == "CSTYLE_CAST_EXPR" and inner.type.get_size() < min(4, below.type.get_size()):
            return Poly.atom(Atom(node))
        inner = below
    if inner.macro or not is_integer(inner.type):
        return Poly.atom(Atom(inner))
    if inner.kind == "INTEGER_LITERAL":
        return Poly.number(int(re.sub(r"[uUlL]+$", "", re.sub(r"^0(?=\d)", "0o", inner.text)), 0))
    if inner.kind == "CXX_UNARY_EXPR":
        size = size_of(inner)
        return Poly.number(size) if size else Poly.atom(Atom(inner))
    sign = inner.operator()
    if inner.kind == "BINARY_OPERATOR" and sign in ("+", "-", "*"):
        left, right = _poly(inner.kids[0]), _poly(inner.kids[1])
        return left + right if sign == "+" else left - right if sign == "-" else left * right
    if inner.kind == "UNARY_OPERATOR" and sign == "-":
        return Poly.number(-1) * _poly(inner.kids[0])
    return Poly.atom(Atom(inner))


SIZES = {"char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "int": 4, "unsigned": 4, "unsigned int": 4, "float": 4, "long": 8,
         "unsigned long": 8, "long long": 8, "size_t": 8, "double": 8, "double complex": 16, "double _Complex": 16, "float complex": 8}


def size_of(node):
    if not re.match(r"sizeof\b", node.text):
        return None
    named = re.sub(r"^sizeof\s*\(|\)$", "", node.source.squeezed(node.start, node.end)).strip()
    if node.kids and node.kids[0].kind == "TYPE_REF" and not re.fullmatch(r"(?:(?:struct|union|enum) )?\w+", named):
        return None
    if node.kids:
        return max(node.kids[0].inner().cursor.type.get_size(), 0)
    return SIZES.get(named)


class Facts:
    """Of one function: which variables it changes where, and whose addresses it takes."""

    def __init__(self, function):
        self.function = function
        self.locals = {n.cursor.hash: n for n in function.walk() if n.kind in ("VAR_DECL", "PARM_DECL")}
        self.addressed, self.changes, self.stores, self.calls = set(), [], [], []
        for node in function.walk():
            self._look(node)

    def _look(self, node):
        sign = node.operator()
        if node.kind == "CALL_EXPR":
            self.calls.append(node)
        elif node.kind == "VAR_DECL":
            self.changes.append((node.cursor.hash, node))
        elif node.kind == "UNARY_OPERATOR" and sign == "&" and node.kids[0].inner().kind == "DECL_REF_EXPR" and node.outer(casts=True).parent.callee() in STORES:
            self.changes.append((node.kids[0].inner().declaration(), node.outer(casts=True).parent))
        elif node.kind == "UNARY_OPERATOR" and sign in ("&", None):
            self.addressed |= {n.declaration() for n in node.walk() if n.kind == "DECL_REF_EXPR"}
        if node.changes():
            target = node.kids[0].inner()
            if target.kind == "DECL_REF_EXPR":
                self.changes.append((target.declaration(), node))
            else:
                self.stores.append((target, node))

    def simple(self, declaration):
        """Nothing but assignments that can be seen change this variable."""
        found = self.locals.get(declaration)
        return found is not None and declaration not in self.addressed and found.cursor.storage_class.name != "STATIC"

    def changed(self, declaration, area):
        return next((node for d, node in self.changes if d == declaration and inside(node, area)), None)

    def disturbance(self, poly, area, harmless=frozenset()):
        """What in the area [start, end) may change a polynomial's value, or None. `harmless` are calls known to be so."""
        for atom in poly.atoms():
            for declaration in atom.declarations:
                node = self.changed(declaration, area)
                if node:
                    return node
            if atom.variable and self.simple(atom.declarations[0]) or not atom.declarations:
                continue
            if not re.search(r"[.*[]|->", atom.text) and all(map(self.simple, atom.declarations)):
                continue
            for target, node in self.stores:
                if inside(node, area) and not is_floating(target.type):
                    return node
            for call in self.calls:
                if inside(call, area) and call not in harmless and not innocent(call):
                    return call
        return None


def inside(node, area):
    return area[0] <= node.start and node.end <= area[1]


def innocent(call):
    name = call.callee()
    if name in RECEIVES:
        buffer = call.args()[RECEIVES[name]].inner(casts=True)
        pointed = buffer.type.get_pointee() if buffer.type.kind.name == "POINTER" else buffer.type.element_type
        return is_floating(pointed)
    return name in PURE


class Loop:
    """`for (v = lower; v < upper; v++)` whose bounds do not change while it runs."""

    def __init__(self, node, facts):
        self.node, self.facts = node, facts
        if len(node.kids) != 4 or node.macro:
            raise Refused(node.line, "this loop is not of the form for (i = a; i < b; i++)")
        first, condition, step, self.body = node.kids
        variable, lower = self._first(first)
        self.atom = variable
        self.lower = poly_of(lower)
        self.upper = self._upper(condition.inner())
        step = step.inner()
        if not (step.kind == "UNARY_OPERATOR" and step.operator() in ("++", "x++") and self._is_variable(step.kids[0])):
            raise Refused(node.line, f"this loop does not step by '{self.atom.text}++'")
        declaration = self.atom.declarations[0]
        area = (self.body.start, self.body.end)
        if not facts.simple(declaration) or facts.changed(declaration, area):
            raise Refused(node.line, f"'{self.atom.text}' is changed within the loop")
        changed = facts.disturbance(self.lower + self.upper, area)
        if changed:
            raise Refused(changed.line, f"the bounds of the loop at line {node.line} may change here")

    def _first(self, first):
        first = first.inner()
        if first.kind == "DECL_STMT" and len(first.kids) == 1 and first.kids[0].kids:
            declared = first.kids[0]
            atom = next((Atom(n) for n in self.node.kids[1].walk() if n.declaration() == declared.cursor.hash), None)
            if atom:
                return atom, declared.kids[-1]
        if first.kind == "BINARY_OPERATOR" and first.operator() == "=" and first.kids[0].inner().kind == "DECL_REF_EXPR":
            return Atom(first.kids[0].inner()), first.kids[1]
        raise Refused(self.node.line, "this loop does not begin with an assignment to its variable")

    def _is_variable(self, node):
        node = node.inner()
        return node.kind == "DECL_REF_EXPR" and node.declaration() == self.atom.declarations[0]

    def _upper(self, condition):
        sign = condition.operator() if condition.kind == "BINARY_OPERATOR" else None
        if sign in ("<", "<=") and self._is_variable(condition.kids[0]):
            return poly_of(condition.kids[1]) + Poly.number(sign == "<=")
        if sign in (">", ">=") and self._is_variable(condition.kids[1]):
            return poly_of(condition.kids[0]) + Poly.number(sign == ">=")
        raise Refused(self.node.line, f"this loop does not run while '{self.atom.text}' is below a bound")


def loops_around(node, top, facts):
    """The loops between a node and the statement `top`, outermost first. Refused unless the node is reached in every pass."""
    found = []
    child = node
    for parent in node.ancestors():
        if child is top:
            break
        if parent.kind == "FOR_STMT" and len(parent.kids) == 4 and child is parent.kids[3]:
            found.append(Loop(parent, facts))
        elif parent.kind in LOOPS:
            raise Refused(parent.line, "the loop around it cannot be counted")
        elif parent.kind == "IF_STMT" and child is parent.kids[0]:
            pass
        elif parent.kind in CHOICES or parent.kind == "BINARY_OPERATOR" and parent.operator() in ("&&", "||"):
            raise Refused(parent.line, "a condition decides whether it happens")
        elif parent.kind not in PARTS and not (parent.kind == "UNEXPOSED_EXPR" and len(parent.kids) == 1):
            raise Refused(parent.line, "it is within something that cannot be followed")
        elif parent.kind == "BINARY_OPERATOR" and parent.operator() is None:
            raise Refused(parent.line, "a macro hides what happens to it")
        child = parent
    for loop in found:
        jump = next((n for n in loop.node.walk() if n.kind in JUMPS), None)
        if jump:
            raise Refused(jump.line, f"the loop at line {loop.node.line} may be left or cut short here")
    return found[::-1]


class Reach:
    """The elements [0, end) that a read or write stays below, if each of `loops` runs at all."""

    def __init__(self, end, loops):
        self.end, self.guards = end, [(loop.lower, loop.upper) for loop in loops]

    def text(self):
        tests = []
        for lower, upper in self.guards:
            if ((upper - lower).constant() or 1) <= 0:
                return "0"
            if (upper - lower).constant() is None:
                tests.append(f"{lower.text()} < {upper.text()}")
        return f"({' && '.join(tests)} ? {self.end.text('LL')} : 0)" if tests else self.end.text("LL")

    def unknowns(self):
        """A polynomial with all atoms of this."""
        atoms = self.end.atoms().union(*(lower.atoms() | upper.atoms() for lower, upper in self.guards))
        return Poly({(atom,): 1 for atom in atoms})

    def settled(self, top, facts):
        """Itself, if its text means at the beginning of `top` what it means within it. Else refused."""
        changed = facts.disturbance(self.unknowns(), (top.start, top.end)) if self.guards else None
        if changed:
            raise Refused(changed.line, "how many elements are accessed depends on what is changed here")
        return self


def reach_of(index, top, facts, node):
    """The Reach of an access with this index expression, evaluated before `top`."""
    loops = loops_around(node, top, facts)
    highest = poly_of(index)
    positive = {atom for loop in loops if (loop.lower.constant() or 0) >= 0 and loop.lower.constant() is not None
                for atoms, c in loop.upper.terms.items() if c > 0 and len(loop.upper.terms) == 1 for atom in atoms}
    for loop in reversed(loops):
        parts = highest.split(loop.atom)
        if parts is None:
            raise Refused(index.line, f"the index '{index.text}' is not linear in '{loop.atom.text}'")
        factor, rest = parts
        if any(c < 0 or not set(atoms) <= positive for atoms, c in factor.terms.items()):
            raise Refused(index.line, f"the index '{index.text}' may fall while '{loop.atom.text}' grows")
        highest = rest + factor * (loop.upper - Poly.number(1))
    inner = {loop.atom.declarations[0] for loop in loops}
    if any(inner & set(atom.declarations) for atom in highest.atoms()):
        raise Refused(index.line, f"the index '{index.text}' is not linear in the loop's variable")
    if any(inner & set(atom.declarations) for loop in loops for atom in loop.upper.atoms() | loop.lower.atoms()):
        raise Refused(index.line, "how often one loop around it runs depends on another one's variable")
    return Reach(highest + Poly.number(1), loops).settled(top, facts)


def covered(writes, top, facts):
    """The n for which these writes, (index expression, node) within the statement `top`, write all of [0, n). Refused if unknown."""
    groups = {}
    for index, node in writes:
        loops = loops_around(node, top, facts)
        poly = poly_of(index)
        linear = Poly({atoms: c for atoms, c in poly.terms.items() if atoms})
        key = (tuple(loop.node.start for loop in loops), frozenset(linear.terms.items()))
        groups.setdefault(key, (loops, linear, set()))[2].add(poly.terms.get((), 0))
    if len(groups) != 1:
        raise Refused(top.line, "it is written in several ways here that cannot be put together")
    loops, linear, offsets = next(iter(groups.values()))
    if offsets != set(range(len(offsets))):
        raise Refused(top.line, f"the elements written in each pass are {sorted(offsets)}, not a row from 0")
    if any(loop.lower.constant() != 0 for loop in loops):
        raise Refused(top.line, "a loop does not begin at 0")
    for order in itertools.permutations(loops):  # innermost first
        stride, left = Poly.number(len(offsets)), linear
        for loop in order:
            parts = left.split(loop.atom)
            if parts is None or parts[0] != stride:
                break
            left, stride = parts[1], stride * loop.upper
        else:
            if not left.terms:
                return stride
    raise Refused(top.line, "its index leaves elements out")
