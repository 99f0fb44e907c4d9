// A lane owns all that one message touches: its lock, its match queues, its pools, its end of each wire. Included by obj/
// and above. Every field is touched under a LaneGuard, except those marked otherwise.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/list.hpp"
#include "base/object.hpp"
#include "base/pool.hpp"
#include "base/sparse.hpp"
#include "heap/owned.hpp"
#include "lane/counters.hpp"
#include "lane/queues.hpp"
#include "lane/records.hpp"
#include "lane/wires.hpp"
#include "lane/ids.hpp"
#include "lane/machine.hpp"
#include "lane/number.hpp"
#include "os/futex.hpp"
#include "os/spin.hpp"
#include "wire/null/null.hpp"

namespace weft::heap { struct Heap; struct Segment; }

namespace weft::lane {

// Bytes from which on a rendezvous may be faster; smaller messages are always sent eagerly, unless over credit.
inline constexpr int64_t rendezvous_min = 64 * 1024;
// Fragments are whole pages, so an eager message of so many bytes has one, whatever the settings and the wire.
inline constexpr int64_t least_fragment = 4096;

// An unexpected message's nodes in the buckets for wildcards (UnexpectedTable::by_wildcards).
struct WildNodes {
    Ring2 in[UnexpectedTable::kinds - 1];
    Unexpected* message;
};

// An unexpected message. It is on the list of all and on that of its bucket, both in order of arrival.
struct Unexpected {
    Ring2 in_all;
    Ring2 in_bucket;
    wire::Header header;
    int32_t peer;
    uint8_t sync;         // the sender waits for an SSEND_ACK
    uint8_t at_sender;    // an RTS, or a message to itself that was not copied: the sender has the data
    uint8_t ready;        // all data have arrived
    uint8_t given;        // `small` holds the address of a buffer that the sender gave away (p2p::Given)
    uint32_t transfer;    // index of the sender's descriptor, or no_transfer
    int64_t bytes;        // of the message
    uint64_t send;        // identity of the sender's record; for a message from this rank to itself the request's address
    Link* receive;        // the receive that matched it while data were still arriving
    char* data;           // heap copy, or null: `small`
    WildNodes* wild;      // while UnexpectedTable::by_wildcards, else null
    char small[wire::inline_bytes];

    static constexpr uint32_t no_transfer = UINT32_MAX;
    const char* bytes_at() const { return data != nullptr ? data : small; }
    // The message that owns a node: of the list of all; of a bucket for keys of `kind`.
    static Unexpected* of_all(Ring2* n) { return reinterpret_cast<Unexpected*>(n); }
    static Unexpected* of_bucket(Ring2* n, uint32_t kind) {
        if (kind != 0) return reinterpret_cast<WildNodes*>(n - (kind - 1))->message;
        return reinterpret_cast<Unexpected*>(reinterpret_cast<char*>(n) - offsetof(Unexpected, in_bucket));
    }
};
static_assert(offsetof(Unexpected, in_all) == 0);
static_assert(sizeof(Unexpected) <= 160, "10^6 unexpected messages are held to 256 MB");

struct Limits {               // set once at start, from control variables
    int32_t inline_max;
    int32_t eager_max;        // largest eager message; from rendezvous_min on only if that is faster for the receiver
    int32_t chunk_max;        // largest message that is eager and one fragment wherever it lies; see p2p::send_chunk()
    int32_t fragment;         // smallest fragment of an eager message, in bytes
    int32_t block;            // bytes per block of a pipelined copy
    int64_t credit;           // bytes of unexpected messages kept per peer; beyond it the peer's sends wait for their match
    bool shared_cpus;         // the ranks of the job outnumber its CPUs
    uint32_t cpus;            // this process's share of the CPUs, rounded down; at least 1
    uint32_t node_cpus;       // those that all ranks of the node together may use
    uint32_t spin_polls;      // polls before reading the clock; 1 where CPUs are shared
    uint64_t sleep_ns;        // idle time before sleeping
    uint32_t longest_sleep_us;  // a sleep ends after this: messages end it earlier, a question of mpiexec does not
    bool cma;                 // cross-memory attach may be used
    int64_t mapped_min;       // bytes from which a buffer in the shared heap is copied from where it lies; at most rendezvous_min
    int64_t mapped_both;      // bytes from which both sides do, if the receive buffer lies there, too
    uint32_t mapped_block;    // least bytes that each of them claims at a time
    bool split_cma;           // mover of large messages to this rank where CMA works: split CMA; else pipelined copy
    bool claim_lines;         // claim the cache lines of the cells and chunks that this rank reads
    bool tell_counters;       // at MPI_Finalize
    int64_t cache_bytes;      // with more bytes than this arriving, data are stored past the caches
};

// How long the ranks of the node have run, at some moment.
struct Use {
    std::atomic<uint64_t> at_ns{0}, ran_ns{0};
};

struct alignas(64) Lane : Wires {          // so two lanes share no cache line
    static constexpr uint32_t first_buckets = 64;
    Object request_head{Kind::request, 0, 0};  // what its requests begin with: its number, among the process's lanes
    os::SpinLock lock;
    bool threads = false;                  // the guard must lock; constant after initialisation
    std::atomic<uint32_t> work{0};         // queued sends and rendezvous: while not 0, progress has more to do than poll
    std::atomic<uint32_t> sleepers{0};     // threads of this process that sleep at the mailbox; any thread
    std::atomic<uint32_t> watchers{0};     // threads that have waited here for long, and look at this lane first; any thread
    std::atomic<uint32_t> heard{0};        // cells that had come when is_quiet() was asked last; any thread
    std::atomic<uint64_t> heard_ns{0};     // when that was another number than before
    std::atomic<uint32_t> unguarded{0};    // requests that other threads may complete without the guard; any thread
    std::atomic<uint64_t> disturbed_until{0};  // until then another process competes for this CPU (see Idler); any thread
    std::atomic<uint32_t> quick_yields{~0u >> 1};  // short yields since the last long one
    std::atomic<uint64_t> yielded_at{0};   // the last one's end, in cycles
    Use use_before;                        // at the last long yield
    std::atomic<uint32_t> local_word{0};   // futex on which `sleepers` sleep where there is no wire

    // Posted receives and unexpected messages: the short paths of receives read these first.
    uint32_t posted_count = 0;
    std::atomic<uint32_t> unexpected_count{0};  // written under the guard, read by any thread
    uint32_t wildcards = 0;                // receives of any source or any tag among the posted
    uint32_t looking = 0;                  // probes in progress; any message may match one, so the wires must be drained
    PostedTable posted{posted_first, first_buckets};
    uint32_t posted_order = 0;             // number of the receive numbered last (p2p/match.hpp)

    wire::null::Null* null = nullptr;
    heap::Heap* heap = nullptr;            // the process's part of the node's shared heap; has a lock of its own
    const heap::Segment* segment = nullptr;  // where messages' buffers may be mapped; null: nowhere
    Sparse<PeerState> peers;               // this process's own counts messages to itself
    Fifo pending_peers;                    // those with queued sends
    Limits limits{};
    Counters counters{};

    UnexpectedTable unexpected{unexpected_first, first_buckets};
    Ring2 unexpected_all;
    Fifo posted_first[first_buckets];
    Ring2 unexpected_first[first_buckets];

    Fifo rndvs;                            // rendezvous that are not over (p2p::Rndv)
    Ids rndv_ids{}, send_ids{};            // what the other side of a message may name: p2p::Rndv; synchronous sends (Request)
    uint32_t rounds = 0;                   // calls of p2p::move_transfers()
    int64_t arriving = 0;                  // bytes of the rendezvous that this rank receives
    Pool requests{64, 64};
    Pool persistent_pool{128, 16};         // p2p::Persistent
    Records unexpected_pool{sizeof(Unexpected)};
    Records control_pool{64};              // requests that send control messages; the user has no handle of them
    Pool rndv_pool{64, 32};
    Pool transfer_pool{sizeof(wire::shm::Transfer), 8};  // descriptors that are not shared
    uint16_t transfers_free[wire::shm::transfers_per_rank];
    uint32_t transfers_free_count = 0;
    int self = 0;                          // this process's number among the peers
    heap::Owned owned;                     // buffers that change their owner
    std::atomic<uint32_t> services{0};     // of upper layers, to which others send unasked (windows); any thread

    // `peers`: the process's table of `count`, where this process is number `me`; kept by the caller. `base`: memory for the wire of those
    // that share it; null: there is no such wire. `key` null: there is no socket wire.
    Err open(Peer* peers, int count, int me, char* base, bool can_fence, const wire::sock::Key* key = nullptr);
    uint16_t number() const { return request_head.lane; }
    // Whether nothing has come for quiet_ns, as far as those know who have asked. Any thread; an old answer makes a thread sleep here, or
    // not, without need.
    bool is_quiet(uint64_t now_ns);
    static constexpr uint64_t quiet_ns = 10'000'000;
    // A null wire of its own. Err::no_mem.
    Err open_null();
    // The state of a peer, made when it is first needed; null when out of memory.
    PeerState* make_peer(int i) { return peers.make(i, [=](PeerState& s) { s.peer = i; }); }
    // Inline messages sent, modulo 2^32 for each peer: all cells but the others. The short path counts nothing but the cells of its ring.
    uint64_t sent_inline() const { return shm.cells_sent() + (sock != nullptr ? sock->cells_sent : 0) - counters.other_cells; }
    // Whether a peer finds this process's part of the shared heap where it is here, and is on the same node.
    WEFT_INLINE bool shares_heap(int i) {
        const int8_t known = peer(i).heap.load(std::memory_order_relaxed);
        return known > 0 || (known == 0 && ask_for_heap(i));
    }
    // Whether nothing waits to be sent or moved. Any thread.
    bool has_left() const { return work.load(std::memory_order_relaxed) == 0 && (sock == nullptr || !sock->unsent()); }
    void close();
    // For assertions: counts agree with lists, and the wire is sound. Under the guard.
    bool is_sound() const;
    // Tells the other ranks up to how many bytes they should send eagerly to this one. May only grow: a send may be half done.
    void want_eager(int64_t bytes) {
        if (shm.ranks > 1) shm.want_eager(static_cast<uint32_t>(bytes));
    }

private:
    WEFT_COLD bool ask_for_heap(int i);
    Err open_shm(int count, char* base, bool can_fence);
    Err open_sock(int count, const wire::sock::Key& key);
    int32_t* at_shm_ = nullptr;            // number of the peer at each index of that wire
};

// A lane that is not open, in place of one of an earlier time, or null, whose pools it keeps: handles to what lies there stay readable.
// Null when out of memory.
Lane* renew(Lane* before, uint16_t number);

inline constexpr struct Locked {} locked{};   // the caller has taken the lane's lock

// Holding one is what "under the lane's guard" means. Functions that touch lane state take it as a parameter.
struct LaneGuard {
    WEFT_INLINE explicit LaneGuard(Lane& l) : lane(l) {
#if !WEFT_SINGLE
        if (WEFT_UNLIKELY(l.threads)) l.lock.lock();
#endif
    }
    WEFT_INLINE LaneGuard(Lane& l, Locked) : lane(l) {}
    WEFT_INLINE ~LaneGuard() {
#if !WEFT_SINGLE
        if (WEFT_UNLIKELY(lane.threads)) lane.lock.unlock();
#endif
    }
    LaneGuard(const LaneGuard&) = delete;
    LaneGuard& operator=(const LaneGuard&) = delete;
    Lane& lane;
};

// For short paths: takes the guard only if it is free, so without a call. If it is not, the caller falls back to its slow path.
struct LaneTry {
    WEFT_INLINE explicit LaneTry(Lane& l) : lane(l) {
#if !WEFT_SINGLE
        taken_ = WEFT_LIKELY(!l.threads) || l.lock.try_lock();
#endif
    }
    WEFT_INLINE ~LaneTry() {
#if !WEFT_SINGLE
        if (WEFT_UNLIKELY(lane.threads) && taken_) lane.lock.unlock();
#endif
    }
    WEFT_INLINE explicit operator bool() const { return taken_; }
    LaneTry(const LaneTry&) = delete;
    LaneTry& operator=(const LaneTry&) = delete;
    Lane& lane;

private:
    bool taken_ = true;
};

// What a rank that shares its CPU does between two looks: it yields. But while the rank for which it waits seems to have a CPU, it pauses
// for about as long as a few yields take, because the answer may come within a tenth of that. So two ranks that talk stay together once
// they run at the same time. They yield at the latest when a turn is over: others that talk wait for theirs.
// docs/experiments/029-partners.md
class Rest {
public:
    static constexpr int nobody = -1;
    explicit Rest(Lane& l) : lane_(l) {}
    // `partner`: index of the awaited rank on the wire of shared memory, or nobody.
    void between_looks(int partner);
    uint32_t yields() const { return yields_; }
    // Whether to pause rather than to yield: once for each time that the partner gets a CPU.
    bool stays(int partner);

private:
    static constexpr uint64_t stay_cycles = 20'000;      // 4 to 10 us
    static constexpr uint64_t turn_cycles = 1'000'000;   // 0.2 to 0.5 ms
    Lane& lane_;
    uint64_t since_ = 0;                                 // when it began to pause
    uint32_t seen_ = 0;                                  // what the partner told of its CPU then
    uint32_t yields_ = 0;
};

// Waiting without progress. One per waiting loop.
// - Where the job has a CPU for each rank, a wait spins for 5 ms (more than a scheduler's slice), then sleeps.
// - Where ranks or threads share CPUs, it rests after each look (see Rest), and sleeps after 5 ms.
// - If a spinning rank loses its CPU for about a millisecond, or its yields take that long, another process shares the CPU, and each
//   yield gives away a slice of 3 ms. For the next 0.1 s a wait is then a spin of 50 us (5 us where ranks share CPUs) and a sleep: the
//   kernel soon runs a sleeper that is woken, as it has used less than its share, so ranks that communicate run at the same time. Ranks
//   that share CPUs also ask for short slices, because a woken process preempts one with longer slices. One long yield after many (64) quick ones is
//   ignored: it means that the whole job was interrupted. So is one while the ranks had all of their CPUs: it served a rank that
//   copied or computed.
// - Where the waiting threads of a process outnumber its CPUs, most partners are not running, so a look more is a look in vain, and a yield
//   gives away a slice: each spins for 5 us, about what a window of messages and its answer take, and sleeps. Who is woken then
//   runs with its partner until its slice ends. These threads ask for short slices, too, so that each has its turn soon.
// docs/experiments/010-neighbours.md, 027-turns.md
struct Idler {
    // What the caller does next: poll again, sleep (see sleep_until_woken), or check whether mpiexec asks what it waits for.
    enum class Step : uint8_t { poll, sleep, listen };
    explicit Idler(Lane& l, int partner = Rest::nobody) : lane_(l), rest_(l), partner_(partner) {}
    void moved() { polls_ = 0; }
    // Called after a poll that moved nothing. `crowded`: threads of this process that wait outnumber its CPUs.
    Step idle(bool crowded = false);
    // Yields, and notes if that took long.
    static void yield(Lane&);
    // Whether another process took this CPU within the last 0.1 s.
    static bool is_disturbed(const Lane& l, uint64_t now_ns) {
        return now_ns < l.disturbed_until.load(std::memory_order_relaxed);
    }
    uint64_t waited_ns() const { return now_ns_ - began_ns_; }  // at the last reading of the clock
    static constexpr uint64_t listen_ns = 100'000'000;          // from one Step::listen to the next

private:
    static constexpr uint64_t long_cycles = 2'000'000;          // 0.4 to 1 ms: less than a slice, more than several short ones
    static constexpr uint64_t disturbed_ns = 100'000'000;
    static constexpr uint64_t slice_ns = 100'000;               // the least that Linux grants
    static constexpr uint64_t alone_spin_ns = 50'000;           // about what sleeping and being woken costs
    static constexpr uint64_t shared_spin_ns = 5'000;           // while it spins, a fellow waits
    static constexpr uint32_t few_yields = 64;
    static constexpr uint64_t short_while_ns = 15'000'000, long_while_ns = 50'000'000;  // some slices
    static void disturb(Lane&);
    static void ask_for_short_slices();                         // once for each thread
    static void give_cpu(Lane&);
    static bool yielded(Lane&, uint64_t cycles);
    static bool others_ran(Lane&);
    Step look_at_clock(bool first, bool crowded);

    Lane& lane_;
    Rest rest_;
    const int partner_;
    uint32_t polls_ = 0;
    bool rests_ = false;                  // after each look
    bool gave_ = false;                   // and yielded, after the last one
    uint64_t cycles_ = 0;                 // at the last look
    uint64_t since_ns_ = 0;               // nothing has moved
    uint64_t began_ns_ = 0, now_ns_ = 0;  // the wait; the last look at the clock
    uint64_t listened_ns_ = 0;
};

// A thread's sleep at one lane: from begin() on senders, and threads of this process, wake it; end() in any case.
class Sleep {
public:
    void begin(Lane& l);
    void end();
    // The word on which to sleep, and its value before; false: it sleeps at a socket.
    bool is_word(os::FutexWait* at) const;
    // At most `timeout_us`.
    void sleep(uint32_t timeout_us);
    // A sleep ends after this where not all senders wake this one.
    uint32_t longest_us(uint32_t timeout_us) const;

private:
    Lane* lane_;
    uint32_t seen_;            // of Lane::local_word
    Wires::Seen at_wires_;
};

// Sleeps at the lanes of all of `sleeps` at once.
void sleep_at(Sleep* sleeps, int n, uint32_t timeout_us);

// Sleeps until a message comes by one of the lanes, another thread of this process calls wake_sleepers() for one, or `timeout_us` have
// passed. `last_look` is called with no lock held, after senders and threads have been made to wake this one: it returns true when there
// is something to do, or the caller's condition holds. The guard is taken between adding to `sleepers` and that look, and a completing
// thread completes under the guard before it reads `sleepers`; so either the look sees the completion, or that thread sees the sleeper.
template <class Look>
void sleep_until_woken(Lane* const* lanes, int n, uint32_t timeout_us, Look&& last_look) {
    Sleep sleeps[most_lanes];
    for (int i = 0; i < n; ++i) sleeps[i].begin(*lanes[i]);
    if (!last_look()) sleep_at(sleeps, n, timeout_us);
    for (int i = 0; i < n; ++i) sleeps[i].end();
}

// Call after completing something: wakes the threads of this process that sleep.
WEFT_INLINE void wake_sleepers(Lane& l) {
    if (WEFT_LIKELY(l.sleepers.load(std::memory_order_relaxed) == 0)) return;
    l.local_word.fetch_add(1, std::memory_order_release);
    if (!l.any()) os::futex_wake(l.local_word);
    l.wake_self();
}

}  // namespace weft::lane
