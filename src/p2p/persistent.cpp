#include "p2p/persistent.hpp"

#include <cstring>

#include "p2p/combined.hpp"

namespace weft::p2p {

namespace {

void set_complete(Persistent& r) { r.state.store(Request::complete, std::memory_order_release); }

// Sets the request's fields for the next start.
void arm(LaneGuard&, Persistent& r) { prepare(r, *r.comm, r.what, r.where.rank, r.where.tag, r.start_flags); }

Err start_receiving(Process& p, Persistent& r) {
    LaneGuard g(lane_of(p, r));
    arm(g, r);
    const obj::Route& from = r.comm->routes[r.where.rank];  // MPI_ANY_SOURCE has a sentinel there
    const bool none = (g.lane.unexpected_count.load(std::memory_order_relaxed) | g.lane.wildcards) == 0;
    if (WEFT_LIKELY(none && from.way == obj::Route::shm && r.tag >= 0)) post_exact(g, r);
    else start_receive(g, r);
    return Err::ok;
}

Err start_queued(Process& p, Persistent& r) {
    LaneGuard g(lane_of(p, r));
    arm(g, r);
    const Err e = start_send(g, r);
    if (e != Err::ok) r.state.store(Request::inactive, std::memory_order_relaxed);
    return e;
}

// Inactive. A ready send is a standard one.
Err init_persistent(Process& p, Comm& front, Buffer b, Envelope e, Persistent::How how, Request** out) {
    Comm* branch = &front;   // of a buffered one too, as the attached buffer is the front's
    if (how == Persistent::receive) WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &branch));
    else if (how != Persistent::buffered) branch = &sender(front, e.rank, e.tag, e.coll);
    Comm& c = *branch;
    LaneGuard g(lane_of(p, c, e.tag, how == Persistent::receive ? Direction::receive : Direction::send));
    auto* r = static_cast<Persistent*>(g.lane.persistent_pool.take());
    if (r == nullptr) return fail(Err::no_mem, "no memory for a persistent request");
    memset(static_cast<void*>(r), 0, sizeof *r);
    static_cast<Object&>(*r) = g.lane.request_head;
    r->comm = &c;
    r->where = e;
    r->how = how;
    int flags = Request::persistent | e.coll | set_buffer(*r, b);
    r->what = buffer_of(*r);
    if (how == Persistent::synchronous) flags |= Request::sync;
    if (how == Persistent::receive) flags |= Request::is_recv;
    r->start_flags = static_cast<uint16_t>(flags);
    r->flags = r->start_flags;
    r->state.store(Request::inactive, std::memory_order_relaxed);
    type::retain(*r->type);
    if (!obj::is_predefined(c)) obj::retain(c);
    *out = r;
    return Err::ok;
}

}  // namespace

Err send_init(Process& p, Comm& c, Buffer b, Envelope e, Mode m, Request** out) {
    return init_persistent(p, c, b, e, m == Mode::synchronous ? Persistent::synchronous : Persistent::standard, out);
}
Err bsend_init(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    return init_persistent(p, c, b, e, Persistent::buffered, out);
}
Err recv_init(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    return init_persistent(p, c, b, e, Persistent::receive, out);
}

Err start_persistent(Process& p, Persistent& r) {
    switch (r.how) {
    case Persistent::receive: return start_receiving(p, r);
    case Persistent::standard:
        if (!send_inline(p, *r.comm, r.what, r.where)) break;
        set_complete(r);
        return Err::ok;
    case Persistent::buffered:
        WEFT_TRY(bsend(p, *r.comm, r.what, r.where));
        set_complete(r);
        return Err::ok;
    case Persistent::synchronous: break;
    }
    return start_queued(p, r);
}

void free_persistent(LaneGuard& g, Request& request) {
    auto& r = static_cast<Persistent&>(request);
    if (!r.what.type->is(type::Type::predefined)) type::release(*r.what.type);
    if (!obj::is_predefined(*r.comm)) obj::release(*r.comm);
    r.kind = Kind::dead;
    g.lane.persistent_pool.give(&r);
}

}  // namespace weft::p2p
