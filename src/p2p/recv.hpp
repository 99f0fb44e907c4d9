// Receiving: the short path of an inline message that has arrived, or arrives within a few polls. Included by p2p.hpp.
// That path posts nothing: it compares the ring's next cell with the receive. It takes the lane's guard once the cell is there.
#pragma once
#include "base/copy.hpp"
#include "p2p/progress.hpp"
#include "p2p/requests.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

Err recv_slow(Process&, Comm&, Buffer, Envelope, Status*);

// Whether `n`, which has arrived, is still the next message of `in`, is inline (or of another kind) without an SSEND_ACK, and matches.
WEFT_INLINE bool is_match(LaneGuard&, const Comm& c, Envelope e, const wire::shm::Shm::In& in, const Next& n, CellKind kind = eager) {
    // Kind, flags and source in one comparison; turn and number of bytes are masked out.
    const uint64_t want = wire::Cell::pack(wire::Header{kind, 0, kind == eager_first ? wire::has_bulk : uint8_t{0}, e.rank, 0, 0});
    return WEFT_LIKELY(in.head.load(std::memory_order_relaxed) == n.index && (n.word & ~uint64_t{0xff00ff}) == want &&
                       n.cell->context == c.context + e.coll && (n.cell->tag == e.tag || e.tag == obj::any_tag));
}

// The same, if no receive is posted and no unexpected message is queued.
WEFT_INLINE bool is_wanted(LaneGuard& g, const Comm& c, Envelope e, const wire::shm::Shm::In& in, const Next& n, CellKind kind = eager) {
    lane::Lane& l = g.lane;
    return WEFT_LIKELY((l.unexpected_count.load(std::memory_order_relaxed) | l.posted_count) == 0) && is_match(g, c, e, in, n, kind);
}

WEFT_INLINE void fill(Status* s, int32_t source, int32_t tag, int64_t bytes) {
    if (s == nullptr) return;
    s->source = source;
    s->tag = tag;
    s->cancelled = 0;
    s->bytes = bytes;
}

// Receives `n` if it matches and fits. ≤ 50 instructions, no call.
WEFT_INLINE bool take_inline(LaneGuard& g, Comm& c, const Buffer& b, Envelope e, wire::shm::Shm::In& in, const Next& n,
                             Status* s) {
    if (WEFT_UNLIKELY(!is_wanted(g, c, e, in, n))) return false;
    const int64_t bytes = wire::Cell::bytes_of(n.word);
    if (WEFT_UNLIKELY(bytes > type::bytes_of(b))) return false;
    copy_small(anonymous(b.base), n.cell->payload, static_cast<size_t>(bytes));
    fill(s, e.rank, n.cell->tag, bytes);
    g.lane.shm.consumed(in, n);
    return true;
}

// Waits briefly for an inline message. False: nothing was received, take the slow path.
WEFT_INLINE bool recv_inline(Process& p, Comm& c, const Buffer& b, Envelope e, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (WEFT_LIKELY(type::is_dense(*b.type) && from.way == obj::Route::shm)) {
        Lane& l = lane_of(p, c, e.tag, Direction::receive);
        wire::shm::Shm::In& in = l.shm.from(from.index);
        Next n;
        if (comes_within(p, l, in, l.limits.spin_polls, &n, [&] { return l.unexpected_count.load(std::memory_order_relaxed) != 0; })) {
            LaneGuard g(l);
            return take_inline(g, c, b, e, in, n, s);
        }
    }
    return false;
}

WEFT_INLINE Err recv(Process& p, Comm& c, Buffer b, Envelope e, Status* s) {
    return WEFT_LIKELY(recv_inline(p, c, b, e, s)) ? Err::ok : recv_slow(p, c, b, e, s);
}

// Posts a receive of dense data from a peer by shared memory, if no unexpected message is queued: no call.
// False: nothing happened, take the slow path.
WEFT_INLINE bool irecv_inline(Process& p, Comm& c, const Buffer& b, Envelope e, Request** out) {
    Lane& l = lane_of(p, c, e.tag, Direction::receive);
    // MPI_ANY_SOURCE (-1) has a sentinel of its own in routes[], so it takes the slow path; so does MPI_PROC_NULL.
    if (WEFT_UNLIKELY(c.routes[e.rank].way != obj::Route::shm || !type::is_dense(*b.type))) return false;
    lane::LaneTry guard(l);
    if (WEFT_UNLIKELY(!guard)) return false;
    auto* r = reinterpret_cast<Request*>(l.requests.free);
    // A receive with a wildcard is numbered, and so is every later one while it is posted.
    if (WEFT_UNLIKELY((l.unexpected_count.load(std::memory_order_relaxed) | l.wildcards) != 0 || e.tag == obj::any_tag || r == nullptr))
        return false;
    l.requests.free = l.requests.free->next;
    static_cast<Object&>(*r) = l.request_head;
    r->state.store(Request::pending, std::memory_order_relaxed);
    r->flags = static_cast<uint16_t>(e.coll | Request::is_recv | Request::flat);
    if (!obj::is_predefined(c)) {
        obj::retain(c, l.threads);
        r->flags |= Request::holds_comm;
    }
    r->protocol = Protocol::queued;
    r->error = 0;
    r->comm = &c;
    set_bytes(*r, b);
    r->rank = e.rank;
    r->tag = e.tag;
    ++l.posted_count;
    l.posted.bucket(lane::hash_of(c.context + e.coll, e.rank, e.tag)).push(r);
    *out = r;
    return true;
}

// If the next message of `in` is inline and matches `r` first of all receives, receives it and finishes `r`. ≤ 60 instructions.
WEFT_INLINE bool take_posted(LaneGuard& g, Request& r, wire::shm::Shm::In& in, const Next& n, Status* s) {
    lane::Lane& l = g.lane;
    const Envelope e{r.rank, r.tag, static_cast<uint8_t>(r.flags & Request::contexts)};
    if (WEFT_UNLIKELY(!is_match(g, *r.comm, e, in, n))) return false;
    const int64_t bytes = wire::Cell::bytes_of(n.word);
    if (WEFT_UNLIKELY(bytes > r.count)) return false;
    Fifo& bucket = l.posted.bucket(lane::hash_of(n.cell->context, e.rank, e.tag));
    if (WEFT_LIKELY(bucket.head == &r)) bucket.head = r.next;
    else if (!unlink_behind(g, r)) return false;
    --l.posted_count;
    copy_small(anonymous(r.buf), n.cell->payload, static_cast<size_t>(bytes));
    fill(s, e.rank, n.cell->tag, bytes);
    l.shm.consumed(in, n);
    if (r.flags & Request::persistent) r.state.store(Request::inactive, std::memory_order_relaxed);
    else free_request_block(g, r);
    return true;
}

// Waits briefly for the posted `r`, polling only the ring that its message comes by. False: `r` is not finished, take the slow path.
WEFT_INLINE bool wait_posted(Process& p, Request& r, Status* s) {
    Lane& l = lane_of(p, r);
    wire::shm::Shm::In* in;
    {
        LaneGuard g(l);
        if (!r.receives_plainly()) return false;
        const obj::Route& from = r.comm->routes[r.rank];  // MPI_ANY_SOURCE has a sentinel there
        if (from.way != obj::Route::shm) return false;
        in = &l.shm.from(from.index);
    }
    Next n;
    if (!comes_within(p, l, *in, l.limits.spin_polls, &n, [&] { return r.done(); })) return false;  // another thread may complete it
    LaneGuard g(l);
    n = l.shm.look(*in);   // reading the cell again is 3-5 % faster than keeping it in registers
    return n.here() && take_posted(g, r, *in, n, s);
}

// Posts the prepared `r`, or gives it the unexpected message that matches.
void start_receive(LaneGuard&, Request& r);
Err irecv_slow(Process&, Comm&, Buffer, Envelope, Request** out);

WEFT_INLINE Err irecv(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    return WEFT_LIKELY(irecv_inline(p, c, b, e, out)) ? Err::ok : irecv_slow(p, c, b, e, out);
}

}  // namespace weft::p2p
