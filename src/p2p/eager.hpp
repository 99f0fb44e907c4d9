// Eager messages: sent without asking the receiver, inline or in fragments. Included by p2p/ only; all under the lane's guard.
#pragma once
#include "p2p/match.hpp"

namespace weft::p2p {

// Whether `bytes` of `b` are sent eagerly: the small always, the large never, those between if the receiver wants them so.
inline bool is_eager(const lane::Lane& l, int peer, const type::Buffer& b, int64_t bytes) {
    if (bytes > l.limits.eager_max) return false;
    return bytes < lane::rendezvous_min || !b.dense() || bytes <= static_cast<int64_t>(l.eager_wanted_by(peer));
}

// A message that fits its cell, or all the fragments of one that does not, from where the last call stopped. `ack`: its sender
// waits for an SSEND_ACK. False when the wire is full.
bool push_inline(LaneGuard&, int peer, Request& r, wire::Header h, bool ack);
bool push_fragments(LaneGuard&, int peer, Request& r, wire::Header h, bool ack);
// Sends all of a message that is neither inline nor sent by rendezvous, if the wire has room for it now: so it needs no request.
// False: nothing happened.
bool push_whole(LaneGuard&, int peer, const obj::Comm&, const type::Buffer&, int32_t tag, uint32_t context);

}  // namespace weft::p2p
