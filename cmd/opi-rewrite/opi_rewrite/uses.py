"""What a function does with one local pointer: every reference to it, classified. What is not in this list is refused."""
import re

from .calls import OTHERS, own_statement, transfers
from .ranges import Facts
from .source import Refused

ALLOCATORS = {"malloc": 1, "calloc": 2}
RELEASES = {"free", "MPI_Free_mem"}
STOPS = {"MPI_Abort", "exit", "abort", "_exit"}
SAYS = {"perror", "fprintf", "printf", "puts", "fputs"}


class Use:
    """kind: 'read', 'write', 'update' of the element `index`; 'fill', 'drain' of `index` bytes by memcpy and its like; 'pass' to a function
    of this source (`call`, argument number `index`)."""

    def __init__(self, kind, node, index=None, call=None):
        self.kind, self.node, self.index, self.call = kind, node, index, call
        self.line = node.line


class Allocation:
    """`statement` is the declaration or assignment, `size` the texts whose product is the number of bytes, `call` the call."""

    def __init__(self, statement, call, size, declared):
        self.statement, self.call, self.size, self.declared = statement, call, size, declared
        self.zeroed = call is not None and call.callee() == "calloc"


class Pointer:
    """A local pointer and its uses. Raises Refused when its value gets anywhere it could be used from unseen."""

    def __init__(self, declaration, function, facts, functions):
        self.declaration, self.function, self.facts, self.functions = declaration, function, facts, functions
        self.name = declaration.name
        self.key = declaration.cursor.hash
        self.uses, self.transfers, self.allocations, self.releases, self.tests, self.clears, self.slices = [], [], [], [], [], [], []
        self.parent = None  # the expression it is initialised with, if that is a part of another buffer
        if declaration.kids:
            self._initialised(declaration.kids[-1])
        for node in function.walk():
            if node.declaration() == self.key and not any(above.kind == "CXX_UNARY_EXPR" for above in node.ancestors()):
                self._classify(node)

    def _initialised(self, value):
        if self.declaration.type.kind.name != "POINTER" or value.kind == "TYPE_REF":
            return
        call = value.inner(casts=True)
        if call.callee() in ALLOCATORS:
            self._allocated(call, self.declaration.parent, True)
        elif not is_null(value):
            self.parent = value.inner(casts=True)

    def _allocated(self, call, statement, declared):
        if call.macro:
            raise Refused(call.line, f"the macro {call.macro} produces the allocation")
        self.allocations.append(Allocation(statement, call, call.args()[:ALLOCATORS[call.callee()]], declared))

    def _classify(self, node):
        if node.macro:
            raise Refused(node.line, f"the macro {node.macro} uses it")
        value = node.outer(casts=True)
        user = value.parent
        sign = user.operator()
        if user.kind == "ARRAY_SUBSCRIPT_EXPR" and user.kids[0] is value:
            self._element(user, user.kids[1])
        elif user.kind == "UNARY_OPERATOR" and sign == "*":
            self._element(user, None)
        elif user.kind == "CALL_EXPR":
            self._argument(node, value, user)
        elif user.kind == "UNARY_OPERATOR" and sign == "&":
            self._address(node, user)
        elif user.kind == "BINARY_OPERATOR" and sign == "=" and user.kids[0] is value:
            self._assigned(node, user)
        elif user.kind == "BINARY_OPERATOR" and sign in ("+", "-") or user.kind == "VAR_DECL":
            self._derived(node, value)
        elif sign in ("!", "==", "!=") or user.kind == "IF_STMT":
            self._tested(node)
        elif user.kind == "RETURN_STMT":
            raise Refused(node.line, "it is returned to the caller")
        elif sign in ("++", "--", "x++", "x--") or user.kind == "COMPOUND_ASSIGNMENT_OPERATOR":
            raise Refused(node.line, "the pointer is moved")
        elif user.kind == "BINARY_OPERATOR" and sign == "=":
            raise Refused(node.line, f"'{user.kids[0].text}' is made an alias of it")
        else:
            raise Refused(node.line, "its address is used in an expression that cannot be followed")

    def _element(self, access, index):
        inner, kind = access, "read"
        value = access.outer()
        while value.parent.kind in ("MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR") and value.parent.kids[0] is value:
            inner, value = value.parent, value.parent.outer()
        user, sign = value.parent, value.parent.operator()
        whole = inner is access and access.cursor.type.get_pointee().kind.name == "INVALID"
        if user.kind == "BINARY_OPERATOR" and sign == "=" and user.kids[0] is value:
            kind = "write" if whole else "update"
        elif user.kind == "COMPOUND_ASSIGNMENT_OPERATOR" and user.kids[0] is value or sign in ("++", "--", "x++", "x--"):
            kind = "update"
        elif user.kind == "UNARY_OPERATOR" and sign in ("&", None):
            return self._inside(access, user)
        elif inner.type.kind.name in ("CONSTANTARRAY", "POINTER"):
            raise Refused(access.line, "its elements are arrays or pointers")
        if access.cursor.type.get_size() != self.declaration.type.get_pointee().get_size():
            raise Refused(access.line, "it is accessed as another type than its own")
        self.uses.append(Use(kind, access, index))

    def _inside(self, access, address):
        user = address.outer(casts=True).parent
        if user.kind == "CALL_EXPR" and user.callee() in OTHERS | {"MPI_Send": 0, "MPI_Isend": 0, "MPI_Recv": 0, "MPI_Irecv": 0, "MPI_Sendrecv": 0}:
            raise Refused(access.line, f"'{address.text}' points into it: ownership is passed of whole buffers")
        if user.kind == "VAR_DECL":
            self.slices.append(user)
            return
        raise Refused(access.line, f"'{address.text}' points into it and cannot be followed")

    def _derived(self, node, value):
        while value.parent.kind == "BINARY_OPERATOR":
            value = value.parent.outer(casts=True)
        user = value.parent
        if user.kind == "VAR_DECL":
            if value.inner(casts=True) is node:
                raise Refused(node.line, f"'{user.name}' is made an alias of it")
            self.slices.append(user)
            return
        if user.kind == "CALL_EXPR":
            raise Refused(node.line, f"'{value.text}' points into it: ownership is passed of whole buffers")
        raise Refused(node.line, f"'{value.text}' is an address computed from it")

    def _argument(self, node, value, call):
        name, place = call.callee(), call.args().index(value)
        for transfer in transfers(call):
            if transfer.buffer is value:
                own_statement(call)
                self.transfers.append(transfer)
                return
        if name in RELEASES:
            self._released(call)
        elif name in ("realloc", "reallocarray"):
            raise Refused(node.line, "it is reallocated")
        elif name in OTHERS:
            raise Refused(node.line, OTHERS[name])
        elif name in ("memcpy", "memmove", "memset") and place < 2 and len(call.args()) == 3:
            self.uses.append(Use("fill" if place == 0 else "drain", node, call.args()[2], call))
        elif name in self.functions and place < len(parameters(self.functions[name])):
            self.uses.append(Use("pass", node, place, call))
        else:
            raise Refused(node.line, f"it is passed to {name or 'a function through a pointer'}, which may use or keep it")

    def _released(self, call):
        statement = call.parent
        if statement.kind == "UNEXPOSED_EXPR":
            statement = statement.parent
        if call.macro:
            raise Refused(call.line, f"the macro {call.macro} frees it")
        if statement.kind == "IF_STMT" and len(statement.kids) == 2 and re.fullmatch(
                rf"\(?{self.name}( != (NULL|0))?\)?", statement.kids[0].source.squeezed(statement.kids[0].start, statement.kids[0].end)):
            self.releases.append(statement)
        elif statement.kind in ("COMPOUND_STMT", "FOR_STMT", "WHILE_STMT", "IF_STMT"):
            self.releases.append(call)
        else:
            raise Refused(call.line, "its release is not a statement of its own")

    def _address(self, node, address):
        call = address.outer(casts=True).parent
        if call.kind != "CALL_EXPR" or call.callee() != "MPI_Alloc_mem":
            raise Refused(node.line, "the address of the pointer is taken")
        statement = own_statement(call, "MPI_Alloc_mem")
        if call.args()[1].text != "MPI_INFO_NULL":
            raise Refused(node.line, "MPI_Alloc_mem gets an info that OPI_Alloc has no place for")
        self.allocations.append(Allocation(statement, call, call.args()[:1], False))

    def _assigned(self, node, assignment):
        call = assignment.kids[1].inner(casts=True)
        if call.callee() in ALLOCATORS and assignment.statement() is assignment:
            self._allocated(call, assignment, False)
        elif is_null(assignment.kids[1]) and assignment.statement() is assignment:
            self.clears.append(assignment)
        elif call.callee() in ("realloc", "reallocarray"):
            raise Refused(node.line, "it is reallocated")
        elif call.callee() in ALLOCATORS:
            raise Refused(node.line, "its allocation is not a statement of its own")
        else:
            raise Refused(node.line, f"it is set to '{assignment.kids[1].text}', which is no allocation that can be seen")

    def _tested(self, node):
        """Only `if (!p) stop;` is known: it moves to where the new buffer is allocated. `if (p) free(p);` is seen with the release."""
        choice = next((n for n in node.ancestors() if n.kind == "IF_STMT"), None)
        condition = choice.source.squeezed(choice.kids[0].start, choice.kids[0].end) if choice else ""
        name = re.escape(self.name)
        if re.fullmatch(rf"{name}( != (NULL|0))?", condition) and node.within(choice.kids[0]) and len(choice.kids) == 2:
            body = choice.kids[1].inner()
            body = body.kids[0] if body.kind == "COMPOUND_STMT" and len(body.kids) == 1 else body
            if body.callee() in RELEASES:
                return
        if not re.fullmatch(rf"!{name}|{name} == (NULL|0)|(NULL|0) == {name}", condition) or len(choice.kids) != 2 or choice.macro:
            raise Refused(node.line, "a condition depends on the pointer")
        calls = [n for n in choice.kids[1].walk() if n.kind == "CALL_EXPR"]
        names = {n.declaration() for n in choice.kids[1].walk() if n.kind == "DECL_REF_EXPR"} & set(self.facts.locals)
        plain = all(n.kind not in ("RETURN_STMT", "GOTO_STMT", "BREAK_STMT", "CONTINUE_STMT", "FOR_STMT", "WHILE_STMT")
                    for n in choice.kids[1].walk())
        if names or not plain or not calls or not {c.callee() for c in calls} <= STOPS | SAYS or calls[-1].callee() not in STOPS:
            raise Refused(node.line, "a failed allocation is handled in a way that cannot be moved (only printing and stopping can)")
        self.tests.append(choice)


def is_null(node):
    inner = node.inner(casts=True)
    return node.text in ("NULL", "0", "((void *)0)") or inner.macro == "NULL"


def parameters(function):
    return [kid for kid in function.kids if kid.kind == "PARM_DECL"]


class Callee:
    """A function of this source that a buffer is passed to, and its element accesses. Refused if it does anything else with it."""

    def __init__(self, use, functions):
        self.function = functions[use.call.callee()]
        self.facts = Facts(self.function)
        self.body = self.function.kids[-1]
        self.call = use.call
        passed = parameters(self.function)
        if passed[use.index].type.get_pointee().get_size() != use.node.type.get_pointee().get_size():
            raise Refused(use.line, f"it is passed to {self.function.name} as a pointer to another type")
        inner = Pointer(passed[use.index], self.function, self.facts, {})
        if inner.transfers or inner.allocations or inner.releases or inner.tests or inner.clears or inner.slices:
            raise Refused(use.line, f"it is passed to {self.function.name}, which does more than access elements")
        self.accesses = inner.uses
        returns = [n for n in self.function.walk() if n.kind in ("RETURN_STMT", "GOTO_STMT")]
        if any(n.parent is not self.body or n is not self.body.kids[-1] for n in returns):
            raise Refused(returns[0].line, f"{self.function.name} may return early")
        # Fewer arguments than parameters cannot be: libclang has checked the prototype.
        self.arguments = {p.cursor.hash: a for p, a in zip(passed, use.call.args())}
