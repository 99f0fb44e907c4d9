"""Writes plans of ownership passing into the source as edits."""
from .calls import RECEIVES, SENDS, is_ignored


def checks_of(taking, name, status):
    """(statement, what is to be tested before it as C) for a taken buffer, each once."""
    found = {}
    for top, reach in taking.checks:
        text = f'OPI_BROUGHT(&{status}, {taking.transfer.type.text}, {reach.text()}, "{name}");'
        found[top.start, text] = (top, text)
    return list(found.values())


class Emitter:
    def __init__(self, source):
        self.source = source
        self.calls = {}   # start of a call -> (call, {role: (plan, transfer, status variable or None)})
        self.fused = set()  # transfers that the second pass writes
        self.waits = {}   # start of a wait -> (call, [(status variable, index)])

    def pointer(self, plan):
        """All edits for one pointer but those of the calls, which other pointers may share."""
        pointer = plan.pointer
        status = self._takings(plan)
        size = self._allocation(plan)
        tests = " ".join(self.source.squeezed(t.start, self.source.behind(t)) for t in pointer.tests)
        plan.allocate = f"OPI_Alloc((void **)&{pointer.name}, {size});" + (f" {tests}" if tests else "")
        plan.status = status
        for packing in plan.packings:
            if packing.transfer not in self.fused:
                self.source.insert_before(packing.first, plan.allocate)
        for statement in pointer.releases + pointer.tests:
            self.source.remove(statement)
        for transfer in pointer.transfers:
            if transfer in self.fused:
                continue
            self.calls.setdefault(transfer.call.start, (transfer.call, {}))[1][transfer.role] = (plan, transfer, status)
            if transfer.role == "receive" and transfer.wait and status:
                index = self._index_in(transfer)
                self.waits.setdefault(transfer.wait.start, (transfer.wait, []))[1].append((status, index))

    @staticmethod
    def _index_in(transfer):
        target = transfer.last.inner().kids[0].inner()
        return target.kids[1].text if target.kind == "ARRAY_SUBSCRIPT_EXPR" else None

    def _takings(self, plan):
        """The checks before each use of what was taken, and the frees behind the last. Returns the status variable, if one is needed."""
        name, status = plan.pointer.name, None
        if any(taking.checks or taking.transfer in self.fused for taking in plan.takings):
            status = self.source.fresh_name(f"{name}_status")
            self.source.insert_behind(plan.pointer.declaration.statement(), f"MPI_Status {status};")
        apart = [taking for taking in plan.takings if taking.transfer not in self.fused]
        for taking in apart:
            for top, check in checks_of(taking, name, status):
                if top.parent.kind == "COMPOUND_STMT":
                    self.source.insert_before(top, check)
                else:
                    self.source.replace(top.start, top.start, "{ " + check + " ")
                    self.source.replace(self.source.behind(top), self.source.behind(top), " }")
        for taking in apart:
            if not taking.given:
                self.source.insert_behind(taking.last, f"OPI_Free((void **)&{name});")
        return status

    def _declaration(self, pointer):
        """The pointer begins as NULL."""
        declaration = pointer.declaration
        value = declaration.kids[-1] if declaration.kids and declaration.kids[-1].kind != "TYPE_REF" else None
        if value is None:
            self.source.replace(declaration.end, declaration.end, " = NULL")
        elif pointer.parent is not None or pointer.allocations[0].declared:
            self.source.replace(value.start, value.end, "NULL")

    def _allocation(self, plan):
        """Takes the program's own allocation out. Returns the size of a new buffer as C."""
        pointer, source = plan.pointer, self.source
        self._declaration(pointer)
        if pointer.parent is not None:
            return f"(size_t)({plan.size.text('LL')})" if plan.size else None
        allocation = pointer.allocations[0]
        texts = [node.text for node in allocation.size]
        text = texts[0] if len(texts) == 1 else f"(size_t)({texts[0]}) * ({texts[1]})"
        variable = source.fresh_name(f"{pointer.name}_bytes")
        if allocation.declared:
            if plan.packings:
                source.insert_behind(allocation.statement, f"size_t {variable} = {text};")
        elif plan.packings:
            source.insert_behind(pointer.declaration.statement(), f"size_t {variable} = 0;")
            source.replace(allocation.statement.start, source.behind(allocation.statement), f"{variable} = {text};")
        else:
            source.remove(allocation.statement)
        return variable

    def whole(self, parent):
        """Takes out the allocation of a buffer of which only parts are sent or received."""
        for allocation in parent.allocations:
            if not allocation.declared:
                self.source.remove(allocation.statement)
            elif len(allocation.statement.kids) == 1:
                self.source.remove(allocation.statement)
            else:
                value = parent.declaration.kids[-1]
                self.source.replace(value.start, value.end, "NULL")
        for statement in parent.releases:
            self.source.remove(statement)

    def finish(self):
        for call, roles in self.calls.values():
            self._call(call, roles)
        for call, statuses in self.waits.values():
            if call.callee() == "MPI_Wait":
                self._wait(call, statuses)
            else:
                self._waitall(call, statuses)

    def _call(self, call, roles):
        if call.callee() == "MPI_Sendrecv":
            self._sendrecv(call, roles)
            return
        (plan, transfer, status), = roles.values()
        head = f"{(SENDS | RECEIVES)[transfer.name]}((void **)&{plan.pointer.name}, {transfer.arguments()}"
        if transfer.last is None:
            self.source.replace(call.start, call.end, head + ")")
        elif transfer.name == "MPI_Recv" and status:
            self.source.replace(call.start, call.end, f"{head}, &{status})")
            self._hand_on(call, transfer.last, status)
        else:
            self.source.replace(call.start, call.end, f"{head}, {transfer.last.text})")

    def _hand_on(self, call, wanted, status):
        """Gives the program the status it asked for."""
        if not is_ignored(wanted):
            self.source.insert_behind(call.statement(), f"*({wanted.text}) = {status};")

    def _sendrecv(self, call, roles):
        """A non-blocking send, a blocking receive, and the wait: what MPI_Sendrecv does at once."""
        args = [self.source.text[a.start:a.end] for a in call.args()]
        request = self.source.fresh_name("opi_request")
        send = f"MPI_Isend({', '.join(args[:5])}, {args[10]}, &{request});"
        receive = f"MPI_Recv({', '.join(args[5:11])}, {args[11]});"
        if "send" in roles:
            plan, transfer, _ = roles["send"]
            send = f"OPI_Igive((void **)&{plan.pointer.name}, {transfer.arguments()}, &{request});"
        if "receive" in roles:
            plan, transfer, status = roles["receive"]
            receive = f"OPI_Take((void **)&{plan.pointer.name}, {transfer.arguments()}, {'&' + status if status else args[11]});"
            if status:
                self._hand_on(call, transfer.last, status)
        indent = self.source.indent_of(call.start)
        lines = ["{", f"    MPI_Request {request};", f"    {send}", f"    {receive}", f"    MPI_Wait(&{request}, MPI_STATUS_IGNORE);", "}"]
        statement = call.statement()
        self.source.replace(statement.start, self.source.behind(statement), f"\n{indent}".join(lines))

    def _wait(self, call, statuses):
        (status, _), = statuses
        wanted = call.args()[1]
        self.source.replace(wanted.start, wanted.end, f"&{status}")
        self._hand_on(call, wanted, status)

    def _waitall(self, call, statuses):
        count, requests, wanted = call.args()
        array = wanted.text
        statement = call.statement()
        if is_ignored(wanted):
            array = self.source.fresh_name("opi_statuses")
            self.source.replace(statement.start, statement.start, f"{{ MPI_Status {array}[{count.text}]; ")
            self.source.replace(wanted.start, wanted.end, array)
        copies = " ".join(f"{status} = ({array})[{index}];" for status, index in statuses)
        end = self.source.behind(statement)
        self.source.replace(end, end, f" {copies}" + (" }" if is_ignored(wanted) else ""))
