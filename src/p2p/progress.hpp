// Progress, one round at a time (arrivals, queued sends, rendezvous, upper layers' hooks), and waiting by it. Included by p2p/ and above.
// progress() and progress_until() take the lane's guard themselves and run hooks with no lock held.
#pragma once
#include "lane/lane.hpp"
#include "obj/process.hpp"
#include "p2p/deliver.hpp"
#include "p2p/pending.hpp"
#include "p2p/protocol.hpp"
#include "p2p/queue.hpp"

namespace weft::p2p {

// One round for one lane, under its guard. True when something moved.
bool poll_lane(LaneGuard&, Process&);
// Waits briefly for `r`, whose message comes by shared memory from the rank at `index` there. Polls only that ring, and takes no message
// after the one for `r`: the next may soon have a posted receive, which saves a copy. `seen`: a message is there. `sole`: no other
// receive is posted; then ranks that share CPUs rest after each look instead of pausing, as polling one ring is faster than polling all.
void poll_for(Process&, Lane&, const Request& r, int index, bool seen, bool sole);
using Next = wire::shm::Shm::Next;
// Polls `in` until its next message is there, at most `polls` times. False earlier if queued sends, rendezvous or schedules need full
// progress, or `other()` is true. Calls `pause()` after each look, and asks for the line where the peer's next chunk will begin, so that
// it comes together with the cell's.
template <class Other, class Pause = void()>
WEFT_INLINE bool comes_within(Process& p, const Lane& l, const wire::shm::Shm::In& in, uint32_t polls, Next* next, Other&& other,
                              Pause&& pause = os::pause_cpu) {
    for (; polls != 0; --polls) {
        *next = l.shm.look(in);
        if (next->here()) return true;
        __builtin_prefetch(in.next_chunk.load(std::memory_order_relaxed));
        if (l.work.load(std::memory_order_relaxed) != 0 || p.hook_work.load(std::memory_order_relaxed) != 0 || other()) break;
        pause();
    }
    return false;
}
// One round of progress: all lanes, then the hooks. Another lane than the root is left out while some other thread has its guard.
bool progress(Process&);
// The same for a thread to which `home` matters more, unless that is null: that lane alone in most rounds, as WEFT_POLICY.progress says.
// `failed`: rounds of the caller that moved nothing.
bool progress(Process&, Lane* home, uint64_t failed);
// The same for nonblocking calls (MPI_Test, MPI_Iprobe). A program that polls by them answers mpiexec's questions, too.
bool progress_once(Process&, Lane* home = nullptr);
// A round for all lanes follows that many for the lane of the waiting thread. Without it, correct programs may hang: docs/lanes.md.
inline constexpr uint32_t rounds_at_home = 64;
enum class Policy : uint8_t { hybrid, lane, global };   // WEFT_POLICY.progress
// Adds a hook to every round of progress: slow-path work of an upper layer (schedules). A hook returns true when it moved something.
// Hooks are called while there is work for them; a layer counts each unit (an active schedule) by begin_work() and end_work().
void register_hook(Process&, bool (*hook)(Process&));
// An upper layer's own messages: cells of kind first_upper_kind + `n`, which the receiver passes to `arrival`, in order with all others
// from that peer. send_upper() returns false when the wire is full: try again later. `bytes` <= wire::inline_bytes.
void register_arrival(Process&, int n, Process::Arrival* arrival);
bool send_upper(LaneGuard&, int peer, int n, const void* payload, int bytes);
inline void begin_work(Process& p) { p.hook_work.fetch_add(1, std::memory_order_relaxed); }
inline void end_work(Process& p) { p.hook_work.fetch_sub(1, std::memory_order_relaxed); }

// Ends the job if the system has denied a wire something that it needs: a rank would wait for ever.
WEFT_COLD void check_wires(Process&);

// Where a wait looks: at `lane` first, where that is not null. `alone`: nothing that comes by another lane can end the wait.
// `partner`: who can end it, as an index on the wire of shared memory, where that is known.
struct Home {
    Lane* lane = nullptr;
    bool alone = false;
    int partner = lane::Rest::nobody;
};
// The lanes at which a wait sleeps: those by which its end may come, and those that no other thread watches or has just used, so that
// whoever sends to them is served. Those with `services` are not left out because they were just used: no thread need come back to them.
// `to` has room for all; returns how many. Lowers the time after which it is to ask again.
WEFT_COLD int lanes_to_watch(Process&, Home, Lane** to, uint32_t* timeout_us);

// Makes progress until `done()`. Calls it with no lock held, and never again once it was true, because it may consume what it finds.
// `sleep(over)`: how to sleep, where messages do not end the wait; it may find that the wait is over.
template <class Done, class Sleep>
void progress_until(Process& p, Done&& done, const Request* blocking, Sleep&& sleep, Home home = {}) {
    Lane& first = !WEFT_SINGLE && home.lane != nullptr ? *home.lane : *p.lane;
    lane::Idler idler(first, home.partner);
    bool told = false;
    uint64_t failed = 0;   // rounds that moved nothing
    for (bool over = done(); !over;) {
        if (progress(p, home.lane, failed)) {
            idler.moved();
        } else {
            if (++failed == rounds_at_home) {
                first.watchers.fetch_add(1, std::memory_order_relaxed);
                p.waiting.fetch_add(1, std::memory_order_relaxed);
            }
            const lane::Idler::Step next = idler.idle(p.waiting.load(std::memory_order_relaxed) > first.limits.cpus);
            if (next == lane::Idler::Step::sleep) sleep(over);
            else if (next == lane::Idler::Step::listen) {
                check_wires(p);
                if (!told) told = tell_if_asked(p, idler.waited_ns(), blocking);
            }
        }
        if (!over) over = done();
    }
    if (failed >= rounds_at_home) {
        first.watchers.fetch_sub(1, std::memory_order_relaxed);
        p.waiting.fetch_sub(1, std::memory_order_relaxed);
    }
}
// `blocking`: the request that a blocking call waits for, or null.
template <class Done>
void progress_until(Process& p, Done&& done, const Request* blocking = nullptr, Home home = {}) {
    progress_until(p, done, blocking, [&](bool& over) {
        Lane* lanes[lane::most_lanes];
        uint32_t timeout_us = p.lane->limits.longest_sleep_us;
        const int n = lanes_to_watch(p, home, lanes, &timeout_us);
        // Another thread may complete the request just before this one is registered as a sleeper, so `done` is tested last.
        lane::sleep_until_woken(lanes, n, timeout_us, [&] { return progress(p, home.lane, rounds_at_home - 1) || (over = done()); });
    }, home);
}

}  // namespace weft::p2p
