// Persistent sends and receives. Each start posts or sends the same request, the one that the user holds. Included by p2p/.
// Like any request it belongs to its lane: between start and completion it is touched under the guard.
#pragma once
#include "p2p/p2p.hpp"

namespace weft::p2p {

// The arguments are kept behind the request, because completion overwrites the request's own fields.
struct Persistent : Request {
    enum How : uint8_t { standard, synchronous, buffered, receive };
    Buffer what;          // holds a reference on its type
    Envelope where;
    uint16_t start_flags;
    How how;
};
static_assert(sizeof(Persistent) <= 128, "a block of Lane::persistent_pool");

// Starts a send that can be sent inline; no call. False: nothing happened.
WEFT_INLINE bool start_inline(Process& p, Request** handle) {
    Request& r = **handle;
    constexpr uint16_t kinds = Request::persistent | Request::flat | Request::special | Request::is_recv | Request::sync;
    if (WEFT_UNLIKELY((r.flags & kinds) != (Request::persistent | Request::flat))) return false;
    auto& q = static_cast<Persistent&>(r);
    if (WEFT_UNLIKELY(q.how != Persistent::standard || q.state.load(std::memory_order_relaxed) != Request::inactive))
        return false;
    if (WEFT_UNLIKELY(!send_inline(p, *q.comm, q.what.base, q.what.count, q.where))) return false;
    q.state.store(Request::complete, std::memory_order_relaxed);  // read by its owner alone
    return true;
}
// Starts an inactive one; allocates nothing.
Err start_persistent(Process&, Persistent&);

}  // namespace weft::p2p
