// Chooses the lane of a message; all functions below receive the lane. Included by p2p/ and above; no lock.
#pragma once
#include "lane/lane.hpp"
#include "obj/branches.hpp"
#include "obj/lanes.hpp"
#include "obj/message.hpp"

namespace weft::p2p {

using lane::Lane;
using lane::LaneGuard;
using obj::Process;

enum class Direction : uint8_t { send, receive };

// A communicator without assertions has one lane, the same on both sides, so that wildcards and probes search one queue.
WEFT_INLINE Lane& lane_of(Process& p, const obj::Comm& c, int32_t, Direction) { return WEFT_SINGLE ? *p.lane : *c.lane; }
// The communicator itself, or the branch of it by which a message to that rank goes.
WEFT_INLINE obj::Comm& sender(obj::Comm& c, int32_t rank, int32_t tag, uint8_t context) {
    return WEFT_LIKELY(c.branches == nullptr) ? c : obj::sending_branch(*c.branches, rank, tag, context != 0);
}
// The same for what is received. Err::tag and Err::rank for a wildcard that the communicator's user has promised not to use.
Err find_receiver(obj::Comm& front, int32_t rank, int32_t tag, uint8_t context, obj::Comm** out);
WEFT_INLINE Err receiver(obj::Comm& c, int32_t rank, int32_t tag, uint8_t context, obj::Comm** out) {
    *out = &c;
    return WEFT_LIKELY(c.branches == nullptr) ? Err::ok : find_receiver(c, rank, tag, context, out);
}
// The lane that made this request, or that this matched message came by.
WEFT_INLINE Lane& lane_of(Process& p, const Object& request_or_message) {
    if (WEFT_SINGLE) return *p.lane;
    return *p.lanes.at[request_or_message.lane].load(std::memory_order_relaxed);
}

}  // namespace weft::p2p
