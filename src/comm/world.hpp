// The World Model's beginning and end. Included by the bindings; called by one thread at a time.
#pragma once
#include <cstdint>

#include "base/err.hpp"

namespace weft::obj { struct Process; struct Comm; }

namespace weft::comm {

using obj::Comm;
using obj::Process;

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
