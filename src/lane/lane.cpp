#include "lane/lane.hpp"

#include <cstdlib>
#include <new>

#include "base/assert.hpp"
#include "os/clock.hpp"
#include "os/process.hpp"

namespace weft::lane {

static uint32_t length_of(const Fifo& f) {
    uint32_t n = 0;
    for (const Link* i = f.head; i != nullptr; i = i->next) ++n;
    return n;
}

bool Lane::is_sound() const {
    uint32_t posted_now = 0, kept = 0, queued = length_of(rndvs);
    for (uint32_t i = 0; i <= posted.mask; ++i) posted_now += length_of(posted.buckets[i]);
    for (const Ring2* n = unexpected_all.next; n != &unexpected_all; n = n->next) ++kept;
    for (int i = 0; i < peers.count(); ++i)
        if (peers.has(i) && peers[i].peer != i) return false;
    for (const Link* n = pending_peers.head; n != nullptr; n = n->next) queued += length_of(static_cast<const PeerState*>(n)->pending);
    return posted_now == posted_count && kept == unexpected_count.load(std::memory_order_relaxed) &&
           queued == work.load(std::memory_order_relaxed) && peers.none.awaiting == 0 && peers.none.pending.empty() &&
           peers.none.unexpected_bytes == 0 && shm.is_sound();
}

bool Lane::ask_for_heap(int i) {
    Peer& to = peer(i);
    const bool near = to.wire == Peer::shm && to.node == peer(self).node;
    const wire::shm::Sharing shares = near ? shm.sharing_of(to.index) : wire::shm::Sharing::nothing;
    const bool heap_too = shares == wire::shm::Sharing::heap;
    if (shares != wire::shm::Sharing::unknown) to.heap.store(heap_too ? 1 : -1, std::memory_order_relaxed);
    return heap_too;
}

Err Lane::open_sock(int count, const wire::sock::Key& key) {
    sock = static_cast<wire::sock::Sock*>(aligned_alloc(64, (sizeof(wire::sock::Sock) + 63) / 64 * 64));
    if (sock == nullptr) return fail(Err::no_mem, "no memory for the sockets to %d ranks", count);
    new (sock) wire::sock::Sock();
    shm.sockets = sock;
    return sock->open(key, count, self);
}

Err Lane::open_shm(int count, char* base, bool can_fence) {
    at_shm_ = static_cast<int32_t*>(malloc(static_cast<size_t>(count) * sizeof(int32_t)));
    if (at_shm_ == nullptr) return fail(Err::no_mem, "no memory for the wire to %d ranks", count);
    int ranks = 0;
    for (int i = 0; i < count; ++i)
        if (table[i].wire == Peer::shm) at_shm_[table[i].index] = i, ++ranks;
    WEFT_TRY(shm.open(base, ranks, table[self].index, can_fence, limits.claim_lines, at_shm_));
    want_eager(limits.cma && limits.split_cma ? rendezvous_min - 1 : INT32_MAX);
    return Err::ok;
}

Err Lane::open(Peer* others, int count, int me, char* base, bool can_fence, const wire::sock::Key* key) {
    for (Ring2& b : unexpected_first) b.make_head();
    unexpected_all.make_head();
    unexpected_pool.open();
    control_pool.open();
    table = others;
    self = me;
    if (!peers.open(count)) return fail(Err::no_mem, "no memory for the state of %d peers", count);
    for (uint32_t i = 0; i < wire::shm::transfers_per_rank; ++i)
        transfers_free[i] = static_cast<uint16_t>(wire::shm::transfers_per_rank - 1 - i);
    transfers_free_count = wire::shm::transfers_per_rank;
    if (key != nullptr) WEFT_TRY(open_sock(count, *key));
    if (key != nullptr && base != nullptr) WEFT_TRY(sock->accept_wakes());
    return base != nullptr ? open_shm(count, base, can_fence) : Err::ok;
}

bool Lane::is_quiet(uint64_t now_ns) {
    const uint32_t now = shm.cells_received();
    if (now == heard.load(std::memory_order_relaxed)) return now_ns - heard_ns.load(std::memory_order_relaxed) >= quiet_ns;
    heard_ns.store(now_ns, std::memory_order_relaxed);
    heard.store(now, std::memory_order_relaxed);
    return false;
}

Err Lane::open_null() {
    null = static_cast<wire::null::Null*>(aligned_alloc(64, sizeof(wire::null::Null)));
    if (null == nullptr) return fail(Err::no_mem, "no memory for the null wire");
    return Err::ok;
}

Lane* renew(Lane* before, uint16_t number) {
    Lane* l = before;
    if (l == nullptr) {
        l = static_cast<Lane*>(aligned_alloc(alignof(Lane), sizeof(Lane)));
        if (l == nullptr) return nullptr;
        new (l) Lane();
    } else {
        const Pool requests = l->requests, persistent = l->persistent_pool, rndv = l->rndv_pool, transfers = l->transfer_pool;
        new (l) Lane();
        l->requests = requests;
        l->persistent_pool = persistent;
        l->rndv_pool = rndv;
        l->transfer_pool = transfers;
    }
    l->request_head.lane = number;
    l->rndv_ids = l->send_ids = Ids(number);
    return l;
}

void Lane::close() {
    WEFT_ASSERT(table == nullptr || is_sound());
    if (shm.ranks > 0) shm.close();
    if (sock != nullptr) sock->close();
    free(sock);
    free(at_shm_);
    sock = nullptr;
    shm.sockets = nullptr;
    at_shm_ = nullptr;
    rndv_ids.close();
    send_ids.close();
    if (posted.buckets != posted_first) ::free(posted.buckets);
    if (unexpected.buckets != unexpected_first) ::free(unexpected.buckets);
    unexpected_pool.close();
    control_pool.close();
    peers.close();
    table = nullptr;
    free(null);
    null = nullptr;
}

uint64_t Wires::ran_ns() const {
    const int self = os::process_id();
    uint64_t sum = os::ran_ns(self);
    for (int i = 0; i < shm.ranks; ++i)
        if (const int other = shm.pid(i); other != 0 && other != self) sum += os::ran_ns(other);
    return sum;
}

void Idler::disturb(Lane& l) {
    l.disturbed_until.store(os::now_ns() + disturbed_ns, std::memory_order_relaxed);
    if (l.limits.shared_cpus) ask_for_short_slices();
}

void Idler::ask_for_short_slices() {
    static thread_local constinit bool asked = false;
    if (!asked) os::ask_for_slices(slice_ns);
    asked = true;
}

// Whether processes other than the node's ranks have had half a CPU or more since a long yield some slices ago. Threads that come here
// at once may mix up their moments: a wrong answer costs time, and not for long.
bool Idler::others_ran(Lane& l) {
    const uint64_t now = os::now_ns(), passed = now - l.use_before.at_ns.load(std::memory_order_relaxed);
    if (passed < short_while_ns) return false;
    const uint64_t ran = l.ran_ns(), ours = ran - l.use_before.ran_ns.exchange(ran, std::memory_order_relaxed);
    l.use_before.at_ns.store(now, std::memory_order_relaxed);
    return passed < long_while_ns && ours + passed / 2 < passed * l.limits.node_cpus;
}

// Relaxed, and increments may be lost where threads yield at once: the count only tells few from many.
bool Idler::yielded(Lane& l, uint64_t cycles) {
    const uint32_t quick = l.quick_yields.load(std::memory_order_relaxed);
    l.quick_yields.store(cycles < long_cycles ? quick + 1 : 0, std::memory_order_relaxed);
    if (cycles < long_cycles) return false;
    const bool others = others_ran(l);
    if (others && quick < few_yields) disturb(l);
    return others && quick < few_yields;
}

// Yields, and tells the other ranks that this one is away meanwhile.
void Idler::give_cpu(Lane& l) {
    const bool tells = l.limits.shared_cpus && l.shm.ranks > 1;
    if (tells) l.shm.leave_cpu();
    os::yield_cpu();
    l.yielded_at.store(os::cycles(), std::memory_order_relaxed);
    if (tells) l.shm.have_cpu();
}

void Idler::yield(Lane& l) {
    const uint64_t before = os::cycles();
    give_cpu(l);
    (void)yielded(l, os::cycles() - before);
}

bool Rest::stays(int partner) {
    const uint32_t away = partner == nobody ? 1 : lane_.shm.away(partner);
    if (away & 1) return false;
    const uint64_t now = os::cycles();
    if (since_ == 0 || away != seen_) {
        since_ = now;
        seen_ = away;
    }
    return now - since_ < stay_cycles && now - lane_.yielded_at.load(std::memory_order_relaxed) < turn_cycles;
}

void Rest::between_looks(int partner) {
    if (stays(partner)) return os::pause_cpu();
    ++yields_;
    Idler::yield(lane_);
}

Idler::Step Idler::idle(bool crowded) {
    const uint64_t now = os::cycles(), passed = now - cycles_;
    bool taken = false;
    if (polls_ != 0 && rests_) {
        taken = gave_ && yielded(lane_, passed);
    } else if (polls_ != 0 && !lane_.limits.shared_cpus && passed >= long_cycles) {
        disturb(lane_);
        taken = true;
    }
    cycles_ = now;
    if (++polls_ >= lane_.limits.spin_polls) {
        const uint32_t more = polls_ - lane_.limits.spin_polls;
        // Reading the clock takes as long as a poll, so it is read at every eighth only.
        if (more % 8 == 0 || taken)
            if (const Step next = look_at_clock(more == 0, crowded); next != Step::poll) return next;
        gave_ = rests_ && !rest_.stays(partner_);
        if (gave_) {
            give_cpu(lane_);
            return Step::poll;
        }
    }
    os::pause_cpu();
    return Step::poll;
}

Idler::Step Idler::look_at_clock(bool first, bool crowded) {
    now_ns_ = os::now_ns();
    if (began_ns_ == 0) began_ns_ = listened_ns_ = now_ns_;
    if (first) since_ns_ = now_ns_;
    if (now_ns_ - listened_ns_ >= listen_ns) {
        listened_ns_ = now_ns_;
        return Step::listen;
    }
    const bool disturbed = is_disturbed(lane_, now_ns_);
    rests_ = !disturbed && !crowded && (lane_.limits.shared_cpus || lane_.threads);
    if (crowded) ask_for_short_slices();
    uint64_t limit = lane_.limits.sleep_ns;
    if (disturbed && alone_spin_ns < limit) limit = alone_spin_ns;
    if ((crowded || (disturbed && lane_.limits.shared_cpus)) && shared_spin_ns < limit) limit = shared_spin_ns;
    return now_ns_ - since_ns_ >= limit ? Step::sleep : Step::poll;
}

void Sleep::begin(Lane& l) {
    lane_ = &l;
    seen_ = l.local_word.load(std::memory_order_acquire);
    at_wires_ = {};
    l.sleepers.fetch_add(1, std::memory_order_seq_cst);
    // Who completes one without the guard stores, and then loads `sleepers`, without a fence: this one is for both (docs/memory-order.md).
    if (l.unguarded.load(std::memory_order_relaxed) != 0) (void)os::heavy_fence();
    LaneGuard g(l);
    ++l.counters.sleeps;
    if (l.any()) at_wires_ = l.sleep_prepare();
}

void Sleep::end() {
    if (lane_->any()) lane_->sleep_end();
    lane_->sleepers.fetch_sub(1, std::memory_order_relaxed);
}

bool Sleep::is_word(os::FutexWait* at) const {
    if (lane_->sock != nullptr) return false;
    if (lane_->any()) *at = {&lane_->shm.mailbox(lane_->shm.me)->word, at_wires_.shm};
    else *at = {&lane_->local_word, seen_};
    return true;
}

void Sleep::sleep(uint32_t timeout_us) {
    if (lane_->any()) lane_->sleep(at_wires_, timeout_us);
    else os::futex_wait(lane_->local_word, seen_, timeout_us);
}

uint32_t Sleep::longest_us(uint32_t timeout_us) const {
    constexpr uint32_t while_polled_us = 1000;
    const bool woken = lane_->shm.ranks <= 1 || lane_->shm.wakes_sleepers();
    return woken || timeout_us < while_polled_us ? timeout_us : while_polled_us;
}

void sleep_at(Sleep* sleeps, int n, uint32_t timeout_us) {
    os::FutexWait words[most_lanes];
    Sleep* at_sockets = nullptr;
    int count = 0;
    for (int i = 0; i < n; ++i) {
        timeout_us = sleeps[i].longest_us(timeout_us);
        if (sleeps[i].is_word(&words[count])) ++count;
        else at_sockets = &sleeps[i];
    }
    if (n == 1) return sleeps[0].sleep(timeout_us);
    if (at_sockets != nullptr) return at_sockets->sleep(timeout_us);   // what comes by the other lanes wakes it there, too
    os::futex_wait_any(words, count, timeout_us);
}

}  // namespace weft::lane
