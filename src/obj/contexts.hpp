// Context ids, handed out by the lowest rank of a new communicator without asking anybody else, so that threads may
// create communicators over disjoint groups at once. Included by obj/process.hpp; one allocator per process.
// Its spin lock guards the counters and is a leaf.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "lane/number.hpp"
#include "os/spin.hpp"

namespace weft::obj {

// Lanes from which one is chosen, at most most_lanes of them.
struct LaneRange {
    uint32_t first = 0, end = 1;
};

// A context id is (owner's world rank, the owner's counter, lane), shifted left by two: the low bits tell the communicator's contexts
// apart, those of messages (0), collectives (1) and messages without source and tag (2). So all members of a communicator know its lane
// from its context. In worlds of more than 1024 processes there are no bits for the lane, and all communicators are on lane 0.
class Contexts {
public:
    // Counters that are the same in every process and never handed out.
    enum Reserved : uint32_t { of_world = 0, of_self = 1, of_universe = 2, first_free = 3 };

    void open(int32_t world_rank, int32_t world_size);
    void close();
    uint32_t reserved(int32_t owner, Reserved r) const { return context_of(owner, r, 0); }
    // On that of `lanes` which fewest of the communicators have whose contexts this process has drawn; they take turns where that is equal.
    Err take(uint32_t* context, LaneRange lanes = {});
    uint32_t lane_of(uint32_t context) const { return context >> kinds_ & ((1u << lane_bits_) - 1); }
    // Freed counters that wait before the oldest is used again.
    static constexpr uint32_t kept_freed = 16384;
    // Gives a context back; ignored unless this process owns it. It is used again only after `kept_freed` others, so that a stray
    // message meets nobody for long, and the memory for freed ones is bounded.
    void give(uint32_t context);

    // That of a communicator, from any of its contexts.
    static constexpr uint32_t of_messages(uint32_t context) { return context >> kinds_ << kinds_; }

private:
    uint32_t context_of(int32_t owner, uint32_t counter, uint32_t lane) const {
        return (static_cast<uint32_t>(owner) << bits_ | counter << lane_bits_ | lane) << kinds_;
    }

    uint32_t least_used(LaneRange lanes);

    static constexpr int kinds_ = 2;
    os::SpinLock spin_;
    int32_t rank_ = 0;
    uint32_t on_lane_[lane::most_lanes]{};   // contexts in use that this process has drawn
    uint32_t turn_ = 0;
    int bits_ = 32 - kinds_;              // of counter and lane
    int lane_bits_ = lane::most_lanes_log2;
    uint32_t next_ = first_free;
    uint32_t* freed_ = nullptr;  // ring of counters given back
    uint32_t capacity_ = 0, head_ = 0, count_ = 0;
};

}  // namespace weft::obj
