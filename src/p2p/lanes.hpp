// Chooses the lane of a message; all functions below receive the lane. Included by p2p/ and above; no lock.
#pragma once
#include "lane/lane.hpp"
#include "obj/message.hpp"
#include "obj/process.hpp"

namespace weft::p2p {

using lane::Lane;
using lane::LaneGuard;
using obj::Process;

enum class Direction : uint8_t { send, receive };

// There is one lane today. With more, a communicator without assertions will have one, given by its context id on both sides, so
// that wildcards and probes search one queue. What concerns all lanes (progress, waiting, the end) names Process::lane until then.
WEFT_INLINE Lane& lane_of(Process& p, const obj::Comm&, int32_t, Direction) { return *p.lane; }
// The lane that made this request, or that this matched message came by.
WEFT_INLINE Lane& lane_of(Process& p, [[maybe_unused]] const Object& request_or_message) {
    WEFT_ASSERT(request_or_message.lane == Lane::number);
    return *p.lane;
}

}  // namespace weft::p2p
