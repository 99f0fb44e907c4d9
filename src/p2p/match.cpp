#include "p2p/match.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

#include "p2p/flags.hpp"

namespace weft::p2p {

using lane::UnexpectedTable;

namespace {

// A wildcard's search that passes over more than this many messages in the list of all makes buckets for wildcards.
constexpr uint32_t few_walked = 32;

// Kinds of keys that a message can match: bits that say which fields are wildcards.
constexpr uint32_t exact = 0, any_source = 1, any_tag = 2;

// ---- posted receives ----

// Where a posted receive is; `r` is null where there is none.
struct Position {
    Fifo* bucket;
    Link* before;
    Request* r;
};

bool wants_longer(const Lane& l) { return l.posted_count > l.posted.mask; }

// Receives of one key stay in order: they come from one bucket, move in order, and go to one bucket.
void move_posted(Lane& l, Fifo* to, uint64_t count) {
    Fifo* const from = l.posted.buckets;
    const uint32_t last = l.posted.mask;
    l.posted.buckets = to;
    l.posted.mask = static_cast<uint32_t>(count - 1);
    for (uint32_t i = 0; i <= last; ++i)
        while (Link* n = from[i].pop()) {
            const Request& r = *static_cast<Request*>(n);
            l.posted.bucket(lane::hash_of(context_of(r), r.rank, r.tag)).push(n);
        }
    if (from != l.posted_first) free(from);
}

// Makes at least twice as many buckets as receives. When out of memory the table stays, and the next long search tries again.
WEFT_COLD void lengthen(Lane& l) {
    l.posted.must_lengthen = false;
    if (!wants_longer(l)) return;
    const uint64_t count = std::bit_ceil(uint64_t{l.posted_count} * 2);
    if (auto* to = static_cast<Fifo*>(calloc(count, sizeof(Fifo))); to != nullptr) move_posted(l, to, count);
}

// Finds the first receive of a key.
Position find_posted(Lane& l, uint32_t context, int32_t rank, int32_t tag) {
    Position at{&l.posted.bucket(lane::hash_of(context, rank, tag)), nullptr, nullptr};
    uint32_t passed = 0;
    for (Link* n = at.bucket->head; n != nullptr; at.before = n, n = n->next, ++passed) {
        auto* r = static_cast<Request*>(n);
        if (!has_key(*r, context, rank, tag)) continue;
        at.r = r;
        break;
    }
    if (WEFT_UNLIKELY(passed != 0) && wants_longer(l)) l.posted.must_lengthen = true;
    return at;
}

void unnumber(Lane& l, Request& r) {
    if (!(r.flags & Request::numbered)) return;
    clear_numbered(r);
    if (is_wild(r)) --l.wildcards;
}

// The numbers are used up: sorts all posted receives by number and posts them again. A radix sort, because it is stable (receives without
// a number keep their order) and needs no memory.
WEFT_COLD void renumber(LaneGuard& g) {
    constexpr uint32_t digit = 8, digits = 1 << digit;
    Lane& l = g.lane;
    Fifo all;
    for (uint32_t i = 0; i <= l.posted.mask; ++i)
        while (Link* n = l.posted.buckets[i].pop()) all.push(n);
    Fifo sorted[digits];
    for (uint32_t shift = 0; shift < 32 && Request::last_order >> shift != 0; shift += digit) {
        while (Link* n = all.pop()) sorted[static_cast<Request*>(n)->order() >> shift & (digits - 1)].push(n);
        for (Fifo& f : sorted)
            while (Link* n = f.pop()) all.push(n);
    }
    l.posted_count = l.wildcards = l.posted_order = 0;
    while (Link* n = all.pop()) {
        auto& r = *static_cast<Request*>(n);
        clear_numbered(r);
        r.set_order(0);
        post(g, r);
    }
}

}  // namespace

WEFT_COLD void shorten(LaneGuard& g) { move_posted(g.lane, g.lane.posted_first, Lane::first_buckets); }

// The numbers (2^30) suffice for all receives that can be posted at once: more would take 64 GiB.
void number(LaneGuard& g, Request& r) {
    Lane& l = g.lane;
    if (l.posted_count == 0) l.posted_order = 0;
    if (WEFT_UNLIKELY(l.posted_order == Request::last_order)) renumber(g);
    r.set_order(++l.posted_order);
    r.flags |= Request::numbered;
    if (is_wild(r)) ++l.wildcards;
}

Request* match_any_posted(LaneGuard& g, const wire::Header& h) {
    Lane& l = g.lane;
    Position best = find_posted(l, h.context, h.source, h.tag);
    if (WEFT_UNLIKELY(l.wildcards != 0) && (best.r == nullptr || best.r->order() != 0))
        for (uint32_t kind = any_source; kind <= (any_source | any_tag); ++kind) {
            const Position one = find_posted(l, h.context, kind & any_source ? obj::any_source : h.source,
                                          kind & any_tag ? obj::any_tag : h.tag);
            if (one.r != nullptr && (best.r == nullptr || one.r->order() < best.r->order())) best = one;
        }
    if (best.r != nullptr) {
        best.bucket->remove(best.r, best.before);
        --l.posted_count;
        unnumber(l, *best.r);
    }
    if (WEFT_UNLIKELY(l.posted.must_lengthen)) lengthen(l);
    return best.r;
}

Request* take_behind(LaneGuard& g, uint32_t context, int32_t source, int32_t tag, int64_t bytes) {
    const Position at = find_posted(g.lane, context, source, tag);
    const bool takes = at.r != nullptr && at.r->receives_plainly() && bytes <= at.r->count;
    if (takes) at.bucket->remove(at.r, at.before);
    if (WEFT_UNLIKELY(g.lane.posted.must_lengthen)) lengthen(g.lane);
    return takes ? at.r : nullptr;
}

bool unlink_behind(LaneGuard& g, Request& r) {
    const Position at = find_posted(g.lane, context_of(r), r.rank, r.tag);
    if (at.r == &r) at.bucket->remove(&r, at.before);
    if (WEFT_UNLIKELY(g.lane.posted.must_lengthen)) lengthen(g.lane);
    return at.r == &r;
}

bool unpost(LaneGuard& g, Request& r) {
    Lane& l = g.lane;
    if (!l.posted.bucket(lane::hash_of(context_of(r), r.rank, r.tag)).remove(&r)) return false;
    --l.posted_count;
    unnumber(l, r);
    return true;
}

bool receives_from(LaneGuard& g, int peer) {
    constexpr uint32_t few = Lane::first_buckets;
    Lane& l = g.lane;
    if (l.posted_count > few) return true;
    // Walks 64 buckets rather than a long table that is almost empty.
    if (l.posted.buckets != l.posted_first) shorten(g);
    for (Fifo& f : l.posted_first)
        for (Link* n = f.head; n != nullptr; n = n->next) {
            const Request& r = *static_cast<Request*>(n);
            if (r.rank == obj::any_source) return true;
            const obj::Route& from = r.comm->routes[r.rank];
            if (from.is_wire() && from.peer == peer) return true;
        }
    return false;
}

// ---- unexpected messages ----

namespace {

uint32_t count_of(const Lane& l) { return l.unexpected_count.load(std::memory_order_relaxed); }

Ring2& bucket_for(Lane& l, uint32_t kind, uint32_t context, int32_t source, int32_t tag) {
    return l.unexpected.bucket(kind, lane::hash_of(context, kind & any_source ? obj::any_source : source,
                                                   kind & any_tag ? obj::any_tag : tag));
}

void drop_wild(Unexpected& u) {
    free(u.wild);
    u.wild = nullptr;
}

// Out of memory for one message's nodes: removes the nodes of all, and searches for wildcards walk the list of all again.
WEFT_COLD void give_up_wildcards(Lane& l) {
    l.unexpected.by_wildcards = false;
    for (Ring2* n = l.unexpected_all.next; n != &l.unexpected_all; n = n->next) drop_wild(*Unexpected::of_all(n));
}

void file(Lane& l, Unexpected& u) {
    const wire::Header& h = u.header;
    bucket_for(l, exact, h.context, h.source, h.tag).push_back(&u.in_bucket);
    if (WEFT_LIKELY(!l.unexpected.by_wildcards)) return;
    if (u.wild == nullptr && (u.wild = static_cast<lane::WildNodes*>(malloc(sizeof(lane::WildNodes)))) == nullptr) return give_up_wildcards(l);
    u.wild->message = &u;
    for (uint32_t kind = any_source; kind < UnexpectedTable::kinds; ++kind)
        bucket_for(l, kind, h.context, h.source, h.tag).push_back(&u.wild->in[kind - 1]);
}

void use_table(Lane& l, Ring2* buckets, uint64_t count, bool by_wildcards) {
    UnexpectedTable& t = l.unexpected;
    if (t.buckets != l.unexpected_first) free(t.buckets);
    t.buckets = buckets;
    t.mask = static_cast<uint32_t>(count - 1);
    t.by_wildcards = by_wildcards;
    for (uint64_t i = 0; i < (by_wildcards ? UnexpectedTable::kinds : 1) * count; ++i) buckets[i].make_head();
    for (Ring2* n = l.unexpected_all.next; n != &l.unexpected_all; n = n->next) file(l, *Unexpected::of_all(n));
}

bool wants_more(const Lane& l) { return count_of(l) > l.unexpected.mask + 1; }

// Makes at least as many buckets as messages, and buckets for wildcards if `wild`. When out of memory the table stays.
WEFT_COLD void index(Lane& l, bool wild) {
    const uint64_t count = wants_more(l) ? std::bit_ceil(uint64_t{count_of(l)}) : uint64_t{l.unexpected.mask} + 1;
    wild |= l.unexpected.by_wildcards;
    auto* buckets = static_cast<Ring2*>(malloc((wild ? UnexpectedTable::kinds : 1) * count * sizeof(Ring2)));
    if (buckets != nullptr) use_table(l, buckets, count, wild);
}

void count_unexpected(Lane& l, int32_t change) {
    // Under the guard: a load and a store, no read-modify-write.
    const uint32_t n = count_of(l) + static_cast<uint32_t>(change);
    l.unexpected_count.store(n, std::memory_order_relaxed);
    l.counters.unexpected_count = n;
}

}  // namespace

Unexpected* find_unexpected(LaneGuard& g, uint32_t context, int32_t rank, int32_t tag) {
    Lane& l = g.lane;
    if (count_of(l) == 0) return nullptr;
    const uint32_t kind = (rank == obj::any_source ? any_source : exact) | (tag == obj::any_tag ? any_tag : exact);
    const bool walk = kind != exact && !l.unexpected.by_wildcards;
    Ring2& head = walk ? l.unexpected_all : bucket_for(l, kind, context, rank, tag);
    Unexpected* found = nullptr;
    uint32_t passed = 0;
    for (Ring2* n = head.next; n != &head; n = n->next, ++passed) {
        Unexpected* u = walk ? Unexpected::of_all(n) : Unexpected::of_bucket(n, kind);
        if (!matches(rank, tag, context, u->header)) continue;
        found = u;
        break;
    }
    if (WEFT_UNLIKELY(walk ? passed > few_walked : passed != 0 && wants_more(l))) index(l, walk);
    return found;
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

Unexpected* add_unexpected(LaneGuard& g, int peer, const wire::Header& h, int64_t bytes, bool at_sender) {
    Lane& l = g.lane;
    lane::PeerState* const from = l.make_peer(peer);
    Unexpected* u = from != nullptr ? new_unexpected(g, peer, h, bytes) : nullptr;
    if (u == nullptr) return nullptr;
    u->at_sender = at_sender;
    l.unexpected_all.push_back(&u->in_all);
    file(l, *u);
    count_unexpected(l, 1);
    from->unexpected_bytes += static_cast<int64_t>(sizeof(Unexpected)) + (at_sender ? 0 : bytes);
    l.counters.unexpected_bytes += static_cast<uint64_t>(bytes);
    if (l.counters.unexpected_bytes > l.counters.unexpected_high_bytes)
        l.counters.unexpected_high_bytes = l.counters.unexpected_bytes;
    return u;
}

void unlink_unexpected(LaneGuard& g, Unexpected& u) {
    Lane& l = g.lane;
    u.in_all.unlink();
    u.in_bucket.unlink();
    if (WEFT_UNLIKELY(u.wild != nullptr)) {
        for (Ring2& n : u.wild->in) n.unlink();
        drop_wild(u);
    }
    count_unexpected(l, -1);
    if (WEFT_UNLIKELY(l.unexpected.buckets != l.unexpected_first) && count_of(l) == 0)
        use_table(l, l.unexpected_first, Lane::first_buckets, false);
    l.counters.unexpected_bytes -= static_cast<uint64_t>(u.bytes);
    lane::PeerState& from = l.peers[u.peer];
    from.unexpected_bytes -= static_cast<int64_t>(sizeof(Unexpected)) + (u.at_sender ? 0 : u.bytes);
    // The peer sends eagerly again once half the credit is free, so that the flag does not change at every other message.
    if (WEFT_UNLIKELY(from.over_credit) && from.unexpected_bytes <= l.limits.credit / 2) {
        from.over_credit = false;
        l.tell_over_credit(u.peer, false);
    }
}

void free_unexpected(LaneGuard& g, Unexpected& u) {
    free(u.data);
    g.lane.unexpected_pool.give(&u);
}

}  // namespace weft::p2p
