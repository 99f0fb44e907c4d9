// A pool of equal blocks that are never given back to the system, so that a stale pointer to one stays readable.
// Free to all; the owner of the pool holds the lock that guards it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "base/list.hpp"

namespace weft {

// Blocks are aligned to 64 bytes where `bytes` is a multiple of 64. The free list runs through the blocks' second
// word, so that the first (an object's kind) still says "dead" while the block is free.
struct Pool {
    struct Block {
        uint64_t head;  // left alone by the pool
        Block* next;
    };
    Block* free = nullptr;
    char* fresh = nullptr;      // blocks of the newest slab that were never used
    char* fresh_end = nullptr;
    Block* slabs = nullptr;     // all of them, so that leak checkers find them
    uint32_t bytes;
    uint32_t slab_blocks;       // of the next slab: each is twice the one before, up to a megabyte

    constexpr Pool(uint32_t block_bytes, uint32_t first_slab_blocks) : bytes(block_bytes), slab_blocks(first_slab_blocks) {}

    // Null when memory is exhausted. A fresh block is zeroed; a reused one holds what its last user left.
    WEFT_INLINE void* take() {
        Block* b = free;
        if (WEFT_UNLIKELY(b == nullptr)) return refill();
        free = b->next;
        return b;
    }
    WEFT_INLINE void give(void* p) {
        auto* b = static_cast<Block*>(p);
        b->next = free;
        free = b;
    }

private:
    WEFT_COLD void* refill();
};

}  // namespace weft
