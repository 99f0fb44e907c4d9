#include <cstring>

#include "heap/mapped.hpp"
#include "p2p/eager.hpp"
#include "p2p/p2p.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

// Whether a message that may be eager is sent by rendezvous: it lies where its receiver can read it, or that wants it so.
static bool gains_by_rendezvous(const Lane& l, int peer, const Buffer& b, int64_t bytes) {
    if (!b.dense()) return false;
    if (bytes >= lane::rendezvous_min && bytes > static_cast<int64_t>(l.eager_wanted_by(peer))) return true;
    return l.can(peer, wire::shared_descriptors) && heap::is_mapped(l.segment, b.data(), static_cast<uint64_t>(bytes));
}

Protocol choose(Lane& l, const obj::Route& to, const Buffer& b, int64_t bytes, bool sync, Call call) {
    switch (to.way) {
    case obj::Route::shm:
    case obj::Route::sock: break;
    case obj::Route::null_wire: return Protocol::null_wire;
    case obj::Route::self:
        return !sync && (call == Call::blocking || bytes <= l.limits.eager_max) ? Protocol::self : Protocol::self_kept;
    case obj::Route::nobody: return Protocol::nobody;
    case obj::Route::branch:   // only its branches are asked
    case obj::Route::bad: return Protocol::bad;
    }
    if (call != Call::queue && !l.peers[to.peer].pending.empty()) return Protocol::queued;
    if (bytes > l.limits.eager_max || (bytes >= l.limits.mapped_min && gains_by_rendezvous(l, to.peer, b, bytes))) return Protocol::rendezvous;
    // Over the peer's credit a send completes only when it is matched: inline as a synchronous send, all others by rendezvous.
    const bool over_credit = !l.within_credit(to.peer), ack = sync || over_credit;
    if (bytes + (ack ? ack_bytes : 0) <= l.limits.inline_max) return ack ? Protocol::inlined_ack : Protocol::inlined;
    if (over_credit) return Protocol::rendezvous;
    return ack ? Protocol::eager_ack : Protocol::eager;
}

namespace {

bool needs_request(Protocol chosen) { return chosen == Protocol::queued || chosen > Protocol::eager; }

// The short path of a message that does not fit its cell, but one fragment: no call but for the copy. It is taken where choose() would
// choose Protocol::eager without asking anybody: the ring and the block have room, nothing is queued, and the peer is within its credit.
// False: nothing happened.
WEFT_INLINE bool send_chunk(LaneGuard& g, const obj::Route& to, const Comm& c, const Buffer& b, int64_t bytes, Envelope e) {
    Lane& l = g.lane;
    if (WEFT_UNLIKELY(bytes > l.limits.chunk_max || bytes <= to.inline_max || to.way != obj::Route::shm || !b.dense())) return false;
    wire::shm::Shm::Out& o = l.shm.to(to.index);
    wire::Cell* cell = l.shm.reserve_known(o);   // none where sends are queued
    if (WEFT_UNLIKELY(cell == nullptr || o.over_credit != 0)) return false;
    wire::BulkRef ref;
    char* chunk = l.shm.reserve_bulk_known(to.index, o, static_cast<uint32_t>(bytes), &ref);
    if (WEFT_UNLIKELY(chunk == nullptr)) return false;
    memcpy(chunk, b.data(), static_cast<size_t>(bytes));
    l.shm.written(to.index, chunk, static_cast<size_t>(bytes));
    write(cell, EagerFirst{ref, bytes, 0});
    ++l.counters.other_cells;
    ++l.counters.sent_eager;
    l.shm.commit(to.index, o, cell, wire::Header{eager_first, sizeof(EagerFirst), wire::has_bulk, c.rank, e.tag, c.context + e.coll});
    return true;
}

// Sends a message that needs no request. False: its wire does not take all of it now.
bool send_whole(LaneGuard& g, const obj::Route& to, Protocol chosen, const Comm& c, const Buffer& b, int64_t bytes, Envelope e) {
    if (chosen == Protocol::nobody) return true;
    const wire::Header h{eager, 0, 0, c.rank, e.tag, c.context + e.coll};
    if (chosen == Protocol::eager) return push_whole(g, to.peer, b, bytes, h);
    if (chosen == Protocol::inlined) return push_inline(g, to.peer, b, bytes, h, nullptr);
    g.lane.null->commit(to.peer, g.lane.null->reserve(to.peer), h);
    return true;
}

// Starts `r` by its protocol. What its wire does not take now waits in the peer's queue.
WEFT_INLINE void push_or_queue(LaneGuard& g, int32_t peer, Request& r) {
    bool all = false;
    switch (r.protocol) {
    case Protocol::self:
    case Protocol::self_kept: return send_self(g, r);
    case Protocol::queued: break;
    case Protocol::rendezvous: all = push_rts(g, peer, r); break;
    default: all = push_eager(g, peer, r);
    }
    if (!all) enqueue(g, peer, r);
}

Err no_such_rank(int32_t rank) { return fail(Err::rank, "rank %d cannot be sent to", rank); }

}  // namespace

// On a front: by the branch, whose short path has not been tried.
[[gnu::noinline]] static Err send_by_branch(Process& p, Comm& c, Buffer b, Envelope e, Mode m) {
    return send(p, sender(c, e.rank, e.tag, e.coll), b, e, m);
}
[[gnu::noinline]] static Err isend_by_branch(Process& p, Comm& c, Buffer b, Envelope e, Mode m, Request** out) {
    return isend(p, sender(c, e.rank, e.tag, e.coll), b, e, m, out);
}

Err send_slow(Process& p, Comm& c, Buffer b, Envelope e, Mode m) {
    if (WEFT_UNLIKELY(c.branches != nullptr)) return send_by_branch(p, c, b, e, m);
    const obj::Route& to = c.routes[e.rank];
    const int64_t bytes = b.bytes();
    Request r{};
    Lane& l = lane_of(p, c, e.tag, Direction::send);
    {
        LaneGuard g(l);
        if (m != Mode::synchronous && send_chunk(g, to, c, b, bytes, e)) return Err::ok;
        const Protocol chosen = choose(l, to, b, bytes, m == Mode::synchronous, Call::blocking);
        if (chosen == Protocol::bad) return no_such_rank(e.rank);
        if (!needs_request(chosen) && send_whole(g, to, chosen, c, b, bytes, e)) return Err::ok;
        prepare(r, c, b, e.rank, e.tag, e.coll | (m == Mode::synchronous ? Request::sync : 0));
        r.protocol = chosen;
        push_or_queue(g, to.peer, r);
    }
    r.lane = l.number();
    wait(p, r);
    return r.error != 0 ? why_failed(r, bytes) : Err::ok;
}

Err isend_slow(Process& p, Comm& c, Buffer b, Envelope e, Mode m, Request** out) {
    if (WEFT_UNLIKELY(c.branches != nullptr)) return isend_by_branch(p, c, b, e, m, out);
    const obj::Route& to = c.routes[e.rank];
    const int64_t bytes = b.bytes();
    LaneGuard g(lane_of(p, c, e.tag, Direction::send));
    if (m != Mode::synchronous && send_chunk(g, to, c, b, bytes, e)) {
        *out = &p.sent_request;
        return Err::ok;
    }
    const Protocol chosen = choose(g.lane, to, b, bytes, m == Mode::synchronous, Call::nonblocking);
    if (chosen == Protocol::bad) return no_such_rank(e.rank);
    if (!needs_request(chosen) && send_whole(g, to, chosen, c, b, bytes, e)) {
        *out = &p.sent_request;
        return Err::ok;
    }
    Request* r = make_request(g, c, b, e.rank, e.tag, static_cast<uint16_t>(e.coll | (m == Mode::synchronous ? Request::sync : 0)));
    if (r == nullptr) return fail(Err::no_mem, "no memory for a request");
    r->protocol = chosen;
    push_or_queue(g, to.peer, *r);
    *out = r;
    return Err::ok;
}

Err start_send(LaneGuard& g, Request& r) {
    const obj::Route& to = r.comm->routes[r.rank];
    const Buffer b = buffer_of(r);
    const int64_t bytes = b.bytes();
    r.protocol = choose(g.lane, to, b, bytes, (r.flags & Request::sync) != 0, Call::nonblocking);
    if (r.protocol == Protocol::bad) return no_such_rank(r.rank);
    const Envelope e{r.rank, r.tag, static_cast<uint8_t>(r.flags & Request::contexts)};
    if (!needs_request(r.protocol) && send_whole(g, to, r.protocol, *r.comm, b, bytes, e)) complete(g, r, bytes);
    else push_or_queue(g, to.peer, r);
    return Err::ok;
}

}  // namespace weft::p2p
