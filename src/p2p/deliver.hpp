// Copies a message's bytes to the receive it matched, and completes requests. Included by p2p/ and above; all under the lane's guard.
#pragma once
#include "p2p/lanes.hpp"
#include "p2p/match.hpp"

namespace weft::p2p {

// Sets the matched receive's source, tag and truncation error; a take gets its buffer. Returns how many of the message's bytes fit.
int64_t set_matched(LaneGuard&, Request& r, const wire::Header& h, int64_t bytes);
// Copies bytes of the message, from offset `at` on, into the receive's buffer; what does not fit is dropped.
void store(Request& r, int64_t at, const char* from, int64_t bytes);
// The same from a wire's chunk, which is not read again. `past_caches`: so much is arriving (limits.cache_bytes) that the data would be
// evicted before the user reads them.
void store_chunk(Lane&, Request& r, int64_t at, const char* chunk, uint32_t bytes, bool past_caches = false);
// Bytes received of a message of `bytes`: no more than the receive holds.
int64_t received(const Request& r, int64_t bytes);

// Sends a message to this rank itself: copies it to the posted receive, or queues it as an unexpected message, which holds a copy
// (Protocol::self), or refers to `r`, which completes when it is received (Protocol::self_kept).
void send_self(LaneGuard&, Request& r);
// Delivers the unexpected message `u` (data or RTS) to the receive that matched it. Frees `u` now, or when its last fragment is in.
void take_unexpected(LaneGuard&, Request& r, Unexpected& u);
// Marks `r` complete with `bytes` received or sent; frees it if MPI_Request_free was called before.
void complete(LaneGuard&, Request& r, int64_t bytes);

}  // namespace weft::p2p
