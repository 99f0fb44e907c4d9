// The calls on communicators that only look at them or name them. For api/; making them is the work of comm/.
// Names are guarded by the registry's lock.
#pragma once
#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/process.hpp"

namespace weft::calls {

using obj::Comm;
using obj::Process;

inline Err comm_rank(Process&, Comm& c, int* rank) {
    *rank = c.rank;
    return Err::ok;
}
inline Err comm_size(Process&, Comm& c, int* size) {
    *size = c.size;
    return Err::ok;
}
Err comm_remote_size(Process&, Comm&, int* size);
inline Err comm_test_inter(Process&, Comm& c, bool* flag) {
    *flag = c.is_inter();
    return Err::ok;
}
Err comm_compare(Process&, Comm&, Comm&, int* result);
Err comm_set_name(Process&, Comm&, const char* name);
Err comm_get_name(Process&, Comm&, char* name, int* length);
// Rank of `rank` among the members on the caller's node; undefined if it is on another, or no process (PROC_NULL).
Err comm_node_rank(Process&, Comm&, int rank, int* node_rank);
// No process here was spawned: the parent is MPI_COMM_NULL.
Err comm_get_parent(Process&, Comm** parent);

}  // namespace weft::calls
