// The calls on windows that move no data: attributes, names, hints, error handlers, groups. For api/. Locks: see obj/win.hpp.
#pragma once
#include <mpi.h>

#include "base/err.hpp"
#include "obj/group.hpp"
#include "obj/win.hpp"

namespace weft::calls {

using obj::Process;
using obj::Win;

Err win_set_attr(Process&, Win&, int keyval, void* value);
// MPI_WIN_BASE and its like among them.
Err win_get_attr(Process&, Win&, int keyval, void* value, bool* flag);
Err win_delete_attr(Process&, Win&, int keyval);
Err win_set_name(Process&, Win&, const char* name);
Err win_get_name(Process&, Win&, char* name, int* length);
Err win_set_info(Process&, Win&, obj::Info* info);
Err win_set_errhandler(Process&, Win&, obj::Errhandler&);
Err win_get_errhandler(Process&, Win&, obj::Errhandler** out);
Err win_get_group(Process&, Win&, obj::Group** out);

}  // namespace weft::calls
