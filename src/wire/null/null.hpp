// The infinitely fast wire: it accepts every message and delivers none. For counting instructions and measuring the injection
// rate. Included by lane/; touched under the lane's guard.
#pragma once
#include <cstring>

#include "wire/wire.hpp"

namespace weft::wire::null {

struct Null {
    static constexpr size_t bulk_bytes = 64 * 1024;
    Cell cell;
    char bulk[bulk_bytes];

    WEFT_INLINE Cell* reserve(int) { return &cell; }
    char* reserve_bulk(int, size_t bytes, BulkRef* ref) {
        *ref = BulkRef{0, static_cast<uint32_t>(bytes)};
        return bulk;
    }
    WEFT_INLINE void commit(int, Cell* c, const Header& h) {
        c->tag = h.tag;
        c->context = h.context;
        c->word.store(Cell::pack(h) | 1, std::memory_order_release);
    }
    // The same with a header that is made but for the number of bytes: `word`, and what follows it in the cell.
    WEFT_INLINE void commit_made(const uint64_t (&header)[2], uint8_t bytes) {
        typedef uint64_t V __attribute__((vector_size(16)));
        V whole;
        memcpy(&whole, header, sizeof whole);
        memcpy(static_cast<void*>(&cell), &whole, sizeof whole);
        reinterpret_cast<uint8_t*>(&cell)[2] = bytes;   // where Cell::pack() has it
    }
    void discard(int, Cell*) {}
    template <class S>
    bool poll(S&&) { return false; }
};

static_assert(Wire<Null>);

}  // namespace weft::wire::null
