#include "p2p/rndv.hpp"

#include <cstring>

#include "base/copy.hpp"
#include "heap/mapped.hpp"
#include "os/memory.hpp"
#include "p2p/progress.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

namespace shm = wire::shm;
using shm::Mover;
using shm::Transfer;
using type::Buffer;
using wire::Cell;
using wire::Header;

namespace {

// Rounds of progress without data after which the receiver assumes that the sender is outside MPI, and uses CMA get.
constexpr uint32_t rounds_to_fallback = 500;

// CMA to this peer's memory does not work: from now on eager messages of any size are better.
void forgo_cma(Lane& l, int peer) {
    l.peer(peer).cma.store(-1, std::memory_order_relaxed);
    l.want_eager(INT32_MAX);
}

bool may_cma(LaneGuard& g, int peer, uint64_t address) {
    Lane& l = g.lane;
    std::atomic<int8_t>& cma = l.peer(peer).cma;
    if (cma.load(std::memory_order_relaxed) == 0) {
        if (l.limits.cma && shm::can_cma(l.pid(peer), address)) cma.store(1, std::memory_order_relaxed);
        else forgo_cma(l, peer);
    }
    return cma.load(std::memory_order_relaxed) > 0;
}

// Block of a CMA get: small enough to leave blocks for the sender should it call MPI, large enough to hide the system call (about a
// microsecond).
constexpr uint32_t get_block = 256 * 1024;

// Bytes that each side claims at a time by split CMA, in whole pages: a third of the message, so that the faster side copies the last
// third, too; at most that of a get.
uint32_t split_block(int64_t bytes) {
    const int64_t third = (bytes / 3 + 4095) & ~int64_t{4095};
    return third < 4096 ? 4096 : third < get_block ? static_cast<uint32_t>(third) : get_block;
}

// The same by mapped copy: an eighth of the message, but not so little that claiming costs more than it gains, nor so much that one side
// waits long for the other's last block.
uint32_t mapped_block(const Lane& l, uint64_t bytes) {
    const uint64_t least = l.limits.mapped_block, most = 4 * least, eighth = (bytes / 8 + 4095) & ~uint64_t{4095};
    return static_cast<uint32_t>(eighth < least ? least : eighth < most ? eighth : most);
}

// A record with the `shared` descriptor or, where that is null, with one of its own. Null when out of memory.
Rndv* make_record(LaneGuard& g, Request& r, int peer, Transfer* shared, bool sending, int64_t bytes) {
    Lane& l = g.lane;
    auto* m = static_cast<Rndv*>(l.rndv_pool.take());
    if (m == nullptr) return nullptr;
    auto* t = shared != nullptr ? shared : static_cast<Transfer*>(l.transfer_pool.take());
    if (t == nullptr) {
        l.rndv_pool.give(m);
        return nullptr;
    }
    *m = Rndv{{nullptr}, t, &r, identity_of(l.rndv_ids, peer, m), 0, bytes, peer, sending, shared != nullptr};
    l.rndvs.push(m);
    l.work.fetch_add(1, std::memory_order_relaxed);
    return m;
}

void free_record(LaneGuard& g, Rndv& m, Link* before) {
    Lane& l = g.lane;
    if (!m.shared) l.transfer_pool.give(m.transfer);
    else if (m.sending) l.transfers_free[l.transfers_free_count++] = static_cast<uint16_t>(m.transfer - l.transfer(l.self, 0));
    l.rndvs.remove(&m, before);
    l.work.fetch_sub(1, std::memory_order_relaxed);
    (void)l.rndv_ids.take(m.id);
    l.rndv_pool.give(&m);
}

// Sender, pipelined copy: sends the next block. False when the wire is full or all blocks are claimed.
bool send_block(LaneGuard& g, Rndv& m) {
    Lane& l = g.lane;
    Transfer& t = *m.transfer;
    const bool refused = WEFT_UNLIKELY(t.any_refused.load(std::memory_order_relaxed) != 0);
    if ((t.claimed.load(std::memory_order_relaxed) >= t.limit && !refused) || !l.peers[m.peer].pending.empty()) return false;
    Cell* c = l.reserve(m.peer);
    if (c == nullptr) return false;
    RndvData q{};
    const auto size = static_cast<uint64_t>(l.limits.block < l.largest_chunk(m.peer) ? l.limits.block : l.largest_chunk(m.peer));
    char* to = l.reserve_bulk(m.peer, size < t.limit ? size : t.limit, &q.ref);
    uint64_t at = t.limit, n = 0;
    if (to != nullptr && !(refused && shm::claim_refused(t, size, &at, &n))) {
        at = shm::claim(t, size);
        n = t.limit - at < size ? t.limit - at : size;
    }
    if (at >= t.limit) {
        l.discard(m.peer, c);
        return false;
    }
    if (n != q.ref.bytes) {  // the chunk's length must be that of the claimed block
        l.discard(m.peer, c);
        to = l.reserve_bulk(m.peer, n, &q.ref);
    }
    const Buffer b = buffer_of(*m.request);
    if (b.dense()) {
        prefetch_pages(b.data() + at + n, t.limit - at - n < size ? t.limit - at - n : size);
        memcpy(to, b.data() + at, n);
    } else {
        type::pack(b, static_cast<int64_t>(at), static_cast<int64_t>(n), to);
    }
    q.receive = m.shared ? t.receive : m.other;
    q.at = at;
    write(c, q);
    ++l.counters.other_cells;
    l.commit(m.peer, c, Header{rndv_data, sizeof q, wire::has_bulk, 0, 0, 0});
    shm::add_copied(t.left.by[Transfer::sender], n);
    return true;
}

// Receiver of a pipelined copy: whether its sender seems to be outside MPI, so that a CMA get takes over. True also when a thread of
// this rank is about to sleep, as the sender may stay away for long.
bool sender_is_away(Lane& l, const Rndv& m) {
    uint32_t& idle = l.peers[m.peer].idle;
    if (l.sleepers.load(std::memory_order_relaxed) != 0) idle = rounds_to_fallback;
    else if (idle < rounds_to_fallback) ++idle;
    return idle >= rounds_to_fallback;
}

// Mapped copy: copies blocks from where they lie to where they belong, until none is left, or for so long that other messages have to
// have their turn. Returns the bytes copied.
uint64_t copy_mapped(Rndv& m) {
    constexpr uint64_t most = 256 * 1024;
    Transfer& t = *m.transfer;
    const Buffer to = m.sending ? type::bytes_at(reinterpret_cast<void*>(t.to), static_cast<int64_t>(t.limit)) : buffer_of(*m.request);
    uint64_t done = 0;
    for (uint64_t at; done < most && (at = shm::claim(t, t.block)) < t.limit;) {
        const uint64_t n = t.limit - at < t.block ? t.limit - at : t.block;
        auto* const from = reinterpret_cast<const char*>(t.from + at);
        if (to.dense()) memcpy(to.data() + at, from, n);
        else type::unpack(to, static_cast<int64_t>(at), static_cast<int64_t>(n), from);
        done += n;
    }
    if (done != 0) shm::add_copied(t.left.by[m.sending ? Transfer::sender : Transfer::receiver], done);
    return done;
}

// Copies straight into the receive buffer, if a block is left and this side can: by mapped copy or CMA, and as the receiver of a
// pipelined copy whose sender is away. `waited`: an older transfer of this round waits for its sender; only that one counts rounds, as
// the sender moves its transfers one after the other.
bool copy_block(LaneGuard& g, Rndv& m, bool& waited) {
    Lane& l = g.lane;
    Transfer& t = *m.transfer;
    if (shm::is_mapped(t)) {
        if (m.sending && t.to == 0) return false;
        const uint64_t n = copy_mapped(m);
        l.counters.mapped_bytes += n;
        if (n != 0) l.notify(m.peer);
        return n != 0;
    }
    if (t.mover.load(std::memory_order_relaxed) == Mover::pipelined) {
        if (t.to == 0 || waited) return false;
        waited = true;
        if (!sender_is_away(l, m)) return false;
    }
    if (l.peer(m.peer).cma.load(std::memory_order_relaxed) < 0) return false;   // refused before
    const uint64_t n = shm::cma_block(t, l.pid(m.peer), m.sending ? Transfer::sender : Transfer::receiver);
    if (WEFT_UNLIKELY(t.any_refused.load(std::memory_order_relaxed) != 0)) forgo_cma(l, m.peer);
    if (n == 0) return false;
    l.counters.cma_bytes += n;
    l.notify(m.peer);  // the peer may wait for the last block
    return true;
}

// Sets the request's error. The side with the bad buffer gets Err::buffer. If the receiver's is bad, the sender reports success; if
// the sender's is bad, the receiver reports Err::other.
void note_fault(const Rndv& m, Request& r) {
    const uint32_t fault = m.transfer->fault.load(std::memory_order_relaxed);
    if (WEFT_LIKELY(fault == Transfer::none)) return;
    const bool own = fault == (m.sending ? Transfer::senders_buffer : Transfer::receivers_buffer);
    if (own) r.error = static_cast<uint8_t>(Err::buffer);
    else if (!m.sending) r.error = static_cast<uint8_t>(Err::other);
}

// All bytes have left or arrived: completes this side's request.
void end_transfer(LaneGuard& g, Rndv& m) {
    Lane& l = g.lane;
    Transfer& t = *m.transfer;
    Request& r = *m.request;
    note_fault(m, r);
    m.request = nullptr;
    --l.peers[m.peer].awaiting;
    if (!m.sending) {
        const Mover mover = t.mover.load(std::memory_order_relaxed);
        ++l.counters.received_by[static_cast<int>(mover)];
        if (mover != Mover::pipelined && t.left.by[Transfer::sender].load(std::memory_order_relaxed) != 0) ++l.counters.assisted;
        if (t.to != 0) os::peer_wrote(reinterpret_cast<void*>(t.to), t.limit);
        l.arriving -= m.bytes;
        t.receiver_done.store(1, std::memory_order_release);  // pairs with the load in is_over()
        if (m.shared) l.notify(m.peer);                   // the peer may wait to reuse the descriptor
    }
    complete(g, r, m.bytes);
}

bool is_over(const Rndv& m) {
    return m.request == nullptr && (!m.sending || !m.shared || m.transfer->receiver_done.load(std::memory_order_acquire) != 0);
}

// Where this rank has mapped the sender's buffer, it chooses mapped copy and begins at once; most of these transfers end here, without a
// record. False: not mapped.
bool accept_mapped(LaneGuard& g, Request& r, int peer, Transfer& t, int64_t limit) {
    Lane& l = g.lane;
    const auto bytes = static_cast<uint64_t>(limit);
    if (t.mapped == 0 || !heap::is_mapped(l.segment, reinterpret_cast<const void*>(t.from), bytes)) return false;
    const Buffer b = buffer_of(r);
    const bool both = limit >= l.limits.mapped_both && b.dense() && heap::is_mapped(l.segment, b.data(), bytes);
    shm::put_cts(t, both ? b.data() : nullptr, bytes, both ? Mover::mapped_both : Mover::mapped_get, mapped_block(l, bytes));
    if (both) l.notify(peer);
    Rndv now{{nullptr}, &t, &r, 0, 0, limit, peer, false, true};
    l.counters.mapped_bytes += copy_mapped(now);
    if (shm::all_left(t)) end_transfer(g, now);
    else if (make_record(g, r, peer, &t, false, limit) == nullptr) out_of_memory(limit, peer);
    return true;
}

}  // namespace

bool push_rts(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    const Buffer b = buffer_of(r);
    Rts o{b.bytes(), 0, Unexpected::no_transfer, 0};
    if (l.can(peer, wire::shared_descriptors) && l.transfers_free_count != 0) o.transfer = l.transfers_free[--l.transfers_free_count];
    const bool shared = o.transfer != Unexpected::no_transfer;
    Rndv* m = make_record(g, r, peer, shared ? l.transfer(l.self, o.transfer) : nullptr, true, o.bytes);
    if (m == nullptr) out_of_memory(o.bytes, peer);
    o.send = m->id;
    const bool direct = b.dense() && shared;
    shm::put_rts(*m->transfer, direct ? b.data() : nullptr, direct && heap::is_mapped(l.segment, b.data(), static_cast<uint64_t>(o.bytes)));
    ++l.counters.sent_large;
    ++l.counters.other_cells;
    ++state_of(g, peer).awaiting;
    write(c, o);
    l.commit(peer, c, Header{rts, sizeof o, 0, r.comm->rank, r.tag, context_of(r)});
    return true;
}

void accept_rts(LaneGuard& g, Request& r, int peer, const Rts& o, int64_t limit) {
    Lane& l = g.lane;
    const Buffer b = buffer_of(r);
    const bool shared = o.transfer != Unexpected::no_transfer;
    if (WEFT_UNLIKELY(o.bytes < 0 || (shared && (o.transfer >= shm::transfers_per_rank || !l.can(peer, wire::shared_descriptors))))) damaged(peer, "an RTS");
    state_of(g, peer).idle = 0;
    l.arriving += limit;
    ++l.peers[peer].awaiting;  // its data may lie behind unexpected messages, so must_drain() must hold
    if (shared && accept_mapped(g, r, peer, *l.transfer(peer, o.transfer), limit)) return;
    Rndv* m = make_record(g, r, peer, shared ? l.transfer(peer, o.transfer) : nullptr, false, limit);
    if (m == nullptr) out_of_memory(o.bytes, peer);
    Transfer& t = *m->transfer;
    if (!shared) {
        shm::put_rts(t, nullptr);
        shm::put_cts(t, nullptr, static_cast<uint64_t>(limit), Mover::pipelined);
        send_cts(g, peer, o.send, m->id, limit);
        return;
    }
    const bool cma = limit > 0 && b.dense() && t.from != 0 && may_cma(g, peer, t.from);
    const bool split = cma && l.limits.split_cma;
    t.receive = m->id;
    shm::put_cts(t, cma ? b.data() : nullptr, static_cast<uint64_t>(limit), split ? Mover::split_cma : Mover::pipelined,
                 split ? split_block(limit) : get_block);
    l.notify(peer);
}

void arrive_cts(LaneGuard& g, int peer, const Cts& q) {
    auto* m = static_cast<Rndv*>(g.lane.rndv_ids.find(q.send));
    const bool fits = m != nullptr && m->sending && !m->shared && m->peer == peer && q.limit >= 0 && q.limit <= m->bytes;
    if (WEFT_UNLIKELY(!fits)) damaged(peer, "a CTS");
    m->other = q.receive;
    shm::put_cts(*m->transfer, nullptr, static_cast<uint64_t>(q.limit), Mover::pipelined);
}

void arrive_data(LaneGuard& g, int peer, const RndvData& q, const char* chunk) {
    Lane& l = g.lane;
    auto* m = static_cast<Rndv*>(l.rndv_ids.find(q.receive));
    const bool ours = m != nullptr && !m->sending && m->request != nullptr && m->peer == peer;
    const auto limit = static_cast<uint64_t>(ours ? m->bytes : 0);
    if (WEFT_UNLIKELY(!ours || q.at > limit || q.ref.bytes > limit - q.at)) damaged(peer, "data");
    store_chunk(l, *m->request, static_cast<int64_t>(q.at), chunk, q.ref.bytes, l.arriving > l.limits.cache_bytes);
    l.peers[m->peer].idle = 0;
    l.counters.pipelined_bytes += q.ref.bytes;
    shm::add_copied(m->transfer->arrived.by[Transfer::receiver], q.ref.bytes);
}

// Checking all of many concurrent transfers costs a quarter of copying a block, because the copies evict the descriptors from the
// first-level cache. So a round that moves data stops early; the rest is checked by the next idle round, or by every 16th.
bool move_transfers(LaneGuard& g, bool busy) {
    Lane& l = g.lane;
    const bool all = ++l.rounds % 16 == 0;
    bool moved = false, waited = false;
    int looked = 0;
    Link* before = nullptr;
    for (Link* n = l.rndvs.head; n != nullptr && (all || !(moved || (busy && looked == 2))); ++looked) {
        auto* m = static_cast<Rndv*>(n);
        n = n->next;
        const Transfer& t = *m->transfer;
        if (m->request != nullptr && shm::has_cts(t)) {
            const bool pushes = m->sending && t.mover.load(std::memory_order_relaxed) == Mover::pipelined;
            if (!moved) moved = pushes ? send_block(g, *m) : copy_block(g, *m, waited);
            if (m->sending || shm::is_mapped(t) ? shm::all_left(t) : shm::all_arrived(t)) {
                end_transfer(g, *m);
                moved = true;
            }
        }
        if (is_over(*m)) free_record(g, *m, before);
        else before = m;
    }
    return moved;
}

}  // namespace weft::p2p
