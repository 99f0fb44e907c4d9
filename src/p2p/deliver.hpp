// Bringing a message's bytes to the receive it matched, and completing requests. Included by p2p/ and above; all under the lane's
// guard.
#pragma once
#include "p2p/lanes.hpp"
#include "p2p/match.hpp"

namespace weft::p2p {

// The receive now knows who it is for. Returns how many of the message's bytes it can hold.
int64_t settle(Request& r, const wire::Header& h, int64_t bytes);
// Bytes of the message, from `at` on, into the receive's buffer; what it cannot hold is left out.
void store(Request& r, int64_t at, const char* from, int64_t bytes);
// The same from a chunk of a wire, of which no more is read. Past the caches where so much is on its way that it would not be there
// any more when it is read.
void store_chunk(Lane&, Request& r, int64_t at, const char* chunk, uint32_t bytes, bool past_caches = false);
// What is complete once `bytes` of the message have come: never more than the receive holds.
int64_t received(const Request& r, int64_t bytes);

// A receive and the send of this very rank that it matched: copied at once.
void take_own(LaneGuard&, Request& r, const wire::Header&, Request& send, int64_t bytes);
// A receive and the message it matched, whose data (or RTS) is `u`; takes `u` over.
void take_unexpected(LaneGuard&, Process&, Request& r, Unexpected& u);
// Marks `r` complete with `bytes` received or sent; frees it where MPI_Request_free was called meanwhile.
void complete(LaneGuard&, Request& r, int64_t bytes);

}  // namespace weft::p2p
