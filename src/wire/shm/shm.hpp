// The shared-memory wire: one ring per ordered pair of ranks, and one mailbox per rank. A send writes one cache line that
// its receiver is polling; nothing else is shared on that path. Ends belong to one lane and are touched under its guard,
// except peek(), which any thread may call.
//
// Finding the non-empty rings: a rank polls its active rings only. A writer whose ring is not polled rings the bell
// (a bit in the reader's mailbox). The reader that stops polling pays for it: it clears `polled`, fences all cores
// (os::heavy_fence), and polls once more; writers just load a flag. The fence interrupts other CPUs (15 us), so after a sleep
// the rings stay unpolled, and writers go on ringing, until 64 messages have come without another sleep.
#pragma once
#include "base/copy.hpp"
#include "os/futex.hpp"
#include "wire/shm/claim.hpp"
#include "wire/shm/layout.hpp"

namespace weft::wire::shm {

struct Shm {
    static constexpr uint32_t mask = ring_cells - 1;
    static constexpr int always_polled = 16;   // with at most this many ranks, every ring is always active

    // The sending end to one peer.
    struct alignas(64) Out {
        Cell* cells;
        uint32_t tail;          // next cell to write, free-running
        uint32_t limit;         // first one that is not known to be free
        Control* control;
        bool awaited;           // before the chunk reserved last, one had come from the peer: it may be waiting for this one
        uint32_t held;          // the owner has queued sends for this peer: reserve() finds nothing
        uint32_t over_credit;   // what the ring said at the last refresh(), see within_credit()
    };
    // The receiving end from one peer.
    struct alignas(64) In {
        Cell* cells;
        std::atomic<uint32_t> head;   // next cell to read, free-running; written under the guard, peeked at without
        uint32_t published;           // `consumed` as last stored
        Control* control;
        const char* pool;             // of `peer`
        int32_t peer;
        bool active;
        bool busy;                    // had traffic since the last sweep
        bool heard;                   // a chunk has come since this rank's last one to `peer`
    };

    // Maps its structures onto [base, base + Layout::bytes()). Err::no_mem when out of memory.
    Err open(char* base, int ranks, int me, bool can_fence, bool claim_lines = false);
    void close();
    // For assertions: no ring holds more than it has cells, no end is ahead of the other, the pool is sound.
    bool is_sound() const;

    WEFT_INLINE Cell* reserve(int peer) { return reserve(out[peer]); }
    WEFT_INLINE void commit(int peer, Cell* c, const Header& h) { commit(peer, out[peer], c, h); }
    void discard(int, Cell*) {}   // neither a cell nor a chunk is taken before commit()

    WEFT_INLINE Cell* reserve(Out& o) {
        if (WEFT_UNLIKELY(o.tail == o.limit) && !refresh(o)) return nullptr;
        return &o.cells[o.tail & mask];
    }

    // The same without a look at what the reader has freed since, and so without a call.
    WEFT_INLINE Cell* reserve_known(Out& o) { return WEFT_LIKELY(o.tail != o.limit) ? &o.cells[o.tail & mask] : nullptr; }

    WEFT_INLINE void commit(int peer, Out& o, Cell* c, const Header& h) {
        c->tag = h.tag;
        c->context = h.context;
        // Release: pairs with the acquire load in poll() and ready(); the payload and the bulk chunk become visible with it.
        c->word.store(Cell::pack(h) | turn(o.tail), std::memory_order_release);
        ++o.tail;
        if (h.flags & has_bulk) pool.commit(peer);
        notify(peer, o);
    }
    // Something that `peer` may be waiting for has been stored: if it does not poll, it is woken.
    WEFT_INLINE void notify(int peer) { notify(peer, out[peer]); }
    WEFT_INLINE void notify(int peer, const Out& o) {
        // The reader that clears `polled` fences for us, so a plain load after the store is enough (see sleep_prepare).
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (WEFT_UNLIKELY(o.control->polled.load(std::memory_order_relaxed) == 0)) ring_doorbell(peer);
    }

    // `bytes` <= largest_chunk.
    char* reserve_bulk(int peer, size_t bytes, BulkRef* ref);
    // A chunk has been written in the place reserved last. Where it is small and `peer` seems to wait for it, its lines leave this
    // core's own caches: of larger ones the reader's loads overlap, and a stream's are best left alone.
    WEFT_INLINE void written(int peer, const char* chunk, size_t bytes) {
        if (out[peer].awaited && bytes <= demoted_bytes) demote(chunk, bytes);
    }
    // Whether `cells` cells with up to `chunk` bytes of bulk each surely fit now. Reserves nothing.
    bool has_room(int peer, uint32_t cells, size_t chunk);

    // Credit. The reader says when it keeps more of what `peer` sent than its credit allows. The writer reads that with the line of
    // freed cells, so only when its ring looks full; while over credit its ring always looks full, so every message comes by there.
    void tell_over_credit(int peer, bool over) { in[peer].control->over_credit.store(over, std::memory_order_relaxed); }
    bool within_credit(int peer) {
        Out& o = out[peer];
        if (o.tail == o.limit) (void)refresh(o);
        return o.over_credit == 0;
    }

    // Up to how many bytes this rank, or `peer`, wants messages eagerly; 0: it has not said so yet.
    void want_eager(uint32_t bytes) { mailbox(me)->eager_max.store(bytes, std::memory_order_relaxed); }
    uint32_t eager_wanted_by(int peer) const { return mailbox(peer)->eager_max.load(std::memory_order_relaxed); }

    // While held, reserve() finds nothing for `peer`: sends queue behind those that already wait.
    void hold(int peer) {
        out[peer].held = 1;
        out[peer].limit = out[peer].tail;
    }
    void unhold(int peer) { out[peer].held = 0; }

    // The line that a ring's next message comes in, and what was seen there. Any thread may look; under the guard it is still
    // the next one if head is `index`, and then nothing of it needs to be read again.
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
    // Whether `peer`'s next message is there. Any thread; a hint until the guard is taken.
    WEFT_INLINE bool ready(int peer) const { return look(in[peer]).here(); }
    // Whether any message may be there. Any thread.
    bool peek() const;

    // Hands over what has arrived: at most `burst` messages per ring.
    template <class S>
    bool poll(S&& sink) {
        bool moved = false;
        if (WEFT_UNLIKELY(!all_polled.load(std::memory_order_relaxed))) answer_doorbells();
        for (int i = 0; i < active_count; ++i)
            moved |= poll_from(in[active[i]], sink);
        return moved;
    }
    template <uint32_t burst = 64, class S>
    bool poll_from(In& i, S&& sink) {
        uint32_t h = i.head.load(std::memory_order_relaxed);
        const uint32_t start = h;
        // In a burst the lines that come next are called for while this one is handled; where lines are claimed they are here. (At
        // the end of a lap these are lines of another ring instead: to mask them off costs more than they do.)
        const size_t ahead = claim.on ? 0 : 4 * sizeof(Cell);
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
        give_back(i, h);
        return true;
    }
    WEFT_INLINE const char* chunk_at(const In& i, BulkRef ref) const {
        return i.pool + ref.offset;
    }
    // memcpy out of a chunk, for the last time.
    void copy_out(void* to, const char* chunk, size_t bytes) const {
        if (claim.on) claim.copy(to, chunk, bytes);
        else memcpy(to, chunk, bytes);
    }
    // The same for a chunk that was read otherwise.
    void claim_lines(const char* chunk, size_t bytes) const {
        if (claim.on) claim_each(chunk, bytes);
    }
    // The reader is done with the next message.
    WEFT_INLINE void consumed(In& i, const Next& n) {
        if (claim.on) n.cell->payload[inline_bytes - 1] = 0;   // read already
        consumed(i, n.index + 1);
    }
    // The same, and with its chunk.
    void consumed_chunk(In& i, const Next& n) {
        consumed(i, n);
        tell_chunk_read(i);
    }
    // The reader is done with all cells before `h`. The writer is told only every quarter of a lap: it looks when it is full.
    WEFT_INLINE void consumed(In& i, uint32_t h) {
        i.head.store(h, std::memory_order_relaxed);
        i.busy = true;
        if (WEFT_UNLIKELY(h - i.published >= ring_cells / 4)) publish(i, h);
    }
    void publish(In& i, uint32_t h) {
        const uint32_t messages = h - i.published;
        i.published = h;
        i.control->consumed.store(h, std::memory_order_release);  // pairs with refresh() and the pool's looks
        notify(i.peer);                                           // it may wait for room
        if (WEFT_LIKELY(unpolled_ == 0)) return;
        unpolled_ -= messages < unpolled_ ? messages : unpolled_;
        if (unpolled_ == 0) resume_polling();
    }

    // Sleeping, for any number of threads. sleep_prepare() makes every sender ring the bell; then the caller polls once more,
    // and if that finds nothing calls sleep() with what sleep_prepare() returned, and in any case wake(). Prepare is called
    // under the guard. Without the heavy fence, sleep() returns after a millisecond.
    uint32_t sleep_prepare();
    void sleep(uint32_t seen, uint32_t timeout_us);
    void wake() { mailbox(me)->asleep.fetch_sub(1, std::memory_order_seq_cst); }
    // Wakes whoever sleeps at this rank's own mailbox (another thread of this process).
    void wake_self();

    int pid(int peer) const { return mailbox(peer)->pid.load(std::memory_order_acquire); }
    Control* control(int to, int from) const { return reinterpret_cast<Control*>(base_ + layout_.control(to, from)); }
    Mailbox* mailbox(int r) const { return reinterpret_cast<Mailbox*>(base_ + layout_.mailbox(r)); }
    Transfer* transfer(int r, uint32_t i) const {
        return reinterpret_cast<Transfer*>(base_ + layout_.transfers(r)) + i;
    }

    // The lap, from 1 on, modulo 256: never what the cell held a lap ago, and fresh memory holds 0.
    WEFT_INLINE static uint8_t turn(uint32_t index) { return static_cast<uint8_t>((index >> ring_cells_log2) + 1); }

    Out* out = nullptr;
    In* in = nullptr;
    int ranks = 0, me = 0;
    int active_count = 0;
    Claim claim{};
    Pool pool;                            // where the chunks lie that this rank sends
    std::atomic<bool> all_polled{true};   // turns true when the heavy fence stops working; peeked at without the guard

    static constexpr uint32_t demoted_bytes = 1024;     // docs/experiments/008-who-copies.md

private:
    bool refresh(Out& o);
    // A chunk is told of at once: its writer may wait for no other.
    void tell_chunk_read(In& i) {
        i.heard = true;
        if (const uint32_t h = i.head.load(std::memory_order_relaxed); h != i.published) publish(i, h);
    }
    // The reader is done with all cells before `h`.
    WEFT_INLINE void give_back(In& i, uint32_t h) {
        if (claim.on)
            for (uint32_t k = i.head.load(std::memory_order_relaxed); k != h; ++k) i.cells[k & mask].payload[inline_bytes - 1] = 0;
        consumed(i, h);
    }
    // Hands a cell over that the sink has not taken as it is. A call, and with copies of what it needs, so that the loop of those that are taken keeps
    // all in registers. False: it stays there.
    template <class S>
    __attribute__((noinline)) bool deliver(In& i, uint32_t index, S sink) {
        const Next n = look_at(i, index);
        const Header header = n.cell->header(n.word);
        if (!(header.flags & has_bulk)) return sink.arrive(i.peer, header, n.cell->payload, nullptr);
        BulkRef ref;
        memcpy(&ref, n.cell->payload, sizeof ref);
        if (!sink.arrive(i.peer, header, n.cell->payload, chunk_at(i, ref))) return false;
        give_back(i, n.index + 1);
        tell_chunk_read(i);
        return true;
    }
    WEFT_COLD void ring_doorbell(int peer);
    WEFT_COLD void answer_doorbells();
    void activate(int peer);
    void sweep();
    void stop_polling();
    WEFT_COLD void resume_polling();

    int* active = nullptr;
    char* base_ = nullptr;
    char* pool_base_ = nullptr;
    Layout layout_{0};
    std::atomic<bool> can_fence_{false};   // any thread that sleeps may find out that it cannot
    uint32_t polls_ = 0;
    // Not 0: all rings are unpolled since the last sleep, until as many messages more have come.
    static constexpr uint32_t messages_to_resume = 64;
    uint32_t unpolled_ = 0;
};

static_assert(Wire<Shm>);

}  // namespace weft::wire::shm
