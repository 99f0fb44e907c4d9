#include "calls/ops.hpp"

namespace weft::calls {

Err op_create(Process&, MPI_User_function* function, int commutes, op::Op** out) {
    return op::create(reinterpret_cast<void*>(function), commutes != 0, false, out);
}

Err op_create(Process&, MPI_User_function_c* function, int commutes, op::Op** out) {
    return op::create(reinterpret_cast<void*>(function), commutes != 0, true, out);
}

Err op_free(Process&, op::Op** op) {
    if ((*op)->is(op::Op::predefined)) return fail(Err::op, "a predefined operation cannot be freed");
    op::release(**op);
    *op = nullptr;
    return Err::ok;
}

Err op_commutative(Process&, const op::Op& op, int* commutes) {
    *commutes = op.is(op::Op::commutative);
    return Err::ok;
}

Err reduce_local(Process&, type::Buffer in, type::Buffer inout, const op::Op& op) {
    WEFT_TRY(op::check(op, *in.type));
    return op::apply(op, in.base, inout.base, in.count, *in.type);
}

}  // namespace weft::calls
