// Buffers that change their owner (OPI_*): where a rank allocates them, and where it frees them, whoever made them. Included by
// lane.hpp. Everything here is under the lane's guard; only the list of returned buffers is touched by other ranks.
//
// A freed buffer goes to this rank's pool, most recently freed first, and an allocation takes the first that is large enough: no lock,
// no read-modify-write, and the buffer is likely in this core's cache. Beyond the cap the least recently freed buffer leaves the pool:
// to the heap if this rank made it, otherwise to the list of those returned to its maker, who takes them when its pool has none.
//
// Invariant: a buffer is in one rank's pool, or on its maker's list, or has one owner; only that rank touches its header.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "heap/guard.hpp"
#include "heap/segment.hpp"

namespace weft::heap {

struct Heap;

struct OwnedPolicy {
    enum Pool : uint8_t {
        receiver,   // whoever frees a buffer keeps it
        sender,     // it returns to the rank that made it
        none,       // it returns to that rank's heap
    };
    Pool pool = receiver;
    uint32_t cap = 64;    // buffers in the pool
    bool guard = false;   // see guard.hpp
};

class Owned {
public:
    // `segment` is null, or has no slices, where the heap is not shared: then buffers are private memory.
    void open(Heap* heap, const Segment* segment, const OwnedPolicy& policy);
    // As another one of this process. Each has a pool of its own, and a buffer may be freed to any of them.
    void open_like(const Owned& other) { open(other.heap_, other.segment_, other.policy_); }
    // Forgets all buffers; the heap frees those that this rank made.
    void close();

    // Null when out of memory. The address is a multiple of 64.
    WEFT_INLINE void* allocate(size_t bytes) {
        Block* const b = newest_;
        if (WEFT_UNLIKELY(!quick_ || b == nullptr || b->capacity < bytes)) return allocate_slow(bytes);
        newest_ = b->older;
        if (newest_ != nullptr) newest_->newer = nullptr;
        else oldest_ = nullptr;
        --count_;
        b->mark = in_use;
        return data_of(b);
    }
    // False: `data` is no such buffer, or is free already.
    WEFT_INLINE bool release(void* data) {
        if (WEFT_UNLIKELY(!is_owned(data))) return false;
        Block* const b = block_of(data);
        if (WEFT_LIKELY(quick_ && count_ < policy_.cap)) push(b);
        else release_slow(b);
        return true;
    }

    // Whether `data` may be the start of a buffer, by its address. Does not read the header, which may be in another core's cache.
    WEFT_INLINE bool is_buffer(const void* data) const {
        return data != nullptr && (reinterpret_cast<uintptr_t>(data) & (page - 1)) == (front_ & (page - 1));
    }
    // The same by its header: that it is no free one either.
    WEFT_INLINE bool is_owned(void* data) const { return is_buffer(data) && block_of(data)->mark == in_use; }
    // Whether the other ranks of the node find this memory at the same address.
    WEFT_INLINE bool is_shared(const void* data) const { return segment_ != nullptr && segment_->in_heap(data); }
    WEFT_INLINE bool is_shared(uint64_t at, int64_t bytes) const {
        return bytes >= 0 && is_shared(reinterpret_cast<void*>(at)) && is_shared(reinterpret_cast<void*>(at + static_cast<uint64_t>(bytes)));
    }

    // With the guard on: forbids this process to touch a buffer that it gives to rank `to`, `now` or when it is freed, because it has
    // still to be sent; permits it again.
    bool guards() const { return policy_.guard; }
    void forbid_given(void* data, int32_t to, int32_t tag, bool now);
    void permit(void* data);

    uint32_t pooled() const { return count_; }
    // For assertions and tests: the list agrees with the count in both directions.
    bool is_sound() const;

private:
    static constexpr size_t page = 4096;
    static constexpr uint64_t in_use = 0x6f776e65642d6275, free_mark = 0x667265652d2d6275;
    // In front of the data. With the guard on a page is left in front, so that the data begin a page of their own.
    struct alignas(64) Block {
        Block *newer, *older;   // in the pool; the first word links returned ones (returned.hpp)
        size_t capacity;        // of the data, in bytes
        uint64_t mark;
        int32_t maker;          // the rank of the node that allocated it
    };
    static Block* block_of(void* data) { return static_cast<Block*>(data) - 1; }
    static void* data_of(Block* b) { return b + 1; }
    void* start_of(Block* b) const { return reinterpret_cast<char*>(b + 1) - front_; }

    WEFT_INLINE void push(Block* b) {
        b->mark = free_mark;
        b->newer = nullptr;
        b->older = newest_;
        if (newest_ != nullptr) newest_->newer = b;
        else oldest_ = b;
        newest_ = b;
        ++count_;
    }
    WEFT_COLD void* allocate_slow(size_t bytes);
    WEFT_COLD void release_slow(Block* b);
    Block* find(size_t bytes);
    Block* make(size_t bytes);
    void unlink(Block* b);
    void evict(Block* b);
    void keep(Block* b);
    bool take_returned();
    bool made_here(const Block* b) const;
    bool may_leave(const Block* b) const;

    bool quick_ = false;                 // the short paths may be taken: receiver pool, no guard
    Block *newest_ = nullptr, *oldest_ = nullptr;
    uint32_t count_ = 0;
    size_t front_ = sizeof(Block);       // bytes in front of the data
    OwnedPolicy policy_{};
    Heap* heap_ = nullptr;
    const Segment* segment_ = nullptr;   // null where the heap is not shared
    Guard guard_;
};

}  // namespace weft::heap
