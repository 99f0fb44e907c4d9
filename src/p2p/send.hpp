// Sending: the short path of an inline message, which fits its header's cache line. Included by p2p.hpp.
// The short path takes the lane's guard for a few stores; it allocates nothing and needs no request.
#pragma once
#include "base/copy.hpp"
#include "p2p/progress.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

// All other sends: full ring, larger, synchronous, noncontiguous, by socket, to self, MPI_PROC_NULL.
Err send_slow(Process&, Comm&, Buffer, Envelope, Mode);
Err isend_slow(Process&, Comm&, Buffer, Envelope, Mode, Request** out);
// The same for a prepared request, which is not freed on failure.
Err start_send(LaneGuard&, Request& r);

// Who sends: a blocking call; a nonblocking one; the queue of a peer, whose first message it is.
enum class Call : uint8_t { blocking, nonblocking, queue };
// Chooses the protocol of a message of `bytes` bytes that the short paths, of an inline message and of one chunk, have left. All other
// thresholds are compared with its size here, once per message: Protocol::queued says that other sends wait for the peer, and the choice
// is made when this one is their first.
Protocol choose(Lane&, const obj::Route& to, const Buffer&, int64_t bytes, bool sync, Call);

// ≤ 45 instructions, no call, one release store. False: nothing happened, take the slow path.
// `bytes` of dense data, by the route `to`, which is that of `e.rank`.
WEFT_INLINE bool send_inline(Process& p, const Comm& c, const obj::Route& to, const void* data, int64_t bytes, Envelope e) {
    if (WEFT_UNLIKELY(bytes > to.inline_max)) return false;
    if (bytes > static_cast<int64_t>(wire::inline_bytes)) __builtin_unreachable();  // what inline_max is at most
    Lane& l = lane_of(p, c, e.tag, Direction::send);
    // Built late, so that few registers are in use at once.
    const auto header = [&] {
        return wire::Header{eager, static_cast<uint8_t>(bytes), 0, c.rank, e.tag, c.context + e.coll};
    };
    lane::LaneTry guard(l);
    if (WEFT_UNLIKELY(!guard)) return false;
    if (WEFT_LIKELY(to.way == obj::Route::shm)) {
        wire::shm::Shm::Out& o = l.shm.to(to.index);
        wire::Cell* cell = l.shm.reserve_known(o);
        if (WEFT_UNLIKELY(cell == nullptr)) return false;
        copy_small(cell->payload, anonymous(data), static_cast<size_t>(bytes));
        l.shm.commit(to.index, o, cell, header());
    } else {
        wire::Cell* cell = l.null->reserve(to.index);
        copy_small(cell->payload, anonymous(data), static_cast<size_t>(bytes));
        l.null->commit(to.index, cell, header());
    }
    return true;
}

WEFT_INLINE bool send_inline(Process& p, const Comm& c, const void* data, int64_t bytes, Envelope e) {
    return send_inline(p, c, c.routes[e.rank], data, bytes, e);
}

WEFT_INLINE bool send_inline(Process& p, const Comm& c, const obj::Route& to, const Buffer& b, Envelope e) {
    return WEFT_LIKELY(type::is_dense(*b.type)) && send_inline(p, c, to, b.base, type::bytes_of(b), e);
}

WEFT_INLINE bool send_inline(Process& p, Comm& c, const Buffer& b, Envelope e) {
    return WEFT_LIKELY(type::is_dense(*b.type)) && send_inline(p, c, b.base, type::bytes_of(b), e);
}

// Makes the header of the next function's messages.
inline void make_header(Comm& c) {
    c.nomatch_header[0] = wire::Cell::pack(wire::Header{eager, 0, 0, c.rank, 0, 0});
    c.nomatch_header[1] = static_cast<uint64_t>(c.context + Request::nomatch) << 32;   // behind the tag, which is 0
}

// A message without source and tag on a fixed communicator, whose header is made: all but its length. The null wire comes first, as
// everything else costs more.
WEFT_INLINE bool send_made(Process& p, const Comm& c, const obj::Route& to, const Buffer& b, int32_t rank) {
    if (WEFT_UNLIKELY(!type::is_dense(*b.type))) return false;
    const int64_t bytes = type::bytes_of(b);
    if (WEFT_UNLIKELY(bytes > to.inline_max)) return false;
    if (WEFT_UNLIKELY(to.way == obj::Route::shm)) return send_inline(p, c, to, b.base, bytes, {rank, 0, Request::nomatch});
    lane::LaneTry guard(*p.lane);
    if (WEFT_UNLIKELY(!guard)) return false;
    copy_small(p.null_wire->cell.payload, anonymous(b.base), static_cast<size_t>(bytes));
    p.null_wire->commit_made(c.nomatch_header, static_cast<uint8_t>(bytes));
    return true;
}

// The same for MPI_Isend: sets `*out` to the shared request that is always complete.
WEFT_INLINE bool isend_inline(Process& p, Comm& c, const Buffer& b, Envelope e, Request** out) {
    if (!send_inline(p, c, b, e)) return false;
    *out = &p.sent_request;
    return true;
}

WEFT_INLINE Err send(Process& p, Comm& c, Buffer b, Envelope e, Mode m) {
    if (m != Mode::synchronous && WEFT_LIKELY(send_inline(p, c, b, e))) return Err::ok;
    return send_slow(p, c, b, e, m);
}

WEFT_INLINE Err isend(Process& p, Comm& c, Buffer b, Envelope e, Mode m, Request** out) {
    if (m != Mode::synchronous && WEFT_LIKELY(isend_inline(p, c, b, e, out))) return Err::ok;
    return isend_slow(p, c, b, e, m, out);
}

}  // namespace weft::p2p
