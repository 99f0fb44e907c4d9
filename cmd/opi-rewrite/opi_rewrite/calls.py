"""The MPI calls that the transformations know, with their arguments by name."""
import re

from .ranges import Poly, poly_of
from .source import Refused

# C type sizes in bytes of predefined datatypes. Pairs, packed data and derived types are not among them.
TYPE_BYTES = {
    "MPI_BYTE": 1, "MPI_CHAR": 1, "MPI_SIGNED_CHAR": 1, "MPI_UNSIGNED_CHAR": 1, "MPI_INT8_T": 1, "MPI_UINT8_T": 1, "MPI_C_BOOL": 1,
    "MPI_SHORT": 2, "MPI_UNSIGNED_SHORT": 2, "MPI_INT16_T": 2, "MPI_UINT16_T": 2,
    "MPI_INT": 4, "MPI_UNSIGNED": 4, "MPI_FLOAT": 4, "MPI_INT32_T": 4, "MPI_UINT32_T": 4,
    "MPI_LONG": 8, "MPI_UNSIGNED_LONG": 8, "MPI_LONG_LONG": 8, "MPI_LONG_LONG_INT": 8, "MPI_UNSIGNED_LONG_LONG": 8, "MPI_DOUBLE": 8,
    "MPI_INT64_T": 8, "MPI_UINT64_T": 8, "MPI_C_FLOAT_COMPLEX": 8, "MPI_C_COMPLEX": 8, "MPI_C_DOUBLE_COMPLEX": 16,
}
ONE_WAY = ("buffer", "count", "type", "peer", "tag", "comm")
SENDS = {"MPI_Send": "OPI_Give", "MPI_Isend": "OPI_Igive"}
RECEIVES = {"MPI_Recv": "OPI_Take", "MPI_Irecv": "OPI_Itake"}
# Calls with a buffer that are left alone, and why.
OTHERS = {
    "MPI_Ssend": "a give does not wait for its receiver, as MPI_Ssend does", "MPI_Issend": "a give does not wait for its receiver, as MPI_Issend does",
    "MPI_Bsend": "MPI_Bsend copies into the attached buffer", "MPI_Ibsend": "MPI_Ibsend copies into the attached buffer",
    "MPI_Rsend": "there is no give in ready mode", "MPI_Irsend": "there is no give in ready mode",
    "MPI_Send_init": "a persistent send uses its buffer again", "MPI_Recv_init": "a persistent receive uses its buffer again",
    "MPI_Sendrecv_replace": "MPI_Sendrecv_replace uses one buffer for both directions",
    "MPI_Mrecv": "there is no take of a matched message", "MPI_Imrecv": "there is no take of a matched message",
}


class Transfer:
    """One direction of one call: role 'send' or 'receive', and its arguments as nodes. `last` is the request or the status."""

    def __init__(self, call, role, arguments):
        self.call, self.role = call, role
        self.name = call.callee()
        for field, node in arguments.items():
            setattr(self, field, node)

    def element_bytes(self):
        name = self.type.inner().text if not self.type.inner().macro else self.type.inner().macro
        if name not in TYPE_BYTES:
            raise Refused(self.call.line, f"'{name}' may be a derived datatype: ownership is passed of contiguous elements of predefined types")
        return TYPE_BYTES[name]

    def bytes(self):
        """The message's size (of a receive: at most) as a polynomial."""
        return poly_of(self.count) * Poly.number(self.element_bytes())

    def arguments(self):
        """All arguments behind the buffer up to the communicator, as in the source."""
        source = self.call.source
        return ", ".join(source.text[node.start:node.end] for node in (self.count, self.type, self.peer, self.tag, self.comm))


def transfers(call):
    """The transfers of a call: none, one, or two for MPI_Sendrecv (send first)."""
    name, args = call.callee(), call.args()
    if name in SENDS or name in RECEIVES:
        fields = dict(zip(ONE_WAY + ("last",), args))
        return [Transfer(call, "send" if name in SENDS else "receive", {"last": None, **fields})]
    if name == "MPI_Sendrecv":
        comm, status = args[10], args[11]
        return [Transfer(call, "send", {**dict(zip(ONE_WAY, args[:5])), "comm": comm, "last": None}),
                Transfer(call, "receive", {**dict(zip(ONE_WAY, args[5:10])), "comm": comm, "last": status})]
    return []


def own_statement(call, what="the call"):
    """The statement that is this call, or an assignment of its result. Refused for anything else, and within macros."""
    if call.macro:
        raise Refused(call.line, f"the macro {call.macro} produces {what}")
    statement = call.statement()
    if any(node.kind == "StmtExpr" for node in call.ancestors()):
        raise Refused(call.line, f"{what} is in a block that is an expression")
    if statement is None or statement.parent.parent is not None and statement.parent.parent.kind == "SWITCH_STMT":
        raise Refused(call.line, f"{what} is not a statement of its own")
    inner = statement.inner()
    if inner.kind == "BINARY_OPERATOR" and inner.operator() == "=":
        inner = inner.kids[1].inner(casts=True)
    if inner is not call:
        if any(node.kind in ("IF_STMT", "CONDITIONAL_OPERATOR") for node in call.ancestors() if node.within(statement)):
            raise Refused(call.line, f"a condition decides whether {what} happens, and not in a block that also uses the buffer")
        raise Refused(call.line, f"{what} is not a statement of its own")
    return statement


def is_ignored(node):
    return bool(re.fullmatch(r"MPI_STATUS(ES)?_IGNORE", node.text))
