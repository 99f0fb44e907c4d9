// The short paths of matched probes: a message that fits its header's cache line goes from the ring to its handle, and
// from there to the user, without a queue or a request. Included by p2p/ only; all take the lane's guard or are under it.
#pragma once
#include <cstring>

#include "obj/message.hpp"
#include "p2p/p2p.hpp"

namespace weft::p2p {

// Takes the next message of `in` into a handle if it is the one wanted.
inline bool match_inline(LaneGuard& g, Comm& c, Envelope e, wire::shm::Shm::In& in, Message** out, Status* s) {
    lane::Lane& l = g.lane;
    const wire::Cell* cell = next_if_wanted(g, c, e, in);
    if (cell == nullptr) return false;
    auto* u = static_cast<Unexpected*>(l.unexpected_pool.take());
    if (u == nullptr) return false;
    auto* m = static_cast<Message*>(l.requests.take());
    if (m == nullptr) {
        l.unexpected_pool.give(u);
        return false;
    }
    const auto bytes = static_cast<uint8_t>(cell->word.load(std::memory_order_relaxed) >> 16);
    // What an unexpected message is once it is off its lists.
    u->header = wire::Header{message, bytes, 0, e.rank, cell->tag, cell->context};
    u->peer = c.routes[e.rank].peer;
    u->sync = u->offered = 0;
    u->ready = 1;
    u->bytes = bytes;
    u->taker = nullptr;
    u->data = nullptr;
    copy_small(u->small, cell->payload, bytes);
    l.shm.consumed(in, in.head.load(std::memory_order_relaxed) + 1);
    *m = Message{{Kind::message, 0}, nullptr, u, &c};
    if (!obj::is_predefined(c)) obj::retain(c);
    if (s != nullptr) {
        s->source = u->header.source;
        s->tag = u->header.tag;
        s->cancelled = 0;
        s->bytes = bytes;
    }
    *out = m;
    return true;
}

// Waits for it at most `polls` looks.
inline bool mprobe_inline(Process& p, Comm& c, Envelope e, uint32_t polls, Message** out, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (from.way != obj::Route::shm) return false;  // MPI_ANY_SOURCE, too, has a chair there
    lane::Lane& l = *p.lane;
    wire::shm::Shm::In& in = l.shm.in[from.peer];
    for (; polls != 0; --polls) {
        if (l.shm.ready(in)) {
            LaneGuard g(l);
            return match_inline(g, c, e, in, out, s);
        }
        if (l.work.load(std::memory_order_relaxed) != 0 || p.hook_count.load(std::memory_order_relaxed) != 0 ||
            l.unexpected_count.load(std::memory_order_relaxed) != 0)
            break;
        os::pause_cpu();
    }
    return false;
}

// Receives a message that is all here into a dense buffer that can hold it.
inline bool mrecv_inline(Process& p, const Buffer& b, Message** message, Status* s) {
    Message* m = *message;
    Unexpected* u = m->unexpected;
    if (u == nullptr || !b.type->is(type::Type::dense)) return false;
    LaneGuard g(*p.lane);
    if (!u->ready || u->offered || u->sync || u->data != nullptr || u->bytes > b.bytes()) return false;
    copy_small(b.base, u->small, static_cast<size_t>(u->bytes));
    if (s != nullptr) {
        s->source = u->header.source;
        s->tag = u->header.tag;
        s->cancelled = 0;
        s->bytes = u->bytes;
    }
    g.lane.unexpected_pool.give(u);
    if (!obj::is_predefined(*m->comm)) obj::release(*m->comm);
    m->kind = Kind::dead;
    g.lane.requests.give(m);
    *message = nullptr;
    return true;
}

}  // namespace weft::p2p
