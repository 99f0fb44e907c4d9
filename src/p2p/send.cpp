#include <cstdlib>
#include <cstring>

#include "p2p/eager.hpp"
#include "p2p/p2p.hpp"

namespace weft::p2p {

namespace {

// A send to this rank itself: copied to the posted receive, or queued as an unexpected message. `copy`: the unexpected message holds a
// copy of the data; otherwise it refers to `r`, which completes when it is received.
Err send_self(LaneGuard& g, Request& r, bool copy) {
    Lane& l = g.lane;
    const Buffer b = buffer_of(r);
    const int64_t bytes = b.bytes();
    const wire::Header h{eager, 0, 0, r.comm->rank, r.tag, context_of(r)};
    if (Request* receive = match_posted(g, h); receive != nullptr) {
        take_own(g, *receive, h, r, bytes);
        return Err::ok;
    }
    Unexpected* u = add_unexpected(g, l.self, h, bytes, !copy);
    if (u == nullptr) return fail(Err::no_mem, "no memory for a message of %ld bytes to itself", static_cast<long>(bytes));
    u->send = reinterpret_cast<uint64_t>(&r);
    if (!copy) return Err::ok;
    if (bytes > wire::inline_bytes && (u->data = static_cast<char*>(malloc(static_cast<size_t>(bytes)))) == nullptr) {
        unlink_unexpected(g, *u);
        free_unexpected(g, *u);
        return fail(Err::no_mem, "no memory to keep a message of %ld bytes to itself", static_cast<long>(bytes));
    }
    char* to = u->data != nullptr ? u->data : u->small;
    if (bytes != 0) {  // else the buffer may be a null pointer
        if (b.dense()) memcpy(to, b.data(), static_cast<size_t>(bytes));
        else type::pack(b, 0, bytes, to);
    }
    u->ready = 1;
    complete(g, r, bytes);
    return Err::ok;
}

// Sends without a request what send_inline() could not, if the wire takes all of it now.
bool send_whole(LaneGuard& g, const Comm& c, const Buffer& b, Envelope e, Mode m, const obj::Route& to) {
    return m != Mode::synchronous && to.is_wire() && push_whole(g, to.peer, c, b, e.tag, c.context + e.coll);
}

}  // namespace

Err start_send(LaneGuard& g, Request& r, const obj::Route& to, bool copy_self) {
    switch (to.way) {
    case obj::Route::shm:
    case obj::Route::sock: push_or_enqueue(g, to.peer, r); return Err::ok;
    case obj::Route::null_wire: {
        g.lane.null->commit(to.peer, g.lane.null->reserve(to.peer), wire::Header{rts, 0, 0, 0, 0, 0});
        complete(g, r, r.count * r.type->size);
        return Err::ok;
    }
    case obj::Route::self: return send_self(g, r, copy_self);
    case obj::Route::proc_null: complete(g, r, 0); return Err::ok;
    case obj::Route::bad: break;
    }
    return fail(Err::rank, "rank %d cannot be sent to", r.rank);
}

Err send_slow(Process& p, Comm& c, Buffer b, Envelope e, Mode m) {
    const obj::Route& to = c.routes[e.rank];
    if (to.way == obj::Route::proc_null) return Err::ok;
    Request r{};
    r.kind = Kind::request;
    r.comm = &c;
    r.flags = static_cast<uint16_t>(e.coll | (m == Mode::synchronous ? Request::sync : 0));
    r.buf = b.base;
    r.count = b.count;
    r.type = b.type;
    r.rank = e.rank;
    r.tag = e.tag;
    {
        LaneGuard g(lane_of(p, c, e.tag, Direction::send));
        if (send_whole(g, c, b, e, m, to)) return Err::ok;
        WEFT_TRY(start_send(g, r, to, m != Mode::synchronous));
    }
    wait(p, r);
    return r.error != 0 ? why_failed(r, b.bytes()) : Err::ok;
}

Err isend_slow(Process& p, Comm& c, Buffer b, Envelope e, Mode m, Request** out) {
    const obj::Route& to = c.routes[e.rank];
    LaneGuard g(lane_of(p, c, e.tag, Direction::send));
    if (to.way == obj::Route::proc_null || send_whole(g, c, b, e, m, to)) {
        *out = &p.sent_request;
        return Err::ok;
    }
    const auto flags = static_cast<uint16_t>(e.coll | (m == Mode::synchronous ? Request::sync : 0));
    Request* r = make_request(g, c, b, e.rank, e.tag, flags);
    if (r == nullptr) return fail(Err::no_mem, "no memory for a request");
    const bool copy = m != Mode::synchronous && b.bytes() <= g.lane.limits.eager_max;
    if (Err err = start_send(g, *r, to, copy); err != Err::ok) {
        if (r->flags & Request::counted) type::release(*r->type);
        free_request_block(g, *r);
        return err;
    }
    *out = r;
    return Err::ok;
}

}  // namespace weft::p2p
