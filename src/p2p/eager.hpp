// Eager messages: sent before they are matched, inline or in fragments. Included by p2p/ only; all under the lane's guard.
#pragma once
#include "p2p/match.hpp"

namespace weft::p2p {

// Whether `bytes` of `b` are sent eagerly: always below rendezvous_min, never above eager_max, between them if `b` is not dense or
// eager_wanted_by() allows it.
inline bool is_eager(const lane::Lane& l, int peer, const type::Buffer& b, int64_t bytes) {
    if (bytes > l.limits.eager_max) return false;
    return bytes < lane::rendezvous_min || !b.dense() || bytes <= static_cast<int64_t>(l.eager_wanted_by(peer));
}

// Send a message that fits its cell, or what is left after `sent` of one that does not. `ack`: the request that waits for an SSEND_ACK,
// or null. False when the wire is full; `sent` says where to continue.
bool push_inline(LaneGuard&, int peer, const type::Buffer&, wire::Header h, Request* ack);
bool push_fragments(LaneGuard&, int peer, const type::Buffer&, const wire::Header& h, Request* ack, int64_t& sent);
// Sends all of an eager message if the wire has room for it now, so without a request. False: nothing was sent; the message goes by
// rendezvous, is over credit, or does not fit.
bool push_whole(LaneGuard&, int peer, const obj::Comm&, const type::Buffer&, int32_t tag, uint32_t context);

}  // namespace weft::p2p
