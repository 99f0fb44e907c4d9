// Memory that other ranks of the node read and write in place: a range of the node's shared heap, which has the same address in every
// rank that has it mapped. Whoever owns the range finds it and tells others of it, in a message or in shared memory; each user takes a
// reference before it touches the range, and releases it after. Included by p2p/ and above. No lock: a Segment does not change while
// ranks communicate.
//
// The owner may write to the range, or free it, only when no reference is left that it has promised: it knows that from the protocol by
// which it told the others (a rendezvous' descriptor), or from a References that it shares with them.
#pragma once
#include <atomic>
#include <cstdint>

#include "heap/segment.hpp"

namespace weft::heap {

// A range as other ranks know it. It may travel between processes: it means the same in all of them.
struct Mapped {
    uint64_t at = 0;      // 0: nothing that others can find
    uint64_t bytes = 0;
    explicit operator bool() const { return at != 0; }
};

// Whether all of [p, p + bytes) lies in the shared heap of this process. `segment` may be null.
inline bool is_mapped(const Segment* segment, const void* p, uint64_t bytes) {
    if (segment == nullptr || !segment->same_address || !segment->in_heap(p)) return false;
    return bytes <= segment->shared_bytes() - static_cast<uint64_t>(static_cast<const char*>(p) - segment->slices);
}

// The range as others know it; nothing where it does not lie in the shared heap.
inline Mapped find(const Segment* segment, const void* p, uint64_t bytes) {
    return is_mapped(segment, p, bytes) ? Mapped{reinterpret_cast<uint64_t>(p), bytes} : Mapped{};
}

// Where this process has a range that another rank of the same node has found; null where it has not.
inline char* address_of(const Segment* segment, const Mapped& m) {
    auto* const p = reinterpret_cast<char*>(m.at);
    return m && is_mapped(segment, p, m.bytes) ? p : nullptr;
}

// Counts who uses a range, in memory that all of them share. The owner promises a number of references before it tells anyone of the
// range; each is released once, by any process. Zero is the valid empty state.
// Invariant: once is_free() has returned true, all that the users did with the range happens before what the owner does next.
struct References {
    std::atomic<uint32_t> left;
    void promise(uint32_t users) { left.store(users, std::memory_order_relaxed); }        // published with the range
    void release() { left.fetch_sub(1, std::memory_order_release); }                      // pairs with is_free()
    bool is_free() const { return left.load(std::memory_order_acquire) == 0; }
};

}  // namespace weft::heap
