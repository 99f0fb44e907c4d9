// The short paths of matched probes: a message that fits its header's cache line stays in its ring until it is received,
// without a queue or a request. Included by p2p.hpp; all take the lane's guard or are under it.
#pragma once
#include "obj/message.hpp"
#include "p2p/recv.hpp"

namespace weft::p2p {

// Makes a handle of the next message of `in` if it is the one wanted; its line is kept where it is.
WEFT_INLINE bool match_inline(LaneGuard& g, Comm& c, Envelope e, wire::shm::Shm::In& in, const Next& n, Message** out,
                              Status* s) {
    lane::Lane& l = g.lane;
    auto* m = reinterpret_cast<Message*>(l.requests.free);
    if (WEFT_UNLIKELY(in.kept != nullptr || m == nullptr)) return false;
    if (WEFT_UNLIKELY(!is_wanted(g, c, e, in, n))) return false;
    l.requests.free = l.requests.free->next;
    m->kind = Kind::message;
    m->id = 0;
    m->comm = &c;
    m->kept = &in.kept;
    if (WEFT_UNLIKELY(!obj::is_predefined(c))) obj::retain(c);
    fill(s, e.rank, n.cell->tag, wire::Cell::bytes_of(n.word));
    l.shm.keep(in, n);
    *out = m;
    return true;
}

// Looks for it at most `polls` times. False: nothing happened, go the slow way.
WEFT_INLINE bool match_within(Process& p, Comm& c, Envelope e, uint32_t polls, Message** out, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (from.way != obj::Route::shm) return false;  // MPI_ANY_SOURCE, too, has a chair there
    lane::Lane& l = *p.lane;
    wire::shm::Shm::In& in = l.shm.in[from.peer];
    Next n;
    if (!comes_within(p, in, polls, &n, [&] { return l.unexpected_count.load(std::memory_order_relaxed) != 0; })) return false;
    LaneGuard g(l);
    return match_inline(g, c, e, in, n, out, s);
}

WEFT_INLINE bool mprobe_inline(Process& p, Comm& c, Envelope e, Message** out, Status* s) {
    return match_within(p, c, e, p.lane->limits.spin_polls, out, s);
}

// Receives a message whose line is kept into a dense buffer that can hold it. To let go of a communicator takes a call.
WEFT_INLINE bool receive_kept(Process& p, const Buffer& b, Message** message, Status* s, bool may_call) {
    Message& m = **message;
    if (WEFT_UNLIKELY(m.kept == nullptr || !type::is_dense(*b.type))) return false;
    if (!may_call && WEFT_UNLIKELY(!obj::is_predefined(*m.comm))) return false;
    lane::LaneTry guard(*p.lane);
    if (WEFT_UNLIKELY(!guard)) return false;
    const wire::Cell* cell = *m.kept;
    const uint64_t word = cell->word.load(std::memory_order_relaxed);
    const int64_t bytes = wire::Cell::bytes_of(word);
    if (WEFT_UNLIKELY(bytes > type::bytes_of(b))) return false;
    copy_small(anonymous(b.base), cell->payload, static_cast<size_t>(bytes));
    fill(s, wire::Cell::source_of(word), cell->tag, bytes);
    *m.kept = nullptr;
    if (may_call && !obj::is_predefined(*m.comm)) obj::release(*m.comm);
    m.kind = Kind::dead;
    guard.lane.requests.give(&m);
    *message = nullptr;
    return true;
}
// ≤ 40 instructions, no call.
WEFT_INLINE bool mrecv_inline(Process& p, const Buffer& b, Message** message, Status* s) {
    return receive_kept(p, b, message, s, false);
}

}  // namespace weft::p2p
