// The collectives: for each, its arguments and the function that builds its schedule. Included by coll/, comm/, topo/
// and the bindings' calls. Builders run in the calling thread, and no lock is held.
#pragma once
#include <cstdint>

#include "coll/schedule.hpp"
#include "obj/ints.hpp"
#include "op/op.hpp"

namespace weft::obj { struct Info; }

namespace weft::coll {

inline constexpr uintptr_t in_place_address = 1;
inline bool in_place(const void* p) { return reinterpret_cast<uintptr_t>(p) == in_place_address; }

// An array of counts or displacements as the user gave it: int, or 64 bits wide.
struct Numbers {
    const void* array = nullptr;
    bool wide = false;
    Numbers() = default;
    Numbers(const int32_t* a) : array(a) {}
    Numbers(const int64_t* a) : array(a), wide(true) {}
    Numbers(obj::Ints a) : array(a.data), wide(a.wide) {}
    explicit operator bool() const { return array != nullptr; }
    int64_t operator[](int64_t i) const {
        return wide ? static_cast<const int64_t*>(array)[i] : static_cast<const int32_t*>(array)[i];
    }
};

// A buffer of one block per process: equal blocks in a row, or each with its own count and place (v), or its own type
// too (w; its displacements are bytes).
struct Blocks {
    void* base = nullptr;
    int64_t count = 0;                   // of every block, where `counts` is empty
    const type::Type* type = nullptr;    // of every block, where `types` is null
    Numbers counts, displs;
    const void* const* types = nullptr;  // handles

    Blocks() = default;
    explicit Blocks(Buffer one) : base(one.base), count(one.count), type(one.type) {}
    Blocks(void* b, Numbers c, Numbers d, const type::Type* t) : base(b), type(t), counts(c), displs(d) {}
    Blocks(void* b, Numbers c, Numbers d, const void* const* t) : base(b), counts(c), displs(d), types(t) {}

    Buffer at(int64_t i) const;
    bool in_place() const { return coll::in_place(base); }
};

// Equal blocks, of one type.
inline bool is_row(const Blocks& b) { return !b.counts && b.types == nullptr; }
// Bytes of the largest of blocks of one type.
inline int64_t largest(const Blocks& b, int32_t members) {
    int64_t most = b.counts ? 0 : b.count;
    for (int32_t i = 0; b.counts && i < members; i++) most = b.counts[i] > most ? b.counts[i] : most;
    return most * b.type->size;
}

// Equal blocks in a row: any run of them is one buffer.
struct Row {
    void* base;
    int64_t count;  // of one block
    const type::Type* type;
    Buffer run(int64_t from, int64_t to) const {
        return {static_cast<char*>(base) + from * count * type->extent, (to - from) * count, type};
    }
};

struct Barrier {};
struct Bcast { Buffer buf; int32_t root; };
// `equal`: all blocks are, which only the root could see from the blocks themselves.
struct Gather { Buffer send; Blocks recv; int32_t root; bool equal; };
struct Scatter { Blocks send; Buffer recv; int32_t root; bool equal; };
struct Allgather { Buffer send; Blocks recv; };
struct Alltoall { Blocks send, recv; };
// Reductions: `recv` gives count and type too; where it is not significant its base is null.
struct Reduce { const void* send; Buffer recv; const op::Op* op; int32_t root; };
struct Allreduce { const void* send; Buffer recv; const op::Op* op; };
// `counts` empty: every process gets recv.count elements.
struct ReduceScatter { const void* send; Buffer recv; Numbers counts; const op::Op* op; };
// Its vector: one part for each member.
struct Parts {
    const ReduceScatter& a;
    int64_t count(int32_t i) const { return a.counts ? a.counts[i] : a.recv.count; }
    int64_t first(int32_t i) const {
        if (!a.counts) return i * a.recv.count;
        int64_t sum = 0;
        for (int32_t j = 0; j < i; j++) sum += a.counts[j];
        return sum;
    }
    Buffer at(const void* base, int32_t i) const {
        return {static_cast<char*>(const_cast<void*>(base)) + first(i) * a.recv.type->extent, count(i), a.recv.type};
    }
};
struct Scan { const void* send; Buffer recv; const op::Op* op; bool exclusive; };

Err build(Schedule&, const Barrier&);
Err build(Schedule&, const Bcast&);
Err build(Schedule&, const Gather&);
Err build(Schedule&, const Scatter&);
Err build(Schedule&, const Allgather&);
Err build(Schedule&, const Alltoall&);
Err build(Schedule&, const Reduce&);
Err build(Schedule&, const Allreduce&);
Err build(Schedule&, const ReduceScatter&);
Err build(Schedule&, const Scan&);

// The local group (on an intercommunicator: by its local communicator), and the one that messages on `c` go to.
inline Team local_team(Comm& c) { return {c.is_inter() ? c.local_comm : &c, nullptr, c.rank, c.size}; }
inline Team remote_team(Comm& c) { return {&c, nullptr, c.rank, c.remote_size}; }

// Pieces that several collectives are made of; `team` members' ranks only, nothing of the other group. Where the team is a
// whole communicator that spans nodes, each is made of itself on every node and among the nodes' leaders. They may end with
// messages under way: who goes on with the same buffers puts a fence in between.
void add_barrier(Schedule&, const Team&);
void add_bcast(Schedule&, const Team&, int32_t root, Buffer);
void add_allgather(Schedule&, const Team&, Buffer send, const Blocks& recv);
// Blocks of at least `least` bytes, each by one message: the two that exchange one know its size.
void add_alltoall(Schedule&, const Team&, const Alltoall&, int64_t least = 0);
// Equal blocks to or from the root, whose own is neither sent nor received: `own` is not looked at there, nor `row`
// elsewhere.
enum class Way : bool { gather, scatter };
void add_rooted(Schedule&, Way, const Team&, int32_t root, Buffer own, const Row& row);

// The steps of a gather, told as a gather; a scatter is the same with every step turned round, the last one first.
struct Flow {
    Schedule& s;
    Way way;
    void to_root(const Team& t, int32_t peer, Buffer b) { way == Way::gather ? s.send(t, peer, b) : s.recv(t, peer, b); }
    void from_member(const Team& t, int32_t peer, Buffer b) { way == Way::gather ? s.recv(t, peer, b) : s.send(t, peer, b); }
    void copy(Buffer members, Buffer roots) { way == Way::gather ? s.copy(members, roots) : s.copy(roots, members); }
    // Two parts of a gather, of which the first is complete before the second starts.
    template <class Below, class Above> void in_order(Below below, Above above) {
        if (way == Way::gather) below();
        else above();
        s.fence();
        if (way == Way::gather) above();
        else below();
    }
};

// The algorithm, made of messages, of an operation among `members`, who all ask with the same values. `but`: what cannot be used.
Algorithm by_messages(const Schedule&, Operation, int32_t members, int64_t bytes, Algorithms but = 0);
// Does a tree move blocks of `bytes` sooner than the root alone would? It saves the root messages, log2(n) for n - 1, but
// copies every block anew at each step.
bool tree_pays(const Schedule&, Way, int32_t members, int64_t bytes);
inline constexpr int64_t never_a_tree = -1;
// Element-wise over all members, in their order; the result is in `result` at `root`. `own` is read, never written;
// it may be `result.base` itself.
void add_reduce(Schedule&, const Team&, int32_t root, const void* own, Buffer result);

// Small blocking calls over lines and slots, where a schedule costs more than the message (coll/small.cpp). False: nothing has been
// done, and the call is for a schedule.
template <class A> bool try_lines(Process&, Share&, const A&, Err*) { return false; }
bool try_lines(Process&, Share&, const Barrier&, Err*);
bool try_lines(Process&, Share&, const Bcast&, Err*);
bool try_lines(Process&, Share&, const Reduce&, Err*);
bool try_lines(Process&, Share&, const Allreduce&, Err*);
bool try_lines(Process&, Share&, const Allgather&, Err*);
bool try_lines(Process&, Share&, const Alltoall&, Err*);
bool try_lines(Process&, Share&, const Gather&, Err*);
bool try_lines(Process&, Share&, const Scatter&, Err*);
bool try_lines(Process&, Share&, const ReduceScatter&, Err*);
bool try_lines(Process&, Share&, const Scan&, Err*);

// Small persistent calls over lines of their own (coll/prepared.cpp), on an intracommunicator. False: nothing has been done, and the call is
// for a schedule. All members have to call it, which may wait for the others.
template <class A> bool try_prepared(Process&, Comm&, const A&, Request**, Err*) { return false; }
bool try_prepared(Process&, Comm&, const Barrier&, Request**, Err*);
bool try_prepared(Process&, Comm&, const Bcast&, Request**, Err*);
bool try_prepared(Process&, Comm&, const Reduce&, Request**, Err*);
bool try_prepared(Process&, Comm&, const Allreduce&, Request**, Err*);

// What the table decides by, for collectives that can go by staging memory: the same in all members of an intracommunicator. No bytes:
// they cannot.
struct Extent {
    Operation operation = Operation::barrier;
    int64_t bytes = 0;
};
Extent extent_of(const Comm&, const Barrier&);
Extent extent_of(const Comm&, const Bcast&);
Extent extent_of(const Comm&, const Gather&);
Extent extent_of(const Comm&, const Scatter&);
Extent extent_of(const Comm&, const Allgather&);
Extent extent_of(const Comm&, const Alltoall&);
Extent extent_of(const Comm&, const Reduce&);
Extent extent_of(const Comm&, const Allreduce&);
Extent extent_of(const Comm&, const ReduceScatter&);
Extent extent_of(const Comm&, const Scan&);
template <class A> Extent extent_of(const Comm&, const A&) { return {}; }

// One call in its three forms.
template <class A> Err blocking(Process& p, Comm& c, const A& a) {
    if (Share* share = share_of(c)) {
        Err e;
        if (try_lines(p, *share, a, &e)) return e;
    } else {
        consider_area(p, c);
    }
    Schedule* s = nullptr;
    WEFT_TRY(open(p, c, of_sequence, false, &s));
    Err e = build(*s, a);
    return e == Err::ok ? run(*s) : abandon(*s, e);
}
template <class A> Err nonblocking(Process& p, Comm& c, const A& a, Request** out) {
    Schedule* s = nullptr;
    WEFT_TRY(open(p, c, of_nonblocking, true, &s));
    Err e = build(*s, a);
    return e == Err::ok ? start(*s, out) : abandon(*s, e);
}
// Hints are promises that need not be used; unknown ones are ignored.
template <class A> Err persistent(Process& p, Comm& c, const A& a, obj::Info*, Request** out) {
    Err prepared;
    if (!c.is_inter() && try_prepared(p, c, a, out, &prepared)) return prepared;
    Schedule* s = nullptr;
    WEFT_TRY(open(p, c, of_persistent, true, &s));
    const Extent x = c.is_inter() ? Extent{} : extent_of(c, a);
    if (x.bytes > 0) s->own(open_own_area(p, c, x.operation, x.bytes));
    Err e = build(*s, a);
    return e == Err::ok ? init(*s, out) : abandon(*s, e);
}

}  // namespace weft::coll
