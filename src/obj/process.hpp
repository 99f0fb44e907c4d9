// The Process: all state of this rank hangs from it (no globals). Include from p2p/ upwards.
// `process` is the one pointer to it; it starts at a static Process whose communicators are "not initialised", so that
// the bindings' ordinary path finds out without a test of its own.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"
#include "handle_numbers.hpp"
#include "lane/number.hpp"
#include "obj/comm.hpp"
#include "obj/contexts.hpp"
#include "obj/request.hpp"
#include "os/spin.hpp"

namespace weft::boot { struct Job; }
namespace weft::lane { struct Lane; struct Peer; }
namespace weft::heap { struct Segment; struct Heap; }
namespace weft::coll { struct Engine; struct Table; }
namespace weft::lane { struct LaneGuard; }
namespace weft::wire { struct Header; }
namespace weft::wire::null { struct Null; }
namespace weft::p2p { struct Buffers; }
namespace weft::comm { struct Directory; }
namespace weft::part { struct Engine; }
namespace weft::rma { struct Engine; }

namespace weft::obj {

enum class Phase : uint8_t { before_init, active, finalized, forked };
enum class ThreadLevel : uint8_t { single, funneled, serialized, multiple };

struct Registry;
struct Win;

// The lanes of a process. Lane 0, the root lane, is there from the start, the others from the first communicator on that is theirs.
// `at` may be read by any thread; the rest is constant while messages flow, but `kept`, which is under `making`.
struct Lanes {
    std::atomic<lane::Lane*> at[lane::most_lanes];   // null: not made
    lane::Lane* kept[lane::most_lanes];              // memory of all that were ever made
    char* wires;             // the root lane's memory for the wire; null: no rank shares memory
    size_t stride;           // from there to that of the next lane
    bool can_fence;
    bool by_hints;           // WEFT_LANES=hints: only communicators that ask for one are on another lane than the root
    os::SpinLock making;
};

struct Process {
    // What the bindings read on every call, in one line, the last five communicators apart.
    lane::Lane* lane;            // lane 0, the root lane
    std::atomic<Phase> phase;
    ThreadLevel level;
    bool threads;                // several threads may call at once: level is multiple
    uint8_t log;                 // WEFT_LOG
    uint8_t part_policy;         // WEFT_POLICY.part
    uint8_t coll_choice;         // WEFT_COLL; coll/choice.hpp names its values
    uint8_t lane_count;          // lanes that communicators may have; 1 unless `threads`
    uint8_t progress_policy;     // WEFT_POLICY.progress; p2p/progress.hpp names its values
    // By handle, from MPI_COMM_NULL on: that, MPI_COMM_WORLD, MPI_COMM_SELF, a number that the ABI keeps back, MPIX_COMM_1 to 4.
    static constexpr int comm_numbers = 8, first_fixed = 4;
    Comm* comms[comm_numbers];
    wire::null::Null* null_wire; // null: it is not used

    Lanes lanes;
    Request sent_request;        // the one that every send done at once returns
    // Slow-path work of the floors above, called after each round of progress with no lock held; true when it moved something.
    // `hook_work` counts what there is to do: while it is 0 nobody calls them, and a wait looks at its own ring alone.
    static constexpr int max_hooks = 8;
    bool (*hooks[max_hooks])(Process&);
    std::atomic<int32_t> hook_count, hook_work;
    // What serves the cells of the floors above, by kind. Called under the lane's guard: never user code.
    static constexpr int max_arrivals = 8;
    using Arrival = void(Process&, lane::LaneGuard&, int peer, const wire::Header&, const char* payload, const char* chunk);
    Arrival* arrivals[max_arrivals];
    heap::Segment* segment;      // the node's shared memory; null for a singleton
    heap::Heap* heap;            // of MPI_Alloc_mem

    Phase world_phase;           // of the World Model alone; `phase` is the engine's, which sessions run too
    int32_t users;               // the World Model, while active, and every session; under pool_lock
    bool starting;               // somebody is about to be the first; under pool_lock
    boot::Job* job;              // who am I, who are my peers; null before init
    int32_t world_rank, world_size;
    int32_t nodes;               // that the world's processes are on, as collectives see it
    lane::Peer* peers;           // the world's processes, by world rank
    uint64_t main_thread;        // pthread_self() of the thread that initialised
    Comm world, self, null_comm; // the objects behind comms[]
    Comm fixed[comm_numbers - first_fixed + 1];  // [0]: no communicator; the others: MPIX_COMM_1 to 4. On the list of all, behind `self`
    Contexts contexts;
    os::SpinLock pool_lock;       // guards the free lists: dead objects stay mapped and are used again
    Group* free_groups;
    CommSlabs comm_slabs;        // of all communicators but those above; under pool_lock
    std::atomic<p2p::Buffers*> buffers;  // of buffered sends; null until the first is attached
    const coll::Table* coll_table;  // what the user says of collectives; null: nothing but coll_choice
    coll::Engine* coll;          // active schedules; null until the first nonblocking collective
    Errhandler* free_errhandlers;
    Info* free_infos;
    std::atomic<Registry*> registry;  // see obj/registry.hpp; there before initialisation
    comm::Directory* directory;  // process sets and what creates communicators without a parent; null until then
    part::Engine* part;          // partitioned messages; null until the first
    rma::Engine* rma;            // windows whose accesses are messages; null until the first
    Win* free_wins;              // under pool_lock
    uint8_t rma_choice;          // WEFT_RMA: the number of its word
    uint32_t rma_helper_us;      // WEFT_POLICY.rma_helper; 0: no helper
    std::atomic<bool> told;      // the launcher has been told what is pending here
    std::atomic<uint32_t> waiting;  // threads that have waited for p2p::rounds_at_home rounds, whether they look or sleep
};

// A Process as it is before MPI_Init. The library's own is prepared at compile time; tests make more of them.
constexpr void prepare_process(Process& p) {
    p.comms[0] = &p.null_comm;
    p.comms[1] = &p.world;
    p.comms[2] = &p.self;
    for (int i = 3; i < Process::comm_numbers; i++) p.comms[i] = &p.fixed[i - 3];
    p.fixed[0].kind = Kind::bad_handle;
    p.self.all_next = &p.fixed[1];
    for (int i = Process::first_fixed; i < Process::comm_numbers; i++) {
        Comm& c = *p.comms[i];
        c.kind = Kind::not_initialised;
        c.id = number::comm_null + i;
        c.all_next = i + 1 < Process::comm_numbers ? p.comms[i + 1] : nullptr;
    }
    p.null_comm.kind = Kind::null_handle;
    p.null_comm.id = number::comm_null;
    p.world.kind = p.self.kind = Kind::not_initialised;
    p.world.id = number::comm_world;
    p.self.id = number::comm_self;
    p.sent_request.kind = Kind::request;
    p.sent_request.flags = Request::shared;
}
// Whether `c` is one of MPIX_COMM_1 to 4.
inline bool is_fixed(const Process& p, const Comm& c) { return &c > p.fixed && &c <= p.comms[Process::comm_numbers - 1]; }
// The node that a process is on, from 0. There is one; WEFT_NODE_RANKS makes runs of ranks look like several.
int32_t node_of(const Process&, int32_t world_rank);
// Makes collectives see a node in every `ranks_each` consecutive ranks of the world; 0: all are on one.
void see_nodes(Process&, int32_t ranks_each);

// How this process reaches the one of that world rank: decided once per communicator.
Route route_to(Process&, int32_t world_rank);

// There from the start of the program, prepared at compile time.
struct FirstProcess {
    Process p{};
    constexpr FirstProcess() { prepare_process(p); }
};
extern WEFT_HIDDEN FirstProcess first_process;
#if WEFT_THREADS_PRESET
extern thread_local Process* process;
#else
inline constexpr Process* process = &first_process.p;   // a constant: nobody loads it
#endif

}  // namespace weft::obj
