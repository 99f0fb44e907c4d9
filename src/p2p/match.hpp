// Matching: which receive a message belongs to. Order is kept per (context, source): receives are tried in the order they
// were posted, messages in the order they came. Included by p2p/; everything here is under the lane's guard.
//
// Posted receives of one known source live in buckets. Once a receive with MPI_ANY_SOURCE is posted, it and all later
// receives go to one ordered list, until that list is empty again: so the buckets are always older than the list, and no
// sequence numbers are needed.
#pragma once
#include "lane/lane.hpp"
#include "obj/comm.hpp"
#include "obj/request.hpp"

namespace weft::p2p {

using lane::Lane;
using lane::LaneGuard;
using lane::Unexpected;
using obj::Request;

WEFT_INLINE uint32_t context_of(const Request& r) { return r.comm->context + (r.flags & Request::coll); }

WEFT_INLINE bool matches(int32_t rank, int32_t tag, uint32_t context, const wire::Header& h) {
    return context == h.context && (tag == h.tag || tag == obj::any_tag) && (rank == h.source || rank == obj::any_source);
}

WEFT_INLINE void post(LaneGuard& g, Request& r) {
    Lane& l = g.lane;
    ++l.posted_count;
    if (WEFT_UNLIKELY(r.rank == obj::any_source || !l.posted_ordered.empty())) l.posted_ordered.push(&r);
    else l.posted[lane::bucket_of(context_of(r), r.rank)].push(&r);
}

WEFT_INLINE Request* match_in(Fifo& f, const wire::Header& h) {
    Link* before = nullptr;
    for (Link* n = f.head; n != nullptr; before = n, n = n->next) {
        auto* r = static_cast<Request*>(n);
        if (!matches(r->rank, r->tag, context_of(*r), h)) continue;
        f.remove(n, before);
        return r;
    }
    return nullptr;
}

// Takes the receive that `h` belongs to off its list; null when there is none.
WEFT_INLINE Request* match_posted(LaneGuard& g, const wire::Header& h) {
    Lane& l = g.lane;
    if (l.posted_count == 0) return nullptr;
    Request* r = match_in(l.posted[lane::bucket_of(h.context, h.source)], h);
    if (r == nullptr && !l.posted_ordered.empty()) r = match_in(l.posted_ordered, h);
    if (r != nullptr) --l.posted_count;
    return r;
}

// Takes a posted receive back; false when it has been matched already.
bool unpost(LaneGuard&, Request& r);

// The oldest unexpected message for (context, rank, tag), left in place; null when there is none.
Unexpected* find_unexpected(LaneGuard&, uint32_t context, int32_t rank, int32_t tag);
// A record for a message of `bytes`, on no queue; null when out of memory.
Unexpected* new_unexpected(LaneGuard&, int peer, const wire::Header& h, int64_t bytes);
// Puts a new one at the end; null when out of memory. `offered`: its data stays with the sender.
Unexpected* add_unexpected(LaneGuard&, int peer, const wire::Header& h, int64_t bytes, bool offered);
// Takes it off the lists (its data stays).
void unlink_unexpected(LaneGuard&, Unexpected& u);
void free_unexpected(LaneGuard&, Unexpected& u);

}  // namespace weft::p2p
