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
// The communicator itself, or the branch of it by which such a message goes.
WEFT_INLINE obj::Comm& branch_of(obj::Comm& c, int32_t rank, int32_t tag, uint8_t context, Direction d) {
    if (WEFT_LIKELY(c.branches == nullptr)) return c;
    return d == Direction::send ? obj::sending_branch(*c.branches, rank, tag, context != 0) : obj::receiving_branch(*c.branches, tag, context != 0);
}
// The lane that made this request, or that this matched message came by.
WEFT_INLINE Lane& lane_of(Process& p, const Object& request_or_message) {
    if (WEFT_SINGLE) return *p.lane;
    return *p.lanes.at[request_or_message.lane].load(std::memory_order_relaxed);
}

}  // namespace weft::p2p
