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
        Lane& l = g.lane;
        if (WEFT_UNLIKELY((w & 0xff00ff00) != static_cast<uint64_t>(eager) << 8)) return false;
        const int32_t source = wire::Cell::source_of(w);
        Fifo& f = l.posted.bucket(lane::hash_of(c.context, source, c.tag));
        auto* r = static_cast<Request*>(f.head);
        const int64_t n = wire::Cell::bytes_of(w);
        if (WEFT_UNLIKELY(r == nullptr)) return false;
        if (WEFT_LIKELY(has_key(*r, c.context, source, c.tag))) {
            if (WEFT_UNLIKELY(!r->receives_plainly() || n > r->count)) return false;
            f.head = r->next;
        } else if (r->next == nullptr || (r = take_behind(g, c.context, source, c.tag, n)) == nullptr) {
            return false;
        }
        if (n > wire::inline_bytes) __builtin_unreachable();
        --l.posted_count;
        copy_small(r->buf, c.payload, static_cast<size_t>(n));
        r->count = n;
        // Release: pairs with Request::done(). The owner may free it from here on.
        r->state.store(Request::complete, std::memory_order_release);
        lane::wake_sleepers(l);
        return true;
    }

    // All other cells. False: the message stays in its wire, and the next poll delivers it again.
    bool arrive(int peer, const wire::Header& h, const char* payload, const char* chunk);

private:
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
