// Communicators: what matching, sending and collectives read. Made by comm/ (and by boot for WORLD and SELF).
// Immutable after creation except name, attributes, error handler and info, guarded by the registry's lock.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"

namespace weft::obj {

struct Errhandler;
struct Attributes;   // obj/attr.hpp
struct Info;
struct Group;
struct Process;
struct Comm;
struct Branches;     // obj/branches.hpp
struct ContextSet;
}  // namespace weft::obj
namespace weft::lane { struct Lane; }
namespace weft::p2p { struct Requestless; }
namespace weft::obj {

// How one peer is reached; decided once, when the communicator is made.
struct alignas(16) Route {   // a power of two: routes[] is indexed on every short path
    enum Way : uint8_t { shm, sock, null_wire, self, nobody, branch, bad };   // branch: of a front, whose messages go by others (obj/branches.hpp)
    Way way;
    int32_t peer;        // its number in the process's table
    int32_t index;       // on its wire
    int32_t inline_max;  // bytes that travel in the header's cache line; -1 where the short path must not be taken

    bool is_wire() const { return way <= sock; }  // to another process
};

// What coll/ keeps with a communicator begins with how it is given back: called once, when the communicator ends.
struct CollState {
    void (*close)(Process&, Comm&, CollState*);
};

struct Comm : Object {
    uint32_t context;    // +1 is its collective context, +2 that of messages without source and tag. Unique among the communicators a process may see.
    int32_t rank;        // of the caller, in the local group
    int32_t size;        // of the local group
    int32_t remote_size; // number of ranks one can send to: size, or the remote group's
    Route* routes;       // [-3 .. remote_size): the slots of MPI_PROC_NULL and of the impossible ranks exist. The group's
    uint32_t peer_limit; // remote_size + 3, for valid_peer()
    uint32_t counted;    // 0: WORLD and SELF, on which pending operations hold no reference
    lane::Lane* lane;    // by which all its messages go, in every member: its context's (obj/lanes.hpp)
    Errhandler* errhandler;
    Group* group;
    Group* remote_group; // intercommunicators only, else null
    Attributes* attributes;
    Info* info;
    void* topology;      // owned by topo/; one block of malloc, freed with the communicator
    CollState* coll;     // owned by coll/; null until it needs one
    Comm* local_comm;    // intercommunicators: an intracommunicator over the local group, for collectives
    std::atomic<int32_t> refs;  // the handle, and every pending operation on it
    std::atomic<uint32_t> coll_sequence, nonblocking_sequence;
    std::atomic<p2p::Requestless*> requestless;  // owned by p2p/; null until a send without a request is not complete at once
    void* session;       // null: World Model
    Branches* branches;  // by which its messages go, if it has several lanes; else null
    ContextSet* context_set;  // from which its context is, if others have the same; else null
    std::atomic<Comm*> front; // of a branch, for error handlers; null: none, or it is freed, and operations of the branch are still pending
    uint32_t direct_peers;    // remote_size, or 0 on a front, whose messages do not go by its own context and lane
    alignas(16) uint64_t nomatch_header[2];  // fixed ones: of an empty message without source and tag, as in wire::Cell
    Comm* all_next;      // the next of those in Process, for life
    struct CommSlab* slab;  // where the others lie
    char name[128];

    bool is_inter() const { return remote_group != nullptr; }
    // A rank one may send to, proc_null included; the bad slots in between are caught by their Way.
    bool valid_peer(int r) const { return static_cast<uint32_t>(r + 3) < peer_limit; }
};

// Memory of communicators. A stale handle stays readable, but the pages of a slab without communicators go back to the system, for all
// such slabs but one.
struct CommSlab {
    static constexpr size_t bytes = 64 * 1024;
    static constexpr int32_t places = static_cast<int32_t>(bytes / sizeof(Comm));
    CommSlab *next, *next_open;   // of all; of those with a place
    Comm* comms;
    Comm* free;                   // places that were used, by local_comm
    int32_t fresh, used;          // places from `fresh` on have not been used since the slab had its pages
};
struct CommSlabs {
    CommSlab *all, *open, *idle;  // idle: has no communicators, and its pages still
    // Calls f(Comm&) for each place that is or was a communicator's.
    template <class F> void each(F f) const {
        for (CommSlab* s = all; s != nullptr; s = s->next)
            for (int32_t i = 0; i < s->fresh; i++) f(s->comms[i]);
    }
};

inline bool is_predefined(const Comm& c) { return c.counted == 0; }

inline void retain(Comm& c) { c.refs.fetch_add(1, std::memory_order_relaxed); }
void release(Comm& c);  // frees at zero: groups, attributes (without callbacks)
// The same for a pending operation, whose end cannot be the last where the handle is still there. `threads`: others of this process may
// call MPI, too; without them no locked instruction is needed.
inline void retain(Comm& c, bool threads) {
    if (threads) retain(c);
    else c.refs.store(c.refs.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}
inline void release(Comm& c, bool threads) {
    const int32_t refs = c.refs.load(std::memory_order_relaxed);
    if (threads || refs == 1) release(c);
    else c.refs.store(refs - 1, std::memory_order_relaxed);
}

// Makes a communicator over `group` (and `remote`: an intercommunicator), with a route to each process one can send to.
// Takes over the caller's references to both groups on success. The error handler is `parent`'s, if there is one.
Err make_comm(Process&, Group* group, Group* remote, uint32_t context, Comm* parent, Comm** out);
// The same in place, for the communicators that live inside the Process.
Err init_comm(Process&, Comm& c, Group* group, Group* remote, uint32_t context, Comm* parent);
// Makes `to`, a fixed communicator that is not in use, what `from` is, which nobody but its maker knows yet, and which is gone then.
void move_comm(Process&, Comm& from, Comm& to);
// Undoes init_comm: frees what hangs from `c`, not `c` itself.
void close_comm(Process&, Comm& c);

}  // namespace weft::obj
