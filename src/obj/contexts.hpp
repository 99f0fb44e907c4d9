// Context ids, handed out by the lowest rank of a new communicator without asking anybody else, so that threads may
// create communicators over disjoint groups at once. Included by obj/process.hpp; one allocator per process.
// Its spin lock guards the counters and is a leaf.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "os/spin.hpp"

namespace weft::obj {

// A context id is (owner's world rank, the owner's counter), shifted left by two: the low bits tell the communicator's
// contexts apart, those of messages (0), collectives (1) and messages without source and tag (2).
class Contexts {
public:
    // Counters that are the same in every process and never handed out.
    enum Reserved : uint32_t { of_world = 0, of_self = 1, of_universe = 2, first_free = 3 };

    void open(int32_t world_rank, int32_t world_size);
    void close();
    uint32_t reserved(int32_t owner, Reserved r) const { return (static_cast<uint32_t>(owner) << bits_ | r) << kinds_; }
    Err take(uint32_t* context);
    // Freed counters that wait before the oldest is used again.
    static constexpr uint32_t kept_freed = 16384;
    // Gives a context back; ignored unless this process owns it. It is used again only after `kept_freed` others, so that a stray
    // message meets nobody for long, and the memory for freed ones is bounded.
    void give(uint32_t context);

    // That of a communicator, from any of its contexts.
    static constexpr uint32_t of_messages(uint32_t context) { return context >> kinds_ << kinds_; }

private:
    static constexpr int kinds_ = 2;
    os::SpinLock spin_;
    int32_t rank_ = 0;
    int bits_ = 32 - kinds_;
    uint32_t next_ = first_free;
    uint32_t* freed_ = nullptr;  // ring of counters given back
    uint32_t capacity_ = 0, head_ = 0, count_ = 0;
};

}  // namespace weft::obj
