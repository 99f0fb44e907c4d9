// The bulk part of a ring. Its writer fills it in order, its reader gives it back in order; both positions run freely.
//
// Lending. Two ranks that answer each other would each write to lines that the other has just read, and so fetch every one.
// But the lines that a rank has read (and taken) are in its own cache: there it writes its answer, in the place of the
// question. So the reader *holds* the last train where it has answered the one before, and *lends* it: its next chunks to that
// peer lie there. The peer, who writes this ring, reads them, and has that part of its ring back.
//
// Invariants. The writer writes only to what lies before `bulk_freed` + one lap, and not to [lent_from, lent_to) + laps before it
// has read the chunks there. The reader lends only what it holds: positions at or after the `bulk_freed` it has stored; and holds
// only when all that it lent has come back. Chunks lent are read in the order of their places.
#include "wire/shm/shm.hpp"

namespace weft::wire::shm {

static int32_t distance(uint32_t from, uint32_t to) { return static_cast<int32_t>(to - from); }

// All before `position` has been read, and may be written again in the next lap.
static void free_until(Shm::Out& o, uint32_t position) {
    if (distance(o.bulk_limit, position + bulk_bytes) > 0) o.bulk_limit = position + bulk_bytes;
}

// What the reader has filled, and this rank has not read yet, lies in what it was given back: at `from`, modulo a lap.
bool Shm::unread(const Out& o, uint32_t freed, uint32_t* from, uint32_t* bytes) {
    const uint32_t begin = o.ring->lent_from.load(std::memory_order_relaxed), end = o.ring->lent_to.load(std::memory_order_relaxed);
    if (end == o.returned) return false;
    const bool begun = o.returned - begin <= end - begin;
    *from = (begun ? o.returned : begin) & ~63u;
    *bytes = end + 64 - *from;
    return distance(*from, freed) > 0;
}

// Where a chunk that takes `room` may begin: not across the end, not in what is lent, and a line before what is not free.
bool Shm::place(Out& o, uint32_t room, uint32_t* start) {
    const auto past_end = [room](uint32_t s) { return (s & (bulk_bytes - 1)) + room > bulk_bytes; };
    const auto next_lap = [](uint32_t s) { return (s | (bulk_bytes - 1)) + 1; };
    uint32_t s = *start;
    if (past_end(s)) s = next_lap(s);
    if ((s & (bulk_bytes - 1)) + room > near_bytes && distance(o.bulk_tail & ~63u, o.bulk_limit) >= static_cast<int32_t>(bulk_bytes)) {
        // All is free: begin again where the lines are still in the caches.
        s = next_lap(s);
        o.bulk_tail = s;
        o.bulk_limit = s + bulk_bytes;
    }
    if (distance(s + room + 64, o.bulk_limit) < 0) {
        const uint32_t freed = o.ring->bulk_freed.load(std::memory_order_acquire);  // pairs with give_back()
        uint32_t limit = freed + bulk_bytes, from, bytes;
        if (unread(o, freed, &from, &bytes)) {
            if (bytes > hold_bytes + 128) return false;  // seen while it was being changed
            for (bool moved = true; moved;) {
                const uint32_t into = (s - from) & (bulk_bytes - 1), before = (from - s) & (bulk_bytes - 1);
                moved = true;
                if (into < bytes) s += bytes - into;
                else if (before < room + 64) s += before + bytes;
                else if (past_end(s)) s = next_lap(s);
                else moved = false;
            }
        } else {
            free_until(o, freed);
            limit = o.bulk_limit;
        }
        if (distance(s + room + 64, limit) < 0) return false;
    }
    *start = s;
    return true;
}

char* Shm::reserve_bulk(int peer, size_t bytes, BulkRef* ref) {
    Out& o = out[peer];
    In& i = in[peer];
    const auto n = static_cast<uint32_t>(bytes), room = round_line(n);
    i.answered = true;
    o.awaited = i.heard;
    i.heard = false;
    ref->bytes = n & 0x7fffffff;
    ref->returned = o.returned;
    if (i.holding && lend(i, n, ref)) {
        i.lent_at = o.tail;
        return i.ring->bulk + (ref->position & (bulk_bytes - 1));
    }
    // Chunks of one phase follow each other without a gap, as each ends in the line in which the next one begins. So where
    // the phase changes a line is left, and always one before what the reader has not read.
    // Small chunks begin at a line: else each would write to the line of which the reader is about to read the end of the last.
    const uint32_t phase = n < phased_bytes ? 0 : o.ring->phase.load(std::memory_order_relaxed) & 63;
    uint32_t start = (o.bulk_tail & ~63u) + (phase != (o.bulk_tail & 63) ? 64 : 0);
    if (!place(o, room, &start)) return nullptr;
    o.bulk_next = (start + room) | phase;
    ref->position = start | phase;
    ref->lent = 0;
    return o.ring->bulk + (ref->position & (bulk_bytes - 1));
}

// A place for an answer in the train that is held.
bool Shm::lend(In& i, uint32_t bytes, BulkRef* ref) {
    const uint32_t at = i.held_from, end = (at & ~63u) + round_line(bytes);
    if (!i.over || i.held_to - at < bytes || (at & (bulk_bytes - 1)) + bytes > bulk_bytes) return false;
    // Relaxed: the writer heeds these only where it has seen a `bulk_freed` beyond, which give_back() stores later.
    if (i.lent_to == i.lent_start) i.ring->lent_from.store(at, std::memory_order_relaxed);
    i.ring->lent_to.store(end, std::memory_order_relaxed);
    i.before = {at, i.lent_to};
    i.lent_to = end;
    i.held_from = distance(end | (at & 63), i.held_to) < 0 ? i.held_to : end | (at & 63);
    ref->position = at;
    ref->lent = 1;
    return true;
}

void Shm::discard(int peer, Cell*) {
    Out& o = out[peer];
    In& i = in[peer];
    o.bulk_next = o.bulk_tail;
    if (i.lent_at != o.tail) return;
    i.lent_at = o.tail - 1;
    i.held_from = i.before.held_from;
    i.lent_to = i.before.lent_to;
    i.ring->lent_to.store(i.lent_to, std::memory_order_relaxed);
}

bool Shm::has_room(int peer, uint32_t cells, size_t chunk) {
    Out& o = out[peer];
    if (o.limit - o.tail < cells && (!refresh(o) || o.limit - o.tail < cells)) return false;
    // Rounding costs each less than a line, a change of phase one; where the ring ends, up to a chunk stays unused.
    const uint32_t end = o.bulk_tail + (cells + 1) * (static_cast<uint32_t>(chunk) + 64) + 128;
    if (distance(end, o.bulk_limit) >= 0) return true;
    uint32_t from, bytes;
    const uint32_t freed = o.ring->bulk_freed.load(std::memory_order_acquire);  // pairs with give_back()
    if (unread(o, freed, &from, &bytes)) return false;
    free_until(o, freed);
    return distance(end, o.bulk_limit) >= 0;
}

// Release: pairs with the acquire in place() and has_room(); what is given back has been read.
void Shm::give_back(In& i, uint32_t position) {
    i.ring->bulk_freed.store(position, std::memory_order_release);
    notify(i.peer);  // it may wait for room
}

void Shm::free_chunk(In& i, BulkRef ref, bool more) {
    const uint32_t line = ref.position & ~63u, end = line + round_line(ref.bytes);
    i.heard = true;
    if (ref.lent) {
        if (!more) i.over = true;
        Out& o = out[i.peer];
        o.returned = end;
        free_until(o, end);
        return;
    }
    if (i.over) {
        i.holding = i.answered && ref.returned == i.lent_to;
        i.answered = false;
        i.held_from = ref.position;
        i.lent_start = i.lent_to;
        if (i.holding) give_back(i, line);
    }
    i.over = !more;
    i.held_to = ref.position + ref.bytes;
    if (!i.holding) {
        give_back(i, end);
    } else if (distance(i.held_from, end - hold_bytes) > 0) {
        i.held_from = (end - hold_bytes) | (ref.position & 63);
        give_back(i, end - hold_bytes);
    }
}

}  // namespace weft::wire::shm
