"""Fusion: a packing loop, an exchange and an unpacking loop become one loop over both ranks' arrays.

    for (i ...) out[p(i)] = E(i);   exchange(out, in);   for (j ...) D(j) op= in[u(j)];     becomes     D(j) op= E(i), p(i) = u(j)

The loop runs on the side that has an index list, or else on the receiver; the other side's expression must be one element of an array
with an affine index, so that a pointer and a few numbers describe it. What cannot be known here is compared at run time by what
opi_fuse.h offers; where it does not hold, ownership passing does the exchange.
"""
import itertools
import re

from .calls import is_ignored, own_statement, transfers
from .emit import checks_of
from .ownership import request_of
from .ranges import PURE, Keyed, Loop, Poly, covered, is_floating, poly_of
from .source import Refused


class Symbol(Keyed):
    """Stands for an atom in the text of a polynomial."""

    variable, declarations = False, ()

    def __init__(self, text):
        self.text, self.key = text, (text, ())


class Nest:
    """Perfectly nested loops around assignments: [(target, sign, value)]."""

    def __init__(self, statement, facts):
        self.statement, self.loops, self.assignments = statement, [], []
        body = statement
        while body.kind == "FOR_STMT":
            loop = Loop(body, facts)
            if body.kids[0].kind != "DECL_STMT":
                raise Refused(body.line, f"'{loop.atom.text}' lives on behind the loop: declare it in the loop")
            if loop.lower.constant() != 0:
                raise Refused(body.line, "a loop does not begin at 0")
            self.loops.append(loop)
            body = loop.body
            if body.kind == "COMPOUND_STMT" and len(body.kids) == 1 and body.kids[0].kind == "FOR_STMT":
                body = body.kids[0]
        for part in body.kids if body.kind == "COMPOUND_STMT" else [body]:
            sign = part.operator() or ""
            if part.macro or part.kind not in ("BINARY_OPERATOR", "COMPOUND_ASSIGNMENT_OPERATOR") or sign not in ("=", "+=", "-=", "*="):
                raise Refused(part.line, "the loop does more than assign elements")
            self.assignments.append((part.kids[0].inner(), sign, part.kids[1]))
        if not self.loops:
            raise Refused(statement.line, "it is not a loop")

    def headers(self):
        source = self.statement.source
        return " ".join(source.squeezed(loop.node.start, loop.body.start) for loop in self.loops)

    def split(self, index):
        """({loop: factor}, rest) of an affine index; the rest has no loop variable."""
        rest, factors = poly_of(index), {}
        for loop in self.loops:
            parts = rest.split(loop.atom)
            if parts is None:
                raise Refused(index.line, f"the index '{index.text}' is not affine")
            factors[loop], rest = parts
        mine = {loop.atom.declarations[0] for loop in self.loops}
        atoms = rest.atoms().union(*(f.atoms() for f in factors.values()))
        if any(mine & set(atom.declarations) for atom in atoms):
            raise Refused(index.line, f"the index '{index.text}' is not affine")
        return factors, rest

    def corner(self, index, highest):
        """The smallest or largest value of an affine index whose factors are not negative."""
        factors, rest = self.split(index)
        for loop, factor in factors.items():
            if any(c < 0 for c in factor.terms.values()):
                raise Refused(index.line, f"the index '{index.text}' may fall")
            rest = rest + (factor * (loop.upper - Poly.number(1)) if highest else Poly())
        return rest


def element(node):
    """(array, index) of `array[index]` where the array is a plain pointer variable, else None."""
    node = node.inner()
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" and node.kids[0].inner().kind == "DECL_REF_EXPR" and not node.macro:
        array = node.kids[0].inner()
        if array.type.kind.name == "POINTER":
            return array, node.kids[1]
    return None


class Site:
    """One exchange: statements, peers, nests. `first` and `last` are the statements it lies between."""

    def __init__(self, out, packing, into, taking, facts):
        self.out, self.packing, self.into, self.taking, self.facts = out, packing, into, taking, facts
        self.send, self.receive = packing.transfer, taking.transfer
        self.line = self.send.call.line
        if taking.given:
            raise Refused(self.line, "what is received is given on")
        if len(packing.uses) != 1 or len(taking.uses) != 1:
            raise Refused(self.line, "its buffers are packed and unpacked in one statement each")
        self.pack, self.unpack = packing.uses[0][0], taking.uses[0][0]
        self._statements()
        self.pack_bytes = out.pointer.declaration.type.get_pointee().get_size()
        self.packs, self.unpacks = Nest(self.pack, facts), Nest(self.unpack, facts)
        self.source = self.pack.source

    def _statements(self):
        block = self.pack.parent
        known = {s.start for s in (self.pack, self.unpack, self.packing.statement, self.taking.statement)}
        places = [i for i, s in enumerate(block.kids) if s.start in known]
        sent = request_of(self.send.last.inner()) if self.send.last is not None else None
        waited = self.send.name == "MPI_Sendrecv"
        for later in block.kids[places[0]:]:
            call = later.inner()
            if call.callee() in ("MPI_Wait", "MPI_Waitall"):
                known.add(later.start)
                waited = waited or self._only_ours(call, sent)
            elif later.start not in known:
                break
            places.append(block.kids.index(later))
            if waited and later.start >= self.unpack.start:
                break
        statements = block.kids[min(places):max(places) + 1]
        self.first, self.last = statements[0], statements[-1]
        if not waited or any(s.start not in known for s in statements) or self.send.name == "MPI_Send":
            raise Refused(self.line, "between packing and unpacking there is more than this exchange, or its send is not waited for there")

    def _only_ours(self, call, sent):
        """Whether a wait completes the send; Refused if it completes anything that is not of this exchange."""
        received = request_of(self.receive.last.inner()) if self.receive.name == "MPI_Irecv" else None
        if call.callee() == "MPI_Wait":
            if request_of(call.args()[0].inner()) not in (sent, received) or not is_ignored(call.args()[1]):
                raise Refused(call.line, "this wait is not of the exchange alone")
            return request_of(call.args()[0].inner()) == sent
        count, array = poly_of(call.args()[0]).constant(), call.args()[1].inner().declaration()
        if count != 2 or sent is None or received is None or {sent, received} != {(array, 0), (array, 1)} or not is_ignored(call.args()[2]):
            raise Refused(call.line, "this wait is not of the exchange alone")
        return True


class Match:
    """Which packed element each unpacked one is. [(target, sign, value, access to the buffer, packed expression, {loop variable: Poly})]"""

    def __init__(self, site):
        self.site = site
        self.rows, self.agree = [], []
        self._check_packing()
        for target, sign, value in site.unpacks.assignments:
            accesses = [u.node for _, uses in site.taking.uses for u in uses if u.node.within(value)]
            if len(accesses) != 1 or any(u.node.within(target) for _, uses in site.taking.uses for u in uses):
                raise Refused(value.line, "an assignment does not read one received element")
            index = next(u.index for _, uses in site.taking.uses for u in uses if u.node is accesses[0])
            packed, values = self._packed(index)
            self.rows.append((target, sign, value, accesses[0], packed, values))

    def _check_packing(self):
        """The packing loop writes what is sent, all of it, and does nothing else."""
        site = self.site
        for target, sign, value in site.packs.assignments:
            found = element(target)
            if found is None or sign != "=" or found[0].declaration() != site.out.pointer.key:
                raise Refused(target.line, "the packing loop does more than fill the buffer")
            if not same_type(value, target) or site.into.pointer.declaration.type.get_pointee().get_canonical() != target.type:
                raise Refused(target.line, "the buffers have another type than what is packed")
        uses = site.packing.uses[0][1]
        if any(use.kind != "write" for use in uses):
            raise Refused(site.pack.line, "the packing loop reads the buffer")
        written = covered([(use.index, use.node) for use in uses], site.pack, site.facts) * Poly.number(site.pack_bytes)
        if written != site.send.bytes():
            raise Refused(site.line, "what is packed and what is sent are not seen to be the same number of elements")

    def _packed(self, index):
        site = self.site
        factors, rest = site.unpacks.split(index)
        for target, sign, value in site.packs.assignments:
            found = element(target)
            theirs, base = site.packs.split(found[1])
            if base != rest or rest.constant() is None:
                continue
            pairs = self._pairs(theirs, factors)
            if pairs is not None:
                self.agree = [(mine.upper, other.upper) for mine, other in pairs]
                self.factors = [f for f in factors.values()]
                self.pairs = pairs
                return value, {mine.atom.declarations[0]: Poly.atom(other.atom) for mine, other in pairs}
        raise Refused(index.line, f"no packed element is seen to be the received one with index '{index.text}'")

    @staticmethod
    def _pairs(theirs, factors):
        """[(packing loop, unpacking loop)] with equal factors, or None."""
        if len(theirs) != len(factors):
            return None
        for order in itertools.permutations(factors):
            if all(theirs[mine] == factors[other] for mine, other in zip(theirs, order)):
                return list(zip(theirs, order))
        return None


def same_type(value, target):
    """A value is not converted when it is assigned."""
    return value.inner().type.kind == target.type.kind and value.inner().type.get_size() == target.type.get_size()


def indexed(nest, node, facts):
    """Whether an expression has an element whose index comes from memory."""
    for part in node.walk():
        found = element(part)
        if found is not None:
            try:
                nest.split(found[1])
            except Refused:
                return True
    return False


def floating_loads(node, facts):
    """The parts of an expression that read floating-point numbers from memory that others may name, outermost first."""
    inner = node.inner()
    if is_floating(inner.type) and inner.kind in ("ARRAY_SUBSCRIPT_EXPR", "MEMBER_REF_EXPR") or inner.kind == "UNARY_OPERATOR" and inner.operator() == "*":
        return [inner] if is_floating(inner.type) else []
    if inner.kind == "DECL_REF_EXPR":
        return [] if not is_floating(inner.type) or facts.simple(inner.declaration()) else [inner]
    return [load for kid in inner.kids for load in floating_loads(kid, facts)]


class Fused:
    """The text that takes an exchange's place."""

    def __init__(self, site, number):
        self.site, self.number, self.facts = site, number, site.facts
        self.match = Match(site)
        self.numbers = []
        self._check_expressions()
        self.sender_runs = self._choose()
        self.remote = [self._remote(row) for row in self.match.rows]  # (array, index) on the side that does not run
        self._one_array()

    def _choose(self):
        by_sender = any(indexed(self.site.packs, value, self.facts) for _, _, value in self.site.packs.assignments)
        by_receiver = any(indexed(self.site.unpacks, target, self.facts) for target, _, _ in self.site.unpacks.assignments)
        if by_sender and by_receiver:
            raise Refused(self.site.line, "both sides use index lists")
        if by_sender:
            for (mine, other), p, u in zip(self.match.pairs, self.site.packs.loops, self.site.unpacks.loops):
                if mine is not p or other is not u:
                    raise Refused(self.site.line, "the two loops run in different orders")
        return by_sender

    def _check_expressions(self):
        for node in [v for _, _, v in self.site.packs.assignments] + [v for _, _, v in self.site.unpacks.assignments]:
            for part in node.walk():
                if part.kind == "CALL_EXPR" and part.callee() not in PURE - {"printf", "fprintf", "puts", "malloc", "calloc", "free"} \
                        or part.callee() in ("MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Barrier", "MPI_Wtime"):
                    raise Refused(part.line, f"'{part.text}' is computed on the way")
                if part.changes() or part.kind == "StmtExpr":
                    raise Refused(part.line, f"'{part.text}' has effects of its own")
        for target, _, _ in self.site.unpacks.assignments:
            if not is_floating(target.type):
                raise Refused(target.line, "what is unpacked are no floating-point numbers")

    def _remote(self, row):
        target, sign, value, access, packed, _ = row
        if self.sender_runs and value.inner() is not access:
            raise Refused(value.line, "the receiver computes with what it receives, and the sender has the index list")
        if self.sender_runs and sign != "=" and element(packed) is None:
            raise Refused(packed.line, "packing and unpacking both compute, and in one statement they could be rounded otherwise")
        if not same_type(access, target) or not same_type(packed, access):
            raise Refused(target.line, "what is unpacked has another type than what is packed")
        node = target if self.sender_runs else packed
        found = element(node)
        if found is None or not is_floating(node.inner().type):
            raise Refused(node.line, f"'{node.text}' is not one element of an array that a partner could reach")
        if not (self.facts.simple(found[0].declaration())):
            raise Refused(node.line, f"'{found[0].text}' is no local pointer that stays as it is")
        return found

    def _one_array(self):
        arrays = {array.declaration() for array, _ in self.remote}
        if len(arrays) != 1:
            raise Refused(self.site.line, "several arrays of one rank are involved")
        self.array = self.remote[0][0]
        area = (self.site.first.start, self.site.last.end)
        if self.facts.changed(self.array.declaration(), area):
            raise Refused(self.site.line, f"'{self.array.text}' is set within the exchange")
        self.remote_nest = self.site.unpacks if self.sender_runs else self.site.packs
        self.own_nest = self.site.packs if self.sender_runs else self.site.unpacks

    # Numbers that the side which does not run publishes.

    def _number(self, text):
        if text not in self.numbers:
            self.numbers.append(text)
        if len(self.numbers) > 16:
            raise Refused(self.site.line, "more than 16 numbers describe the partner's side")
        return f"opi_theirs.numbers[{self.numbers.index(text)}]"

    def _agreement(self):
        tests = []
        for packing, unpacking in self.match.agree:
            theirs, mine = (unpacking, packing) if self.sender_runs else (packing, unpacking)
            if theirs.constant() is not None and theirs == mine:
                continue
            tests.append(f"{self._number(theirs.text('LL'))} == (long long)({mine.text('LL')})")
        for factor in self.match.factors:
            if factor.constant() is None:
                tests.append(f"{self._number(factor.text('LL'))} == (long long)({factor.text('LL')})")
        return tests

    def _remote_index(self, row, index):
        """The partner's index as C: loop variables of this side, numbers of the partner."""
        if self.sender_runs:
            values = {other.atom.declarations[0]: Poly.atom(mine.atom) for mine, other in self.match.pairs}
        else:
            values = row[5]
        factors, rest = self.remote_nest.split(index)
        total = self._published(rest)
        for loop, factor in factors.items():
            total = total + self._published(factor) * values[loop.atom.declarations[0]]
        return total.text()

    def _published(self, poly):
        """A polynomial of the partner's variables: each atom is one of its numbers."""
        result = Poly()
        for atoms, c in poly.terms.items():
            term = Poly.number(c)
            for atom in atoms:
                term = term * Poly.atom(Symbol(self._number(atom.text)))
            result = result + term
        return result

    # What is read here and what is written here must lie apart.

    def _apart(self):
        first, end = self._span()
        lines, scanned = [], []
        nest = self.own_nest
        nodes = ([load for row in self.match.rows for load in floating_loads(row[4], self.facts)] if self.sender_runs
                 else [row[0] for row in self.match.rows])
        for node in nodes:
            found = element(node)
            try:
                low, high = (nest.corner(found[1], top).text("LL") for top in (False, True)) if found else (None, None)
            except Refused:
                low = None
            if low is None:
                scanned.append(f"opi_mine.apart &= opi_apart(&{node.text}, &{node.text} + 1, {first}, {end});")
            else:
                lines.append(f"opi_mine.apart &= opi_apart(&{found[0].text}[{low}], &{found[0].text}[{high}] + 1, {first}, {end});")
        lines = list(dict.fromkeys(lines))
        if scanned:
            lines += [nest.headers() + " {", *("    " + s for s in dict.fromkeys(scanned)), "}"]
        return lines

    def _span(self):
        lows = [self.remote_nest.corner(index, False) for _, index in self.remote]
        highs = [self.remote_nest.corner(index, True) for _, index in self.remote]
        for group in (lows, highs):
            if any((p - group[0]).constant() is None for p in group):
                raise Refused(self.site.line, "the elements of the partner are several ranges")
        low = min(lows, key=lambda p: (p - lows[0]).constant())
        high = max(highs, key=lambda p: (p - highs[0]).constant())
        return f"&{self.array.text}[{low.text('LL')}]", f"&{self.array.text}[{high.text('LL')}] + 1"

    # The text.

    def _loop(self):
        lines = [self.own_nest.headers() + " {"]
        for row, (_, index) in zip(self.match.rows, self.remote):
            target, sign, value, access, packed, _ = row
            there = f"opi_array[{self._remote_index(row, index)}]"
            if self.sender_runs:
                lines.append(f"    {there} {sign} {packed.text};")
            else:
                source = self.site.source
                text = source.text[value.start:access.start] + there + source.text[access.end:value.end]
                lines.append(f"    {target.text} {sign} {text};")
        return lines + ["}"]

    def text(self):
        site = self.site
        to, source_rank = site.send.peer.text, site.receive.peer.text
        towards, other = (source_rank, to) if self.sender_runs else (to, source_rank)  # where the own offer goes, whose memory is used
        loop, tests = self._loop(), self._agreement()
        status = site.into.status or "opi_status"
        lines = ["{", "    opi_offer opi_mine = {.apart = 1}, opi_theirs;", "    MPI_Request opi_request = MPI_REQUEST_NULL;",
                 "    int opi_fused, opi_done;", f"    opi_offer_array(&opi_mine, {self.array.text});"]
        lines += [f"    opi_mine.numbers[{i}] = {text};" for i, text in enumerate(self.numbers)]
        lines += ["    " + line for line in self._apart()]
        lines += [f"    opi_exchange_offers(&opi_mine, {towards}, &opi_theirs, {other}, {self.number});",
                  "    opi_fused = " + " && ".join(["opi_addressable(&opi_theirs)", "opi_mine.apart", "opi_theirs.apart", *tests]) + ";",
                  "    if (opi_fused) {", "        opi_fuse_count++;", f"        __typeof__({self.array.text}[0]) *opi_array = (void *)opi_theirs.array;"]
        lines += ["        " + line for line in loop] + ["    }"]
        lines += [f"    opi_done = opi_exchange_done(opi_fused, {other}, {towards}, {self.number});"]
        sent, received = ("opi_fused", "opi_done") if self.sender_runs else ("opi_done", "opi_fused")
        lines += [f"    if (!{sent}) {{", f"        {site.out.allocate}", "        " + self._indented(site.pack),
                  f"        OPI_Igive((void **)&{site.out.pointer.name}, {site.send.arguments()}, &opi_request);", "    }"]
        lines += [f"    if (!{received}) {{", f"        OPI_Take((void **)&{site.into.pointer.name}, {site.receive.arguments()}, &{status});"]
        lines += ["        " + check for _, check in checks_of(site.taking, site.into.pointer.name, status)]
        lines += ["        " + self._indented(site.unpack), f"        OPI_Free((void **)&{site.into.pointer.name});", "    }",
                  "    MPI_Wait(&opi_request, MPI_STATUS_IGNORE);", "}"]
        indent = site.source.indent_of(site.first.start)
        return "\n".join((indent if i else "") + line for i, line in enumerate(lines)) + self._unused(indent)

    def _indented(self, statement):
        text = self.site.source.text[statement.start:self.site.source.behind(statement)]
        return text.replace("\n", "\n        ")

    def _unused(self, indent):
        """Requests that only the original calls used."""
        names = {t.last.inner().kids[0].inner() for t in (self.site.send, self.site.receive)
                 if t.last is not None and t.name in ("MPI_Isend", "MPI_Irecv")}
        names = sorted({(n.kids[0].inner() if n.kind == "ARRAY_SUBSCRIPT_EXPR" else n).text for n in names})
        return "".join(f"\n{indent}(void){name};" for name in names)


class Fusion:
    """The second pass: which exchanges of a source are fused, and why others are not."""

    def __init__(self, source):
        self.source = source
        self.everything = []  # all transfers of the source
        self.hindrance = None
        self._look_at_program()
        self.sites = 0

    def _look_at_program(self):
        self.starts, self.ends = [], []
        for function in self.source.functions:
            for call in (n for n in function.walk() if n.kind == "CALL_EXPR"):
                name = call.callee()
                self.everything += transfers(call)
                if name in ("MPI_Init", "MPI_Init_thread"):
                    self.starts.append(call)
                elif name == "MPI_Finalize":
                    self.ends.append(call)
                elif re.match(r"MPI_\w*(send|recv|probe)", name or "", re.I) and not transfers(call):
                    self.hindrance = Refused(call.line, f"{name} could get the messages of an exchange")
        if self.source.elsewhere:
            self.hindrance = Refused(1, f"{self.source.elsewhere} is called in a header: other messages could be those of an exchange")
        try:
            for call in self.ends + self.starts:
                own_statement(call)
        except Refused as why:
            self.hindrance = why
        if re.search(r"\bopi_(mine|theirs|fused|done|array|request)\b", self.source.text):
            self.hindrance = Refused(1, "the source has names that begin with opi_")
        if len(self.starts) != 1:
            self.hindrance = Refused(1, "MPI is not initialised in this source, so other sources could have the messages of an exchange")

    def fuse(self, out, packing, into, taking, facts):
        """The Fused of an exchange, or Refused."""
        if self.hindrance:
            raise self.hindrance
        site = Site(out, packing, into, taking, facts)
        self._check_messages(site)
        self.sites += 1
        fused = Fused(site, self.sites)
        area = (site.first.start, site.last.end)
        fused._loop(), fused._agreement(), fused._apart()
        self._check_undisturbed(fused, area)
        return fused

    @staticmethod
    def _check_undisturbed(fused, area):
        polys = [p for pair in fused.match.agree for p in pair] + fused.match.factors
        polys += [poly_of(index) for _, index in fused.remote]
        loops = {loop.atom for nest in (fused.own_nest, fused.remote_nest) for loop in nest.loops}
        for poly in polys:
            unknown = Poly({(atom,): 1 for atom in poly.atoms() - loops})
            harmless = {call for call in fused.facts.calls if area[0] <= call.start and call.end <= area[1]}
            changed = fused.facts.disturbance(unknown, area, harmless)
            if changed:
                raise Refused(changed.line, "a number that the exchange depends on is changed within it")

    def _check_messages(self, site):
        """Messages of this exchange meet at this place of the source only."""
        send, receive = site.send, site.receive
        for transfer in (send, receive):
            if transfer.comm.text != "MPI_COMM_WORLD":
                raise Refused(site.line, f"its communicator is '{transfer.comm.text}', not MPI_COMM_WORLD")
            for node in (transfer.peer, transfer.tag):
                poly_of(node)
        tag = self._constant(send.tag)
        if tag is None or tag != self._constant(receive.tag):
            raise Refused(site.line, "its two tags are not one constant")
        if receive.peer.text == "MPI_ANY_SOURCE" or not is_ignored(site.taking.done.inner().args()[-1] if site.taking.done else receive.last):
            raise Refused(site.line, "it receives from any source, or asks for the status")
        for other in self.everything:
            if other.call is not send.call and other.call is not receive.call and self._constant(other.tag) in (None, tag):
                raise Refused(other.call.line, "this message could be one of the exchange: its tag is the same, or not a constant")

    def _constant(self, node):
        inner = node.inner()
        if inner.macro:
            found = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{inner.macro}[ \t]+(\d+)[ \t]*$", self.source.text, re.M)
            return int(found.group(1)) if found else None
        if inner.kind == "DECL_REF_EXPR" and inner.cursor.referenced.kind.name == "ENUM_CONSTANT_DECL":
            return inner.cursor.referenced.enum_value
        return poly_of(inner).constant()

    def finish(self):
        """What opi_fuse.h needs is made behind MPI_Init and freed before MPI_Finalize."""
        self.source.insert_behind(own_statement(self.starts[0]), "opi_fuse_begin();")
        for call in self.ends:
            self.source.insert_before(own_statement(call), "opi_fuse_end();")
