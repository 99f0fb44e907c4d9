#include "p2p/deliver.hpp"

#include <cstdlib>
#include <cstring>

#include "p2p/given.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

using type::Buffer;
using wire::Header;

int64_t set_matched(LaneGuard& g, Request& r, const Header& h, int64_t bytes) {
    if (WEFT_UNLIKELY(r.wants_buffer())) make_room(g, r);
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
    type::unpack(b, at, bytes, from);
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
    if (WEFT_UNLIKELY((r.flags & Request::frees) != 0)) (void)g.lane.owned.release(r.buf);
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

// Copies a message from this rank to itself, and completes both requests.
static void take_own(LaneGuard& g, Request& r, const Header& h, Request& send, int64_t bytes) {
    const int64_t n = set_matched(g, r, h, bytes);
    type::copy(buffer_of(send), buffer_of(r), n);
    complete(g, send, bytes);
    complete(g, r, n);
}

// False when out of memory.
static bool keep_own(LaneGuard& g, Request& r, const Header& h, const Buffer& b, int64_t bytes) {
    const bool copy = r.protocol == Protocol::self;
    Unexpected* u = add_unexpected(g, g.lane.self, h, bytes, !copy);
    if (u == nullptr) return false;
    u->send = reinterpret_cast<uint64_t>(&r);
    if (!copy) return true;
    if (bytes > wire::inline_bytes && (u->data = static_cast<char*>(malloc(static_cast<size_t>(bytes)))) == nullptr) {
        unlink_unexpected(g, *u);
        free_unexpected(g, *u);
        return false;
    }
    type::pack(b, 0, bytes, u->data != nullptr ? u->data : u->small);
    u->ready = 1;
    complete(g, r, bytes);
    return true;
}

void send_self(LaneGuard& g, Request& r) {
    const Buffer b = buffer_of(r);
    const int64_t bytes = b.bytes();
    const Header h{eager, 0, 0, r.comm->rank, r.tag, context_of(r)};
    if (Request* receive = match_posted(g, h); receive != nullptr) {
        take_own(g, *receive, h, r, bytes);
    } else if (!keep_own(g, r, h, b, bytes)) {
        r.error = static_cast<uint8_t>(Err::no_mem);
        complete(g, r, bytes);
    }
}

void take_unexpected(LaneGuard& g, Request& r, Unexpected& u) {
    if (WEFT_UNLIKELY(u.given)) {
        hand_over(g, r, u.peer, u.header, read<Given>(u.small));
        free_unexpected(g, u);
        return;
    }
    if (u.at_sender) {
        if (u.peer == g.lane.self) {
            take_own(g, r, u.header, *reinterpret_cast<Request*>(u.send), u.bytes);
        } else {
            accept_rts(g, r, u.peer, Rts{u.bytes, u.send, u.transfer, 0}, set_matched(g, r, u.header, u.bytes));
        }
        free_unexpected(g, u);
        return;
    }
    const int64_t n = set_matched(g, r, u.header, u.bytes);
    if (!u.ready) {
        u.receive = &r;
        return;
    }
    if (u.sync) send_ssend_ack(g, u.peer, u.send);
    store(r, 0, u.bytes_at(), n);
    complete(g, r, n);
    free_unexpected(g, u);
}

}  // namespace weft::p2p
