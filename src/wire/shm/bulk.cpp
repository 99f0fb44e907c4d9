// The bulk part of a ring. Its writer fills it in order, its reader gives it back in order; both positions run freely.
// Invariant: the writer writes only to what lies before `bulk_freed` + one lap.
#include "wire/shm/shm.hpp"

namespace weft::wire::shm {

static int32_t distance(uint32_t from, uint32_t to) { return static_cast<int32_t>(to - from); }

// Reads how far the reader is: all before `bulk_freed` may be written again in the next lap.
static void refresh_bulk(Shm::Out& o) {
    o.bulk_limit = o.ring->bulk_freed.load(std::memory_order_acquire) + bulk_bytes;  // pairs with free_chunk()
}

// Where a chunk that takes `room` may begin: not across the end. False: nowhere yet.
bool Shm::place(Out& o, uint32_t room, uint32_t* start) {
    const auto next_lap = [](uint32_t s) { return (s | (bulk_bytes - 1)) + 1; };
    uint32_t s = o.bulk_tail;
    if ((s & (bulk_bytes - 1)) + room > bulk_bytes) s = next_lap(s);
    if ((s & (bulk_bytes - 1)) + room > near_bytes && distance(o.bulk_tail, o.bulk_limit) >= static_cast<int32_t>(bulk_bytes)) {
        // All is free: begin again where the lines are still in the caches.
        s = next_lap(s);
        o.bulk_tail = s;
        o.bulk_limit = s + bulk_bytes;
    }
    if (distance(s + room, o.bulk_limit) < 0) refresh_bulk(o);
    *start = s;
    return distance(s + room, o.bulk_limit) >= 0;
}

char* Shm::reserve_bulk(int peer, size_t bytes, BulkRef* ref) {
    Out& o = out[peer];
    const auto n = static_cast<uint32_t>(bytes), room = round_line(n);
    o.awaited = in[peer].heard;
    in[peer].heard = false;
    uint32_t start;
    if (!place(o, room, &start)) return nullptr;
    o.bulk_next = start + room;
    *ref = BulkRef{start, n};
    return o.ring->bulk + (start & (bulk_bytes - 1));
}

void Shm::discard(int peer, Cell*) { out[peer].bulk_next = out[peer].bulk_tail; }

bool Shm::has_room(int peer, uint32_t cells, size_t chunk) {
    Out& o = out[peer];
    if (o.limit - o.tail < cells && (!refresh(o) || o.limit - o.tail < cells)) return false;
    // Rounding costs each less than a line; where the ring ends, up to a chunk stays unused.
    const uint32_t end = o.bulk_tail + (cells + 1) * (static_cast<uint32_t>(chunk) + 64);
    if (distance(end, o.bulk_limit) < 0) refresh_bulk(o);
    return distance(end, o.bulk_limit) >= 0;
}

void Shm::free_chunk(In& i, BulkRef ref) {
    i.heard = true;
    // Release: pairs with the acquire in refresh_bulk(); what is given back has been read.
    i.ring->bulk_freed.store(ref.position + round_line(ref.bytes), std::memory_order_release);
    notify(i.peer);  // it may wait for room
}

}  // namespace weft::wire::shm
