// The calls on attributes and their keyvals, the predefined attributes among them. For api/.
// Whatever locks there are is the business of obj/attr; callbacks run with none held.
#pragma once
#include <mpi.h>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "type/type.hpp"

namespace weft::calls {

using obj::Comm;
using obj::Process;

Err comm_create_keyval(Process&, MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* del, int* keyval, void* extra);
Err type_create_keyval(Process&, MPI_Type_copy_attr_function* copy, MPI_Type_delete_attr_function* del, int* keyval, void* extra);
Err win_create_keyval(Process&, MPI_Win_copy_attr_function* copy, MPI_Win_delete_attr_function* del, int* keyval, void* extra);
Err comm_free_keyval(Process&, int* keyval);
Err type_free_keyval(Process&, int* keyval);
Err win_free_keyval(Process&, int* keyval);

// Attribute values are words; `value` of get points at one, whatever its declared type.
Err comm_set_attr(Process&, Comm&, int keyval, void* value);
Err comm_get_attr(Process&, Comm&, int keyval, void* value, bool* flag);
Err comm_delete_attr(Process&, Comm&, int keyval);
Err type_set_attr(Process&, type::Type&, int keyval, void* value);
Err type_get_attr(Process&, type::Type&, int keyval, void* value, bool* flag);
Err type_delete_attr(Process&, type::Type&, int keyval);

}  // namespace weft::calls
