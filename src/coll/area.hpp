// A communicator's area: memory of one node that all members address, by which its collectives meet and pass data without messages.
// Included by coll/ alone. An Area is shared by processes and has no lock; a Share is one member's view of it, and is touched by one
// thread at a time: by the member's blocking collectives, or by starting its nonblocking ones (each kind has an area of its own).
//
// Collectives over an area are numbered from 1 on, the same in all members; nothing is ever reset. Three kinds of words tell how far
// a member is. Each is written by its member alone, only grows, and is published by a sequentially consistent store:
//  - Line::call, one per member and slot: the member's data for that call are in the line, or in the slot of the same place.
//  - its mark: how far it is, in calls and phases of a call (see mark_at, mark_done).
//  - Head::waiters: how many members may sleep. Who publishes a word loads it, and wakes the members if it is not 0.
// Invariants:
//  - A member writes line and slot of call n only when all members are done with call n - depth; it knows that of a member from its
//    mark, or because its line of a later call is there. So who waits for a line of call n may read it until it is done with n.
//  - A member writes its staging memory in call n only when all members are done with call n - 1, or have passed the phase of n in
//    which they read what is overwritten.
//  - Who will sleep counts itself among the waiters, then looks at the words once more. The store of a word and the load of `waiters`,
//    and that addition and that look, are sequentially consistent: either the look sees the word, or the writer sees the waiter.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "coll/choice.hpp"
#include "obj/comm.hpp"

namespace weft::obj { struct Process; }

namespace weft::coll {

using obj::Comm;
using obj::Process;

inline constexpr int64_t line_bytes = 64;

// One member's part of a small call.
struct alignas(line_bytes) Line {
    static constexpr int64_t room = 48;
    std::atomic<uint64_t> call;
    int64_t bytes;           // that the member has, in `data` or in its slot
    char data[room];
};
static_assert(sizeof(Line) == line_bytes);

// Builds that look closer compare what members say a call's size is: bytes of its vector or block. A wrong program gets an error there,
// where it hangs or computes nonsense in others.
inline constexpr bool compares_sizes = WEFT_CHECK_HANDLES;

struct alignas(line_bytes) Mark {
    std::atomic<uint64_t> at;
    // Where sizes are compared, of the call in which this member wrote its staging memory last: stored when all are done with the call
    // before, and ahead of the mark of the call's first phase.
    std::atomic<int64_t> bytes;
};

struct Head {
    alignas(line_bytes) std::atomic<uint32_t> waiters;
    alignas(line_bytes) std::atomic<int32_t> users;   // members that may still use the memory; who owns it waits for 0
};

// Where everything lies, for `ranks` members. `stage` is the staging memory of each.
struct Layout {
    static constexpr int32_t depth = 8;           // calls whose lines and slots are kept
    static constexpr int64_t slot_bytes = 4096;
    enum What : uint8_t { everything, stages_alone, lines_alone };   // beside the marks
    int32_t ranks;
    int64_t stage_bytes;
    What what = everything;

    size_t marks() const { return sizeof(Head); }
    size_t lines() const { return marks() + static_cast<size_t>(ranks) * sizeof(Mark); }
    size_t slots() const { return lines() + static_cast<size_t>(ranks) * depth * sizeof(Line); }
    size_t stages() const {
        if (what == stages_alone) return lines();
        return slots() + (what == everything ? static_cast<size_t>(ranks * depth * slot_bytes) : 0);
    }
    size_t bytes() const { return stages() + static_cast<size_t>(ranks * stage_bytes); }
};

// Words of consecutive members that a member waits for: all of [next, end) but `skip` have to reach `value`.
struct Watch {
    const char* words;   // of member 0; the others' follow, a line each
    uint64_t value;
    int32_t next, end, skip;

    // Moves `next` past those that are there. Acquire: what they wrote before is visible then.
    WEFT_INLINE bool over() {
        while (next < end && (next == skip || word(next).load(std::memory_order_seq_cst) >= value)) next++;
        return next >= end;
    }
    const std::atomic<uint64_t>& word(int32_t i) const {
        return *reinterpret_cast<const std::atomic<uint64_t>*>(words + i * line_bytes);
    }
};

struct Share {
    Layout layout{};
    char* base = nullptr;
    Comm* comm = nullptr;
    int32_t me = 0, ranks = 0;
    bool crowded = false;      // the members outnumber their CPUs: the same in all of them
    Cpus cpus = Cpus::own;     // the same
    int64_t lines_most[n_operations]{};
    const Table* table = nullptr;
    uint64_t call = 0;         // begun last
    uint64_t all_done = 0;     // all members are known to be done with this call and those before
    uint64_t marked = 0;       // this member's mark as it stored it last

    // Marks: inside call n, past `phase` of its phases; done with it.
    static constexpr int phase_bits = 20;
    static constexpr uint64_t mark_at(uint64_t n, uint64_t phase) { return n << phase_bits | phase; }
    static constexpr uint64_t mark_done(uint64_t n) { return (n + 1) << phase_bits; }

    // Whether a blocking call of so many bytes goes by lines; one that is for a schedule, by staging memory.
    bool lines(Operation o, int64_t bytes) const { return bytes > 0 && bytes <= lines_most[static_cast<int>(o)]; }
    bool has_lines(Operation o) const { return lines_most[static_cast<int>(o)] >= 0; }
    bool stages(Operation o, int64_t bytes) const {
        return bytes > 0 && choose(*table, o, ranks, cpus, bytes, algorithms_of(o) & ~set_of(Algorithm::lines)) == Algorithm::stages;
    }
    Head& head() const { return *reinterpret_cast<Head*>(base); }
    std::atomic<uint64_t>& mark(int32_t i) const { return reinterpret_cast<Mark*>(base + layout.marks())[i].at; }
    Line& line(uint64_t n, int32_t i) const {
        return reinterpret_cast<Line*>(base + layout.lines())[static_cast<int32_t>(n % Layout::depth) * ranks + i];
    }
    char* slot(uint64_t n, int32_t i) const {
        return base + layout.slots() + (static_cast<int64_t>(n % Layout::depth) * ranks + i) * Layout::slot_bytes;
    }
    char* stage(int32_t i) const { return base + layout.stages() + i * layout.stage_bytes; }
    const void* data(uint64_t n, int32_t i) const {
        const Line& l = line(n, i);
        return l.bytes <= Line::room ? l.data : slot(n, i);
    }

    Watch lines_of(uint64_t n) const { return {reinterpret_cast<const char*>(&line(n, 0)), n, 0, ranks, me}; }
    Watch lines_before(uint64_t n, int32_t end) const { return {reinterpret_cast<const char*>(&line(n, 0)), n, 0, end, me}; }
    Watch line_of(uint64_t n, int32_t i) const { return {reinterpret_cast<const char*>(&line(n, 0)), n, i, i + 1, -1}; }
    Watch marks_of(uint64_t value) const { return {base + layout.marks(), value, 0, ranks, me}; }
    Watch mark_of(int32_t i, uint64_t value) const { return {base + layout.marks(), value, i, i + 1, -1}; }

    std::atomic<int64_t>& told(int32_t i) const { return reinterpret_cast<Mark*>(base + layout.marks())[i].bytes; }
    // The error that names both, where member i has `theirs` and this one `mine`.
    Err compare(int32_t i, int64_t theirs, int64_t mine) const { return WEFT_LIKELY(theirs == mine) ? Err::ok : differ(i, theirs, mine); }
    WEFT_COLD Err differ(int32_t i, int64_t theirs, int64_t mine) const;

    // Publishes a word of this member's, and wakes the members that wait for one.
    WEFT_INLINE void publish(Process& p, std::atomic<uint64_t>& word, uint64_t value) {
        word.store(value, std::memory_order_seq_cst);
        if (WEFT_UNLIKELY(head().waiters.load(std::memory_order_seq_cst) != 0)) wake_members(p);
    }
    void set_mark(Process& p, uint64_t value) {
        if (marked >= value) return;
        marked = value;
        publish(p, mark(me), value);
    }
    // Until the watch is over. Makes progress meanwhile, as every wait of the library does.
    WEFT_INLINE void wait(Process& p, Watch w) {
        if (WEFT_UNLIKELY(!w.over())) wait_long(p, w);
    }
    void wait_long(Process&, Watch);
    // Whether it is over, for who may sleep before it looks again: while it is not, this member is `counted` among the waiters.
    bool look(Watch&, bool& counted) const;
    WEFT_INLINE void uncount(bool& counted) const {
        if (WEFT_LIKELY(!counted)) return;
        head().waiters.fetch_sub(1, std::memory_order_relaxed);
        counted = false;
    }
    WEFT_COLD void wake_members(Process&) const;
};

// What coll/ keeps with a communicator (Comm::coll). Made by whichever thread needs it first.
struct Nodes;
struct CommState : obj::CollState {
    std::atomic<Nodes*> nodes;   // see coll/levels.cpp
    std::atomic<uint32_t> asked; // 1: somebody sees about the area, or it has been seen that there is none
    // Null until there is an area, and for life where there can be none. Set by a blocking collective, so in the same call in all members.
    std::atomic<Share*> blocking, nonblocking;   // one block of memory
    // Number of the first nonblocking collective that may use the area: ranks may order them and the blocking ones differently.
    uint32_t first_nonblocking;
};
// Null when out of memory.
CommState* state_of(Comm&);

// The calls' one question: the area of the communicator's blocking collectives, if it has one.
WEFT_INLINE Share* share_of(const Comm& c) {
    auto* s = static_cast<CommState*>(__atomic_load_n(&c.coll, __ATOMIC_ACQUIRE));
    return s != nullptr ? s->blocking.load(std::memory_order_acquire) : nullptr;
}

// The area for a schedule, or null: of nonblocking collectives their `number` decides, too.
inline Share* share_for(const Comm& c, bool nonblocking, uint32_t number) {
    if (!nonblocking) return share_of(c);
    auto* s = static_cast<CommState*>(__atomic_load_n(&c.coll, __ATOMIC_ACQUIRE));
    Share* share = s != nullptr ? s->nonblocking.load(std::memory_order_acquire) : nullptr;
    return share != nullptr && static_cast<int32_t>(number - s->first_nonblocking) >= 0 ? share : nullptr;
}

// Makes the area once the communicator has done some collectives: most communicators never do, and an area costs about as much as ten
// of them. Called at the start of every blocking collective that might use one, in all members, as its first messages agree on the
// memory. Errors: none; without memory that all can address there is no area.
void consider_area(Process&, Comm&);

// An area of one persistent collective's own, as members may start theirs in any order: marks, and staging memory for `bytes` (as in
// coll/choice.hpp). Null where its table has it go by messages, or without memory. Called by all members' init calls, which may wait for
// each other; makes the communicator's area if there is none yet. Who frees the request gives it back.
Share* open_own_area(Process&, Comm&, Operation, int64_t bytes);
// The same, of lines and marks, for calls of up to Line::room bytes. Null where the table does not have blocking ones go by lines.
Share* open_own_lines(Process&, Comm&, Operation, int64_t bytes);
void close_own_area(Process&, Share*);

// Gives back what other members had not left when this process did: to be called now and then. The second: at the end, the list alone.
void sweep_areas(Process&);
void forget_areas(Process&);

}  // namespace weft::coll
