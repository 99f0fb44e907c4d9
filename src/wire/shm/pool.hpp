// A sender's pool: blocks of its own part of the segment, which hold the chunks it sends until their readers have consumed them.
// Included by wire/shm and its tests. Touched under the guard of the lane that owns it. The segment holds the data only; the
// bookkeeping is in private memory.
//
// A pair (this rank and one peer) fills its current block from the front. A full block waits in the pair's queue until the reader
// has consumed the last cell that refers to it. A freed block rests until twelve others (resting_blocks) have been freed, and is then
// reused before any untouched one. Writing to lines that another core has just read costs up to 30 % of a stream's bandwidth, so a
// block is not reused at once; untouched memory costs page faults, so few blocks are in turn.
//
// Invariant: a block is free, or current for one pair, or in the queue of one pair together with the position of the last cell that
// refers to it.
// Sharing: the first block of each pair is guaranteed. Beyond it a pair may hold at most as many blocks as stay spare. So one slow
// reader holds at most half of the spare blocks, the next a quarter, and each pair can send as soon as its own reader reads.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::wire::shm {

inline constexpr uint32_t block_bytes = 32 * 1024;
inline constexpr uint32_t spare_blocks = 64;          // beside one for each pair
inline constexpr uint32_t resting_blocks = 12;        // freed blocks that are not reused yet; docs/experiments/014-pool.md

class Pool {
    static constexpr uint16_t none = UINT16_MAX;

public:
    static constexpr uint32_t nowhere = UINT32_MAX;
    // The pool's state of one peer. Lives in the sending end to that peer, from connect() to close().
    struct Pair {
        const uint32_t* tail;                       // cells sent, free-running
        const std::atomic<uint32_t>* consumed;      // cells that the reader is done with
        Pair* next = nullptr;                       // in the list of pairs with full blocks
        Pair* next_made = nullptr;
        uint32_t used = block_bytes;                // bytes of the current block; block_bytes if there is none
        uint32_t reserved = 0;                      // value of `used` once the chunk reserved last is committed
        uint32_t after = 0;                         // position after the last cell that refers to the current block
        uint16_t current = none, oldest = none, newest = none;   // the queue of full blocks
        uint16_t held = 0;                          // number of blocks: current and full
        bool listed = false;
    };
    static constexpr uint32_t round_line(uint32_t n) { return (n + 63) & ~63u; }
    static constexpr uint32_t blocks_for(int pairs) { return static_cast<uint32_t>(pairs) + spare_blocks; }

    // For up to `pairs` pairs. Err::no_mem when out of memory.
    Err open(int pairs);
    // A new pair, with its `tail` and `consumed` set.
    void connect(Pair&);
    void close();

    // Offset in the pool of room for `bytes` (1 to block_bytes) for the pair's next chunk; nowhere: there is no room now.
    // The room counts as used only after commit().
    uint32_t reserve(Pair&, uint32_t bytes);
    // The same in the current block alone, so without a call.
    WEFT_INLINE static uint32_t reserve_here(Pair& p, uint32_t bytes) {
        const uint32_t end = p.used + round_line(bytes);
        if (WEFT_UNLIKELY(end > block_bytes)) return nowhere;
        p.reserved = end;
        return p.current * block_bytes + p.used;
    }
    // Marks the chunk reserved last as used: the pair's cell at `tail` - 1 refers to it.
    void commit(Pair& p) {
        p.used = p.reserved;
        p.after = *p.tail;
    }
    // Whether `chunks` chunks of up to `bytes` each are certain to find room now.
    bool has_room(Pair&, uint32_t chunks, uint32_t bytes);

    // For tests: whether the invariant holds; free blocks.
    bool is_sound() const;
    uint32_t free() const { return free_count_; }

private:
    struct Block {
        uint32_t after;                             // of a full block: position after the last cell that refers to it
        uint16_t next;                              // in the free stack or in a pair's queue
    };
    bool next_block(Pair&);
    void free_consumed(Pair&);
    void look_at_another(const Pair& than);
    void list(Pair&);
    uint32_t may_take(const Pair&) const;
    void retire_current(Pair&);
    uint16_t take();
    void give(uint16_t block);
    void push(uint16_t block);
    uint16_t pop_recent();

    Pair* made_ = nullptr;                          // all pairs, for is_sound()
    Block* blocks_ = nullptr;
    int count_ = 0;
    uint32_t free_count_ = 0;
    uint32_t without_ = 0;                          // pairs that hold no block, connected or not; one free block is reserved for each, the rest is spare
    uint16_t free_ = none;                          // a stack
    uint16_t recent_[resting_blocks];               // blocks freed last, oldest first; included in free_count_
    uint32_t recent_count_ = 0;
    Pair *first_ = nullptr, *last_ = nullptr;       // pairs with full blocks, in the order in which they are looked at
};

}  // namespace weft::wire::shm
