"""Ownership passing: decides for one local pointer whether its sends and receives may become gives and takes, and plans the edits.

In every block with a send or a receive the pointer's uses form stretches: written, then given; taken, then read, then freed or given
on. Nothing lives from one stretch to the next, so each can have a buffer of its own.
"""
import re

from .calls import SENDS, is_ignored, own_statement
from .ranges import LOOPS, PURE, Atom, Facts, Poly, Reach, covered, impure, inside, innocent, is_floating, loops_around, poly_of, reach_of
from .source import Refused
from .uses import Callee, Pointer


class Packing:
    """A stretch that is written and given: the buffer is allocated before `first`."""

    def __init__(self, first, fresh):
        self.first, self.fresh, self.uses = first, fresh, []
        self.transfer = self.statement = None  # the send


class Taking:
    """A stretch that is received, and then read: freed behind `last` unless it is given on. `done` completes a request."""

    def __init__(self, transfer, statement, done):
        self.transfer, self.statement, self.done = transfer, statement, done
        self.last = done or statement
        self.given = False
        self.uses = []    # (statement, its uses)
        self.checks = []  # (statement, bytes as C) that the message must have brought before the statement


class Plan:
    """What becomes of one pointer, once it is known that it may."""

    def __init__(self, pointer):
        self.pointer = pointer
        self.packings, self.takings = [], []
        self.size = None  # of a slice: the number of bytes it is allocated with, as C


def harmless_calls(facts, functions):
    """Calls to functions of this source that change no integer the caller can see."""
    found = set()
    for call in facts.calls:
        function = functions.get(call.callee())
        if function is None:
            continue
        inner = Facts(function)
        if all(innocent(c) for c in inner.calls) and all(d in inner.locals for d, _ in inner.changes) and all(
                is_floating(target.type) for target, _ in inner.stores):
            found.add(call)
    return found


def counter_writes(uses):
    """The counter c when all uses are `p[c++]`, else None."""
    atoms = set()
    for use in uses:
        index = use.index.inner() if use.index is not None and use.kind in ("read", "write", "update") else None
        if index is None or index.operator() != "x++" or index.kids[0].inner().kind != "DECL_REF_EXPR":
            return None
        atoms.add(Atom(index.kids[0].inner()))
    return atoms.pop() if len(atoms) == 1 else None


class Planner:
    def __init__(self, pointer, functions):
        self.pointer, self.functions, self.facts = pointer, functions, pointer.facts
        self.harmless = harmless_calls(self.facts, functions) | {use.call for use in pointer.uses if use.kind == "fill"}
        self.element = max(pointer.declaration.type.get_pointee().get_canonical().get_size(), 0)
        self.plan = Plan(pointer)

    def make(self):
        self._check_pointer()
        self._check_function()
        blocks = self._blocks()
        for block in blocks:
            self._walk(block)
        if self.pointer.parent is not None:
            self._check_slice()
        return self.plan

    def _check_pointer(self):
        p = self.pointer
        if p.declaration.statement() is None or p.declaration.statement().kind != "DECL_STMT":
            raise Refused(p.declaration.line, "it is not declared in a block of its own function")
        if p.declaration.cursor.storage_class.name == "STATIC":
            raise Refused(p.declaration.line, "it is static: what it points to lives from one call of the function to the next")
        if not self.element or p.declaration.type.get_pointee().is_volatile_qualified() or p.declaration.type.is_volatile_qualified():
            raise Refused(p.declaration.line, "the type it points to has no size, or is volatile")
        if len(p.allocations) > 1:
            lines = " and ".join(str(a.statement.line) for a in p.allocations)
            raise Refused(p.allocations[1].statement.line, f"it is allocated at several places (lines {lines})")
        if len(p.releases) > 1:
            lines = " and ".join(str(r.line) for r in p.releases)
            raise Refused(p.releases[1].line, f"it is freed at several places (lines {lines})")
        if not p.allocations and p.parent is None:
            raise Refused(p.declaration.line, "no malloc, calloc or MPI_Alloc_mem for it can be seen")
        if p.parent is not None and (p.releases or p.allocations or p.tests or p.clears):
            raise Refused(p.declaration.line, "it begins as a part of another buffer and becomes more than that")
        if p.slices:
            raise Refused(p.slices[0].line, f"'{p.slices[0].name}' points into it while it is itself sent or received")
        for allocation in p.allocations:
            for size in allocation.size:
                poly_of(size)
            if allocation.declared:
                effect = next((e for d in allocation.statement.kids if d.kids for e in effects(d)), None)
                if effect:
                    raise Refused(effect.line, f"'{effect.text}' has effects in the declaration that allocates it")

    def _check_function(self):
        function = self.pointer.function
        for node in function.walk():
            if node.kind in ("LABEL_STMT", "GOTO_STMT", "INDIRECT_GOTO_STMT"):
                raise Refused(node.line, "the function jumps with goto")
            if node.callee() in ("setjmp", "_setjmp", "sigsetjmp", "longjmp", "siglongjmp", "MPI_Cancel"):
                raise Refused(node.line, f"the function calls {node.callee()}")
        source = function.source
        directive = re.compile(r"^[ \t]*#[ \t]*(?!include)(\w+)|\b(_Pragma)\b", re.M).search(source.text, function.start, function.end)
        if directive:
            raise Refused(source.line_of(directive.start()), f"there is a '{directive.group(0).strip()}' within the function, and only one way of compiling it "
                                                             "was looked at")

    # Blocks and their statements.

    def _blocks(self):
        blocks = []
        for transfer in self.pointer.transfers:
            block = own_statement(transfer.call).parent
            if block not in blocks:
                blocks.append(block)
        for block in blocks:
            for other in blocks:
                if other is not block and other.within(block):
                    raise Refused(other.line, f"it is sent or received in this block and in the one around it (line {block.line})")
        owner = self.pointer.transfers[0].call
        for use in self.pointer.uses:
            if not any(self._statement_in(use.node, block) for block in blocks):
                raise Refused(use.line, f"it is used outside of the block of {owner.callee()} at line {owner.line}")
        return blocks

    @staticmethod
    def _statement_in(node, block):
        return next((n for n in [node, *node.ancestors()] if n.parent is block), None)

    def _walk(self, block):
        state, steps = None, 0
        for statement in block.kids:
            uses = [u for u in self.pointer.uses if u.node.within(statement)]
            moves = [t for t in self.pointer.transfers if t.call.within(statement)]
            if moves:
                if uses or len(moves) > 1:
                    raise Refused(statement.line, "it is used twice in one statement that sends or receives it")
                state = self._move(state, moves[0], statement, block)
            elif uses:
                state = self._use(state, uses, statement, block, steps)
            steps += bool(uses or moves)
        if isinstance(state, Packing):
            raise Refused(state.first.line, "it is written here, and not sent in the same block")
        if isinstance(state, Taking):
            self._no_way_out(state.statement, state.last)

    def _use(self, state, uses, statement, block, steps):
        if state is None:
            fresh = steps == 0 and any(a.statement.parent is block and not a.zeroed and a.statement.start < statement.start
                                       for a in self.pointer.allocations)
            state = Packing(statement, fresh)
        if isinstance(state, Packing):
            state.uses.append((statement, uses))
            return state
        if statement.start < state.last.start:
            raise Refused(statement.line, f"it is used before the receive at line {state.statement.line} is complete")
        for use in uses:
            state.checks.append(self._need(use, statement))
        state.uses.append((statement, uses))
        state.last = statement
        return state

    def _move(self, state, transfer, statement, block):
        if transfer.name == "MPI_Sendrecv" and (statement.inner() is not transfer.call or impure(transfer.comm)):
            raise Refused(statement.line, "the result of MPI_Sendrecv is used, or its communicator has effects, and two calls take its place")
        transfer.element_bytes()
        if transfer.role == "receive":
            if isinstance(state, Packing):
                raise Refused(statement.line, f"what is written at line {state.first.line} is received over")
            if isinstance(state, Taking):
                self._no_way_out(state.statement, state.last)
                self._before(state, statement)
            taking = Taking(transfer, statement, self._completion(transfer, statement, block))
            self.plan.takings.append(taking)
            return taking
        if state is None:
            raise Refused(statement.line, "it is not written in the same block before it is sent: what it holds from before is sent")
        if isinstance(state, Taking):
            self._before(state, statement)
            self._no_way_out(state.statement, statement)
            state.checks.append((statement, Reach(transfer.bytes(), [])))
            state.given = True
        else:
            self._no_way_out(state.first, statement)
            self._check_packing(state, transfer, statement)
            state.transfer, state.statement = transfer, statement
            self.plan.packings.append(state)
        return None

    @staticmethod
    def _before(taking, statement):
        if statement.start < taking.last.start:
            raise Refused(statement.line, f"it is used again before the receive at line {taking.statement.line} is complete")

    def _no_way_out(self, first, last):
        """Nothing leaves the stretch from `first` to `last` but by its end."""
        area = (first.start, last.end)
        for node in self.pointer.function.walk():
            if not inside(node, area):
                continue
            if node.kind == "RETURN_STMT":
                raise Refused(node.line, f"the function may return here, between lines {first.line} and {last.line} of one exchange")
            if node.kind in ("BREAK_STMT", "CONTINUE_STMT"):
                around = next(n for n in node.ancestors() if n.kind in LOOPS or n.kind == "SWITCH_STMT" and node.kind == "BREAK_STMT")
                if not inside(around, area):
                    raise Refused(node.line, f"a loop may be left here, between lines {first.line} and {last.line} of one exchange")
            if node.kind in ("CASE_STMT", "DEFAULT_STMT") and not any(inside(n, area) and n.kind == "SWITCH_STMT" for n in node.ancestors()):
                raise Refused(node.line, "a switch jumps into the middle of it")

    # Sending.

    def _check_packing(self, packing, transfer, send):
        """What is sent was written in this stretch: all of it."""
        size = transfer.bytes()
        if self.pointer.parent is not None:
            self._slice_size(size, packing, send)
        elif packing.fresh:
            return
        cause, single = None, set()
        for statement, uses in packing.uses:
            reading = next((u for u in uses if u.kind in ("read", "update", "drain")), None)
            if reading:
                raise Refused(reading.line, "it is read before all that is sent is written: what it held before may be relied on"
                              + (f" ({cause.cause}, line {cause.line})" if cause else ""))
            single |= self._single_elements(statement, uses)
            if size == Poly.number(len(single) * self.element) and single == set(range(len(single))):
                return
            try:
                self._check_covered(statement, uses, size, send)
                return
            except Refused as why:
                cause = cause or why
        raise cause

    @staticmethod
    def _single_elements(statement, uses):
        """The constant indices that a statement writes unconditionally."""
        found = set()
        for use in uses:
            simple = use.kind == "write" and use.node.outer().parent is statement and statement.kind == "BINARY_OPERATOR"
            index = poly_of(use.index or Poly.number(0)).constant() if simple and not counter_writes([use]) else None
            found |= set() if index is None else {index}
        return found

    def _check_covered(self, statement, uses, size, send):
        counter = counter_writes(uses)
        written = self._counted(counter, uses, statement, send, size) if counter else self._written(statement, uses)
        if written != size:
            raise Refused(send.line, f"{size.text()} bytes are sent, and {written.text()} are written at line {statement.line}: "
                                     "these are not seen to be the same, and the rest would be what it held before")
        changed = self.facts.disturbance(size, (statement.start, send.end), self.harmless)
        if changed and not (counter and size == Poly.atom(counter) * Poly.number(self.element)):
            raise Refused(changed.line, f"the number of elements sent at line {send.line} may change here, behind the packing")

    def _written(self, statement, uses):
        """The bytes, from the beginning of the buffer, that a statement surely writes."""
        if len(uses) == 1 and uses[0].kind == "fill":
            loops = loops_around(uses[0].node, statement, self.facts)
            if loops:
                raise Refused(statement.line, "it is filled within a loop")
            return poly_of(uses[0].index)
        if len(uses) == 1 and uses[0].kind == "pass":
            return self._written_by_callee(uses[0], statement)
        if any(use.kind != "write" for use in uses):
            raise Refused(statement.line, "it is not only written here")
        elements = covered([(use.index or Poly.number(0), use.node) for use in uses], statement, self.facts)
        return elements * Poly.number(self.element)

    def _written_by_callee(self, use, statement):
        callee = Callee(use, self.functions)
        if loops_around(use.node, statement, self.facts):
            raise Refused(statement.line, "it is packed within a loop")
        if any(a.kind != "write" for a in callee.accesses) or not callee.accesses:
            raise Refused(use.line, f"{callee.function.name} does not only write it")
        tops = {self._statement_in(a.node, callee.body) for a in callee.accesses}
        if len(tops) != 1:
            raise Refused(use.line, f"{callee.function.name} writes it at several places")
        top = tops.pop()
        counter = counter_writes(callee.accesses)
        elements = (counted(counter, callee.accesses, top, callee.facts) if counter else
                    covered([(a.index or Poly.number(0), a.node) for a in callee.accesses], top, callee.facts))
        return self._through(callee, elements, use) * Poly.number(self.element)

    def _through(self, callee, poly, use):
        """A polynomial over a function's parameters as one over the arguments of a call."""
        values = {}
        for parameter, argument in callee.arguments.items():
            if any(parameter in atom.declarations for atom in poly.atoms()):
                values[parameter] = poly_of(argument)
        result = poly.substitute(values)
        changed = callee.facts.disturbance(poly, (callee.body.start, callee.body.end))
        if result is None or changed or any(a.variable and a.declarations[0] in callee.facts.locals for a in result.atoms()):
            raise Refused(use.line, f"how many elements {callee.function.name} accesses does not follow from its arguments")
        return result

    def _counted(self, counter, uses, statement, send, size):
        """`p[c++] = ...`: c elements are written if c was 0 before, or what the loops count up to."""
        reset(counter, statement, self.facts)
        ours = [u.index.inner() for u in uses]
        for declaration, node in self.facts.changes:
            if declaration == counter.declarations[0] and inside(node, (statement.start, send.end)) and node not in ours:
                raise Refused(node.line, f"the counter '{counter.text}' is changed here as well")
        if not self.facts.simple(counter.declarations[0]) or any(u.kind != "write" for u in uses):
            raise Refused(statement.line, f"the counter '{counter.text}' cannot be followed")
        if size == Poly.atom(counter) * Poly.number(self.element):
            return size
        return counted(counter, uses, statement, self.facts) * Poly.number(self.element)

    # Slices: `T *part = all + offset;` sent or received as a whole.

    def _slice_size(self, size, packing, send):
        if any(u.kind not in ("write", "fill", "pass") for _, uses in packing.uses for u in uses) or len(packing.uses) != 1:
            raise Refused(packing.first.line, "as a part of another buffer it must be written in one statement and nothing else")
        changed = self.facts.disturbance(size, (packing.first.start, send.end), self.harmless)
        if changed:
            raise Refused(changed.line, f"the size of the part sent at line {send.line} may change here")
        if self.plan.size not in (None, size):
            raise Refused(send.line, "parts of different sizes are sent from it")
        self.plan.size = size

    def _check_slice(self):
        for use in self.pointer.uses:
            if use.index is not None and use.kind in ("read", "write", "update") and not counter_writes([use]):
                lowest = poly_of(use.index)
                if any(c < 0 for c in lowest.terms.values()):
                    raise Refused(use.line, "as a part of another buffer it may be accessed before its beginning")

    # Receiving.

    def _completion(self, transfer, statement, block):
        """The statement that completes a receive: itself, or the wait for its request. As (wait call, index) in `transfer.wait`."""
        transfer.wait = None
        if transfer.name != "MPI_Irecv":
            return None
        request = transfer.last.inner()
        found = request_of(request)
        if found is None:
            raise Refused(statement.line, f"the request '{request.text}' cannot be followed (known are '&r' and '&r[constant]')")
        for later in block.kids[block.kids.index(statement) + 1:]:
            call = next((n for n in later.walk() if n.callee() in ("MPI_Wait", "MPI_Waitall") and waits_for(n, found)), None)
            if call:
                transfer.wait = call
                waiting = own_statement(call)
                if waiting.parent is not block:
                    raise Refused(waiting.line, f"{call.callee()} is not in the same block as the receive at line {statement.line}")
                if waiting.inner() is not call or impure(call.args()[-1]):
                    raise Refused(waiting.line, f"the result of {call.callee()} is used, or its argument has effects")
                return waiting
        raise Refused(statement.line, f"no MPI_Wait or MPI_Waitall for '{request.text}' in the same block completes it")

    def _need(self, use, statement):
        """(statement, Reach in bytes): where to test how much the message brought, and for how much."""
        top = check_point(use.node, statement)
        unit = Poly.number(self.element)
        if use.kind in ("drain", "fill"):
            if loops_around(use.node, top, self.facts):
                raise Refused(use.line, "it is copied within a loop")
            return top, Reach(poly_of(use.index), [])
        if use.kind == "pass":
            return top, self._callee_need(use, top)
        uses = [u for u in self.pointer.uses if u.node.within(top)]
        counter = counter_writes(uses)
        if counter:
            reset(counter, top, self.facts)
            reach = Reach(counted(counter, uses, top, self.facts) * unit, loops_around(use.node, top, self.facts))
            return top, reach.settled(top, self.facts)
        if use.index is None:
            return top, Reach(unit, [])
        reach = reach_of(use.index, top, self.facts, use.node)
        reach.end = reach.end * unit
        return top, reach

    def _callee_need(self, use, top):
        callee = Callee(use, self.functions)
        if loops_around(use.node, top, self.facts):
            raise Refused(use.line, "it is passed on within a loop")
        end, guards = None, []
        counter = counter_writes(callee.accesses)
        for access in callee.accesses:
            inner_top = self._statement_in(access.node, callee.body)
            if counter:
                reset(counter, inner_top, callee.facts)
                nest = loops_around(access.node, inner_top, callee.facts)
                found = Reach(counted(counter, callee.accesses, inner_top, callee.facts), nest).settled(inner_top, callee.facts)
            else:
                if access.index is None or access.kind in ("fill", "drain", "pass"):
                    raise Refused(use.line, f"how much {callee.function.name} accesses is not seen")
                found = reach_of(access.index, inner_top, callee.facts, access.node)
            if end is None or not (found.end - end).constant() or (found.end - end).constant() > 0:
                if end is not None and (found.end - end).constant() is None:
                    raise Refused(use.line, f"{callee.function.name} accesses several ranges")
                end, guards = found.end, found.guards
        if end is None:
            return Reach(Poly.number(0), [])
        reach = Reach(self._through(callee, end, use) * Poly.number(self.element), [])
        reach.guards = [(self._through(callee, low, use), self._through(callee, high, use)) for low, high in guards]
        return reach


def effects(declaration):
    """What the initial value of a declaration does besides allocating: it could change the size of an allocation beside it."""
    return [n for n in declaration.walk() if n.kind != "VAR_DECL" and n.callee() not in ("malloc", "calloc")
            and (n.kind in ("CALL_EXPR", "COMPOUND_ASSIGNMENT_OPERATOR") or n.operator() in ("=", "++", "--", "x++", "x--"))]


def reset(counter, statement, facts):
    """The counter is 0 where `statement` begins: a statement before it in the same block says so, and nothing between changes it."""
    block, declaration = statement.parent, counter.declarations[0]
    for earlier in reversed(block.kids[:block.kids.index(statement)] if block.kind == "COMPOUND_STMT" else []):
        change = facts.changed(declaration, (earlier.start, earlier.end))
        if change is None:
            continue
        value = change.kids[-1] if change.kids else None
        direct = earlier.inner() is change or change.parent is earlier and earlier.kind == "DECL_STMT"
        if value is not None and change.kind in ("BINARY_OPERATOR", "VAR_DECL") and direct and poly_of(value).constant() == 0:
            return
        break
    raise Refused(statement.line, f"the counter '{counter.text}' is not seen to be 0 here")


def counted(counter, uses, statement, facts):
    """How many elements `p[c++]` reaches from c = 0, where each pass of the loops reaches the same number."""
    nests = [loops_around(u.node, statement, facts) for u in uses]
    if any([l.node for l in nest] != [l.node for l in nests[0]] for nest in nests):
        raise Refused(statement.line, f"the counter '{counter.text}' grows in several loops")
    ours = [u.index.inner() for u in uses]
    if not facts.simple(counter.declarations[0]) or any(
            d == counter.declarations[0] and inside(n, (statement.start, statement.end)) and n not in ours for d, n in facts.changes):
        raise Refused(statement.line, f"the counter '{counter.text}' is changed in another way as well")
    total = Poly.number(len(uses))
    inner = {loop.atom.declarations[0] for loop in nests[0]}
    for loop in nests[0]:
        if any(inner & set(atom.declarations) for atom in (loop.upper + loop.lower).atoms()):
            raise Refused(loop.node.line, "how often this loop runs depends on another loop")
        total = total * (loop.upper - loop.lower)
    return total


def check_point(node, statement):
    """The statement, below all conditions and above all loops, in which an access happens; at most `statement` itself."""
    best = None
    for n in [node, *node.ancestors()]:
        parent = n.parent
        if parent.kind == "COMPOUND_STMT" or parent.kind == "IF_STMT" and n is not parent.kids[0]:
            if best is None or n.kind in LOOPS:
                best = n
        if n is statement:
            return best
    raise Refused(node.line, "it is used where it cannot be followed")


def request_of(node):
    """(declaration of the request or of the array, constant index or None) of `&r` or `&r[3]`."""
    if node.kind != "UNARY_OPERATOR" or node.operator() != "&":
        return None
    target = node.kids[0].inner()
    if target.kind == "DECL_REF_EXPR":
        return target.declaration(), None
    if target.kind == "ARRAY_SUBSCRIPT_EXPR" and target.kids[0].inner().kind == "DECL_REF_EXPR":
        index = poly_of(target.kids[1]).constant()
        return None if index is None else (target.kids[0].inner().declaration(), index)
    return None


def waits_for(call, request):
    declaration, index = request
    args = [a.inner() for a in call.args()]
    if call.callee() == "MPI_Wait":
        return request_of(args[0]) == request
    if index is None or args[1].declaration() != declaration:
        return False
    count = poly_of(call.args()[0]).constant()
    return count is not None and index < count
