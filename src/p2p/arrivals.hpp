// The sink of every poll: handles each arriving cell. Included by p2p/progress.cpp and p2p/arrivals.cpp; all under the lane's guard.
#pragma once
#include "base/copy.hpp"
#include "p2p/progress.hpp"

namespace weft::p2p {

struct Arrivals {
    LaneGuard& g;
    Process& p;

    // The common case: an inline message without an SSEND_ACK, for a receive that is older than all wildcards, the first of its bucket,
    // dense and large enough. ≤ 55 instructions, no call.
    WEFT_INLINE bool take(uint64_t w, const wire::Cell& c) {
        if (WEFT_UNLIKELY((w & 0xff00ff00) != static_cast<uint64_t>(eager) << 8)) return false;
        const int64_t n = wire::Cell::bytes_of(w);
        Request* r = take_plain(c.context, wire::Cell::source_of(w), c.tag, n);
        if (WEFT_UNLIKELY(r == nullptr)) return false;
        if (n > wire::inline_bytes) __builtin_unreachable();
        copy_small(r->buf, c.payload, static_cast<size_t>(n));
        complete_plain(*r, n);
        return true;
    }

    // All other cells. False: the message stays in its wire, and the next poll delivers it again.
    bool arrive(int peer, const wire::Header& h, const char* payload, const char* chunk);

private:
    // Unlinks the receive that a message of `n` bytes matches, if it is older than all wildcards, dense and large enough; else null.
    WEFT_INLINE Request* take_plain(uint32_t context, int32_t source, int32_t tag, int64_t n) {
        Lane& l = g.lane;
        Fifo& f = l.posted.bucket(lane::hash_of(context, source, tag));
        auto* r = static_cast<Request*>(f.head);
        if (WEFT_UNLIKELY(r == nullptr)) return nullptr;
        if (WEFT_LIKELY(has_key(*r, context, source, tag))) {
            if (WEFT_UNLIKELY(!r->receives_plainly() || n > r->count)) return nullptr;
            f.head = r->next;
        } else if (r->next == nullptr || (r = take_behind(g, context, source, tag, n)) == nullptr) {
            return nullptr;
        }
        --l.posted_count;
        return r;
    }
    // Completes such a receive, whose fields name source and tag already.
    WEFT_INLINE void complete_plain(Request& r, int64_t n) {
        r.count = n;
        // Release: pairs with Request::done(). The owner may free it from here on.
        r.state.store(Request::complete, std::memory_order_release);
        lane::wake_sleepers(g.lane);
    }
    bool must_stay(int peer, int64_t bytes);
    WEFT_COLD bool drains_beyond_credit(int peer);
    WEFT_COLD bool stay_without_memory(int peer, int64_t bytes);
    bool arrive_eager(int peer, const wire::Header& h, const char* payload);
    bool arrive_first(int peer, const wire::Header& h, const char* payload, const char* chunk);
    bool keep_first(int peer, const wire::Header& h, const EagerFirst& f);
    void arrive_fragment(int peer, const char* chunk, uint32_t bytes);
    void end_fragments(int peer);
    bool arrive_rts(int peer, const wire::Header& h, const char* payload);
    void arrive_ssend_ack(int peer, const char* payload);
    bool arrive_buffer(int peer, const wire::Header& h, const char* payload);
};

}  // namespace weft::p2p
