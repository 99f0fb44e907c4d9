#include "p2p/eager.hpp"

#include <cstring>

#include "base/copy.hpp"
#include "p2p/progress.hpp"

namespace weft::p2p {

using type::Buffer;
using wire::Cell;
using wire::Header;

namespace {

// Bytes per fragment, in whole pages: a quarter of the message if that is below 16 KiB, else an eighth,
// but 16 to 32 KiB, so that both sides copy at the same time; at most a chunk. At least WEFT_FRAGMENT: smaller
// fragments cost more in headers than they gain.
int64_t fragment_of(const Lane& l, int peer, int64_t bytes) {
    const int64_t quarter = (bytes / 4 + 4095) & ~int64_t{4095}, eighth = (bytes / 8 + 4095) & ~int64_t{4095};
    const int64_t n = quarter < 16 * 1024 ? quarter : eighth < 16 * 1024 ? 16 * 1024 : eighth < 32 * 1024 ? eighth : 32 * 1024;
    const int64_t chosen = n > l.limits.fragment ? n : l.limits.fragment, largest = l.largest_chunk(peer);
    return chosen < largest ? chosen : largest;
}

// Sends one fragment of `n` bytes, from `sent` on, of a message of `bytes`. `ack`: the request that waits for an SSEND_ACK, or null.
bool push_fragment(LaneGuard& g, int peer, const Buffer& b, int64_t bytes, int64_t sent, int64_t n, Header h, Request* ack) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    wire::BulkRef ref;
    char* to = l.reserve_bulk(peer, static_cast<size_t>(n), &ref);
    if (to == nullptr) {
        l.discard(peer, c);
        return false;
    }
    type::pack(b, sent, n, to);
    l.written(peer, to, static_cast<size_t>(n));
    h.flags |= wire::has_bulk;
    if (sent == 0) {
        h.kind = eager_first;
        h.bytes = sizeof(EagerFirst);
        write(c, EagerFirst{ref, bytes, ack != nullptr ? identity_of(l.send_ids, peer, ack) : 0});
    } else {
        h.kind = eager_next;
        h.bytes = sizeof ref;
        write(c, ref);
    }
    ++l.counters.other_cells;
    l.commit(peer, c, h);
    return true;
}

// Sends what is left after `sent`, which says where to continue when the wire is full.
bool push_fragments(LaneGuard& g, int peer, const Buffer& b, int64_t bytes, const Header& h, Request* ack, int64_t fragment, int64_t& sent) {
    do {
        const int64_t n = bytes - sent < fragment ? bytes - sent : fragment;
        if (!push_fragment(g, peer, b, bytes, sent, n, h, ack)) return false;
        sent += n;
    } while (sent < bytes);
    sent = 0;
    ++g.lane.counters.sent_eager;
    return true;
}

}  // namespace

bool push_inline(LaneGuard& g, int peer, const Buffer& b, int64_t bytes, Header h, Request* ack) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    const int skip = ack != nullptr ? ack_bytes : 0;
    if (ack != nullptr) {
        const uint64_t id = identity_of(l.send_ids, peer, ack);
        memcpy(c->payload, &id, sizeof id);
    }
    if (b.dense()) copy_small(c->payload + skip, b.data(), static_cast<size_t>(bytes));
    else type::pack(b, 0, bytes, c->payload + skip);
    h.bytes = static_cast<uint8_t>(bytes + skip);
    l.commit(peer, c, h);
    return true;
}

bool push_whole(LaneGuard& g, int peer, const Buffer& b, int64_t bytes, const Header& h) {
    Lane& l = g.lane;
    const int64_t fragment = fragment_of(l, peer, bytes);
    const auto cells = static_cast<uint32_t>((bytes + fragment - 1) / fragment);
    if (cells > 1 && !l.has_room(peer, cells, static_cast<size_t>(fragment))) return false;
    int64_t sent = 0;
    const bool all = push_fragments(g, peer, b, bytes, h, nullptr, fragment, sent);
    if (sent != 0) __builtin_trap();   // has_room() promised the rest
    return all;
}

bool push_eager(LaneGuard& g, int peer, Request& r) {
    lane::PeerState& to = state_of(g, peer);
    const Buffer b = buffer_of(r);
    const int64_t bytes = b.bytes();
    const bool is_inline = r.protocol == Protocol::inlined || r.protocol == Protocol::inlined_ack;
    Request* const ack = r.protocol >= Protocol::inlined_ack ? &r : nullptr;
    const Header h{eager, 0, static_cast<uint8_t>(ack != nullptr ? wants_ack : 0), r.comm->rank, r.tag, context_of(r)};
    if (!(is_inline ? push_inline(g, peer, b, bytes, h, ack)
                    : push_fragments(g, peer, b, bytes, h, ack, fragment_of(g.lane, peer, bytes), to.sent))) return false;
    if (ack != nullptr) ++to.awaiting;
    else complete(g, r, bytes);
    return true;
}

}  // namespace weft::p2p
