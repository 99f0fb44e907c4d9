"""Both passes over one source, and what they report."""
import re

from .calls import OTHERS, own_statement, transfers
from .emit import Emitter
from .ownership import Planner
from .ranges import Facts, impure
from .source import Refused
from .uses import Pointer


class Line:
    """What became of one call's buffer."""

    def __init__(self, line, buffer, text, done):
        self.line, self.buffer, self.text, self.done = line, buffer, text, done


class Ownership:
    """The first pass: sends and receives become gives and takes."""

    def __init__(self, source, fusion=None):
        self.source, self.fusion, self.fused = source, fusion, []
        self.functions = {f.name: f for f in source.functions}
        self.emitter = Emitter(source)
        self.report = []

    def run(self):
        for function in self.source.functions:
            self._function(function)
        self.emitter.finish()
        for fused in self.fused:
            site = fused.site
            self.source.replace(site.first.start, self.source.behind(site.last), fused.text())
            side = "sender" if fused.sender_runs else "receiver"
            self.report.append(Line(site.line, site.out.pointer.name, f"fused: the {side} runs one loop over both ranks' arrays", True))
        if self.fused:
            self.fusion.finish()
            include(self.source, "opi_fuse.h")
        if any(line.done for line in self.report):
            include(self.source, "opi_rewrite.h")
        return sorted(self.report, key=lambda line: line.line)

    def _function(self, function):
        facts = Facts(function)
        plans, sites = {}, []
        for call in facts.calls:
            for transfer in transfers(call):
                sites.append((transfer, self._plan(transfer, function, facts, plans)))
            if call.callee() in OTHERS:
                self.report.append(Line(call.line, call.args()[0].text, f"{call.callee()} stays: {OTHERS[call.callee()]}", False))
        wholes = self._wholes(function, facts, plans)
        if self.fusion:
            self._fuse([plan for plan in plans.values() if not isinstance(plan, Refused)], facts)
        for key, plan in plans.items():
            if not isinstance(plan, Refused):
                self.emitter.pointer(plan)
        for parent in wholes:
            self.emitter.whole(parent)
        for transfer, key in sites:
            self._say(transfer, key if isinstance(key, Refused) else plans[key])

    def _fuse(self, plans, facts):
        """The second pass, for exchanges whose two buffers both have a plan."""
        for out, packing in [(plan, packing) for plan in plans for packing in plan.packings]:
            pairs = [(plan, taking) for plan in plans for taking in plan.takings
                     if plan is not out and taking.statement.parent is packing.statement.parent and taking.last.start > packing.statement.start]
            try:
                if not pairs:
                    raise Refused(packing.statement.line, "nothing is received in the same block, or its receive stays")
                into, taking = min(pairs, key=lambda pair: pair[1].last.start)
                self.fused.append(self.fusion.fuse(out, packing, into, taking, facts))
                self.emitter.fused |= {packing.transfer, taking.transfer}
            except Refused as why:
                where = "" if why.line == packing.transfer.call.line else f" (line {why.line})"
                self.report.append(Line(packing.transfer.call.line, out.pointer.name, f"not fused: {why.cause}{where}", None))

    def _plan(self, transfer, function, facts, plans):
        """The key of the plan for a transfer's buffer in `plans`, or why there can be none."""
        buffer = transfer.buffer.inner(casts=True)
        try:
            if transfer.call.macro:
                raise Refused(transfer.call.line, f"the macro {transfer.call.macro} produces the call")
            declaration = self._variable(buffer, facts)
        except Refused as why:
            return why
        key = declaration.cursor.hash
        if key not in plans:
            try:
                plans[key] = Planner(Pointer(declaration, function, facts, self.functions), self.functions).make()
            except Refused as why:
                plans[key] = why
        return key

    def _variable(self, buffer, facts):
        if buffer.kind != "DECL_REF_EXPR":
            if buffer.operator() in ("&", "+", "-"):
                raise Refused(buffer.line, "it is an address within something, or of a variable: ownership is passed of whole heap buffers")
            what = {"MEMBER_REF_EXPR": "a member of a structure, which other functions may use", "CALL_EXPR": "the result of a call",
                    "ARRAY_SUBSCRIPT_EXPR": "an element of an array"}.get(buffer.kind, "an expression")
            raise Refused(buffer.line, f"it is {what}, not a local pointer")
        declaration = facts.locals.get(buffer.declaration())
        if declaration is None:
            raise Refused(buffer.line, "it is global: other functions may use it")
        if declaration.type.kind.name != "POINTER":
            raise Refused(declaration.line, "it is an array, not on the heap")
        if declaration.kind == "PARM_DECL":
            raise Refused(declaration.line, f"it is a parameter of {facts.function.name}: its caller owns it")
        return declaration

    def _wholes(self, function, facts, plans):
        """The buffers of which only parts are sent. A part's plan is refused with its whole."""
        wholes = {}
        for key, plan in list(plans.items()):
            if isinstance(plan, Refused) or plan.pointer.parent is None:
                continue
            names = [n.declaration() for n in plan.pointer.parent.walk() if n.declaration() in facts.locals
                     and facts.locals[n.declaration()].type.kind.name == "POINTER"]
            wholes.setdefault(names[0] if len(names) == 1 else None, []).append(key)
        found = []
        for whole, parts in wholes.items():
            try:
                found.append(self._whole(whole, parts, function, facts, plans))
            except Refused as why:
                for key in parts:
                    plans[key] = why
        return found

    def _whole(self, whole, parts, function, facts, plans):
        first = plans[parts[0]].pointer
        if whole is None or first.parent.operator() not in ("+", "&"):
            raise Refused(first.declaration.line, f"it begins as '{first.parent.text}', which is no part of a local buffer that can be seen")
        declaration = facts.locals[whole]
        if declaration.kind == "PARM_DECL":
            raise Refused(first.declaration.line, f"it is a part of '{declaration.name}', which belongs to the caller")
        pointer = Pointer(declaration, function, facts, self.functions)
        for key in parts:
            effect = impure(plans[key].pointer.parent)
            if effect:
                raise Refused(effect.line, f"'{effect.text}' has effects of its own")
        others = [s for s in pointer.slices if s.cursor.hash not in parts]
        if others:
            raise Refused(others[0].line, f"'{others[0].name}' is a part of '{pointer.name}' that is not passed on")
        use = next(iter(pointer.uses + pointer.transfers), None)
        if use or pointer.tests or pointer.clears:
            line = getattr(use, "line", None) or (use.call.line if use else declaration.line)
            raise Refused(line, f"'{pointer.name}', of which it is a part, is also used as a whole")
        if len(pointer.allocations) != 1 or len(pointer.releases) > 1 or pointer.parent is not None:
            raise Refused(declaration.line, f"'{pointer.name}', of which it is a part, is not allocated once and freed once")
        return pointer

    def _say(self, transfer, plan):
        name = transfer.buffer.inner(casts=True).text
        if isinstance(plan, Refused):
            where = "" if plan.line == transfer.call.line else f" (line {plan.line})"
            self.report.append(Line(transfer.call.line, name, f"{transfer.name} stays: {plan.cause}{where}", False))
            return
        what = "is given away" if transfer.role == "send" else "is taken"
        self.report.append(Line(transfer.call.line, name, f"{transfer.name}: {what}", True))


def include(source, header):
    """Adds a header that the rewritten program needs, behind the last #include before the first function."""
    first = min(f.start for f in source.functions)
    last = [m for m in re.finditer(r"^[ \t]*#[ \t]*include\b[^\n]*\n", source.text, re.M) if m.end() <= first][-1]
    if f"#include <{header}>" not in source.text:
        source.replace(last.end(), last.end(), f"#include <{header}>\n")
