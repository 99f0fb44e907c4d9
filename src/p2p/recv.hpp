// Receiving: the short path of a message that is there, or comes while we look, and fits its header's cache line.
// Included by p2p.hpp. Nothing is posted on that path: the wire's next cell is compared with what is wanted.
#pragma once
#include "base/copy.hpp"
#include "p2p/progress.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

Err recv_slow(Process&, Comm&, Buffer, Envelope, Status*);

// The next message of `in`, left there, if it is of this kind, with these flags, and matches.
WEFT_INLINE wire::Cell* next_if_matching(LaneGuard&, const Comm& c, Envelope e, wire::shm::Shm::In& in, Cells kind = message,
                                         uint8_t flags = 0) {
    using wire::shm::Shm;
    const uint32_t h = in.head.load(std::memory_order_relaxed);
    wire::Cell& cell = in.cells[h & Shm::mask];
    const uint64_t w = cell.word.load(std::memory_order_acquire);  // pairs with Shm::commit()
    // Turn, kind, flags and source in one compare; the number of bytes is masked out.
    const uint64_t want = wire::Cell::pack(wire::Header{kind, 0, flags, e.rank, 0, 0}) | Shm::turn(h);
    if (WEFT_UNLIKELY((w & ~uint64_t{0xff0000}) != want)) return nullptr;
    if (WEFT_UNLIKELY(cell.context != c.context + e.coll || (cell.tag != e.tag && e.tag != obj::any_tag)))
        return nullptr;
    return &cell;
}

// The same, if nothing else is waited for or waits.
WEFT_INLINE wire::Cell* next_if_wanted(LaneGuard& g, const Comm& c, Envelope e, wire::shm::Shm::In& in, Cells kind = message,
                                       uint8_t flags = 0) {
    lane::Lane& l = g.lane;
    if (WEFT_UNLIKELY((l.unexpected_count.load(std::memory_order_relaxed) | l.posted_count) != 0)) return nullptr;
    return next_if_matching(g, c, e, in, kind, flags);
}

// Takes it. ≤ 50 instructions, no call.
WEFT_INLINE bool take_inline(LaneGuard& g, Comm& c, const Buffer& b, Envelope e, wire::shm::Shm::In& in, Status* s) {
    lane::Lane& l = g.lane;
    wire::Cell* cell = next_if_wanted(g, c, e, in);
    if (WEFT_UNLIKELY(cell == nullptr)) return false;
    const auto bytes = static_cast<int64_t>(cell->word.load(std::memory_order_relaxed) >> 16 & 0xff);
    if (WEFT_UNLIKELY(bytes > type::bytes_of(b))) return false;
    copy_small(anonymous(b.base), cell->payload, static_cast<size_t>(bytes));
    if (s != nullptr) {
        s->source = e.rank;
        s->tag = cell->tag;
        s->cancelled = 0;
        s->bytes = bytes;
    }
    l.shm.consumed(in, *cell);
    return true;
}

// Waits a short while for it. False: nothing was taken, go the slow way.
WEFT_INLINE bool recv_inline(Process& p, Comm& c, const Buffer& b, Envelope e, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (WEFT_LIKELY(type::is_dense(*b.type) && from.way == obj::Route::shm)) {
        lane::Lane& l = *p.lane;
        wire::shm::Shm::In& in = l.shm.in[from.peer];
        if (ready_within(p, in, l.limits.spin_polls, [&] { return l.unexpected_count.load(std::memory_order_relaxed) != 0; })) {
            LaneGuard g(l);
            return take_inline(g, c, b, e, in, s);
        }
    }
    return false;
}

WEFT_INLINE Err recv(Process& p, Comm& c, Buffer b, Envelope e, Status* s) {
    return WEFT_LIKELY(recv_inline(p, c, b, e, s)) ? Err::ok : recv_slow(p, c, b, e, s);
}

// Posts a receive of dense data from a peer of the node when nothing unexpected waits: no call, no reference
// taken. False: nothing happened, go the slow way.
WEFT_INLINE bool irecv_inline(Process& p, Comm& c, const Buffer& b, Envelope e, Request** out) {
    lane::Lane& l = *p.lane;
    // MPI_ANY_SOURCE (-1) has a chair of its own in routes[], so it takes the slow way; so does MPI_PROC_NULL.
    if (WEFT_UNLIKELY(c.routes[e.rank].way != obj::Route::shm || !type::is_dense(*b.type) || !obj::is_predefined(c)))
        return false;
    lane::LaneTry guard(l);
    if (WEFT_UNLIKELY(!guard)) return false;
    auto* r = reinterpret_cast<Request*>(l.requests.free);
    if (WEFT_UNLIKELY(l.unexpected_count.load(std::memory_order_relaxed) != 0 || r == nullptr || !l.posted_ordered.empty()))
        return false;
    l.requests.free = l.requests.free->next;
    r->kind = Kind::request;
    r->id = 0;
    r->state.store(Request::pending, std::memory_order_relaxed);
    r->flags = static_cast<uint16_t>(e.coll | Request::is_recv | Request::flat);
    r->stage = Request::fresh;
    r->error = 0;
    r->comm = &c;
    set_bytes(*r, b);
    r->rank = e.rank;
    r->tag = e.tag;
    ++l.posted_count;
    l.posted[lane::bucket_of(c.context + e.coll, e.rank)].push(r);
    *out = r;
    return true;
}

// Gives `r` the next message of `in`, if it is the one and `r` the oldest of its bucket, and finishes `r`. All but the
// message is known before that comes, so that nothing waits for a load whose address it brings. ≤ 50 instructions.
WEFT_INLINE bool take_posted(LaneGuard& g, Request& r, Fifo& bucket, wire::shm::Shm::In& in, Status* s) {
    lane::Lane& l = g.lane;
    const Envelope e{r.rank, r.tag, static_cast<uint8_t>(r.flags & Request::coll)};
    if (WEFT_UNLIKELY(bucket.head != &r)) return false;
    wire::Cell* cell = next_if_matching(g, *r.comm, e, in);
    if (WEFT_UNLIKELY(cell == nullptr)) return false;
    const auto bytes = static_cast<int64_t>(cell->word.load(std::memory_order_relaxed) >> 16 & 0xff);
    if (WEFT_UNLIKELY(bytes > r.count)) return false;
    bucket.head = r.next;
    --l.posted_count;
    copy_small(anonymous(r.buf), cell->payload, static_cast<size_t>(bytes));
    if (s != nullptr) {
        s->source = e.rank;
        s->tag = cell->tag;
        s->cancelled = 0;
        s->bytes = bytes;
    }
    l.shm.consumed(in, *cell);
    if (r.flags & Request::persistent) r.state.store(Request::inactive, std::memory_order_relaxed);
    else free_request_block(g, r);
    return true;
}

// Waits a short while for the posted `r` by looking into the one ring that its message will come by. False: nothing
// happened to it here, go the slow way.
WEFT_INLINE bool wait_posted(Process& p, Request& r, Status* s) {
    lane::Lane& l = *p.lane;
    wire::shm::Shm::In* in;
    Fifo* bucket;
    {
        LaneGuard g(l);
        if (!r.receives_plainly()) return false;
        const obj::Route& from = r.comm->routes[r.rank];  // MPI_ANY_SOURCE has a chair there
        if (from.way != obj::Route::shm) return false;
        in = &l.shm.in[from.peer];
        bucket = &l.posted[lane::bucket_of(context_of(r), r.rank)];
    }
    if (!ready_within(p, *in, l.limits.spin_polls, [&] { return r.done(); })) return false;  // another thread may complete it
    LaneGuard g(l);
    return take_posted(g, r, *bucket, *in, s);
}

// Posts the prepared `r`, or takes the message that is here already.
void start_receive(LaneGuard&, Process&, Request& r);
Err irecv_slow(Process&, Comm&, Buffer, Envelope, Request** out);

WEFT_INLINE Err irecv(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    return WEFT_LIKELY(irecv_inline(p, c, b, e, out)) ? Err::ok : irecv_slow(p, c, b, e, out);
}

}  // namespace weft::p2p
