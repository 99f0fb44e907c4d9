// The hash tables of a lane's posted and unexpected queues. The key is context, source and tag, so entries under other keys do not
// lengthen a search. Included by lane.hpp; p2p/match.cpp fills them; all under the lane's guard.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "base/list.hpp"

namespace weft::lane {

// The hash of a key, in three instructions. Consecutive sources or tags, and multiples of a power of two, get different low bits.
WEFT_INLINE uint32_t hash_of(uint32_t context, int32_t source, int32_t tag) {
    uint32_t h = context * 0x9e3779b1u;
#ifdef __SSE4_2__
    h = __builtin_ia32_crc32si(h, static_cast<uint32_t>(source));
    return __builtin_ia32_crc32si(h, static_cast<uint32_t>(tag));
#else
    const int32_t parts[] = {source, tag};
    for (const int32_t n : parts) {
        h = (h ^ static_cast<uint32_t>(n)) * 0x85ebca6bu;
        h = (h ^ h >> 15) * 0xc2b2ae35u;
        h ^= h >> 13;
    }
    return h;
#endif
}

// Posted receives, in order within each bucket. Begins with the lane's own 64 buckets; a longer table is allocated when a search
// passes over other keys while receives outnumber buckets, and freed when a later search finds few or no receives left.
struct PostedTable {
    Fifo* buckets;
    uint32_t mask;           // number of buckets - 1
    bool must_lengthen = false;   // a search was long, and more buckets would help

    constexpr PostedTable(Fifo* first, uint32_t count) : buckets(first), mask(count - 1) {}
    WEFT_INLINE Fifo& bucket(uint32_t hash) const { return buckets[hash & mask]; }
};

// Unexpected messages, in order of arrival within each bucket. There are `mask + 1` buckets for exact keys. After a long search for
// a wildcard there are as many again for each kind of wildcard, until the queue is empty.
struct UnexpectedTable {
    static constexpr uint32_t kinds = 4;   // bit 0: any source; bit 1: any tag
    Ring2* buckets;
    uint32_t mask;
    bool by_wildcards = false;

    constexpr UnexpectedTable(Ring2* first, uint32_t count) : buckets(first), mask(count - 1) {}
    WEFT_INLINE Ring2& bucket(uint32_t kind, uint32_t hash) const { return buckets[size_t{kind} * (mask + 1) + (hash & mask)]; }
};

}  // namespace weft::lane
