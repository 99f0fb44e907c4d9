// How requests of sends and receives are made and freed. Included by p2p/. Those that take a LaneGuard are under it; the others touch a
// request that nobody else knows yet, or that is complete.
#pragma once
#include "p2p/match.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

// Makes `b`, which is dense, the buffer of `r`, as a count of bytes without a reference on its type. The caller sets Request::flat.
WEFT_INLINE void set_bytes(Request& r, const type::Buffer& b) {
    r.buf = b.base;
    r.count = type::bytes_of(b);
    r.type = &type::byte_type();
}
// Makes any `b` the buffer of `r`; returns the flag to set.
inline uint16_t set_buffer(Request& r, const type::Buffer& b) {
    if (type::is_dense(*b.type)) {
        set_bytes(r, b);
        return Request::flat;
    }
    r.buf = b.base;
    r.count = b.count;
    r.type = b.type;
    return 0;
}
// Fills in all of a send or receive that is about to start but its id. No references are taken.
inline void prepare(Request& r, obj::Comm& c, const type::Buffer& b, int32_t rank, int32_t tag, int flags) {
    r.kind = Kind::request;
    r.state.store(Request::pending, std::memory_order_relaxed);
    r.protocol = Protocol::queued;
    r.error = 0;
    r.comm = &c;
    r.flags = static_cast<uint16_t>(flags | set_buffer(r, b));
    r.rank = rank;
    r.tag = tag;
}
// Reports why the complete `r` failed, and returns its error. `bytes`: the size of its buffer.
Err why_failed(const Request& r, int64_t bytes);
// A request from the lane's pool, with its references taken; null when out of memory.
Request* make_request(LaneGuard&, obj::Comm&, type::Buffer, int32_t rank, int32_t tag, uint16_t flags);
void free_request_block(LaneGuard&, Request& r);
// The same for a persistent send or receive (persistent.hpp).
void free_persistent(LaneGuard&, Request& r);

}  // namespace weft::p2p
