// The tool information interface (MPI_T): it starts and ends, and has no variables, events, sources or categories yet.
// Included by the generated entry points. Errors are returned, never given to an error handler. The registry's lock guards
// the count of starts and the list of sessions.
#pragma once
#include <cstdint>

#include "base/err.hpp"

namespace weft::obj { struct Process; }

namespace weft::tool {

using obj::Process;

Err init_thread(Process&, int required, int* provided);
Err finalize(Process&);

// How many there are of anything: none.
Err number(Process&, int* n);
// A number that nobody has given out: every index, handle, or name, with the class that says so.
Err no_index(Process&);
Err no_handle(Process&);
Err no_name(Process&, const char* name, const void* index);

Err session_create(Process&, void* session_out);
Err session_free(Process&, void* session_inout);
// A call on a variable, or a handle, of a session.
Err no_index_of(Process&, const void* session);
Err no_handle_of(Process&, const void* session);
// The same, for calls that MPI_T_PVAR_ALL_HANDLES makes on all handles there are.
Err on_handles_of(Process&, const void* session, const void* handle);

}  // namespace weft::tool
