// Communicators of several lanes. Such a one, a front, carries no message itself: each goes by one of its branches, which are ordinary
// communicators of the same group, each with a context and a lane of its own, that no user has a handle of. There are three kinds:
//
//   endpoint   the front is one. Each of a process's endpoints receives on a context of its own, and context i is that of the endpoint
//              i of every process; so the lane of a message is its receiver's.
//   tag        bits of the tag choose; receives must name the tag.
//   source     the sender's rank chooses; receives must name the source.
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

// Context ids that several communicators have. With the last of these they are given back, if they were drawn here: each endpoint that
// takes part in a duplication has a set of its own, and of those that are in one process only one has drawn the ids.
struct ContextSet {
    std::atomic<int32_t> refs;
    int32_t count;
    bool drawn;
    uint32_t ids[];
};
// With one reference, the caller's; not drawn; the ids are for it to fill in. Null when out of memory.
ContextSet* new_contexts(int32_t count);
void release(Process&, ContextSet&);

enum class By : uint8_t { endpoint, tag, source };

struct Branches {
    By by;
    uint8_t shift;            // by tag: where the bits are that choose
    uint32_t mask;            // ... and how many
    int32_t own;              // by which an endpoint receives, or this source sends
    int32_t count;
    const int32_t* of_rank;   // the number of each endpoint among those of its process
    Route* routes;            // the front's
    Comm* at[];
};

inline bool has_endpoints(const Comm& c) { return c.branches != nullptr && c.branches->by == By::endpoint; }

// Of what a front is made. `of_rank`, of endpoints alone, is copied.
struct BranchPlan {
    ContextSet* contexts;
    int32_t rank;             // of the front
    int32_t own;
    By by;
    uint8_t shift;
    uint32_t mask;
    const int32_t* of_rank;
};
// Makes a front and its branches over `group`, with a reference to it for each. Err::no_mem.
Err make_front(Process&, Group& group, const BranchPlan&, Comm* parent, Comm** out);
// Lets go of the branches. Operations that are pending keep theirs.
void close_branches(Branches&);

// The branch by which a message goes, or is received. `rank` and `tag` name the other side; `inner`: of the contexts of collectives and
// of messages without source and tag, of which all but those of endpoints go by the first branch.
inline int32_t branch_of_tag(const Branches& b, int32_t tag) {
    return tag < 0 ? 0 : static_cast<int32_t>((static_cast<uint32_t>(tag) >> b.shift & b.mask) % static_cast<uint32_t>(b.count));
}
inline Comm& sending_branch(const Branches& b, int32_t rank, int32_t tag, bool inner) {
    if (b.by == By::endpoint) return *b.at[rank >= 0 ? b.of_rank[rank] : b.own];
    if (inner) return *b.at[0];
    return *b.at[b.by == By::tag ? branch_of_tag(b, tag) : b.own];
}
inline Comm& receiving_branch(const Branches& b, int32_t rank, int32_t tag, bool inner) {
    if (b.by == By::endpoint) return *b.at[b.own];
    if (inner) return *b.at[0];
    return *b.at[b.by == By::tag ? branch_of_tag(b, tag) : rank >= 0 ? rank % b.count : 0];
}

}  // namespace weft::obj
