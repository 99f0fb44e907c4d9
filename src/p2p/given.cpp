#include "p2p/given.hpp"

#include <cstring>

namespace weft::p2p {

namespace {

// Whether a buffer is passed to `to` by its address.
bool passes(Lane& l, const obj::Route& to, const Buffer& b) {
    if (!type::is_dense(*b.type)) return false;
    return to.way == obj::Route::self || (to.way == obj::Route::shm && l.owned.is_shared(b.base) && l.shares_heap(to.peer));
}

void give_self(LaneGuard& g, Request& r) {
    const int64_t bytes = r.count;
    const Given q{reinterpret_cast<uint64_t>(r.buf), bytes, 0};
    const wire::Header h{given, 0, 0, r.comm->rank, r.tag, context_of(r)};
    if (!arrive_given(g, g.lane.self, h, q, [] { return true; })) r.error = static_cast<uint8_t>(Err::no_mem);
    complete(g, r, bytes);
}

// Starts the prepared `r`.
Err start_give(LaneGuard& g, Request& r) {
    Lane& l = g.lane;
    const obj::Route& to = r.comm->routes[r.rank];
    const bool by_address = passes(l, to, buffer_of(r));
    if (WEFT_UNLIKELY(l.owned.guards())) l.owned.forbid_given(r.buf, r.rank, r.tag, by_address && to.way != obj::Route::self);
    if (!by_address) {
        r.flags |= Request::frees;
        return start_send(g, r);
    }
    r.protocol = Protocol::given;
    if (to.way == obj::Route::self) give_self(g, r);
    else if (!l.peers[to.peer].pending.empty() || !push_given(g, to.peer, r)) enqueue(g, to.peer, r);
    return Err::ok;
}

Err check_buffer(const Lane& l, void* data) {
    if (l.owned.is_owned(data)) return Err::ok;
    return fail(Err::buffer, "%p is no buffer that OPI_Alloc or a take has returned, or it was freed", data);
}

// Bytes from the start of a buffer to the end of the data of `b`.
int64_t room_for(const Buffer& b) {
    const type::Type& t = *b.type;
    return b.count == 0 ? 0 : (b.count - 1) * t.extent + t.true_lb + t.true_extent;
}

// In a taken buffer all data lie behind its start.
Err check_room(const Buffer& b) {
    const type::Type& t = *b.type;
    if (type::is_dense(t) || b.count == 0 || (t.true_lb >= 0 && (t.extent >= 0 || b.count == 1))) return Err::ok;
    return fail(Err::type, "elements of this type lie in front of the buffer, and a taken buffer has nothing there");
}

// Makes `data` the buffer of a take.
void use_buffer(Request& r, void* data) {
    set_pointer(r.buf, data);
    r.buf = data;
    r.protocol = Protocol::given;
}

constexpr int take_flags = Request::is_recv | Request::takes;

}  // namespace

bool push_given(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    wire::Cell* const cell = l.reserve(peer);
    if (cell == nullptr) return false;
    const bool ack = !l.within_credit(peer);
    const int64_t bytes = r.count;
    wire::Header h = put(cell, given, Given{reinterpret_cast<uint64_t>(r.buf), bytes, ack ? identity_of(l.send_ids, peer, &r) : 0});
    h.source = r.comm->rank;
    h.tag = r.tag;
    h.context = context_of(r);
    l.commit(peer, cell, h);
    if (ack) ++state_of(g, peer).awaiting;
    else complete(g, r, bytes);
    return true;
}

bool keep_given(LaneGuard& g, int peer, const wire::Header& h, const Given& q) {
    Unexpected* u = add_unexpected(g, peer, h, q.bytes, true);
    if (u == nullptr) return false;
    u->given = 1;
    memcpy(u->small, &q, sizeof q);
    return true;
}

void hand_over(LaneGuard& g, Request& r, int peer, const wire::Header& h, const Given& q) {
    void* const data = reinterpret_cast<void*>(q.address);
    heap::Owned& owned = g.lane.owned;
    owned.permit(data);
    const bool by_address = r.wants_buffer() && (r.flags & Request::flat) != 0;
    if (by_address) use_buffer(r, data);
    const int64_t n = set_matched(g, r, h, q.bytes);
    if (!by_address) {
        store(r, 0, static_cast<const char*>(data), n);
        (void)owned.release(data);
    }
    if (q.send != 0) send_ssend_ack(g, peer, q.send);
    complete(g, r, n);
}

void make_room(LaneGuard& g, Request& r) {
    const int64_t bytes = room_for(buffer_of(r));
    void* const data = g.lane.owned.allocate(static_cast<size_t>(bytes));
    if (data == nullptr) out_of_memory(bytes, g.lane.self);
    use_buffer(r, data);
}

Err give_slow(Process& p, Comm& front, Buffer b, Envelope e) {
    Comm& c = sender(front, e.rank, e.tag, e.coll);
    Request r{};
    Lane& l = lane_of(p, c, e.tag, Direction::send);
    {
        LaneGuard g(l);
        WEFT_TRY(check_buffer(g.lane, b.base));
        prepare(r, c, b, e.rank, e.tag, 0);
        WEFT_TRY(start_give(g, r));
    }
    r.lane = l.number();
    wait(p, r);
    return r.error != 0 ? why_failed(r, b.bytes()) : Err::ok;
}

Err igive_slow(Process& p, Comm& front, Buffer b, Envelope e, Request** out) {
    Comm& c = sender(front, e.rank, e.tag, e.coll);
    LaneGuard g(lane_of(p, c, e.tag, Direction::send));
    WEFT_TRY(check_buffer(g.lane, b.base));
    Request* r = make_request(g, c, b, e.rank, e.tag, 0);
    if (r == nullptr) return fail(Err::no_mem, "no memory for a request");
    if (const Err err = start_give(g, *r); err != Err::ok) {
        if (r->flags & Request::counted) type::release(*r->type);
        free_request_block(g, *r);
        return err;
    }
    *out = r;
    return Err::ok;
}

Err take_slow(Process& p, Comm& front, Buffer b, Envelope e, Status* s) {
    Comm* branch = nullptr;
    WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &branch));
    Comm& c = *branch;
    WEFT_TRY(check_room(b));
    if (e.rank == obj::proc_null) set_pointer(b.base, nullptr);
    const obj::Route& from = c.routes[e.rank];
    Request r{};
    prepare(r, c, b, e.rank, e.tag, take_flags);
    Lane& l = lane_of(p, c, e.tag, Direction::receive);
    bool sole;
    {
        LaneGuard g(l);
        start_receive(g, r);
        sole = l.posted_count <= 1;
    }
    if (from.way == obj::Route::shm) poll_for(p, l, r, from.index, false, sole);
    r.lane = l.number();
    wait(p, r);
    fill(s, r.rank, r.tag, r.count);
    return r.error != 0 ? why_failed(r, b.bytes()) : Err::ok;
}

Err itake(Process& p, Comm& front, Buffer b, Envelope e, Request** out) {
    Comm* branch = nullptr;
    WEFT_TRY(receiver(front, e.rank, e.tag, e.coll, &branch));
    Comm& c = *branch;
    WEFT_TRY(check_room(b));
    if (e.rank == obj::proc_null) set_pointer(b.base, nullptr);
    LaneGuard g(lane_of(p, c, e.tag, Direction::receive));
    Request* r = make_request(g, c, b, e.rank, e.tag, take_flags);
    if (r == nullptr) return fail(Err::no_mem, "no memory for a request");
    start_receive(g, *r);
    *out = r;
    return Err::ok;
}

}  // namespace weft::p2p
