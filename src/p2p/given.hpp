// Ownership passing. A give is a message that carries a buffer's address instead of its bytes; a take is a receive that gets its buffer
// with its message. Gives, takes and ordinary messages share one matching space:
//
//   give, take        the address is passed, if both ranks have the heap at the same address and both types are dense; else as below
//   give, receive     the receiver copies the data, and frees the buffer to its pool
//   send, take        when the message is matched, the receiver allocates a buffer with room for all that it asked for
//   give elsewhere    an ordinary send, whose buffer is freed when it completes
//
// Included by api/ and p2p/. As elsewhere, those that take a LaneGuard are under it, and the others take it themselves.
#pragma once
#include "p2p/p2p.hpp"

namespace weft::p2p {

// The user's pointer at `ptr`, whatever its type.
WEFT_INLINE void set_pointer(void* ptr, const void* value) { memcpy(ptr, &value, sizeof value); }
WEFT_INLINE void* get_pointer(const void* ptr) {
    void* value;
    memcpy(&value, ptr, sizeof value);
    return value;
}

// All gives but those of the short path. `b` is the buffer itself. On failure it is still the caller's.
Err give_slow(Process&, Comm&, Buffer b, Envelope);
Err igive_slow(Process&, Comm&, Buffer b, Envelope, Request** out);
// Takes: `b` has the address of the user's pointer in place of a buffer.
Err take_slow(Process&, Comm&, Buffer b, Envelope, Status*);
Err itake(Process&, Comm&, Buffer b, Envelope, Request** out);

// Sends the address of the buffer of `r`. False when the wire is full. Over the peer's credit `r` completes when it is matched.
bool push_given(LaneGuard&, int peer, Request& r);
// A buffer has come from `peer`, which may be this rank itself: hands it to the posted receive, or keeps it as an unexpected message.
// `may_keep` is asked only in the latter case. False: it was not kept.
template <class MayKeep>
bool arrive_given(LaneGuard&, int peer, const wire::Header&, const Given&, MayKeep&& may_keep);
// Hands a buffer to the receive it matched.
void hand_over(LaneGuard&, Request& r, int peer, const wire::Header&, const Given&);
// The matched take `r` gets a buffer, as its message brings none. Ends the job when out of memory.
WEFT_COLD void make_room(LaneGuard&, Request& r);

// Passes a buffer's address through the ring, without a request. ≤ 60 instructions, no call. False: nothing happened, take the slow path.
WEFT_INLINE bool give_inline(Process& p, const Comm& c, const Buffer& b, Envelope e) {
    const obj::Route& to = c.routes[e.rank];
    if (WEFT_UNLIKELY(to.way != obj::Route::shm || !type::is_dense(*b.type))) return false;
    Lane& l = lane_of(p, c, e.tag, Direction::send);
    lane::LaneTry guard(l);
    if (WEFT_UNLIKELY(!guard || !l.owned.is_buffer(b.base) || !l.owned.is_shared(b.base) || l.owned.guards() || !l.shares_heap(to.peer)))
        return false;
    wire::shm::Shm::Out& o = l.shm.to(to.index);
    wire::Cell* const cell = l.shm.reserve_known(o);
    if (WEFT_UNLIKELY(cell == nullptr)) return false;
    wire::Header h = put(cell, given, Given{reinterpret_cast<uint64_t>(b.base), type::bytes_of(b), 0});
    h.source = c.rank;
    h.tag = e.tag;
    h.context = c.context;
    l.shm.commit(to.index, o, cell, h);
    return true;
}

// Waits briefly for a buffer that is passed by its address. False: nothing was received, take the slow path.
WEFT_INLINE bool take_inline(Process& p, Comm& c, const Buffer& b, Envelope e, Status* s) {
    const obj::Route& from = c.routes[e.rank];
    if (WEFT_UNLIKELY(!type::is_dense(*b.type) || from.way != obj::Route::shm)) return false;
    Lane& l = lane_of(p, c, e.tag, Direction::receive);
    wire::shm::Shm::In& in = l.shm.from(from.index);
    Next n;
    if (!comes_within(p, l, in, l.limits.spin_polls, &n, [&] { return l.unexpected_count.load(std::memory_order_relaxed) != 0; })) return false;
    LaneGuard g(l);
    if (WEFT_UNLIKELY(!is_wanted(g, c, e, in, n, given))) return false;
    const auto q = read<Given>(n.cell->payload);
    if (WEFT_UNLIKELY(q.bytes > type::bytes_of(b) || q.send != 0 || l.owned.guards())) return false;
    set_pointer(b.base, reinterpret_cast<void*>(q.address));
    fill(s, e.rank, n.cell->tag, q.bytes);
    l.shm.consumed(in, n);
    return true;
}

// A buffer of this rank's pool, or a new one; null when out of memory. False: `data` is no buffer that this rank owns.
WEFT_INLINE void* allocate_buffer(Process& p, size_t bytes) {
    LaneGuard g(*p.lane);
    return g.lane.owned.allocate(bytes);
}
WEFT_INLINE bool release_buffer(Process& p, void* data) {
    LaneGuard g(*p.lane);
    return g.lane.owned.release(data);
}

// Keeps a buffer that nobody has asked for yet. False when out of memory.
bool keep_given(LaneGuard&, int peer, const wire::Header&, const Given&);

template <class MayKeep>
bool arrive_given(LaneGuard& g, int peer, const wire::Header& h, const Given& q, MayKeep&& may_keep) {
    if (Request* r = match_posted(g, h); r != nullptr) {
        hand_over(g, *r, peer, h, q);
        return true;
    }
    return may_keep() && keep_given(g, peer, h, q);
}

}  // namespace weft::p2p
