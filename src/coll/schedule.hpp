// The one engine behind every collective: a schedule is a small program of rounds (send, receive, copy, reduce) that is
// built by the calls in coll/ and then run to its end. Included by coll/, comm/ and topo/.
// A schedule is touched by one thread at a time: its builder, then whoever holds `busy`; no lock is held meanwhile, so
// user operations run freely.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "base/err.hpp"
#include "coll/area.hpp"
#include "obj/comm.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"
#include "type/predefined.hpp"

namespace weft::op { struct Op; }

namespace weft::coll {

using obj::Request;
using type::Buffer;

// An ordered set of ranks that takes part in an algorithm together: a whole group, the ranks of one node, or the nodes'
// leaders (coll/levels.hpp).
struct Team {
    Comm* comm;
    const int32_t* ranks;  // null: member i is rank i of the communicator
    int32_t rank;          // of the caller in the team
    int32_t size;
    int32_t at(int32_t i) const { return ranks != nullptr ? ranks[i] : i; }
};

struct Step {
    enum What : uint8_t { send, recv, copy, take, reduce, fence, signal, await, tell, compare };
    What what;
    bool waits;            // counted among the area's waiters
    int32_t peer;
    Comm* comm;
    union {
        struct {
            Buffer buf;    // send, recv; where a copy comes from; what a reduction reduces into
            Buffer to;     // where a copy goes; a reduction's left operand (base alone)
        };
        struct {
            Watch watch;   // await; of compare, whom with
            int32_t first; // its `next` at the start
            int64_t bytes; // tell, compare
        };
        uint64_t mark;     // signal
    };
    Request* request;      // of a send or receive under way
};

// Tags of the collective context. The top bits keep the kinds of traffic apart.
enum TagSpace : int32_t {
    of_sequence = 0,             // blocking collectives, numbered in their order
    of_nonblocking = 1 << 29,    // nonblocking ones, numbered apart: ranks may order the two kinds differently
    of_local_comm = 1 << 27,     // the same on an intercommunicator's local communicator
    of_persistent = 1 << 28,     // fixed by an init call
    of_creation = INT32_MIN,     // comm_create_group and its like: below it the user's tag, all 31 bits of it
    of_clash = 1 << 30,          // ... but for the one that would look like MPI_ANY_TAG; with of_nonblocking it is part/'s
    tag_mask = obj::collective_number,
};

// The tag of the communicator's next collective of a kind; all members count them alike.
inline int32_t next_tag(Comm& c, TagSpace space) {
    std::atomic<uint32_t>& sequence = space == of_nonblocking ? c.nonblocking_sequence : c.coll_sequence;
    return (static_cast<int32_t>(sequence.fetch_add(1, std::memory_order_relaxed)) & tag_mask) | space;
}

class Schedule {
public:
    Process* process;
    Comm* comm;
    int32_t tag;

    // Building. Running out of memory is remembered, and reported by run(), start() and init().
    void send(const Team&, int32_t to, Buffer);
    void recv(const Team&, int32_t from, Buffer);
    void copy(Buffer from, Buffer to);
    // The same out of staging memory that nobody else reads: its lines are claimed where that helps whoever writes to it next
    // (wire/shm/claim.hpp). `to` has as many bytes.
    void take(Buffer from, Buffer to);
    // inout = left op inout, element by element.
    void reduce(const void* left, Buffer inout);
    // Everything above is complete before anything below starts. Copies and reductions run when they are met.
    void fence();
    // In the area of `share()`: stores this member's mark; waits for words of other members. In order with copies and reductions, of
    // buffers in the area or not; messages must not be under way.
    void signal(uint64_t mark);
    void await(const Watch&);
    // Where sizes are compared: this member's; with that of members [from, end) but this one. What differs ends the call.
    void tell(int64_t bytes);
    void compare(int32_t from, int32_t end, int64_t bytes);
    // The area that this schedule may use, or null. For as long as it lives, from the first call on, this call has the area's next
    // number, and what was done there before is over: builders ask when they have decided to use it.
    Share* share() const { return share_; }
    uint64_t begin_in_area();
    // An area of the schedule's own, in which each of its starts is the next call; null: none. It comes back with the schedule.
    void own(Share*);
    void use(const op::Op&);
    // Memory that lives as long as the schedule; null when there is none (and remembered).
    void* temp(int64_t bytes);
    // A buffer for `count` elements of `t`, at the right distance from its lower bound.
    Buffer temp_like(int64_t count, const type::Type& t);
    // The same for the packed form: plain bytes.
    Buffer temp_bytes(int64_t bytes);
    const op::Op* op() const { return op_; }
    std::span<const Step> steps() const { return {steps_, static_cast<size_t>(count_)}; }
    void out_of_memory() { failed_to_build_ = true; }

    // Running. True when the schedule is at its end; never waits and never makes progress itself.
    bool advance();
    // Runs to the end, waiting where it must.
    Err finish_now();
    void rewind();
    Err error() const { return error_; }

private:
    friend struct Engine;
    friend struct Access;
    struct Chunk;
    struct Held;

    Step* push(Step::What);
    void hold(const type::Type&);
    void issue(Step&);
    bool reap(bool wait);
    void next_call();
    void compare_now(const Step&);
    void note(Err e) { if (error_ == Err::ok) error_ = e; }

    Step* steps_;
    int32_t count_, capacity_;
    int32_t next_;         // the step to issue next
    int32_t reaped_;       // all steps before it are complete
    Err error_;            // the first one
    bool keep_;            // types, operation and communicator are referenced until the end
    bool failed_to_build_;
    const op::Op* op_;
    Share *share_, *own_;
    bool started_;         // with an area of its own: its steps have been run
    Chunk* chunks_;        // the first is kept when the schedule is used again
    Held* held_;
    Request* request_;
    std::atomic<uint8_t> busy_;
    Schedule *previous_, *next_active_;
};

// All active schedules, advanced by whichever thread makes progress.
struct Engine {
    os::SpinLock lock;               // guards everything here; a leaf
    std::atomic<int32_t> active;   // read without the lock: zero is the usual case
    Schedule *first, *last;
    Schedule* idle;                // to be used again, linked by next_active_
    int32_t idle_count;
    struct LeftArea* left;         // see coll/area.cpp
};

// A schedule for `c` with no steps. `keep`: it outlives the call, so it references what the user may free.
Err open(Process&, Comm& c, TagSpace, bool keep, Schedule** out);
// The same with a tag the caller has chosen.
Err open_tagged(Process&, Comm& c, int32_t tag, bool keep, Schedule** out);
// Gives up a schedule that never ran.
Err abandon(Schedule&, Err why);
// Runs it and gives it back.
Err run(Schedule&);
// Starts it; the request is complete when the schedule is, and gives it back when freed.
Err start(Schedule&, Request** out);
// An inactive persistent request: MPI_Start runs the schedule, again and again.
Err init(Schedule&, Request** out);

// What frees the coll engine's memory at the end (no schedule is active).
void close(Process&);

using type::byte_type;
using type::bytes_at;
void copy_now(const Buffer& from, const Buffer& to);

}  // namespace weft::coll
