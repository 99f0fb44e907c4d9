#include "p2p/deliver.hpp"

#include <cstring>

#include "p2p/progress.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

using type::Buffer;
using wire::Header;

int64_t settle(Request& r, const Header& h, int64_t bytes) {
    r.rank = h.source;
    r.tag = h.tag;
    const int64_t room = buffer_of(r).bytes();
    if (bytes <= room) return bytes;
    r.error = static_cast<uint8_t>(Err::truncate);
    return room;
}

void store(Request& r, int64_t at, const char* from, int64_t bytes) {
    const Buffer b = buffer_of(r);
    const int64_t room = b.bytes();
    if (at >= room) return;
    if (bytes > room - at) bytes = room - at;
    if (b.dense()) memcpy(b.data() + at, from, static_cast<size_t>(bytes));
    else type::unpack(b, at, bytes, from);
}

void store_chunk(Lane& l, Request& r, int64_t at, const char* chunk, uint32_t bytes, bool past_caches) {
    const Buffer b = buffer_of(r);
    if (!b.dense() || at + bytes > b.bytes()) {
        store(r, at, chunk, bytes);
        l.shm.claim_lines(chunk, bytes);
    } else if (past_caches) {
        l.shm.claim.copy_past_caches(b.data() + at, chunk, bytes);
    } else {
        l.shm.copy_out(b.data() + at, chunk, bytes);
    }
}

int64_t received(const Request& r, int64_t bytes) {
    const int64_t room = buffer_of(r).bytes();
    return bytes < room ? bytes : room;
}

void complete(LaneGuard& g, Request& r, int64_t bytes) {
    const type::Type* t = r.type;
    r.count = bytes;
    const bool counted = (r.flags & Request::counted) != 0;
    if (r.flags & Request::orphan) {
        if (r.flags & Request::persistent) free_persistent(g, r);
        else free_request_block(g, r);
    } else {
        // Release: pairs with Request::done(). The owner may free it from here on.
        r.state.store(Request::complete, std::memory_order_release);
        lane::wake_sleepers(g.lane);
    }
    if (counted) type::release(*t);
}

void take_own(LaneGuard& g, Request& r, const Header& h, Request& send, int64_t bytes) {
    const int64_t n = settle(r, h, bytes);
    type::copy(buffer_of(send), buffer_of(r), n);
    complete(g, send, bytes);
    complete(g, r, n);
}

void take_unexpected(LaneGuard& g, Request& r, Unexpected& u) {
    if (u.offered) {
        if (u.peer == g.lane.self) {
            take_own(g, r, u.header, *reinterpret_cast<Request*>(u.send), u.bytes);
        } else {
            settle(r, u.header, u.bytes);
            accept_rts(g, r, u.peer, Rts{u.bytes, u.send, u.transfer, 0});
        }
        free_unexpected(g, u);
        return;
    }
    const int64_t n = settle(r, u.header, u.bytes);
    if (!u.ready) {
        u.taker = &r;
        return;
    }
    if (u.sync) send_ssend_ack(g, u.peer, u.send);
    store(r, 0, u.bytes_at(), n);
    complete(g, r, n);
    free_unexpected(g, u);
}

}  // namespace weft::p2p
