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

// Sends one fragment of `n` bytes, from `sent` on. `ack` as below.
bool push_fragment(LaneGuard& g, int peer, const Buffer& b, int64_t sent, int64_t n, Header h, Request* ack) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    First f;
    char* to = l.reserve_bulk(peer, static_cast<size_t>(n), &f.ref);
    if (to == nullptr) {
        l.discard(peer, c);
        return false;
    }
    if (b.dense()) memcpy(to, b.data() + sent, static_cast<size_t>(n));
    else type::pack(b, sent, n, to);
    l.written(peer, to, static_cast<size_t>(n));
    h.flags |= wire::has_bulk;
    if (sent == 0) {
        f.bytes = b.bytes();
        f.send = ack != nullptr ? identity_of(l.send_ids, peer, ack) : 0;
        h.kind = eager_first;
        h.bytes = sizeof f;
        memcpy(c->payload, &f, sizeof f);
    } else {
        h.kind = eager_next;
        h.bytes = sizeof f.ref;
        memcpy(c->payload, &f.ref, sizeof f.ref);
    }
    l.commit(peer, c, h);
    return true;
}

}  // namespace

bool push_inline(LaneGuard& g, int peer, const Buffer& b, Header h, Request* ack) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    const int64_t bytes = b.bytes();
    const int skip = ack != nullptr ? 8 : 0;
    if (ack != nullptr) {
        const uint64_t id = identity_of(l.send_ids, peer, ack);
        memcpy(c->payload, &id, 8);
    }
    if (b.dense()) copy_small(c->payload + skip, b.data(), static_cast<size_t>(bytes));
    else type::pack(b, 0, bytes, c->payload + skip);
    h.bytes = static_cast<uint8_t>(bytes + skip);
    ++l.counters.sent_inline;
    l.commit(peer, c, h);
    return true;
}

bool push_fragments(LaneGuard& g, int peer, const Buffer& b, const Header& h, Request* ack, int64_t& sent) {
    const int64_t bytes = b.bytes(), fragment = fragment_of(g.lane, peer, bytes);
    do {
        const int64_t n = bytes - sent < fragment ? bytes - sent : fragment;
        if (!push_fragment(g, peer, b, sent, n, h, ack)) return false;
        sent += n;
    } while (sent < bytes);
    sent = 0;
    ++g.lane.counters.sent_eager;
    return true;
}

bool push_whole(LaneGuard& g, int peer, const obj::Comm& c, const Buffer& b, int32_t tag, uint32_t context) {
    Lane& l = g.lane;
    const int64_t bytes = b.bytes();
    const bool is_inline = bytes <= l.limits.inline_max;
    if ((!is_inline && !is_eager(l, peer, b, bytes)) || !l.within_credit(peer)) return false;
    const Header h{eager, 0, 0, c.rank, tag, context};
    if (is_inline) return push_inline(g, peer, b, h, nullptr);
    const int64_t fragment = fragment_of(l, peer, bytes);
    const auto cells = static_cast<uint32_t>((bytes + fragment - 1) / fragment);
    if (cells > 1 && !l.has_room(peer, cells, static_cast<size_t>(fragment))) return false;
    int64_t sent = 0;
    const bool all = push_fragments(g, peer, b, h, nullptr, sent);
    if (sent != 0) __builtin_trap();   // has_room() promised the rest
    return all;
}

}  // namespace weft::p2p
