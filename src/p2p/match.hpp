// Matching: of the receives that match a message, the one posted first; of the messages that match a receive, the one that came
// first. Included by p2p/; everything here is under the lane's guard.
//
// A receive is hashed by its key: context, source and tag, where MPI_ANY_SOURCE and MPI_ANY_TAG are values like others. A message
// matches up to four keys, and goes to the receive posted first among the first of each key. More than one key is searched only while
// a wildcard is posted. Receives are then numbered as they are posted; those posted before have no number, and are older.
#pragma once
#include "lane/lane.hpp"
#include "obj/comm.hpp"
#include "obj/request.hpp"

namespace weft::p2p {

using lane::Lane;
using lane::LaneGuard;
using lane::Unexpected;
using obj::Protocol;
using obj::Request;

WEFT_INLINE uint32_t context_of(const Request& r) { return r.comm->context + (r.flags & Request::contexts); }

// What `r` sends or receives, while it is active.
WEFT_INLINE type::Buffer buffer_of(const Request& r) { return type::Buffer{r.buf, r.count, r.type}; }

WEFT_INLINE bool has_key(const Request& r, uint32_t context, int32_t rank, int32_t tag) {
    return r.rank == rank && r.tag == tag && context_of(r) == context;
}

WEFT_INLINE bool matches(int32_t rank, int32_t tag, uint32_t context, const wire::Header& h) {
    return context == h.context && (tag == h.tag || tag == obj::any_tag) && (rank == h.source || rank == obj::any_source);
}

// A receive of any source or any tag; all other ranks and tags are at least 0.
WEFT_INLINE bool is_wild(const Request& r) { return (r.rank | r.tag) < 0; }

// Gives `r`, which is about to be posted, its number.
void number(LaneGuard&, Request& r);

// Posts `r`; neither `r` nor any posted receive may have a wildcard.
WEFT_INLINE void post_exact(LaneGuard& g, Request& r) {
    ++g.lane.posted_count;
    g.lane.posted.bucket(lane::hash_of(context_of(r), r.rank, r.tag)).push(&r);
}

WEFT_INLINE void post(LaneGuard& g, Request& r) {
    if (WEFT_UNLIKELY(is_wild(r) || g.lane.wildcards != 0)) number(g, r);
    post_exact(g, r);
}

// Moves posted receives back to the lane's own 64 buckets.
void shorten(LaneGuard&);

// Takes the receive that `h` belongs to off its list; null when there is none.
Request* match_any_posted(LaneGuard&, const wire::Header& h);
WEFT_INLINE Request* match_posted(LaneGuard& g, const wire::Header& h) {
    Lane& l = g.lane;
    if (l.posted_count != 0) return match_any_posted(g, h);
    if (WEFT_UNLIKELY(l.posted.buckets != l.posted_first)) shorten(g);
    return nullptr;
}

// The short paths test only the first receive of a bucket. These find a receive behind those of other keys, under the same conditions,
// and unlink it; the caller counts posted_count down.
// The receive that an inline message of `bytes` bytes matches, if it is older than all wildcards, dense and large enough; else null.
WEFT_COLD Request* take_behind(LaneGuard&, uint32_t context, int32_t source, int32_t tag, int64_t bytes);
// Unlinks `r` if it is the first of its key. False: it stays.
WEFT_COLD bool unlink_behind(LaneGuard&, Request& r);

// Unlinks a posted receive (MPI_Cancel); false when it has been matched already. Walks its bucket.
bool unpost(LaneGuard&, Request& r);

// Whether a message of `peer` may match a posted receive; true without a search if more than 64 are posted.
bool receives_from(LaneGuard&, int peer);

// The oldest unexpected message for (context, rank, tag), left in place; null when there is none.
Unexpected* find_unexpected(LaneGuard&, uint32_t context, int32_t rank, int32_t tag);
// A record for a message of `bytes`, on no queue; null when out of memory.
Unexpected* new_unexpected(LaneGuard&, int peer, const wire::Header& h, int64_t bytes);
// The same, queued at the end. `at_sender`: its data stay there, as it is an RTS.
Unexpected* add_unexpected(LaneGuard&, int peer, const wire::Header& h, int64_t bytes, bool at_sender);
// Takes `u` off its lists; its data stay.
void unlink_unexpected(LaneGuard&, Unexpected& u);
void free_unexpected(LaneGuard&, Unexpected& u);

}  // namespace weft::p2p
