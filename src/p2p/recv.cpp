#include <cstring>

#include "obj/handles.hpp"
#include "obj/message.hpp"
#include "p2p/p2p.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

namespace {

// As take_inline(), for a message of one fragment.
bool take_chunk(LaneGuard& g, const Comm& c, const Buffer& b, Envelope e, wire::shm::Shm::In& in, const Next& n, Status* s) {
    if (!is_wanted(g, c, e, in, n, eager_first) || !type::is_dense(*b.type)) return false;
    const auto f = read<EagerFirst>(n.cell->payload);
    if (f.bytes != f.ref.bytes || f.bytes > type::bytes_of(b)) return false;
    wire::shm::Shm& shm = g.lane.shm;
    shm.copy_out(b.base, shm.chunk_at(in, f.ref), f.ref.bytes);
    fill(s, e.rank, n.cell->tag, f.bytes);
    shm.consumed_chunk(in, n);
    return true;
}

// The same for an RTS, which `r` accepts without being posted.
bool take_rts(LaneGuard& g, Request& r, const Comm& c, Envelope e, wire::shm::Shm::In& in, const Next& n) {
    if (!is_wanted(g, c, e, in, n, rts)) return false;
    const auto q = read<Rts>(n.cell->payload);
    accept_rts(g, r, in.peer, q, set_matched(g, r, n.cell->header(n.word), q.bytes));
    g.lane.shm.consumed(in, n);
    return true;
}

void from_nobody(Request& r) {
    r.rank = obj::proc_null;
    r.tag = obj::any_tag;
}

}  // namespace

void start_receive(LaneGuard& g, Request& r) {
    if (r.rank == obj::proc_null) {
        from_nobody(r);
        complete(g, r, 0);
    } else if (Unexpected* u = find_unexpected(g, context_of(r), r.rank, r.tag); u != nullptr) {
        unlink_unexpected(g, *u);
        take_unexpected(g, r, *u);
    } else {
        post(g, r);
    }
}

// On a front: by the branch, whose short path has not been tried.
[[gnu::noinline]] static Err recv_by_branch(Process& p, Comm& c, Buffer b, Envelope e, Status* s) {
    Comm* branch = nullptr;
    WEFT_TRY(find_receiver(c, e.rank, e.tag, e.coll, &branch));
    if (recv_inline(p, *branch, b, e, s)) return Err::ok;
    Request* r = nullptr;   // and not recv_slow(), which link-time optimisation takes into its only caller
    WEFT_TRY(irecv(p, *branch, b, e, &r));
    wait(p, *r);
    return finish(p, *r, s);
}
[[gnu::noinline]] static Err irecv_by_branch(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    Comm* branch = nullptr;
    WEFT_TRY(find_receiver(c, e.rank, e.tag, e.coll, &branch));
    return irecv(p, *branch, b, e, out);
}

Err irecv_slow(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    if (WEFT_UNLIKELY(c.branches != nullptr)) return irecv_by_branch(p, c, b, e, out);
    LaneGuard g(lane_of(p, c, e.tag, Direction::receive));
    Request* r = make_request(g, c, b, e.rank, e.tag, static_cast<uint16_t>(e.coll | Request::is_recv));
    if (r == nullptr) return fail(Err::no_mem, "no memory for a request");
    start_receive(g, *r);
    *out = r;
    return Err::ok;
}

Err recv_slow(Process& p, Comm& c, Buffer b, Envelope e, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (WEFT_UNLIKELY(from.way != obj::Route::shm) && c.branches != nullptr) return recv_by_branch(p, c, b, e, s);
    Request r{};
    Lane& l = lane_of(p, c, e.tag, Direction::receive);
    bool seen = false, sole;   // the ring's next message is there
    {
        LaneGuard g(l);
        wire::shm::Shm::In* in = from.way == obj::Route::shm ? &l.shm.from(from.index) : nullptr;
        Next n{};
        if (in != nullptr) {
            n = l.shm.look(*in);
            seen = n.here();
            if (seen && take_chunk(g, c, b, e, *in, n, s)) return Err::ok;
        }
        prepare(r, c, b, e.rank, e.tag, e.coll | Request::is_recv);
        if (seen && take_rts(g, r, c, e, *in, n)) seen = false;
        else start_receive(g, r);
        sole = l.posted_count <= 1;
    }
    if (from.way == obj::Route::shm) poll_for(p, l, r, from.index, seen, sole);
    if (!r.done()) {
        r.lane = l.number();
        wait(p, r);
    }
    fill(s, r.rank, r.tag, r.count);
    return r.error != 0 ? why_failed(r, b.bytes()) : Err::ok;
}

using Round = bool(Process&, Lane* home);

// `round` makes progress: progress_all() in blocking calls, progress_once() in the others.
static bool progress_all(Process& p, Lane*) { return progress(p); }

static Err look(Process& p, Comm& c, Envelope e, bool* found, Status* s, Round* round) {
    *found = false;
    if (e.rank == obj::proc_null) {
        if (s != nullptr) *s = Status{obj::proc_null, obj::any_tag, s->error, 0, 0, 0};
        *found = true;
        return Err::ok;
    }
    for (int tries = 0; tries < 2 && !*found; ++tries) {
        if (tries == 1) round(p, c.lane);
        LaneGuard g(lane_of(p, c, e.tag, Direction::receive));
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

Err iprobe(Process& p, Comm& front, Envelope e, bool* found, Status* s) {
    Comm* c = nullptr;
    WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &c));
    const Probing told(*c, e);
    return look(p, *c, e, found, s, progress_once);
}

Err probe(Process& p, Comm& front, Envelope e, Status* s) {
    Comm* c = nullptr;
    WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &c));
    const Probing told(*c, e);
    bool found = false;
    Err err = Err::ok;
    progress_until(p, [&] {
        err = look(p, *c, e, &found, s, progress_all);
        return found || err != Err::ok;
    }, nullptr, Home{c->lane, true});
    return err;
}

// A handle for `u`, which is off its queue. Null when out of memory.
static Message* make_message(LaneGuard& g, Comm& c, Unexpected* u) {
    auto* m = reinterpret_cast<Message*>(g.lane.requests.take());
    if (m == nullptr) return nullptr;
    *m = Message{{Kind::message, g.lane.number(), 0}, nullptr, u, &c};
    if (!obj::is_predefined(c)) obj::retain(c);
    return m;
}

// The most common case: the ring's next message matches and is inline. It goes through no queue.
static Message* match_next(Process& p, Comm& c, Envelope e, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (from.way != obj::Route::shm) return nullptr;
    LaneGuard g(lane_of(p, c, e.tag, Direction::receive));
    wire::shm::Shm::In& in = g.lane.shm.from(from.index);
    const Next n = g.lane.shm.look(in);
    if (!n.here() || !is_wanted(g, c, e, in, n)) return nullptr;
    Unexpected* u = new_unexpected(g, from.peer, n.cell->header(n.word), wire::Cell::bytes_of(n.word));
    if (u == nullptr) return nullptr;
    Message* m = make_message(g, c, u);
    if (m == nullptr) {
        free_unexpected(g, *u);
        return nullptr;
    }
    copy_small(u->small, n.cell->payload, static_cast<size_t>(u->bytes));
    u->ready = 1;
    fill(s, e.rank, n.cell->tag, u->bytes);
    g.lane.shm.consumed(in, n);
    return m;
}

static Err match(Process& p, Comm& c, Envelope e, bool* found, Message** out, Status* s, Round* round) {
    if (Message* m = match_next(p, c, e, s); m != nullptr) {
        *found = true;
        *out = m;
        return Err::ok;
    }
    WEFT_TRY(look(p, c, e, found, s, round));
    if (!*found) return Err::ok;
    if (e.rank == obj::proc_null) {
        *out = obj::detail::object<Message>(&obj::no_proc_message);
        return Err::ok;
    }
    *found = false;  // another thread may have taken it meanwhile
    LaneGuard g(lane_of(p, c, e.tag, Direction::receive));
    Unexpected* u = find_unexpected(g, c.context + e.coll, e.rank, e.tag);
    if (u == nullptr) return Err::ok;
    Message* m = make_message(g, c, u);
    if (m == nullptr) return fail(Err::no_mem, "no memory for a message handle");
    unlink_unexpected(g, *u);
    fill(s, u->header.source, u->header.tag, u->bytes);
    *found = true;
    *out = m;
    return Err::ok;
}

Err improbe(Process& p, Comm& front, Envelope e, bool* found, Message** out, Status* s) {
    if ((*out = match_next(p, front, e, s)) != nullptr) {
        *found = true;
        return Err::ok;
    }
    Comm* c = nullptr;
    WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &c));
    const Probing told(*c, e);
    return match(p, *c, e, found, out, s, progress_once);
}

Err mprobe(Process& p, Comm& front, Envelope e, Message** out, Status* s) {
    if ((*out = match_next(p, front, e, s)) != nullptr) return Err::ok;
    Comm* c = nullptr;
    WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &c));
    const Probing told(*c, e);
    bool found = false;
    Err err = Err::ok;
    progress_until(p, [&] {
        err = match(p, *c, e, &found, out, s, progress_all);
        return found || err != Err::ok;
    }, nullptr, Home{c->lane, true});
    return err;
}

static void free_message(LaneGuard& g, Message& m) {
    if (!obj::is_predefined(*m.comm)) obj::release(*m.comm);
    m.kind = Kind::dead;
    g.lane.requests.give(&m);
}

// Receives a matched message of at most 48 bytes into a dense buffer that is large enough, without a request.
static bool receive_matched(Process& p, const Buffer& b, Message** message, Status* s) {
    Message& m = **message;
    if (m.comm == nullptr || !type::is_dense(*b.type)) return false;
    LaneGuard g(lane_of(p, **message));
    Unexpected& u = *m.unexpected;
    if (!u.ready || u.sync || u.at_sender || u.data != nullptr || u.bytes > type::bytes_of(b)) return false;
    copy_small(anonymous(b.base), u.small, static_cast<size_t>(u.bytes));
    fill(s, u.header.source, u.header.tag, u.bytes);
    free_unexpected(g, u);
    free_message(g, m);
    *message = nullptr;
    return true;
}

Err imrecv(Process& p, Buffer b, Message** message, Request** out) {
    LaneGuard g(lane_of(p, **message));
    Message* m = *message;
    const bool nobody = m->comm == nullptr;
    Comm& c = nobody ? p.self : *m->comm;
    Request* r = make_request(g, c, b, obj::proc_null, obj::any_tag, Request::is_recv);
    if (r == nullptr) {
        obj::blame(&c);
        return fail(Err::no_mem, "no memory for a request");
    }
    *message = nullptr;
    *out = r;
    if (nobody) {
        from_nobody(*r);
        complete(g, *r, 0);
        return Err::ok;
    }
    take_unexpected(g, *r, *m->unexpected);
    free_message(g, *m);
    return Err::ok;
}

Err mrecv(Process& p, Buffer b, Message** message, Status* s) {
    if (receive_matched(p, b, message, s)) return Err::ok;
    const Comm* comm = (*message)->comm;
    Request* r = nullptr;
    WEFT_TRY(imrecv(p, b, message, &r));
    wait(p, *r);
    const Err e = finish(p, *r, s);
    if (e != Err::ok) obj::blame(comm);
    return e;
}

}  // namespace weft::p2p
