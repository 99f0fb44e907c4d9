#include <cstring>

#include "obj/handles.hpp"
#include "obj/message.hpp"
#include "p2p/p2p.hpp"

namespace weft::p2p {

namespace {

// A matched message as what it is otherwise: an unexpected one off its queue. Null when out of memory.
Unexpected* unexpected_of(LaneGuard& g, Message& m) {
    if (m.kept == nullptr) return m.unexpected;
    auto* u = static_cast<Unexpected*>(g.lane.unexpected_pool.take());
    if (u == nullptr) return nullptr;
    memset(static_cast<void*>(u), 0, offsetof(Unexpected, small));
    const wire::Cell& cell = **m.kept;
    u->header = cell.header(cell.word.load(std::memory_order_relaxed));
    u->peer = m.comm->routes[u->header.source].peer;
    u->bytes = u->header.bytes;
    u->ready = 1;
    memcpy(u->small, cell.payload, u->header.bytes);
    *m.kept = nullptr;
    m.kept = nullptr;
    return m.unexpected = u;
}

// As take_inline(), for a message of one chunk: no request, no second copy.
bool take_chunk(Process& p, Comm& c, const Buffer& b, Envelope e, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (from.way != obj::Route::shm || !type::is_dense(*b.type)) return false;
    LaneGuard g(*p.lane);
    wire::shm::Shm& shm = g.lane.shm;
    wire::shm::Shm::In& in = shm.in[from.peer];
    const Next n = shm.look(in);
    if (!n.here() || !is_wanted(g, c, e, in, n, first, wire::has_bulk)) return false;
    First f;
    memcpy(&f, n.cell->payload, sizeof f);
    if (f.bytes > type::bytes_of(b)) return false;
    shm.expect_at(from.peer, b.base);
    shm.copy_out(b.base, shm.chunk_at(in, f.ref), f.ref.bytes);
    shm.free_chunk(in, f.ref, false);
    shm.taking.read(&in, f.ref.bytes, false);
    fill(s, e.rank, n.cell->tag, f.bytes);
    shm.consumed(in, n);
    return true;
}

void from_nobody(Request& r) {
    r.rank = obj::proc_null;
    r.tag = obj::any_tag;
}

}  // namespace

void start_receive(LaneGuard& g, Process& p, Request& r) {
    if (r.rank == obj::proc_null) {
        from_nobody(r);
        complete(g, r, 0);
    } else if (Unexpected* u = find_unexpected(g, context_of(r), r.rank, r.tag); u != nullptr) {
        unlink_unexpected(g, *u);
        take_unexpected(g, p, r, *u);
    } else {
        post(g, r);
    }
}

Err irecv_slow(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    LaneGuard g(*p.lane);
    Request* r = make_request(g, c, b, e.rank, e.tag, static_cast<uint16_t>(e.coll | Request::is_recv));
    if (r == nullptr) return fail(Err::no_mem, "no memory for a request");
    start_receive(g, p, *r);
    *out = r;
    return Err::ok;
}

Err recv_slow(Process& p, Comm& c, Buffer b, Envelope e, Status* s) {
    if (take_chunk(p, c, b, e, s)) return Err::ok;
    Request r{};
    r.kind = Kind::request;
    r.comm = &c;
    r.flags = static_cast<uint16_t>(e.coll | Request::is_recv);
    r.buf = b.base;
    r.count = b.count;
    r.type = b.type;
    r.rank = e.rank;
    r.tag = e.tag;
    bool sole;
    {
        LaneGuard g(*p.lane);
        start_receive(g, p, r);
        sole = g.lane.posted_count == 1;
    }
    if (const obj::Route& from = c.routes[e.rank]; from.way == obj::Route::shm) poll_for(p, r, from.peer, sole);
    wait(p, r);
    fill(s, r.rank, r.tag, r.count);
    return r.error != 0 ? why_failed(r, b.bytes()) : Err::ok;
}

using Round = bool(Process&);

// `round` is a call's way to make progress: one that waits does so elsewhere, too.
static Err look(Process& p, Comm& c, Envelope e, bool* found, Status* s, Round* round) {
    *found = false;
    if (e.rank == obj::proc_null) {
        if (s != nullptr) *s = Status{obj::proc_null, obj::any_tag, s->error, 0, 0, 0};
        *found = true;
        return Err::ok;
    }
    for (int tries = 0; tries < 2 && !*found; ++tries) {
        if (tries == 1) round(p);
        LaneGuard g(*p.lane);
        if (tries == 1) {
            ++g.lane.looking;
            poll_lane(g, p);
            --g.lane.looking;
        }
        const Unexpected* u = find_unexpected(g, c.context + e.coll, e.rank, e.tag);
        if (u == nullptr) continue;
        fill(s, u->header.source, u->header.tag, u->bytes);
        *found = true;
    }
    return Err::ok;
}

Err iprobe(Process& p, Comm& c, Envelope e, bool* found, Status* s) {
    const Probing told(c, e);
    return look(p, c, e, found, s, progress_once);
}

Err probe(Process& p, Comm& c, Envelope e, Status* s) {
    const Probing told(c, e);
    bool found = false;
    Err err = Err::ok;
    progress_until(p, [&] {
        err = look(p, c, e, &found, s, progress);
        return found || err != Err::ok;
    });
    return err;
}

static Err match(Process& p, Comm& c, Envelope e, bool* found, Message** out, Status* s, Round* round) {
    if (match_within(p, c, e, 1, out, s)) {
        *found = true;
        return Err::ok;
    }
    WEFT_TRY(look(p, c, e, found, s, round));
    if (!*found) return Err::ok;
    if (e.rank == obj::proc_null) {
        *out = obj::detail::object<Message>(&obj::no_proc_message);
        return Err::ok;
    }
    *found = false;  // another thread may have taken it meanwhile
    LaneGuard g(*p.lane);
    Unexpected* u = find_unexpected(g, c.context + e.coll, e.rank, e.tag);
    if (u == nullptr) return Err::ok;
    auto* m = reinterpret_cast<Message*>(g.lane.requests.take());
    if (m == nullptr) return fail(Err::no_mem, "no memory for a message handle");
    unlink_unexpected(g, *u);
    fill(s, u->header.source, u->header.tag, u->bytes);
    *m = Message{{Kind::message, 0}, nullptr, u, &c, nullptr};
    if (!obj::is_predefined(c)) obj::retain(c);
    *found = true;
    *out = m;
    return Err::ok;
}

Err improbe(Process& p, Comm& c, Envelope e, bool* found, Message** out, Status* s) {
    const Probing told(c, e);
    return match(p, c, e, found, out, s, progress_once);
}

Err mprobe(Process& p, Comm& c, Envelope e, Message** out, Status* s) {
    const Probing told(c, e);
    bool found = false;
    Err err = Err::ok;
    progress_until(p, [&] {
        err = match(p, c, e, &found, out, s, progress);
        return found || err != Err::ok;
    });
    return err;
}

Err imrecv(Process& p, Buffer b, Message** message, Request** out) {
    LaneGuard g(*p.lane);
    Message* m = *message;
    const bool nobody = m->comm == nullptr;
    Unexpected* u = nobody ? nullptr : unexpected_of(g, *m);
    Comm& c = nobody ? p.self : *m->comm;
    const bool there = u != nullptr || nobody;
    Request* r = there ? make_request(g, c, b, obj::proc_null, obj::any_tag, Request::is_recv) : nullptr;
    if (r == nullptr) {
        obj::blame(&c);
        return fail(Err::no_mem, "no memory for a %s", there ? "request" : "message");
    }
    *message = nullptr;
    *out = r;
    if (nobody) {
        from_nobody(*r);
        complete(g, *r, 0);
        return Err::ok;
    }
    take_unexpected(g, p, *r, *u);
    if (!obj::is_predefined(c)) obj::release(c);
    m->kind = Kind::dead;
    g.lane.requests.give(m);
    return Err::ok;
}

Err mrecv(Process& p, Buffer b, Message** message, Status* s) {
    if (receive_kept(p, b, message, s, true)) return Err::ok;
    const Comm* comm = (*message)->comm;
    Request* r = nullptr;
    WEFT_TRY(imrecv(p, b, message, &r));
    wait(p, *r);
    const Err e = finish(p, *r, s);
    if (e != Err::ok) obj::blame(comm);
    return e;
}

}  // namespace weft::p2p
