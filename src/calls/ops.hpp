// The calls on reduction operations: what the bindings call once handles and counts are checked. For api/.
// No lock; user functions run inside reduce_local with none held.
#pragma once
#include <mpi.h>

#include "base/err.hpp"
#include "obj/process.hpp"
#include "op/op.hpp"
#include "type/type.hpp"

namespace weft::calls {

using obj::Process;

Err op_create(Process&, MPI_User_function* function, int commutes, op::Op** out);
Err op_create(Process&, MPI_User_function_c* function, int commutes, op::Op** out);
Err op_free(Process&, op::Op** op);
Err op_commutative(Process&, const op::Op&, int* commutes);
// inout = in op inout.
Err reduce_local(Process&, type::Buffer in, type::Buffer inout, const op::Op&);

}  // namespace weft::calls
