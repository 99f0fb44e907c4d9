// Groups: ordered sets of processes. Any floor above obj/ may include this.
// Immutable after creation but for the reference count; no lock is held by callers.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"

namespace weft::obj {

struct Process;
struct Comm;

struct Route;
inline constexpr int32_t route_sentinels = 3;  // routes[-3..-1]: MPI_PROC_NULL and the two impossible ranks

struct Group : Object {
    int32_t size;
    int32_t rank;    // of the caller; undefined when it is no member
    int32_t first;   // where `ranks` is null, member i is process first + i
    int32_t* ranks;  // the members' ranks in the world, or null: a run, which costs no memory however long it is
    std::atomic<int32_t> refs;
    std::atomic<Route*> routes;  // to the members, made with the first communicator of this group; null before
    void* session;   // the session it comes from; null: World Model
    Group* next;     // link of the free list

    int32_t at(int32_t i) const { return ranks != nullptr ? ranks[i] : first + i; }
};

extern Group group_empty;  // MPI_GROUP_EMPTY: never counted, never freed

inline void retain(Group& g) {
    if (&g != &group_empty) g.refs.fetch_add(1, std::memory_order_relaxed);
}
void release(Process&, Group& g);

// The group of processes first .. first+size-1.
Err make_run(Process&, int32_t first, int32_t size, void* session, Group** out);
// The group of the `size` processes in `ranks`, which are copied; a run is recognised. Empty gives group_empty.
Err make_group(Process&, const int32_t* ranks, int32_t size, void* session, Group** out);
// Rank in `g` of the process with this world rank, or undefined.
int32_t rank_of(const Group& g, int32_t world_rank);

// Numbered as MPI_IDENT and its like in the ABI.
enum Compare : int { ident = 201, congruent = 202, similar = 203, unequal = 204 };
Compare compare_groups(const Group& a, const Group& b);

}  // namespace weft::obj
