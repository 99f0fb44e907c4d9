#include "p2p/match.hpp"

#include <cstdlib>
#include <cstring>

namespace weft::p2p {

bool unpost(LaneGuard& g, Request& r) {
    Lane& l = g.lane;
    const bool found = (r.rank != obj::any_source && l.posted[lane::bucket_of(context_of(r), r.rank)].remove(&r)) ||
                       l.posted_ordered.remove(&r);
    if (found) --l.posted_count;
    return found;
}

Unexpected* find_unexpected(LaneGuard& g, uint32_t context, int32_t rank, int32_t tag) {
    Lane& l = g.lane;
    if (l.unexpected_count.load(std::memory_order_relaxed) == 0) return nullptr;
    if (rank == obj::any_source) {
        for (Ring2* n = l.unexpected_all.next; n != &l.unexpected_all; n = n->next)
            if (auto* u = Unexpected::of_all(n); matches(rank, tag, context, u->header)) return u;
        return nullptr;
    }
    Ring2& b = l.unexpected[lane::bucket_of(context, rank)];
    for (Ring2* n = b.next; n != &b; n = n->next)
        if (auto* u = reinterpret_cast<Unexpected*>(n); matches(rank, tag, context, u->header)) return u;
    return nullptr;
}

static void count_unexpected(Lane& l, int32_t change) {
    // Under the guard: a load and a store, no read-modify-write.
    const uint32_t n = l.unexpected_count.load(std::memory_order_relaxed) + static_cast<uint32_t>(change);
    l.unexpected_count.store(n, std::memory_order_relaxed);
    l.counters.unexpected_count = n;
}

Unexpected* new_unexpected(LaneGuard& g, int peer, const wire::Header& h, int64_t bytes) {
    auto* u = static_cast<Unexpected*>(g.lane.unexpected_pool.take());
    if (u == nullptr) return nullptr;
    memset(static_cast<void*>(u), 0, offsetof(Unexpected, small));
    u->header = h;
    u->peer = peer;
    u->bytes = bytes;
    u->transfer = Unexpected::no_transfer;
    return u;
}

Unexpected* add_unexpected(LaneGuard& g, int peer, const wire::Header& h, int64_t bytes, bool offered) {
    Lane& l = g.lane;
    Unexpected* u = new_unexpected(g, peer, h, bytes);
    if (u == nullptr) return nullptr;
    u->offered = offered;
    l.unexpected[lane::bucket_of(h.context, h.source)].push_back(&u->in_bucket);
    l.unexpected_all.push_back(&u->in_all);
    count_unexpected(l, 1);
    l.peers[peer].unexpected_bytes += static_cast<int64_t>(sizeof(Unexpected)) + (offered ? 0 : bytes);
    l.counters.unexpected_bytes += static_cast<uint64_t>(bytes);
    if (l.counters.unexpected_bytes > l.counters.unexpected_high_bytes)
        l.counters.unexpected_high_bytes = l.counters.unexpected_bytes;
    return u;
}

void unlink_unexpected(LaneGuard& g, Unexpected& u) {
    u.in_bucket.unlink();
    u.in_all.unlink();
    count_unexpected(g.lane, -1);
    g.lane.counters.unexpected_bytes -= static_cast<uint64_t>(u.bytes);
    lane::Peer& from = g.lane.peers[u.peer];
    from.unexpected_bytes -= static_cast<int64_t>(sizeof(Unexpected)) + (u.offered ? 0 : u.bytes);
    // Half the credit is left before the peer sends freely again, so that it is not told at every other message.
    if (WEFT_UNLIKELY(from.over_credit) && from.unexpected_bytes <= g.lane.limits.credit / 2) {
        from.over_credit = false;
        g.lane.tell_over_credit(u.peer, false);
    }
}

void free_unexpected(LaneGuard& g, Unexpected& u) {
    free(u.data);
    g.lane.unexpected_pool.give(&u);
}

}  // namespace weft::p2p
