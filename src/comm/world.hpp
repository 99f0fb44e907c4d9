// Beginning and end: of the World Model, and of what runs below all communicators. Included by the bindings and comm/; called by one
// thread at a time, but for begin_use() and end_use().
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "obj/process.hpp"

namespace weft::boot { struct Job; }

namespace weft::comm {

using obj::Comm;
using obj::Process;

// Brings up everything below communicators, then WORLD and SELF. `job` says who this process is; it is kept.
Err start_process(Process&, obj::ThreadLevel, boot::Job* job);
// Closes the wires and the heap. Handles that the program still holds stay readable.
void stop_process(Process&);
// The engine runs as long as somebody uses it: the World Model, or a session. `level` is an index of thread levels.
Err begin_use(Process&, int level);
// True for the last one, who then may stop it.
bool end_use(Process&);

Err init(Process&, int* argc, char*** argv);
// Thread levels as in the ABI: 0, 1024, 2048, 4096.
Err init_thread(Process&, int* argc, char*** argv, int required, int* provided);
// Deletes MPI_COMM_SELF's attributes, completes what is queued, waits for all ranks, and closes.
Err finalize(Process&);
Err initialized(Process&, bool* flag);
Err finalized(Process&, bool* flag);
Err query_thread(Process&, int* provided);
Err is_thread_main(Process&, bool* flag);
// Ends the job; does not return.
Err abort(Process&, Comm&, int code);

}  // namespace weft::comm
