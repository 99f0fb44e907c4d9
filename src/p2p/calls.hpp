// The two-sided and request calls of the standard beyond plain send and receive. Included by the bindings; no lock is held by
// callers. A single request is passed as its object, and is set to null when it is freed; arrays are the user's, of raw handles.
#pragma once
#include "p2p/flags.hpp"
#include "p2p/p2p.hpp"
#include "p2p/persistent.hpp"

namespace weft::p2p {

// The status of a complete plain receive.
WEFT_INLINE void receive_status(const Request& r, Status* s) {
    fill(s, r.rank, r.tag, r.count);
}

// finish(); sets `*r` to null, except for a persistent request, which stays.
WEFT_INLINE Err take(Process& p, Request** r, Status* s) {
    const uint16_t flags = (*r)->flags;
    const Comm* comm = (*r)->comm;
    const Err e = finish(p, **r, s);
    if (WEFT_UNLIKELY(e != Err::ok)) obj::blame(comm);
    if (!(flags & Request::persistent)) *r = nullptr;
    return e;
}

// The status of a send; `s` may be null.
WEFT_INLINE void send_status(Status* s) {
    fill(s, obj::any_source, obj::any_tag, 0);
}

// True if the request is the shared one of sends that completed at once. ≤ 20 instructions.
WEFT_INLINE bool wait_inline(Process& p, Request** r, Status* s) {
    if (WEFT_UNLIKELY(*r != &p.sent_request)) return false;
    *r = nullptr;
    send_status(s);
    return true;
}

// Makes a complete persistent request inactive, if it has no error and no flags but those and `may_have`.
WEFT_INLINE bool leave_at_once(Request& r, uint32_t may_have) {
    if ((r.nature() & ~(Request::protocol_bits | may_have)) != Request::persistent) return false;
    r.state.store(Request::inactive, std::memory_order_relaxed);
    return true;
}

WEFT_INLINE Err wait_request(Process& p, Request** r, Status* s) {
    Request& q = **r;
    if (!q.done()) {
        const bool stays = q.flags & Request::persistent;
        if (WEFT_LIKELY(wait_posted(p, q, s))) {
            if (!stays) *r = nullptr;
            return Err::ok;
        }
        if (is_special(q) && q.ops->wait != nullptr) {
            q.ops->wait(q);
            if (WEFT_LIKELY(leave_at_once(q, Request::special | Request::holds_comm))) {
                send_status(s);
                return Err::ok;
            }
        } else {
            wait(p, q);
        }
    } else if (q.state.load(std::memory_order_relaxed) == Request::complete && leave_at_once(q, Request::flat)) {
        send_status(s);   // a persistent send that completed at once
        return Err::ok;
    }
    return take(p, r, s);
}

Err test_request(Process&, Request** r, bool* flag, Status*);
Err wait_all(Process&, int64_t n, Request** handles, Status* statuses);
Err test_all(Process&, int64_t n, Request** handles, bool* flag, Status* statuses);
Err wait_any(Process&, int64_t n, Request** handles, int* index, Status*);
Err test_any(Process&, int64_t n, Request** handles, int* index, bool* flag, Status*);
Err wait_some(Process&, int64_t n, Request** handles, int* count, int* indices, Status* statuses);
Err test_some(Process&, int64_t n, Request** handles, int* count, int* indices, Status* statuses);
Err request_free(Process&, Request** r);
Err request_get_status(Process&, Request&, bool* flag, Status*);
Err request_get_status_any(Process&, int64_t n, Request* const* handles, int* index, bool* flag, Status*);
Err request_get_status_all(Process&, int64_t n, Request* const* handles, bool* flag, Status* statuses);
Err request_get_status_some(Process&, int64_t n, Request* const* handles, int* count, int* indices, Status* statuses);
Err cancel(Process&, Request** r);
WEFT_COLD Err not_startable(const Request&);
WEFT_INLINE Err start(Process& p, Request** handle) {
    Request& r = **handle;
    if (WEFT_UNLIKELY(!(r.flags & Request::persistent) || r.state.load(std::memory_order_relaxed) != Request::inactive)) return not_startable(r);
    return r.flags & Request::special ? r.ops->start(r) : start_persistent(p, static_cast<Persistent&>(r));
}
Err start_all(Process&, int64_t n, Request** handles);

Err sendrecv(Process&, Comm&, Buffer send, Envelope to, Buffer recv, Envelope from, Status*);
Err sendrecv_replace(Process&, Comm&, Buffer, Envelope to, Envelope from, Status*);

}  // namespace weft::p2p
