#include "p2p/progress.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "boot/boot.hpp"
#include "obj/status.hpp"
#include "os/clock.hpp"
#include "os/memory.hpp"
#include "wire/shm/transfer.hpp"

namespace weft::p2p {

using type::Buffer;
using wire::Cell;
using wire::Header;
namespace shm = wire::shm;

namespace {

// This side of a large message.
struct Moving : Link {
    shm::Transfer* transfer;
    Request* request;    // null once it has completed (sender: the descriptor is still the receiver's)
    int32_t peer;
    bool sending;
    int64_t bytes;       // what will be reported
};
static_assert(sizeof(Moving) <= 64);

// A send whose receive has asked for an offer, because none could be made when it was sent.
struct Asked : Link {
    Request* request;
    uint64_t receive;
    int32_t peer;
};
static_assert(sizeof(Asked) <= 64);

// Rounds without a piece after which the receiver takes the sender to be away, and reads by itself.
constexpr uint32_t patience = 500;

Buffer buffer_of(const Request& r) { return Buffer{r.buf, r.count, r.type}; }

uint64_t cookie_of(const Request& r) { return reinterpret_cast<uint64_t>(&r); }
Request& request_at(uint64_t cookie) { return *reinterpret_cast<Request*>(cookie); }

// The receive now knows who it is for. Returns how many of the message's bytes it can hold.
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

// The same from a chunk of the ring, of which no more is read. Past the caches where so much is on its way that it would
// not be there any more when it is read.
void store_chunk(Lane& l, Request& r, int64_t at, const char* chunk, uint32_t bytes, bool past_caches = false) {
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

// What is complete once `bytes` of the message have come: never more than the receive holds.
int64_t received(const Request& r, int64_t bytes) {
    const int64_t room = buffer_of(r).bytes();
    return bytes < room ? bytes : room;
}

// Without the few bytes that progress itself needs, this rank's peers would wait for it for ever: the job ends and says why.
[[noreturn]] WEFT_COLD void out_of_memory(int64_t bytes, int peer) {
    char text[160];
    snprintf(text, sizeof text, "out of memory: none for a message of %ld bytes to or from rank %d of this node (see ulimit -v)",
             static_cast<long>(bytes), peer);
    boot::abort(obj::process->job, static_cast<int>(Err::no_mem), text);
}

bool may_attach(LaneGuard& g, int peer, uint64_t address) {
    Lane& l = g.lane;
    int8_t& attach = l.peers[peer].attach;
    if (attach == 0) {
        attach = l.limits.attach && shm::can_attach(l.shm.pid(peer), address) ? 1 : -1;
        if (attach < 0) l.want_eager(INT32_MAX);
    }
    return attach > 0;
}

// What each side copies at once by split CMA: a third, so that the faster of the two takes the last one too, in whole pages;
// up to what a system call's own time does not show in.
uint32_t block_of(int64_t bytes) {
    constexpr int64_t largest = 256 * 1024;
    const int64_t third = (bytes / 3 + 4095) & ~int64_t{4095};
    return static_cast<uint32_t>(third < 4096 ? 4096 : third < largest ? third : largest);
}

// The receive `r` lets the transfer begin. False when out of memory.
bool accept_transfer(LaneGuard& g, Request& r, int peer, uint32_t index, int64_t bytes) {
    Lane& l = g.lane;
    auto* m = static_cast<Moving*>(l.moving_pool.take());
    if (m == nullptr) return false;
    shm::Transfer& t = *l.shm.transfer(peer, index);
    const Buffer b = buffer_of(r);
    const int64_t limit = received(r, bytes);
    const bool attachable = limit > 0 && b.dense() && t.from != 0 && may_attach(g, peer, t.from);
    *m = Moving{{nullptr}, &t, &r, peer, false, limit};
    l.peers[peer].idle = 0;
    l.arriving += limit;
    ++l.peers[peer].awaiting;  // its pieces may lie behind messages that nobody asked for
    t.receive = reinterpret_cast<uint64_t>(m);
    shm::accept(t, attachable ? b.data() : nullptr, static_cast<uint64_t>(limit), attachable && l.limits.split_cma ? block_of(limit) : 0);
    l.shm.notify(peer);
    l.moving.push(m);
    l.work.fetch_add(1, std::memory_order_relaxed);
    return true;
}

// A small message of the protocol itself, sent like any other and in order with them.
void send_answer(LaneGuard& g, int peer, Request::Stage stage, uint64_t cookie, uint64_t receive) {
    Lane& l = g.lane;
    auto* r = static_cast<Request*>(l.answer_pool.take());
    if (r == nullptr) out_of_memory(0, peer);
    memset(static_cast<void*>(r), 0, sizeof *r);
    r->kind = Kind::request;
    r->flags = Request::orphan;
    r->stage = stage;
    r->buf = reinterpret_cast<void*>(cookie);
    r->count = static_cast<int64_t>(receive);
    push_or_enqueue(g, peer, *r);
}

// Sends a synchronous or offered message's receiver is expected to answer.
void await_answer(LaneGuard& g, int peer) { ++g.lane.peers[peer].awaiting; }

// Whether what this rank waits for may lie behind an unmatched message of `peer`: then its ring is drained beyond the credit.
// Where many receives are posted, one from `peer` is taken to be among them.
bool must_drain(LaneGuard& g, int peer) {
    constexpr uint32_t few = 64;
    Lane& l = g.lane;
    if (l.peers[peer].awaiting != 0 || !l.posted_ordered.empty() || l.looking != 0 || l.posted_count > few) return true;
    for (Fifo& f : l.posted)
        for (Link* n = f.head; n != nullptr; n = n->next) {
            auto* r = static_cast<Request*>(n);
            const obj::Route& to = r->comm->routes[r->rank];
            if (to.way == obj::Route::shm && to.peer == peer) return true;
        }
    return false;
}

// Lets a matched receive have what was offered; where the offer came without a descriptor, by asking for one.
void take_offer(LaneGuard& g, Request& r, int peer, const Offer& o) {
    if (o.transfer != Unexpected::no_transfer) {
        if (!accept_transfer(g, r, peer, o.transfer, o.bytes)) out_of_memory(o.bytes, peer);
        return;
    }
    await_answer(g, peer);
    send_answer(g, peer, Request::answer_please, o.cookie, cookie_of(r));
}

// Arrivals: what the wire hands upward.
struct Arrivals {
    LaneGuard& g;
    Process& p;

    // The common case, in as few steps as there are: an inline message that nobody waits to hear of, for the oldest receive
    // of its bucket, which names its source and tag and is a memcpy of sufficient size. ≤ 55 instructions, no call.
    WEFT_INLINE bool take(uint64_t w, const Cell& c) {
        Lane& l = g.lane;
        if (WEFT_UNLIKELY((w & 0xff00ff00) != static_cast<uint64_t>(message) << 8 || l.posted_count == 0)) return false;
        const int32_t source = Cell::source_of(w);
        Fifo& f = l.posted[lane::bucket_of(c.context, source)];
        auto* r = static_cast<Request*>(f.head);
        const int64_t n = Cell::bytes_of(w);
        if (WEFT_UNLIKELY(r == nullptr || r->rank != source || r->tag != c.tag || context_of(*r) != c.context ||
                          !r->receives_plainly() || n > r->count))
            return false;
        if (n > wire::inline_bytes) __builtin_unreachable();
        f.head = r->next;
        --l.posted_count;
        copy_small(r->buf, c.payload, static_cast<size_t>(n));
        r->count = n;
        // Release: pairs with Request::done(). The owner may free it from here on.
        r->state.store(Request::complete, std::memory_order_release);
        lane::wake_sleepers(l);
        return true;
    }

    bool arrive(int peer, const Header& h, const char* payload, const char* bulk) {
        switch (h.kind) {
        case message: return arrive_message(peer, h, payload);
        case first: return arrive_first(peer, h, payload, bulk);
        case more: arrive_more(peer, payload, bulk); return true;
        case offer: return arrive_offer(peer, h, payload);
        case please: arrive_please(peer, payload); return true;
        case piece: arrive_piece(peer, payload, bulk); return true;
        case matched: arrive_matched(peer, payload); return true;
        }
        return true;
    }

private:
    // Whether a message that no receive matches has to stay in its ring.
    bool must_stay(int peer, int64_t bytes) {
        const int64_t kept = g.lane.peers[peer].unexpected_bytes + static_cast<int64_t>(sizeof(Unexpected));
        return WEFT_UNLIKELY(kept + bytes > g.lane.limits.credit) && !drains_beyond_credit(peer);
    }

    // One that is taken beyond the credit tells its sender, whose further sends are not complete before they are matched: so no more
    // comes than the sender itself has under way.
    WEFT_COLD bool drains_beyond_credit(int peer) {
        if (!must_drain(g, peer)) return false;
        if (lane::Peer& from = g.lane.peers[peer]; !from.over_credit) {
            from.over_credit = true;
            g.lane.shm.tell_over_credit(peer, true);
        }
        return true;
    }

    // There is no memory for an unmatched message. It stays in its ring, for its receive to find it there, unless something
    // behind it is waited for. Returns false, as arrive() does then.
    WEFT_COLD bool stay_without_memory(int peer, int64_t bytes) {
        if (must_drain(g, peer)) out_of_memory(bytes, peer);
        return false;
    }

    bool arrive_message(int peer, const Header& h, const char* payload) {
        Request* r = match_posted(g, h);
        const bool answer = (h.flags & wants_answer) != 0;
        const int skip = answer ? 8 : 0;
        const int64_t bytes = h.bytes - skip;
        uint64_t cookie = 0;
        if (answer) memcpy(&cookie, payload, 8);
        if (r != nullptr) {
            const int64_t n = settle(*r, h, bytes);
            store(*r, 0, payload + skip, n);
            if (answer) answer_matched(g, peer, cookie);
            complete(g, *r, n);
            return true;
        }
        if (must_stay(peer, bytes)) return false;
        Unexpected* u = add_unexpected(g, peer, h, bytes, false);
        if (u == nullptr) return stay_without_memory(peer, bytes);
        memcpy(u->small, payload + skip, static_cast<size_t>(bytes));
        u->ready = 1;
        u->sync = answer;
        u->cookie = cookie;
        return true;
    }

    bool arrive_first(int peer, const Header& h, const char* payload, const char* bulk) {
        First f;
        memcpy(&f, payload, sizeof f);
        lane::Peer& from = g.lane.peers[peer];
        const bool answer = (h.flags & wants_answer) != 0;
        if (Request* r = match_posted(g, h); r != nullptr) {
            settle(*r, h, f.bytes);
            from.open = r;
            from.open_unexpected = nullptr;
            from.open_cookie = answer ? f.cookie : 0;
        } else {
            if (must_stay(peer, f.bytes)) return false;
            auto* data = static_cast<char*>(malloc(static_cast<size_t>(f.bytes)));
            Unexpected* u = data != nullptr ? add_unexpected(g, peer, h, f.bytes, false) : nullptr;
            if (u == nullptr) {
                free(data);
                return stay_without_memory(peer, f.bytes);
            }
            u->data = data;
            u->sync = answer;
            u->cookie = f.cookie;
            from.open = nullptr;
            from.open_unexpected = u;
        }
        from.open_at = 0;
        from.open_bytes = f.bytes;
        chunk(from, bulk, f.ref.bytes, peer);
        return true;
    }

    void arrive_more(int peer, const char* payload, const char* bulk) {
        wire::BulkRef ref;
        memcpy(&ref, payload, sizeof ref);
        chunk(g.lane.peers[peer], bulk, ref.bytes, peer);
    }

    // The next piece of the message that is open on `peer`'s ring. A synchronous send is answered after the last one: until
    // then its sender still reads the buffer.
    void chunk(lane::Peer& from, const char* bulk, uint32_t bytes, int peer) {
        if (from.open != nullptr) {
            store_chunk(g.lane, *static_cast<Request*>(from.open), from.open_at, bulk, bytes);
        } else {
            g.lane.shm.copy_out(from.open_unexpected->data + from.open_at, bulk, bytes);
        }
        from.open_at += bytes;
        if (from.open_at < from.open_bytes) return;
        if (from.open != nullptr) {
            auto& r = *static_cast<Request*>(from.open);
            from.open = nullptr;
            if (from.open_cookie != 0) answer_matched(g, peer, from.open_cookie);
            complete(g, r, received(r, from.open_bytes));
            return;
        }
        Unexpected* u = from.open_unexpected;
        from.open_unexpected = nullptr;
        u->ready = 1;
        if (u->taker != nullptr) take_unexpected(g, p, *static_cast<Request*>(u->taker), *u);
    }

    bool arrive_offer(int peer, const Header& h, const char* payload) {
        Offer o;
        memcpy(&o, payload, sizeof o);
        if (o.receive != 0) {
            if (!accept_transfer(g, request_at(o.receive), peer, o.transfer, o.bytes)) out_of_memory(o.bytes, peer);
            --g.lane.peers[peer].awaiting;
            return true;
        }
        if (Request* r = match_posted(g, h); r != nullptr) {
            settle(*r, h, o.bytes);
            take_offer(g, *r, peer, o);
            return true;
        }
        if (must_stay(peer, 0)) return false;
        Unexpected* u = add_unexpected(g, peer, h, o.bytes, true);
        if (u == nullptr) return stay_without_memory(peer, o.bytes);
        u->cookie = o.cookie;
        u->transfer = o.transfer;
        return true;
    }

    void arrive_please(int peer, const char* payload) {
        Please q;
        memcpy(&q, payload, sizeof q);
        auto* a = static_cast<Asked*>(g.lane.moving_pool.take());
        if (a == nullptr) out_of_memory(0, peer);
        *a = Asked{{nullptr}, &request_at(q.cookie), q.receive, peer};
        g.lane.asked.push(a);
        g.lane.work.fetch_add(1, std::memory_order_relaxed);
    }

    void arrive_piece(int peer, const char* payload, const char* bulk) {
        Piece q;
        memcpy(&q, payload, sizeof q);
        shm::Transfer& t = *g.lane.shm.transfer(peer, q.transfer);
        auto* m = reinterpret_cast<Moving*>(t.receive);
        store_chunk(g.lane, *m->request, static_cast<int64_t>(q.at), bulk, q.ref.bytes, g.lane.arriving > g.lane.limits.cache_bytes);
        g.lane.peers[peer].idle = 0;
        g.lane.counters.pieces_bytes += q.ref.bytes;
        shm::add_copied(t.arrived.by[shm::Transfer::receiver], q.ref.bytes);
    }

    void arrive_matched(int peer, const char* payload) {
        Matched m;
        memcpy(&m, payload, sizeof m);
        --g.lane.peers[peer].awaiting;
        Request& r = request_at(m.cookie);
        complete(g, r, buffer_of(r).bytes());
    }
};

// Sender: copies the next piece into the ring. False when the ring is full or all is claimed.
bool send_piece(LaneGuard& g, Moving& m) {
    Lane& l = g.lane;
    shm::Transfer& t = *m.transfer;
    if (t.claimed.load(std::memory_order_relaxed) >= t.limit || !l.peers[m.peer].pending.empty()) return false;
    Cell* c = l.shm.reserve(m.peer);
    if (c == nullptr) return false;
    Piece q{};
    const auto size = static_cast<uint64_t>(l.limits.piece);
    char* to = l.shm.reserve_bulk(m.peer, size < t.limit ? size : t.limit, &q.ref);
    const uint64_t at = to != nullptr ? shm::claim(t, size) : t.limit;
    if (at >= t.limit) {
        l.shm.discard(m.peer, c);
        return false;
    }
    const uint64_t n = t.limit - at < size ? t.limit - at : size;
    if (n != q.ref.bytes) {  // what is reserved and what is sent must be the same
        l.shm.discard(m.peer, c);
        to = l.shm.reserve_bulk(m.peer, n, &q.ref);
    }
    const Buffer b = buffer_of(*m.request);
    if (b.dense()) {
        prefetch_pages(b.data() + at + n, t.limit - at - n < size ? t.limit - at - n : size);
        memcpy(to, b.data() + at, n);
    } else {
        type::pack(b, static_cast<int64_t>(at), static_cast<int64_t>(n), to);
    }
    q.transfer = static_cast<uint32_t>(&t - l.shm.transfer(l.self, 0));
    q.at = at;
    memcpy(c->payload, &q, sizeof q);
    l.shm.commit(m.peer, c, Header{piece, sizeof q, wire::has_bulk, 0, 0, 0});
    shm::add_copied(t.left.by[shm::Transfer::sender], n);
    return true;
}

// Moves a block of an accepted transfer, in the way that is right for this side now. Only the oldest that waits for pieces
// loses patience, so `waited` is said once for all of a round: the sender, too, goes one by one.
bool move_block(LaneGuard& g, Moving& m, bool& waited) {
    Lane& l = g.lane;
    shm::Transfer& t = *m.transfer;
    const bool pieces = t.block == 0;
    if (m.sending && pieces) return send_piece(g, m);
    if (t.to == 0) return false;
    if (!m.sending && pieces) {
        if (waited) return false;
        waited = true;
        // Before it sleeps, too: the sender may be away for long.
        if (l.sleepers.load(std::memory_order_relaxed) != 0) l.peers[m.peer].idle = patience;
        else if (++l.peers[m.peer].idle < patience) return false;
    }
    if (t.claimed.load(std::memory_order_relaxed) >= t.limit) return false;  // the sender's line: looked at late
    if (!may_attach(g, m.peer, m.sending ? t.to : t.from)) return false;
    const uint64_t n = shm::attach_block(t, l.shm.pid(m.peer), m.sending ? shm::Transfer::sender : shm::Transfer::receiver);
    l.counters.attached_bytes += n;
    l.shm.notify(m.peer);  // it may wait for the last block
    return n != 0;
}

// This side's share is done: the request completes.
void end_transfer(LaneGuard& g, Moving& m) {
    Lane& l = g.lane;
    shm::Transfer& t = *m.transfer;
    Request& r = *m.request;
    if (const uint32_t fault = t.fault.load(std::memory_order_relaxed); WEFT_UNLIKELY(fault != shm::Transfer::none)) {
        // Whose buffer it is hears of that. A sender is done where only the receiver's is bad; a receiver never has its data.
        const bool own = fault == (m.sending ? shm::Transfer::senders_buffer : shm::Transfer::receivers_buffer);
        if (own) r.error = static_cast<uint8_t>(Err::buffer);
        else if (!m.sending || fault == shm::Transfer::refused) r.error = static_cast<uint8_t>(Err::other);
    }
    m.request = nullptr;
    --l.peers[m.peer].awaiting;
    if (!m.sending) {
        if (t.to != 0) os::peer_wrote(reinterpret_cast<void*>(t.to), t.limit);
        l.arriving -= m.bytes;
        t.receiver_done.store(1, std::memory_order_release);  // pairs with the load in move_transfers()
        l.shm.notify(m.peer);                                 // it may wait for a descriptor
    }
    complete(g, r, m.bytes);
}

// Moves a block of the oldest transfer that has one, and ends those that are over. To look at all of a long window costs a
// quarter of what a piece does, as the pieces themselves push it out of the nearest cache. So a round in which data move,
// here or (`busy`) by what has arrived, leaves the rest of it to the next idle round, or to the 16th.
bool move_transfers(LaneGuard& g, bool busy) {
    Lane& l = g.lane;
    const bool all = ++l.rounds % 16 == 0;
    bool moved = false, waited = false;
    int looked = 0;
    Link* before = nullptr;
    for (Link* n = l.moving.head; n != nullptr && (all || !(moved || (busy && looked == 2))); ++looked) {
        auto* m = static_cast<Moving*>(n);
        n = n->next;
        shm::Transfer& t = *m->transfer;
        if (m->request != nullptr && shm::accepted(t)) {
            if (!moved) moved = move_block(g, *m, waited);
            if (m->sending ? shm::all_left(t) : shm::all_arrived(t)) {
                end_transfer(g, *m);
                moved = true;
            }
        }
        const bool over = m->request == nullptr &&
                          (!m->sending || t.receiver_done.load(std::memory_order_acquire) != 0);
        if (!over) {
            before = m;
            continue;
        }
        if (m->sending)
            l.transfers_free[l.transfers_free_count++] = static_cast<uint16_t>(&t - l.shm.transfer(l.self, 0));
        l.moving.remove(m, before);
        l.work.fetch_sub(1, std::memory_order_relaxed);
        l.moving_pool.give(m);
    }
    return moved;
}

bool push_offer(LaneGuard& g, int peer, Request& r, uint64_t receive);

// The sends queued for `peer`, as far as its ring takes them.
bool push_queue(LaneGuard& g, int peer) {
    Lane& l = g.lane;
    Fifo& f = l.peers[peer].pending;
    bool moved = false;
    l.shm.unhold(peer);
    while (!f.empty()) {
        auto* r = static_cast<Request*>(f.head);
        const int64_t before = l.peers[peer].sent;
        Link* next = r->next;            // push() may complete r, and its owner may free it
        if (!push(g, peer, *r)) {
            moved |= l.peers[peer].sent != before;
            l.shm.hold(peer);
            break;
        }
        f.head = next;
        l.work.fetch_sub(1, std::memory_order_relaxed);
        moved = true;
    }
    return moved;
}

bool push_pending(LaneGuard& g) {
    Lane& l = g.lane;
    bool moved = false;
    while (!l.asked.empty()) {
        auto* a = static_cast<Asked*>(l.asked.head);
        if (!l.peers[a->peer].pending.empty() || !push_offer(g, a->peer, *a->request, a->receive)) break;
        l.asked.pop();
        l.moving_pool.give(a);
        l.work.fetch_sub(1, std::memory_order_relaxed);
        moved = true;
    }
    Link* before = nullptr;
    for (Link *n = l.pending_peers.head, *following; n != nullptr; n = following) {
        following = n->next;
        const auto peer = static_cast<int>(static_cast<lane::Peer*>(n) - l.peers);
        moved |= push_queue(g, peer);
        if (l.peers[peer].pending.empty()) l.pending_peers.remove(n, before);
        else before = n;
    }
    return moved;
}

// Whole pages, so that four chunks keep both sides busy, eight where they are 16 KiB or more; `least` where that would be
// less: smaller ones cost more in headers than they gain.
int64_t chunk_of(int64_t least, int64_t bytes) {
    const int64_t quarter = (bytes / 4 + 4095) & ~int64_t{4095}, eighth = (bytes / 8 + 4095) & ~int64_t{4095};
    const int64_t chunk = quarter < 16 * 1024 ? quarter : eighth < 16 * 1024 ? 16 * 1024 : eighth < 32 * 1024 ? eighth : 32 * 1024;
    return chunk > least ? chunk : least;
}

// Chunks of `chunk` bytes of `b` from where the last call stopped.
bool push_chunks(LaneGuard& g, int peer, const Buffer& b, int64_t chunk, Header h, uint64_t cookie) {
    Lane& l = g.lane;
    const int64_t bytes = b.bytes();
    int64_t& sent = l.peers[peer].sent;
    const bool dense = b.dense();
    do {
        Cell* c = l.shm.reserve(peer);
        if (c == nullptr) return false;
        int64_t n = bytes - sent < chunk ? bytes - sent : chunk;
        First f;
        char* to = l.shm.reserve_bulk(peer, static_cast<size_t>(n), &f.ref);
        if (to == nullptr) {
            l.shm.discard(peer, c);
            return false;
        }
        if (dense) memcpy(to, b.data() + sent, static_cast<size_t>(n));
        else type::pack(b, sent, n, to);
        l.shm.written(peer, to, static_cast<size_t>(n));
        f.bytes = bytes;
        f.cookie = cookie;
        h.kind = sent == 0 ? first : more;
        h.bytes = sent == 0 ? sizeof f : sizeof f.ref;
        memcpy(c->payload, &f, sizeof f);
        sent += n;
        l.shm.commit(peer, c, h);
    } while (sent < bytes);
    sent = 0;
    ++l.counters.sent_eager;
    return true;
}

// Offers `r`'s data: to a receive that asked for it, or to whoever it matches. False when the ring is full, or where a
// descriptor is a must and there is none.
bool push_offer(LaneGuard& g, int peer, Request& r, uint64_t receive) {
    Lane& l = g.lane;
    // Offers that nobody has matched hold their descriptors. So some are left for the receives that ask: those transfers end, and
    // give them back.
    constexpr uint32_t for_asked = 16;
    const bool has_transfer = l.transfers_free_count > (receive != 0 ? 0 : for_asked);
    if (receive != 0 && !has_transfer) return false;
    const Buffer b = buffer_of(r);
    Cell* c = l.shm.reserve(peer);
    if (c == nullptr) return false;
    Offer o{b.bytes(), cookie_of(r), receive, Unexpected::no_transfer, 0};
    if (has_transfer) {
        auto* m = static_cast<Moving*>(l.moving_pool.take());
        if (m == nullptr) {
            l.shm.discard(peer, c);
            return false;
        }
        o.transfer = l.transfers_free[--l.transfers_free_count];
        *m = Moving{{nullptr}, l.shm.transfer(l.self, o.transfer), &r, peer, true, o.bytes};
        shm::offer(*m->transfer, b.dense() ? b.data() : nullptr, static_cast<uint64_t>(o.bytes));
        l.moving.push(m);
        l.work.fetch_add(1, std::memory_order_relaxed);
    }
    ++l.counters.sent_large;
    memcpy(c->payload, &o, sizeof o);
    l.shm.commit(peer, c, Header{offer, sizeof o, 0, r.comm->rank, r.tag, context_of(r)});
    return true;
}

bool push_fresh(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    const Buffer b = buffer_of(r);
    const int64_t bytes = b.bytes();
    // Over the peer's credit a message that has not begun to leave is complete only when it is matched, and all but the smallest offer
    // their data.
    const bool over_credit = l.peers[peer].sent == 0 && !l.shm.within_credit(peer);
    const bool answer = over_credit || (r.flags & Request::sync) != 0;
    const int skip = answer ? 8 : 0;
    Header h{message, 0, static_cast<uint8_t>(answer ? wants_answer : 0), r.comm->rank, r.tag, context_of(r)};
    const uint64_t cookie = cookie_of(r);
    if (bytes + skip <= l.limits.inline_max) {
        Cell* c = l.shm.reserve(peer);
        if (c == nullptr) return false;
        h.bytes = static_cast<uint8_t>(bytes + skip);
        if (answer) memcpy(c->payload, &cookie, 8);
        if (b.dense()) copy_small(c->payload + skip, b.data(), static_cast<size_t>(bytes));
        else type::pack(b, 0, bytes, c->payload + skip);
        ++l.counters.sent_inline;
        if (answer) await_answer(g, peer);
        l.shm.commit(peer, c, h);
        if (!answer) complete(g, r, bytes);
        return true;
    }
    if (!over_credit && is_eager(l, peer, b, bytes)) {
        h.flags |= wire::has_bulk;
        if (!push_chunks(g, peer, b, chunk_of(l.limits.chunk, bytes), h, cookie)) return false;
        if (answer) await_answer(g, peer);
        else complete(g, r, bytes);
        return true;
    }
    if (!push_offer(g, peer, r, 0)) return false;
    await_answer(g, peer);
    return true;
}

bool push_answer(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    Cell* c = l.shm.reserve(peer);
    if (c == nullptr) return false;
    Header h{};
    if (r.stage == Request::answer_please) {
        Please q{reinterpret_cast<uint64_t>(r.buf), static_cast<uint64_t>(r.count)};
        memcpy(c->payload, &q, sizeof q);
        h.kind = please;
        h.bytes = sizeof q;
    } else {
        Matched q{reinterpret_cast<uint64_t>(r.buf)};
        memcpy(c->payload, &q, sizeof q);
        h.kind = matched;
        h.bytes = sizeof q;
    }
    l.shm.commit(peer, c, h);
    l.answer_pool.give(&r);
    return true;
}

}  // namespace

bool push(LaneGuard& g, int peer, Request& r) {
    switch (r.stage) {
    case Request::fresh: return push_fresh(g, peer, r);
    case Request::answer_please:
    case Request::answer_matched: return push_answer(g, peer, r);
    }
    return true;
}

// A message of one chunk.
static bool push_chunk(LaneGuard& g, int peer, const Buffer& b, const Header& h) {
    shm::Shm& shm = g.lane.shm;
    Cell* c = shm.reserve(peer);
    if (c == nullptr) return false;
    First f{{}, b.bytes(), 0};
    char* to = shm.reserve_bulk(peer, static_cast<size_t>(f.bytes), &f.ref);
    if (to == nullptr) {
        shm.discard(peer, c);
        return false;
    }
    memcpy(to, b.data(), static_cast<size_t>(f.bytes));
    shm.written(peer, to, static_cast<size_t>(f.bytes));
    memcpy(c->payload, &f, sizeof f);
    ++g.lane.counters.sent_eager;
    shm.commit(peer, c, h);
    return true;
}

bool push_whole(LaneGuard& g, int peer, const obj::Comm& c, const Buffer& b, int32_t tag, uint32_t context) {
    Lane& l = g.lane;
    const int64_t bytes = b.bytes();
    if (bytes <= l.limits.inline_max || !is_eager(l, peer, b, bytes) || !l.shm.within_credit(peer)) return false;
    const int64_t chunk = chunk_of(l.limits.chunk, bytes);
    const Header h{first, sizeof(First), wire::has_bulk, c.rank, tag, context};
    if (bytes <= chunk && b.dense()) return push_chunk(g, peer, b, h);
    const auto cells = static_cast<uint32_t>((bytes + chunk - 1) / chunk);
    if (!l.shm.has_room(peer, cells, static_cast<size_t>(bytes < chunk ? bytes : chunk))) return false;
    return push_chunks(g, peer, b, chunk, h, 0);
}

void enqueue(LaneGuard& g, int peer, Request& r) {
    lane::Peer& to = g.lane.peers[peer];
    if (to.pending.empty()) g.lane.pending_peers.push(&to);
    to.pending.push(&r);
    g.lane.shm.hold(peer);
    g.lane.work.fetch_add(1, std::memory_order_relaxed);
}

void push_or_enqueue(LaneGuard& g, int peer, Request& r) {
    if (!g.lane.peers[peer].pending.empty() || !push(g, peer, r)) enqueue(g, peer, r);
}

void answer_matched(LaneGuard& g, int peer, uint64_t cookie) {
    send_answer(g, peer, Request::answer_matched, cookie, 0);
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

void take_unexpected(LaneGuard& g, Process& p, Request& r, Unexpected& u) {
    if (u.offered) {
        if (u.peer == g.lane.self) {
            take_own(g, r, u.header, request_at(u.cookie), u.bytes);
        } else {
            settle(r, u.header, u.bytes);
            take_offer(g, r, u.peer, Offer{u.bytes, u.cookie, 0, u.transfer, 0});
        }
        free_unexpected(g, u);
        return;
    }
    const int64_t n = settle(r, u.header, u.bytes);
    if (!u.ready) {
        u.taker = &r;
        return;
    }
    if (u.sync) answer_matched(g, u.peer, u.cookie);
    store(r, 0, u.bytes_at(), n);
    complete(g, r, n);
    free_unexpected(g, u);
}

bool poll_lane(LaneGuard& g, Process& p) {
    Lane& l = g.lane;
    bool moved = false;
    if (l.shm.ranks > 1) moved = l.shm.poll(Arrivals{g, p});
    if (WEFT_UNLIKELY(l.work.load(std::memory_order_relaxed) != 0)) {
        moved |= push_pending(g);
        moved |= move_transfers(g, moved);
    }
    return moved;
}

void poll_for(Process& p, const Request& r, int peer, bool sole) {
    Lane& l = *p.lane;
    shm::Shm::In& in = l.shm.in[peer];
    Next next;
    const auto done = [&] { return r.done(); };
    const bool yield = l.limits.shared_cpus && sole && !lane::Idler::is_disturbed(l, os::now_ns());
    const auto comes = [&] {
        constexpr uint32_t looks = 32;
        return yield ? comes_within(p, in, looks, &next, done, [&] { lane::Idler::yield(l); })
                     : comes_within(p, in, l.limits.spin_polls, &next, done);
    };
    // Other rings have waited meanwhile: after as many messages as a ring has room for, all are looked at.
    for (uint32_t messages = 0; messages < wire::shm::ring_cells && !r.done() && comes(); ++messages) {
        LaneGuard g(l);
        if (!l.shm.poll_from<1>(in, Arrivals{g, p})) return;
    }
}

bool progress(Process& p) {
    Lane& l = *p.lane;
    bool moved = false;
    // A thread that finds nothing to do must not keep the others from the guard.
    if (!l.threads || l.work.load(std::memory_order_relaxed) != 0 || l.shm.peek()) {
        LaneGuard g(l);
        moved = poll_lane(g, p);
    }
    if (WEFT_UNLIKELY(p.hook_work.load(std::memory_order_relaxed) != 0)) {
        const int n = p.hook_count.load(std::memory_order_acquire);
        for (int i = 0; i < n; ++i) moved |= p.hooks[i](p);
    }
    return moved;
}

void register_hook(Process& p, bool (*hook)(Process&)) {
    LaneGuard g(*p.lane);
    const int n = p.hook_count.load(std::memory_order_relaxed);
    for (int i = 0; i < n; ++i)
        if (p.hooks[i] == hook) return;
    if (n == Process::max_hooks) __builtin_trap();  // one per floor above, known when the library is built
    p.hooks[n] = hook;
    p.hook_count.store(n + 1, std::memory_order_release);  // pairs with progress()
}

Request* make_request(LaneGuard& g, obj::Comm& c, Buffer b, int32_t rank, int32_t tag, uint16_t flags) {
    auto* r = static_cast<Request*>(g.lane.requests.take());
    if (WEFT_UNLIKELY(r == nullptr)) return nullptr;
    r->kind = Kind::request;
    r->id = 0;
    r->state.store(Request::pending, std::memory_order_relaxed);
    r->stage = Request::fresh;
    r->error = 0;
    r->comm = &c;
    r->buf = b.base;
    r->rank = rank;
    r->tag = tag;
    flags |= set_buffer(*r, b);
    if (WEFT_UNLIKELY(!r->type->is(type::Type::predefined))) {
        type::retain(*r->type);
        flags |= Request::counted;
    }
    if (WEFT_UNLIKELY(!obj::is_predefined(c))) {
        obj::retain(c);
        flags |= Request::holds_comm;
    }
    r->flags = flags;
    return r;
}

void free_request_block(LaneGuard& g, Request& r) {
    if (r.flags & Request::holds_comm) obj::release(*r.comm);
    r.kind = Kind::dead;
    g.lane.requests.give(&r);
}

}  // namespace weft::p2p
