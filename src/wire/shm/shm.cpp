#include "wire/shm/shm.hpp"

#include <cstdlib>

#include "os/memory.hpp"
#include "wire/sock/sock.hpp"

namespace weft::wire::shm {

Err Shm::open(char* base, int node_ranks, int node_rank, bool can_fence, bool claim_lines, const int32_t* peers) {
    base_ = base;
    layout_ = Layout{node_ranks};
    ranks = node_ranks;
    me = node_rank;
    claim.start(claim_lines);
    can_fence_.store(can_fence, std::memory_order_relaxed);
    all_polled.store(ranks <= always_polled || !can_fence, std::memory_order_relaxed);
    peers_ = peers;
    ends_.none.out.control = ends_.none.in.control = &no_control_;
    ends_.none.in.cells = &no_cell_;
    ends_.none.in.next_chunk.store(no_cell_.payload, std::memory_order_relaxed);
    static_assert(turn(0) == 1, "no_cell_ is the next");
    if (!ends_.open(ranks)) return fail(Err::no_mem, "no memory for the ends of %d rings", ranks);
    WEFT_TRY(pool.open(ranks));
    active_ = static_cast<In**>(malloc(static_cast<size_t>(ranks) * sizeof(In*)));
    if (active_ == nullptr) return fail(Err::no_mem, "no memory to poll %d rings", ranks);
    pool_base_ = base + layout_.pool(me);
    if (all_polled.load(std::memory_order_relaxed) && !activate_all()) return fail(Err::no_mem, "no memory to poll %d rings", ranks);
    mailbox(me)->pid.store(os::process_id(), std::memory_order_release);
    return Err::ok;
}

bool Shm::connect(int peer) {
    return ends_.make(peer, [&](Ends& e) {
        e.out.cells = reinterpret_cast<Ring*>(base_ + layout_.ring(peer, me))->cells;
        e.out.limit = ring_cells;
        e.out.control = control(peer, me);
        e.out.blocks.tail = &e.out.tail;
        e.out.blocks.consumed = &e.out.control->consumed;
        pool.connect(e.out.blocks);
        e.in.cells = reinterpret_cast<Ring*>(base_ + layout_.ring(me, peer))->cells;
        e.in.control = control(me, peer);
        e.in.pool = base_ + layout_.pool(peer);
        e.in.next_chunk.store(e.in.pool, std::memory_order_relaxed);
        e.in.index = peer;
        e.in.peer = peers_ != nullptr ? peers_[peer] : peer;
    }) != nullptr;
}

void Shm::close() {
    ends_.close();
    free(active_);
    pool.close();
    active_ = nullptr;
    active_count = 0;
    ranks = 0;
}

bool Shm::is_sound() const {
    if (active_ == nullptr) return true;  // not open, or not to the end for want of memory
    if (ends_.none.out.limit != 0 || ends_.none.in.head.load(std::memory_order_relaxed) != 0) return false;
    for (int p = 0; p < ranks; ++p) {
        const Out& o = to(p);
        const In& i = from(p);
        if (!is_connected(p)) continue;
        if (i.index != p) return false;
        const uint32_t unread = o.tail - o.control->consumed.load(std::memory_order_acquire);
        const uint32_t head = i.head.load(std::memory_order_relaxed);
        if (unread > ring_cells || o.limit - o.tail > ring_cells) return false;
        if (head - i.published > ring_cells || i.control->consumed.load(std::memory_order_relaxed) != i.published) return false;
        if (o.held != 0 && o.limit != o.tail) return false;
    }
    return ranks == 0 || pool.is_sound();
}

bool Shm::refresh(int peer) {
    if (!connect(peer)) return false;
    Out& o = to(peer);
    if (o.held) return false;
    o.limit = o.control->consumed.load(std::memory_order_acquire) + ring_cells;  // pairs with publish()
    o.over_credit = o.control->over_credit.load(std::memory_order_relaxed);
    if (o.tail == o.limit) return false;
    if (WEFT_UNLIKELY(o.over_credit != 0)) o.limit = o.tail + 1;
    return true;
}

bool Shm::has_room(int peer, uint32_t cells, size_t chunk) {
    if (reserve(peer) == nullptr) return false;
    Out& o = to(peer);
    if (o.limit - o.tail < cells && (!refresh(peer) || o.limit - o.tail < cells)) return false;
    return pool.has_room(o.blocks, cells, static_cast<uint32_t>(chunk));
}

// After an increment of Mailbox::word. A thread sleeps at that word or, where it waits for both wires, at its rank's sockets.
void Shm::end_sleeps_of(int peer) const {
    os::futex_wake(mailbox(peer)->word);
    if (sockets != nullptr) sockets->wake(peers_[peer]);
}

void Shm::ring_doorbell(int peer) {
    Mailbox* d = mailbox(peer);
    // If the bit is still set, an earlier doorbell has already woken the peer.
    const uint64_t bit = 1ull << (me % 64);
    if ((d->doorbells[me / 64].fetch_or(bit, std::memory_order_seq_cst) & bit) != 0) return;
    d->word.fetch_add(1, std::memory_order_seq_cst);
    if (d->asleep.load(std::memory_order_seq_cst) != 0) end_sleeps_of(peer);
}

void Shm::wake(int peer) const {
    Mailbox* d = mailbox(peer);
    if (d->asleep.load(std::memory_order_seq_cst) == 0) return;
    d->word.fetch_add(1, std::memory_order_seq_cst);
    end_sleeps_of(peer);
}

void Shm::activate(In& i) {
    i.busy = true;
    if (!i.active) {
        i.active = true;
        active_[active_count++] = &i;
    }
    if (unpolled_ == 0) i.control->polled.store(1, std::memory_order_relaxed);
}

// False when out of memory for some of them.
bool Shm::activate_all() {
    bool all = true;
    for (int p = 0; p < ranks; ++p) {
        if (p == me) continue;
        if (connect(p)) activate(from(p));
        else all = false;
    }
    return all;
}

void Shm::answer_doorbells() {
    Mailbox* d = mailbox(me);
    for (int w = 0; w * 64 < ranks; ++w) {
        // In the total order with ring_doorbell() and sleep_prepare(): a sleeper finds the doorbell of a sender that did not see it asleep.
        if (d->doorbells[w].load(std::memory_order_seq_cst) == 0) continue;
        uint64_t bits = d->doorbells[w].exchange(0, std::memory_order_acquire);  // pairs with ring_doorbell()
        for (; bits != 0; bits &= bits - 1) {
            const int peer = w * 64 + __builtin_ctzll(bits);
            if (WEFT_LIKELY(connect(peer))) activate(from(peer));
            else d->doorbells[w].fetch_or(bits & -bits, std::memory_order_relaxed);   // out of memory: again later
        }
    }
    if (++polls_ % 8192 == 0 && active_count > always_polled) sweep();
}

// Stops polling the rings that had no traffic since the last sweep.
void Shm::sweep() {
    bool any = false;
    for (int k = 0; k < active_count; ++k) {
        In& i = *active_[k];
        if (i.busy) continue;
        i.control->polled.store(0, std::memory_order_relaxed);
        any = true;
    }
    if (any && !os::heavy_fence()) {
        // Without the fence no ring may stop being polled: from now on all are polled, and doorbells are ignored.
        if (activate_all()) all_polled.store(true, std::memory_order_release);   // pairs with peek()
        return;
    }
    // A message written before the writer could see polled == 0 is visible now: such a ring stays active.
    int kept = 0;
    for (int k = 0; k < active_count; ++k) {
        In& i = *active_[k];
        if (i.busy || ready(i)) {
            i.busy = false;
            if (unpolled_ == 0) i.control->polled.store(1, std::memory_order_relaxed);
            active_[kept++] = &i;
        } else {
            i.active = false;
        }
    }
    active_count = kept;
}

bool Shm::peek() const {
    if (!all_polled.load(std::memory_order_acquire)) return true;  // the list of active rings may change: the caller must take the guard
    for (int k = 0; k < active_count; ++k)
        if (ready(*active_[k])) return true;
    return false;
}

uint32_t Shm::sleep_prepare() {
    Mailbox* d = mailbox(me);
    const uint32_t seen = d->word.load(std::memory_order_acquire);
    d->asleep.fetch_add(1, std::memory_order_seq_cst);
    // Clears all doorbells, so that the next one is rung anew and wakes this rank; the caller's poll finds what the old ones announced.
    // Where not all rings are polled, answer_doorbells() also makes the rings active that they name.
    if (all_polled.load(std::memory_order_relaxed))
        for (int w = 0; w * 64 < ranks; ++w) d->doorbells[w].exchange(0, std::memory_order_seq_cst);
    else answer_doorbells();
    stop_polling();
    return seen;
}

void Shm::stop_polling() {
    const bool polled = unpolled_ == 0;
    unpolled_ = messages_to_resume;
    if (!polled) return;
    for (int k = 0; k < active_count; ++k) active_[k]->control->polled.store(0, std::memory_order_relaxed);
    if (can_fence_.load(std::memory_order_relaxed) && !os::heavy_fence()) can_fence_.store(false, std::memory_order_relaxed);
}

// Not while a thread of this rank sleeps: the polling thread may leave MPI, and then only a doorbell wakes the sleeping one.
void Shm::resume_polling() {
    if (mailbox(me)->asleep.load(std::memory_order_relaxed) != 0) {
        unpolled_ = messages_to_resume;
        return;
    }
    for (int k = 0; k < active_count; ++k) active_[k]->control->polled.store(1, std::memory_order_relaxed);
}

void Shm::sleep(uint32_t seen, uint32_t timeout_us) {
    os::futex_wait(mailbox(me)->word, seen, can_fence_.load(std::memory_order_relaxed) ? timeout_us : 1000);
}

void Shm::wake_self() {
    Mailbox* d = mailbox(me);
    d->word.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake(d->word);
}

}  // namespace weft::wire::shm
