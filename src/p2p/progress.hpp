// One round of everything under way: arrivals, queued sends, rendezvous, upper floors' hooks; and waiting for it. Included by p2p/
// and above.
// progress() and progress_until() take the lane's guard themselves and run hooks with no lock held.
#pragma once
#include "lane/lane.hpp"
#include "obj/process.hpp"
#include "p2p/deliver.hpp"
#include "p2p/protocol.hpp"
#include "p2p/queue.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

// One round for one lane, under its guard. True when something moved.
bool poll_lane(LaneGuard&, Process&);
// Waits a short while for `r`, whose message comes from `peer` of the node, and takes nothing that comes after it: that may
// have a receive of its own soon, and need no copy. `sole`: no other receive is posted; then ranks that share cores wait here for
// longer, stepping aside after each look: one ring is looked at sooner than all.
void poll_for(Process&, const Request& r, int peer, bool sole);
using Next = wire::shm::Shm::Next;
// Looks for a message on `in`, at most `polls` times and only while one ring is all that matters: false as soon as queued
// sends, transfers or schedules need more than that, or `other()` says so. `pause()` comes after each look.
template <class Other, class Pause = void()>
WEFT_INLINE bool comes_within(Process& p, const wire::shm::Shm::In& in, uint32_t polls, Next* next, Other&& other,
                              Pause&& pause = os::pause_cpu) {
    lane::Lane& l = *p.lane;
    for (; polls != 0; --polls) {
        *next = l.shm.look(in);
        if (next->here()) return true;
        if (l.work.load(std::memory_order_relaxed) != 0 || p.hook_work.load(std::memory_order_relaxed) != 0 || other()) break;
        pause();
    }
    return false;
}
// One round of everything: lane, then hooks.
bool progress(Process&);
// The same for a call that does not wait: a program that polls by such calls answers mpiexec, too.
bool progress_once(Process&);
// Adds a hook to every round of progress: slow-path work of an upper floor (schedules). True when it moved something. Hooks are
// called while there is work for them; a floor tells of each piece of it (an active schedule) by begin_work() and end_work().
void register_hook(Process&, bool (*hook)(Process&));
// An upper floor's own messages: cells of kind first_upper_kind + `n`, which `arrival` serves on the other side. In order with all others
// to that peer. send_upper() is false when the wire is full: later, then. `bytes` <= wire::inline_bytes.
void register_arrival(Process&, int n, Process::Arrival* arrival);
bool send_upper(LaneGuard&, int peer, int n, const void* payload, int bytes);
inline void begin_work(Process& p) { p.hook_work.fetch_add(1, std::memory_order_relaxed); }
inline void end_work(Process& p) { p.hook_work.fetch_sub(1, std::memory_order_relaxed); }

// mpiexec asks all ranks what they wait for when a job runs into its time limit. Answers for this thread, which has waited that
// long (in one call, or `again`: in many), and where it is the first also for all that is pending; true when it did.
WEFT_COLD bool tell_if_asked(Process&, uint64_t waited_ns, const Request* blocking, bool again = false);

// Ends the job where a wire has lost what it cannot do without: a rank would wait for ever.
WEFT_COLD void check_wires(Process&);

// What this thread probes for, while one of these lives: told as well.
class Probing {
public:
    template <class Envelope>
    Probing(const obj::Comm& c, const Envelope& e) : comm(&c), rank(e.rank), tag(e.tag), collective(e.coll != 0), before_(now) { now = this; }
    ~Probing() { now = before_; }
    Probing(const Probing&) = delete;
    Probing& operator=(const Probing&) = delete;
    const obj::Comm* comm;
    int32_t rank, tag;
    bool collective;
    static thread_local constinit const Probing* now;

private:
    const Probing* before_;
};

// Makes progress until `done()`; calls it with no lock held, and never again once it was true: it may take what it finds.
// `blocking` is the one operation that it waits for, if it is one.
template <class Done>
void progress_until(Process& p, Done&& done, const Request* blocking = nullptr) {
    lane::Idler idler(*p.lane);
    bool told = false;
    for (bool over = done(); !over;) {
        if (progress(p)) {
            idler.moved();
        } else {
            const lane::Idler::Next next = idler.idle();
            // Another thread may complete what this one waits for just before it would hear of it: so `done` is asked last.
            if (next == lane::Idler::Next::sleep)
                lane::sleep_until_woken(*p.lane, p.lane->limits.longest_sleep_us, [&] { return progress(p) || (over = done()); });
            else if (next == lane::Idler::Next::listen) {
                check_wires(p);
                if (!told) told = tell_if_asked(p, idler.waited_ns(), blocking);
            }
        }
        if (!over) over = done();
    }
}

// Makes `b`, which is dense, the buffer of `r`, which is then flat: held as the bytes it is, with no reference on its type.
WEFT_INLINE void set_bytes(Request& r, const type::Buffer& b) {
    r.buf = b.base;
    r.count = type::bytes_of(b);
    r.type = &type::byte_type();
}
// Makes any `b` the buffer of `r`; returns the flag to set.
inline uint16_t set_buffer(Request& r, const type::Buffer& b) {
    if (type::is_dense(*b.type)) {
        set_bytes(r, b);
        return Request::flat;
    }
    r.buf = b.base;
    r.count = b.count;
    r.type = b.type;
    return 0;
}
// Says why the complete `r` failed, whose error it returns; `bytes` is what its buffer holds.
Err why_failed(const Request& r, int64_t bytes);
// A request from the lane's pool, with its references taken; null when out of memory.
Request* make_request(LaneGuard&, obj::Comm&, type::Buffer, int32_t rank, int32_t tag, uint16_t flags);
void free_request_block(LaneGuard&, Request& r);
// The same for a persistent send or receive (persistent.hpp).
void free_persistent(LaneGuard&, Request& r);

}  // namespace weft::p2p
