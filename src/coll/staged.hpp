// Large collectives through the staging memory of a communicator's area: written once, read or reduced there by all who need it. Steps of
// schedules, so for blocking and nonblocking calls alike. Included by coll/ alone; no lock.
#pragma once
#include "coll/coll.hpp"

namespace weft::coll {

// Each returns false, and has added nothing, where the schedule has no area or the table says that messages are faster. What decides is
// the same in all members.
bool add_staged_barrier(Schedule&);
bool add_staged_bcast(Schedule&, int32_t root, Buffer);
// `own` as in add_reduce(): it may be `result.base`. Commutative operations alone, and predefined types, as in all reductions here.
bool add_staged_reduce(Schedule&, int32_t root, const void* own, Buffer result);
bool add_staged_allreduce(Schedule&, const void* own, Buffer result);
bool add_staged_allgather(Schedule&, Buffer send, const Blocks& recv);
bool add_staged_alltoall(Schedule&, const Blocks& send, const Blocks& recv);
// Equal blocks; what is significant at the root alone is looked at there alone.
bool add_staged_gather(Schedule&, int32_t root, Buffer send, const Blocks& recv);
bool add_staged_scatter(Schedule&, int32_t root, const Blocks& send, Buffer recv);
// `own` may not overlap `result`, which is this member's part.
bool add_staged_reduce_scatter(Schedule&, const Parts&, const void* own, Buffer result);
// `own` may be `result.base`. Operations that do not commute, too.
bool add_staged_scan(Schedule&, bool exclusive, const void* own, Buffer result);

}  // namespace weft::coll
