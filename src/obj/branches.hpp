// Communicators of several lanes. Such a one, a front, carries no message itself: each goes by one of its branches, which are ordinary
// communicators of the same group, each with a context and a lane of its own, that no user has a handle of. There are two kinds:
//
//   by rank   a front is an endpoint. Each of a process's endpoints receives on a context of its own, and context i is that of the
//             endpoint i of every process; so the lane of a message is its receiver's.
//   by tag    bits of the tag choose; receives must name the tag.
//
// Invariant: sender and receiver of a message choose branches with the same context, and all messages that one receive could match come
// by one branch. All routes of a front are Route::branch, so no short path takes one for an ordinary communicator.
// Included by p2p/ and above, and by obj/. Constant once the front is made; no lock.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"
#include "obj/comm.hpp"

namespace weft::obj {

// Context ids that several communicators of a process have: given back with the last of them.
struct ContextSet {
    std::atomic<int32_t> refs;
    int32_t count;
    uint32_t ids[];
};
// With one reference, the caller's; the ids are for it to fill in. Null when out of memory.
ContextSet* new_contexts(int32_t count);
void release(Process&, ContextSet&);

struct Branches {
    const int32_t* of_rank;   // by rank: the number of each endpoint among those of its process; null: by tag
    int32_t own;              // by which an endpoint receives; by tag: by which collectives go
    int32_t count;
    uint32_t shift, mask;     // by tag: the bits that choose
    Route* routes;            // the front's
    Comm* at[];
};

inline bool has_endpoints(const Comm& c) { return c.branches != nullptr && c.branches->of_rank != nullptr; }

// Of what a front is made. `of_rank` is copied.
struct BranchPlan {
    ContextSet* contexts;
    int32_t rank;             // of the front
    int32_t own;
    const int32_t* of_rank;
    uint32_t shift, mask;
};
// Makes a front and its branches over `group`, with a reference to it for each. Err::no_mem.
Err make_front(Process&, Group& group, const BranchPlan&, Comm* parent, Comm** out);
// Lets go of the branches. Operations that are pending keep theirs.
void close_branches(Process&, Branches&);

// The branch by which a message goes to `rank`, or is received.
inline Comm& sending_branch(const Branches& b, int32_t rank, int32_t tag, bool other_context) {
    if (b.of_rank != nullptr) return *b.at[rank >= 0 ? b.of_rank[rank] : b.own];
    return *b.at[other_context || tag < 0 ? 0 : (static_cast<uint32_t>(tag) >> b.shift & b.mask) % static_cast<uint32_t>(b.count)];
}
inline Comm& receiving_branch(const Branches& b, int32_t tag, bool other_context) {
    return b.of_rank != nullptr ? *b.at[b.own] : sending_branch(b, 0, tag, other_context);
}

}  // namespace weft::obj
