// How the members of a new communicator agree: the pieces the calls of comm/ share. Included by comm/ alone; no lock.
#pragma once
#include "coll/coll.hpp"
#include "comm/comm.hpp"
#include "obj/branches.hpp"
#include "obj/status.hpp"

namespace weft::comm {

// Odd, so no context is ever this: what a communicator holds before its context is known.
inline constexpr uint32_t no_context = 1;

// Of the two groups of an intercommunicator, does the caller's decide? The one whose first process is lower does.
inline bool leads(const Comm& c) { return c.group->at(0) < c.remote_group->at(0); }

// Member `root` of the team gives `bytes` to all, within a call that is collective over it.
Err bcast_now(Process&, Comm& c, const coll::Team& team, int32_t root, int32_t tag, void* data, int64_t bytes);
// The lanes that a new communicator of these members may have, of which the caller draws the context id: the root lane alone where some
// member has no others, or under WEFT_LANES=hints, unless `asked` for another. Waits until all members have started.
obj::LaneRange lanes_for(Process&, const Group& members, bool asked);
// Member 0 of the team draws a context id and tells the others: nobody else is asked. `seal` is what all of them must have
// in common where the tag alone does not say it. `members`: of the new communicator, for its lane; null: it is on the root lane.
Err agree_context(Process&, Comm& c, const coll::Team& team, int32_t tag, uint32_t* context, uint64_t seal = 0, const Group* members = nullptr);
// Err::other where another creation with the same tag has been met.
Err check_seal(uint64_t seal, uint64_t theirs);
// The internal tag of what is created under the user's.
inline int32_t creation_tag(int32_t tag) {
    int32_t t = tag | coll::of_creation;
    return t == obj::any_tag ? coll::of_clash : t;
}

// Like the call, with a seal as above.
Err intercomm_create_sealed(Process&, Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, uint64_t seal,
                            Comm** out);
// What a duplicate inherits besides groups and topology: attributes by their copy callbacks, hints from `info`.
Err inherit(Process&, Comm& from, Comm& to, Info* info);

// `own` goes to member `peer` of the other team, and its counterpart comes back in `theirs`: what two leaders do.
Err swap_now(Process&, Comm& c, const coll::Team& other, int32_t peer, int32_t tag, const void* own, int64_t own_bytes,
             void* theirs, int64_t their_bytes);

// MPI_Comm_dup of an endpoint.
Err dup_endpoints(Process&, Comm&, Info*, Comm** out);
// What hints say about several lanes, all members the same: how many, and what chooses among them (obj/branches.hpp).
struct Several {
    int32_t lanes;
    obj::By by;
    uint8_t shift;
    uint32_t mask;
};
// False: they do not ask for several, or do not promise what those need.
bool wants_several(Info* hints, Several*);
// MPI_Comm_dup_with_info with such hints, of an intracommunicator.
Err dup_several(Process&, Comm&, Info*, const Several&, Comm** out);
// MPI_Comm_split with colors from a wider space.
Err split_by(Process&, Comm& c, int64_t color, int key, Comm** out);

// An intercommunicator of subsets of both groups of `c`, made by their members alone.
Err create_between(Process&, Comm& c, Group& group, Group& remote, int32_t tag, Comm** out);
Err create_inter(Process&, Comm& c, Group& group, int32_t tag, Comm** out);

}  // namespace weft::comm
