// A window and its processes. Used by rma/ alone.
//
// Two ways of access, chosen when the window is made, for the whole window, so that its accumulates have one atomicity domain:
// - mapped: every part lies in the node's shared heap, at the same address in all processes. The origin loads, stores and uses atomic
//   instructions itself; the target does nothing.
// - by messages (messages.hpp): the target applies what origins send, whenever it makes progress. Puts and gets are copied by the kernel
//   meanwhile (kernel.hpp), on memory of processes of this node that is not shared; the target does nothing for them, either. They are
//   no part of the atomicity domain: what is put while it is accumulated is undefined anyway.
//
// Apart from that a lock is a word in the target's Control, wherever all processes share those.
//
// `parts` and all that is decided at creation are immutable. Epochs are the calling threads' own, who may not open one twice at a time:
// `locks` has a byte per target, `open_epochs` is atomic.
#pragma once
#include <atomic>
#include <cstdint>

#include "obj/branches.hpp"
#include "os/spin.hpp"
#include "rma/rma.hpp"

namespace weft::rma {

struct Messages;

// The error classes of windows.
inline constexpr Err err_disp{MPI_ERR_DISP}, err_range{MPI_ERR_RMA_RANGE}, err_sync{MPI_ERR_RMA_SYNC}, err_attach{MPI_ERR_RMA_ATTACH},
    err_shared{MPI_ERR_RMA_SHARED}, err_flavor{MPI_ERR_RMA_FLAVOR}, err_assert{MPI_ERR_ASSERT}, err_locktype{MPI_ERR_LOCKTYPE};

// What the processes of a window share about one part, in the shared heap; private to the target where not all of them can.
// `word` invariant: 0 free, `exclusive` held by one, otherwise the number of those that share it.
struct Control {
    static constexpr uint32_t exclusive = 1u << 31;
    alignas(64) std::atomic<uint32_t> word;
    std::atomic<uint32_t> sleepers;      // that may sleep on `word`
    alignas(64) os::SpinLock wide;       // of elements that no instruction updates (element.hpp)
};

// One process's memory.
struct Part {
    char* base;         // at this address in that process; null: displacements are addresses (dynamic windows)
    int64_t bytes;
    int64_t disp_unit;
    Control* control;   // mapped windows, and those whose locks are words
};

// A region of a dynamic window.
struct Region {
    Region* next;
    char* base;
    int64_t bytes;
};

// A process that takes part in an epoch of MPI_Win_post or MPI_Win_start, and all of them.
struct Member {
    int32_t rank;           // in the window
    Request* completion;    // MPI_Win_post's: the receive of what MPI_Win_complete sends
};
struct Members {
    int64_t count;          // that follow
    Member* all() { return reinterpret_cast<Member*>(this + 1); }
    Member* begin() { return all(); }
    Member* end() { return all() + count; }
    const Member* begin() const { return const_cast<Members*>(this)->all(); }
    const Member* end() const { return begin() + count; }
};

enum class Held : uint8_t { no, shared, alone };

struct Window : Win {
    uint32_t reach;         // ranks below it are accessed by loads and stores: all where `mapped`, else none
    bool mapped;
    bool by_words;          // a lock is Control::word
    std::atomic<bool> by_kernel;   // puts and gets; until the kernel refuses one
    bool shared;            // every part can be loaded and stored by every process
    Part* parts;            // by rank
    Control* control;       // of this process's part
    void* memory;           // that the library allocated for it; null: none
    Messages** messages;    // one for each of its lanes, at least one; null: mapped
    int32_t lanes;          // of its own, by which accesses go: `mpi_num_vcis`; 0: none, its communicator's
    bool unordered;         // accumulates may overtake each other: `accumulate_ordering` is `none`
    Region* regions;        // attached; under `lock`
    os::SpinLock lock;      // a leaf

    std::atomic<int32_t> open_epochs;   // of access; accesses without any are refused
    bool fenced;                        // one of them is a fence's
    bool all_locked;
    Held* locks;                        // by rank
    Members* accessed;                  // MPI_Win_start's; null: none
    Members* exposed;                   // MPI_Win_post's; null: none

    int32_t size() const { return comm->size; }
};

inline Window& window_of(Win& w) { return static_cast<Window&>(w); }

// How a process of a window is reached. Where they are endpoints, the front's own routes do not say it, but any branch's do.
inline const obj::Route& route_to(const Comm& c, int32_t rank) { return (c.branches != nullptr ? *c.branches->at[0] : c).routes[rank]; }
// Whether its part is this process's own memory.
inline bool is_here(const Window& w, int32_t rank) { return route_to(*w.comm, rank).way == obj::Route::self; }

// Where `offset` in a part lies, as an address of its process. An integer, because a dynamic window's base is none.
inline char* address(const Part& part, int64_t offset) {
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(part.base) + static_cast<uint64_t>(offset));
}

// The stores of this process before it are visible to all before its loads after it are done. A locked instruction, as on x86-64 any
// is a full fence; ThreadSanitizer knows no fences.
WEFT_INLINE void full_fence() {
    std::atomic<int> word{0};
    (void)word.exchange(1, std::memory_order_seq_cst);
}

// A rank to access: Err::rank if there is none. MPI_PROC_NULL is good.
Err check_target(const Window&, int rank);
// Whether this process's memory [at, at + bytes) is attached to the dynamic window.
bool is_attached(Window&, const char* at, int64_t bytes);

// Ends receives that nothing will match any more, or that an error has made useless.
void cancel_receives(Process&, Request* const* receives, int32_t count);

// All accesses of this process so far are complete at their targets, or at that one.
void complete_accesses(Process&, Window&);
void complete_accesses(Process&, Window&, int target);

}  // namespace weft::rma
