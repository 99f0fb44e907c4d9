// A pool of equal blocks that are never given back to the system, so that a stale pointer to one stays readable.
// Free to all; the owner of the pool holds the lock that guards it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
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
        WEFT_ASSERT(owns(p) && p != free);   // of this pool, and not given twice in a row
        auto* b = static_cast<Block*>(p);
        b->next = free;
        free = b;
    }

    // Every block that was ever taken, free ones included: their first word tells.
    template <class F>
    void each(F&& visit) const {
        for (const Block* slab = slabs; slab != nullptr; slab = slab->next) {
            char* const end = slab == slabs ? fresh : first_of(slab) + slab->head;
            for (char* b = first_of(slab); b < end; b += bytes) visit(static_cast<void*>(b));
        }
    }
    bool owns(const void* p) const {
        for (const Block* slab = slabs; slab != nullptr; slab = slab->next)
            if (p >= first_of(slab) && p < first_of(slab) + slab->head) return true;
        return false;
    }

private:
    // A slab begins with its link in the chain, whose `head` is the bytes of its blocks.
    static char* first_of(const Block* slab) {
        return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(slab) + 64 + 63) & ~uintptr_t{63});
    }
    WEFT_COLD void* refill();
};

}  // namespace weft
