// Windows whose accesses are messages: the origin cuts an access into packets, which the target applies when it makes progress, in the
// order in which they were sent. Used by rma/ alone.
//
// A packet says for each of its elements where it lies and what it is (Piece), so the target needs nothing of the origin's datatypes.
// Packets travel as messages on the window's communicator. The hook of this layer takes them, for all windows of the process, one thread
// at a time for each window (`busy`). It runs no user code, as only predefined operations are allowed.
//
// A window whose hints ask for lanes (`mpi_num_vcis`) has a Messages for each, with a communicator and thus a lane of its own. Accesses
// of different lanes have no order. So what the standard orders, accumulates on one target, goes by the target's lane, unless the hint
// `accumulate_ordering` is `none`; everything else by the calling thread's. Locks are lane 0's. A flush asks by every lane that was used.
#pragma once
#include <atomic>
#include <cstdint>

#include "lane/ids.hpp"
#include "rma/element.hpp"
#include "rma/helper.hpp"
#include "rma/window.hpp"

namespace weft::rma {

// Tags on the window's communicator: packets; what MPI_Win_post and MPI_Win_complete tell.
enum Tag : int32_t { packet_tag, posted_tag, completed_tag };

enum class PacketKind : uint8_t {
    put, get, accumulate, compare_and_swap,   // accesses: pieces follow
    reply,                                    // data for an access of the receiver's
    flush, unlock,                            // answered by `ack` when all before is applied
    ack, lock_shared, lock_alone, granted,
};

struct Packet {
    PacketKind kind;
    int32_t op;        // its handle's number, for an accumulate
    int32_t pieces;
    int32_t bytes;     // of data, for a reply
    uint64_t access;   // identity of the origin's record; 0: no reply is wanted
    int64_t at;        // offset of the first data in the packed form of the access
};

// Elements of one type; those of a put and an accumulate follow, packed, filled up to a multiple of 8 bytes.
struct Piece {
    int64_t offset;    // from the base of the target's part
    int32_t count;
    int32_t number;    // of the type, see type::number_of()
};

inline constexpr int64_t packet_bytes = 16 * 1024;   // of the largest: an eager message
inline constexpr int packet_receives = 4;            // posted at a time

// What an origin knows of a target. Flushes and unlocks are counted before they leave, and answered in the order in which they arrive.
// Invariant: once as many are answered as were asked for at some time, all accesses of before that time are applied, and their data are
// here. Some answer is one to a flush that left after them, and replies come before the answers to what was sent later.
struct ToTarget {
    std::atomic<uint32_t> asked;    // flushes and unlocks; raised under `lock`
    std::atomic<uint32_t> answered;
    std::atomic<int32_t> replies;   // accesses whose data have not all come; raised before the packet leaves
    std::atomic<bool> dirty;        // accesses since the last flush; cleared under `lock`
    std::atomic<bool> granted;      // the lock that was asked for
};

struct Sent;
struct LockRequest { int32_t rank; Held how; };

struct Messages {
    Process* process;
    Window* window;
    Comm* comm;                     // the window's, or this lane's own
    Messages* next;                 // in the engine's list
    bool busy, missed;              // under the engine's lock: a thread serves; another one wanted to meanwhile

    ToTarget* targets;
    os::SpinLock lock;              // of the next three; a leaf
    lane::Ids accesses;             // that await data
    Sent *first_sent, *last_sent;   // packets that are still leaving
    std::atomic<int64_t> queued;    // bytes of those

    // Touched by the thread that serves.
    Request* incoming[packet_receives];
    char* space;                    // for them
    int32_t next_incoming;
    Held held;                      // this process's part, by how many
    int32_t holders;
    LockRequest* waiting;           // a ring of as many as there are processes
    int32_t waiting_from, waiting_count;
};

struct Engine {
    os::SpinLock lock;
    Messages* first;
    std::atomic<int32_t> threads;   // that have a number
    Helper helper;
};

// Collective over the window: on Window::lanes lanes of its own, or on its communicator's.
Err open_messages(Process&, Window&);
void close_messages(Process&, Window&);
// What MPI_Win_get_info tells of the lanes.
Err put_lanes(const Process&, const Window&, Info&);

// One access: to the elements of `shape` at `offset` in the part of `target`.
struct Order {
    PacketKind kind;
    const op::Op* op;
    Buffer origin;      // what is sent; for a compare-and-swap the value to compare with, then the new one
    Buffer result;      // where the reply goes; no type: none is wanted
    int32_t target;
    int64_t offset;
    Buffer shape;       // count and type at the target; base unused
};
// `out` null: no request is wanted. Else it is null if the access is complete already.
Err send_order(Process&, Window&, const Order&, Request** out);

void flush_by_messages(Window&, int32_t target);
void flush_all_by_messages(Window&);
void flush_local_by_messages(Window&, int32_t target);
void lock_by_messages(Window&, int32_t target, Held how);
// The second half of the former, so that many locks can be asked for at once.
void await_lock(Window&, int32_t target);
void ask_for_lock(Window&, int32_t target, Held how);
void unlock_by_messages(Window&, int32_t target);

}  // namespace weft::rma
