// The shared-memory wire: one ring per ordered pair of ranks, one pool of blocks per sender, one mailbox per rank. An inline send
// writes one cache line that its receiver is polling, and loads `polled`. Ends belong to one lane and are touched under its guard,
// except what is marked "any thread".
//
// Finding the non-empty rings: a rank polls its active rings only. A writer whose ring is not polled rings the doorbell
// (a bit in the reader's mailbox). The cost of that lies with the reader: before it stops polling a ring it clears `polled`, fences
// all cores (os::heavy_fence), and polls once more; a writer only loads a flag. The fence interrupts other CPUs (15 us), so after a
// sleep `polled` stays 0, and writers keep ringing, until 64 messages have come without another sleep.
//
// The two ends of a peer are made when they are first needed. Until then its entry points to a sentinel, whose sending end is full and
// whose receiving end shows a cell that no receive matches; so the short paths leave it to the slow ones without a test of their own.
#pragma once
#include "base/copy.hpp"
#include "base/sparse.hpp"
#include "os/futex.hpp"
#include "wire/shm/claim.hpp"
#include "wire/shm/layout.hpp"

namespace weft::wire::sock { struct Sock; }

namespace weft::wire::shm {

struct Shm {
    static constexpr uint32_t mask = ring_cells - 1;
    static constexpr uint8_t can = shared_memory | shared_descriptors;
    static constexpr uint32_t chunk_limit = largest_chunk;
    static constexpr int always_polled = 16;   // with at most this many ranks, every ring is always active

    // The sending end to one peer.
    struct alignas(64) Out {
        Cell* cells;
        uint32_t tail;          // next cell to write, free-running
        uint32_t limit;         // first cell that is not known to be free
        Control* control;
        Pool::Pair blocks;      // of the pool
        bool awaited;           // a chunk from the peer came before the one reserved last, so the peer may wait for this one
        uint32_t held;          // sends are queued for this peer, so reserve() returns null; see hold()
        uint32_t over_credit;   // Control::over_credit as read by the last refresh(); see within_credit()
    };
    // The receiving end from one peer.
    struct alignas(64) In {
        Cell* cells;
        std::atomic<uint32_t> head;   // next cell to read, free-running; written under the guard, read by any thread
        uint32_t published;           // `consumed` as last stored
        Control* control;
        const char* pool;             // where the peer's chunks lie
        int32_t index;                // on this wire
        int32_t peer;                 // the process's number for it, which sinks are told
        bool active;
        bool busy;                    // had traffic since the last sweep
        bool heard;                   // a chunk has come since this rank last reserved one for the peer
        std::atomic<const char*> next_chunk;   // where the peer's next chunk will lie, if it does not begin a new block; a hint that all may read
    };

    struct Ends {
        Out out;
        In in;
    };

    // Maps its structures onto [base, base + Layout::bytes()). Err::no_mem when out of memory. `peers`: the process's number for each rank
    // of the wire, kept by the caller; null: the rank.
    Err open(char* base, int ranks, int me, bool can_fence, bool claim_lines = false, const int32_t* peers = nullptr);
    // Makes the ends of `peer`, if they are not there. False when out of memory: again later.
    WEFT_COLD bool connect(int peer);
    // Any thread.
    bool is_connected(int peer) const { return ends_.has(peer); }
    void close();
    // For assertions: no ring holds more than it has cells, no end is ahead of the other, the pool is sound.
    bool is_sound() const;

    WEFT_INLINE Out& to(int peer) const { return ends_[peer].out; }
    WEFT_INLINE In& from(int peer) const { return ends_[peer].in; }   // any thread

    WEFT_INLINE Cell* reserve(int peer) {
        Out* o = &to(peer);
        if (WEFT_UNLIKELY(o->tail == o->limit)) {
            if (!refresh(peer)) return nullptr;
            o = &to(peer);
        }
        return &o->cells[o->tail & mask];
    }
    WEFT_INLINE void commit(int peer, Cell* c, const Header& h) { commit(peer, to(peer), c, h); }
    void discard(int, Cell*) {}   // nothing to undo: neither a cell nor a chunk counts as used before commit()

    // The same without reading what the reader has freed since, so without a call.
    WEFT_INLINE Cell* reserve_known(Out& o) { return WEFT_LIKELY(o.tail != o.limit) ? &o.cells[o.tail & mask] : nullptr; }

    WEFT_INLINE void commit(int peer, Out& o, Cell* c, const Header& h) {
        c->tag = h.tag;
        c->context = h.context;
        // Release: pairs with the acquire load in look_at(); the payload and the chunk become visible with it.
        c->word.store(Cell::pack(h) | turn(o.tail), std::memory_order_release);
        ++o.tail;
        if (h.flags & has_bulk) pool.commit(o.blocks);
        notify(peer, o);
    }
    // Call after a store that `peer` may be waiting for: rings the doorbell if the peer does not poll.
    WEFT_INLINE void notify(int peer) { notify(peer, to(peer)); }
    WEFT_INLINE void notify(int peer, const Out& o) {
        // The reader that clears `polled` fences for us, so a plain load after the store is enough (see sleep_prepare).
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (WEFT_UNLIKELY(o.control->polled.load(std::memory_order_relaxed) == 0)) ring_doorbell(peer);
    }

    // `bytes` <= largest_chunk.
    char* reserve_bulk(int peer, size_t bytes, BulkRef* ref) {
        Out& o = to(peer);
        return chunk_of(peer, o, static_cast<uint32_t>(bytes), pool.reserve(o.blocks, static_cast<uint32_t>(bytes)), ref);
    }
    // The same without looking for a block, so without a call.
    WEFT_INLINE char* reserve_bulk_known(int peer, Out& o, uint32_t bytes, BulkRef* ref) {
        return chunk_of(peer, o, bytes, Pool::reserve_here(o.blocks, bytes), ref);
    }
    // Call after writing the chunk reserved last. If it is small (demoted_bytes) and `peer` seems to wait for it, its lines are demoted
    // to the shared cache, where the reader's loads are faster. Larger chunks gain nothing, as their loads overlap; streams lose.
    WEFT_INLINE void written(int peer, const char* chunk, size_t bytes) {
        if (to(peer).awaited && bytes <= demoted_bytes) demote(chunk, bytes);
    }
    // Whether `cells` cells with a chunk of up to `chunk` bytes each are certain to fit now. Reserves nothing.
    bool has_room(int peer, uint32_t cells, size_t chunk);

    // Credit. The reader sets over_credit while it keeps more unexpected bytes of `peer` than its credit. The writer reads the flag
    // together with `consumed`, so only when its ring looks full. While over credit refresh() grants one cell at a time, so the ring
    // looks full at every message and every message reads the flag.
    void tell_over_credit(int peer, bool over) { from(peer).control->over_credit.store(over, std::memory_order_relaxed); }
    bool within_credit(int peer) {
        if (const Out& o = to(peer); o.tail == o.limit) (void)refresh(peer);
        return to(peer).over_credit == 0;
    }

    // Size up to which messages to this rank, or to `peer`, are better sent eagerly than by rendezvous; 0: not known yet.
    void want_eager(uint32_t bytes) { mailbox(me)->eager_max.store(bytes, std::memory_order_relaxed); }
    uint32_t eager_wanted_by(int peer) const { return mailbox(peer)->eager_max.load(std::memory_order_relaxed); }

    // While held, reserve() returns null for `peer`, so that new sends queue behind those that already wait. Its ends must be there.
    void hold(int peer) {
        to(peer).held = 1;
        to(peer).limit = to(peer).tail;
    }
    void unhold(int peer) { to(peer).held = 0; }

    // A ring's next cell and the word that was read from it. Any thread may look. If head is still `index` once the guard is taken,
    // no other thread has consumed the message, and `word` need not be read again.
    struct Next {
        uint32_t index;
        Cell* cell;
        uint64_t word;
        WEFT_INLINE bool here() const { return static_cast<uint8_t>(word) == turn(index); }
    };
    WEFT_INLINE static Next look_at(const In& i, uint32_t h) {
        Cell& c = i.cells[h & mask];
        return {h, &c, c.word.load(std::memory_order_acquire)};  // pairs with commit()
    }
    WEFT_INLINE static Next look(const In& i) { return look_at(i, i.head.load(std::memory_order_relaxed)); }
    // Whether its next message is there. Any thread; a hint until the guard is taken.
    WEFT_INLINE bool ready(const In& i) const { return look(i).here(); }
    // Whether any message may be there. Any thread.
    bool peek() const;

    // Delivers what has arrived: at most `burst` messages per ring.
    template <class S>
    bool poll(S&& sink) {
        bool moved = false;
        if (WEFT_UNLIKELY(!all_polled.load(std::memory_order_relaxed))) answer_doorbells();
        for (int i = 0; i < active_count; ++i)
            moved |= poll_from(*active_[i], sink);
        return moved;
    }
    template <uint32_t burst = 64, class S>
    bool poll_from(In& i, S&& sink) {
        uint32_t h = i.head.load(std::memory_order_relaxed);
        const uint32_t start = h;
        // Prefetches the line four cells ahead while this one is handled. (At the end of a lap that is a line of another ring; masking the
        // index would cost more than the useless prefetch.)
        constexpr size_t ahead = 4 * sizeof(Cell);
        while (h - start < burst) {
            const Next n = look_at(i, h);
            if (!n.here()) break;
            __builtin_prefetch(reinterpret_cast<const char*>(n.cell) + ahead);
            if (WEFT_LIKELY(sink.take(n.word, *n.cell))) {
                ++h;
                continue;
            }
            if (!deliver(i, h, sink)) break;
            ++h;
        }
        if (h == start) return false;
        free_cells(i, h);
        return true;
    }
    WEFT_INLINE const char* chunk_at(In& i, BulkRef ref) const {
        const char* chunk = i.pool + ref.offset;
        i.next_chunk.store(chunk + Pool::round_line(ref.bytes), std::memory_order_relaxed);
        return chunk;
    }
    // memcpy out of a chunk that is not read again; claims its lines where that is on.
    void copy_out(void* to, const char* chunk, size_t bytes) const {
        if (claim.on) claim.copy(to, chunk, bytes);
        else memcpy(to, chunk, bytes);
    }
    // Claims the lines of a chunk that was read by other means, where that is on.
    void claim_lines(const char* chunk, size_t bytes) const {
        if (claim.on) claim_each(chunk, bytes);
    }
    // Frees the cell of the next message.
    WEFT_INLINE void consumed(In& i, const Next& n) {
        if (claim.on) n.cell->payload[inline_bytes - 1] = 0;   // read already
        consumed(i, n.index + 1);
    }
    // The same for a message with a chunk.
    void consumed_chunk(In& i, const Next& n) {
        consumed(i, n);
        tell_chunk_read(i);
    }
    // Frees all cells before `h`. Published every quarter of a lap: the writer reads `consumed` only when its ring looks full.
    WEFT_INLINE void consumed(In& i, uint32_t h) {
        i.head.store(h, std::memory_order_relaxed);
        i.busy = true;
        if (WEFT_UNLIKELY(h - i.published >= ring_cells / 4)) publish(i, h);
    }
    void publish(In& i, uint32_t h) {
        const uint32_t messages = h - i.published;
        i.published = h;
        i.control->consumed.store(h, std::memory_order_release);  // pairs with refresh() and the pool's looks
        notify(i.index);                                           // it may wait for room
        if (WEFT_LIKELY(unpolled_ == 0)) return;
        unpolled_ -= messages < unpolled_ ? messages : unpolled_;
        if (unpolled_ == 0) resume_polling();
    }

    // Sleeping, for any number of threads. sleep_prepare(), called under the guard, makes every sender ring the doorbell. Then the
    // caller polls once more, calls sleep() with what sleep_prepare() returned if the poll found nothing, and sleep_end() in any case.
    // Without the heavy fence, sleep() returns after a millisecond.
    uint32_t sleep_prepare();
    void sleep(uint32_t seen, uint32_t timeout_us);
    // Whether all senders wake a sleeper, so that its sleep may be long. Any thread.
    bool wakes_sleepers() const { return can_fence_.load(std::memory_order_relaxed); }
    void sleep_end() { mailbox(me)->asleep.fetch_sub(1, std::memory_order_seq_cst); }
    // Wakes `peer` if it sleeps, for a store that it looks for by other means than a ring. The store and this, and the peer's
    // sleep_prepare() and its last look, must be sequentially consistent. Any thread.
    WEFT_COLD void wake(int peer) const;
    // Wakes whoever sleeps at this rank's own mailbox (another thread of this process).
    void wake_self();

    // Whether a pointer into the node's heap means the same to `peer`. Any thread.
    Sharing sharing_of(int peer) const { return static_cast<Sharing>(mailbox(peer)->shares.load(std::memory_order_acquire)); }
    void tell_sharing(bool heap) {
        mailbox(me)->shares.store(static_cast<uint32_t>(heap ? Sharing::heap : Sharing::nothing), std::memory_order_release);
    }

    // Lanes of `peer`; 0: it has not told yet. Any thread.
    uint32_t lanes_of(int peer) const { return mailbox(peer)->lanes.load(std::memory_order_acquire); }
    void tell_lanes(uint32_t count) { mailbox(me)->lanes.store(count, std::memory_order_release); }

    // What the peer tells of its CPU (Mailbox::away). Where it is not away it may have been interrupted, all the same.
    uint32_t away(int peer) const { return mailbox(peer)->away.load(std::memory_order_relaxed); }
    void leave_cpu() { mailbox(me)->away.store((away(me) + 2) | 1, std::memory_order_relaxed); }
    void have_cpu() { mailbox(me)->away.store(away(me) & ~1u, std::memory_order_relaxed); }

    int pid(int peer) const { return mailbox(peer)->pid.load(std::memory_order_acquire); }
    Control* control(int to, int from) const { return reinterpret_cast<Control*>(base_ + layout_.control(to, from)); }
    Mailbox* mailbox(int r) const { return reinterpret_cast<Mailbox*>(base_ + layout_.mailbox(r)); }
    Transfer* transfer(int r, uint32_t i) const {
        return reinterpret_cast<Transfer*>(base_ + layout_.transfers(r)) + i;
    }

    // The lap, from 1 on, modulo 256: never what the cell held a lap ago, and fresh memory holds 0.
    WEFT_INLINE static constexpr uint8_t turn(uint32_t index) { return static_cast<uint8_t>((index >> ring_cells_log2) + 1); }

    // Cells committed, modulo 2^32 for each peer.
    uint64_t cells_sent() const {
        uint64_t sum = 0;
        for (int i = 0; i < ranks; ++i) sum += to(i).tail;
        return sum;
    }

    // Cells consumed, modulo 2^32. Any thread.
    uint32_t cells_received() const {
        uint32_t sum = 0;
        for (int i = 0; i < ranks; ++i) sum += from(i).head.load(std::memory_order_relaxed);
        return sum;
    }

    int ranks = 0, me = 0;
    int active_count = 0;
    const sock::Sock* sockets = nullptr;  // where threads of this rank and its peers may sleep besides the mailboxes; null: nowhere
    Claim claim{};
    Pool pool;                            // of the chunks that this rank sends
    std::atomic<bool> all_polled{true};   // turns true when the heavy fence stops working; read without the guard

    static constexpr uint32_t demoted_bytes = 1024;     // docs/experiments/008-who-copies.md

private:
    bool refresh(int peer);
    WEFT_INLINE char* chunk_of(int peer, Out& o, uint32_t bytes, uint32_t at, BulkRef* ref) {
        if (WEFT_UNLIKELY(at == Pool::nowhere)) return nullptr;
        In& i = from(peer);
        o.awaited = i.heard;
        i.heard = false;
        *ref = BulkRef{at, bytes};
        return pool_base_ + at;
    }
    // Publishes at once that a chunk has been read: the writer may wait for this block.
    void tell_chunk_read(In& i) {
        i.heard = true;
        if (const uint32_t h = i.head.load(std::memory_order_relaxed); h != i.published) publish(i, h);
    }
    // Frees all cells before `h`, and claims their lines where that is on.
    WEFT_INLINE void free_cells(In& i, uint32_t h) {
        if (claim.on)
            for (uint32_t k = i.head.load(std::memory_order_relaxed); k != h; ++k) i.cells[k & mask].payload[inline_bytes - 1] = 0;
        consumed(i, h);
    }
    // Delivers a cell that sink.take() did not handle. Not inlined, and with copies of its arguments, so that poll_from()'s loop stays in
    // registers. False: the sink refused it, and it stays in the ring.
    template <class S>
    __attribute__((noinline)) bool deliver(In& i, uint32_t index, S sink) {
        const Next n = look_at(i, index);
        const Header header = n.cell->header(n.word);
        if (!(header.flags & has_bulk)) return sink.arrive(i.peer, header, n.cell->payload, nullptr);
        BulkRef ref;
        memcpy(&ref, n.cell->payload, sizeof ref);
        if (!sink.arrive(i.peer, header, n.cell->payload, chunk_at(i, ref))) return false;
        free_cells(i, n.index + 1);
        tell_chunk_read(i);
        return true;
    }
    WEFT_COLD void ring_doorbell(int peer);
    void end_sleeps_of(int peer) const;
    WEFT_COLD void answer_doorbells();
    void activate(In& i);
    bool activate_all();
    void sweep();
    void stop_polling();
    WEFT_COLD void resume_polling();

    Sparse<Ends> ends_;
    Cell no_cell_{{1}, 0, 0, {}};   // of no kind, and always the next: what the sentinel's receiving end shows
    Control no_control_{};
    In** active_ = nullptr;
    const int32_t* peers_ = nullptr;
    char* base_ = nullptr;
    char* pool_base_ = nullptr;
    Layout layout_{0};
    std::atomic<bool> can_fence_{false};   // any thread that sleeps may find out that it cannot
    uint32_t polls_ = 0;
    // Not 0: `polled` is 0 in all rings since the last sleep, until this many more messages have come.
    static constexpr uint32_t messages_to_resume = 64;
    uint32_t unpolled_ = 0;
};

static_assert(Wire<Shm>);

}  // namespace weft::wire::shm
