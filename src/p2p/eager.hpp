// Eager messages: sent before they are matched, inline or in fragments. Included by p2p/ only; all under the lane's guard.
#pragma once
#include "p2p/match.hpp"

namespace weft::p2p {

// Sends the `bytes` bytes of a message that fits its cell. `ack`: the request that waits for an SSEND_ACK, or null. False when the wire
// is full.
bool push_inline(LaneGuard&, int peer, const type::Buffer&, int64_t bytes, wire::Header h, Request* ack);
// Sends a message in fragments, if the wire has room for all of them now. False: nothing was sent.
bool push_whole(LaneGuard&, int peer, const type::Buffer&, int64_t bytes, const wire::Header& h);
// Sends what is left of an inline or eager message. False when the wire is full; PeerState::sent says where to continue.
bool push_eager(LaneGuard&, int peer, Request& r);

}  // namespace weft::p2p
