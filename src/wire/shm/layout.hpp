// How the shared-memory wire lays out its part of the node's segment. Offsets only: no pointers are stored there, so that
// it may be mapped anywhere. Included by wire/shm and its tests. Fresh memory is zero, and zero is the valid empty state
// of everything here, so a rank may send before its peer has initialised.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/shm/pool.hpp"
#include "wire/wire.hpp"

namespace weft::wire::shm {

inline constexpr uint32_t ring_cells = 64;            // a power of two
inline constexpr uint32_t ring_cells_log2 = 6;
inline constexpr uint32_t largest_chunk = block_bytes;
inline constexpr uint32_t transfers_per_rank = 256;
inline constexpr int max_ranks = 1024;

// The cells from one rank to one other. One writer, one reader.
// Invariant: tail - consumed <= ring_cells; cells [consumed, tail) are published and unread, and so are the chunks that they refer to.
struct alignas(4096) Ring {
    Cell cells[ring_cells];
};
static_assert(sizeof(Ring) == 4096, "a page");

// State of a ring that its reader writes and its writer reads. One reader's Controls are contiguous.
struct Control {
    // Read by the writer only when the ring, or a block of its pool, seems full.
    alignas(64) std::atomic<uint32_t> consumed;       // cells the reader has freed, free-running
    std::atomic<uint32_t> over_credit;                // 1 while the reader keeps more of this ring's messages than its credit
    // 1 while the reader polls this ring; 0 when the writer must ring the doorbell.
    alignas(64) std::atomic<uint32_t> polled;
};

// What a rank shares of the node's memory besides the wire's part: unknown until it has joined; the heap, at the same address as all others
// that do; or nothing.
enum class Sharing : uint32_t { unknown, heap, nothing };

// How a rank learns of rings that it does not poll, and how it is woken.
struct Mailbox {
    alignas(64) std::atomic<uint32_t> word;           // futex; counts doorbells and wakes
    std::atomic<uint32_t> asleep;
    std::atomic<int32_t> pid;                         // 0 until the rank has joined
    std::atomic<uint32_t> shares;                     // Sharing
    std::atomic<uint32_t> lanes;                      // of the rank; 0: not known yet. In the first lane's mailbox alone
    // A hint. Lowest bit: 1 while the rank waits and has given its CPU away; the others count how often it did.
    alignas(64) std::atomic<uint32_t> away;
    alignas(64) std::atomic<uint64_t> doorbells[max_ranks / 64];  // one bit per sender whose ring is not being polled
    alignas(64) std::atomic<uint32_t> eager_max;      // a hint: largest message to send to this rank eagerly rather than by rendezvous; 0: not known yet
};

// What moves the blocks of a rendezvous; p2p/rndv.cpp chooses it, and moves a block by it.
enum class Mover : uint32_t {
    pipelined,   // the sender copies into its pool, the receiver out of it, at the same time: two copies, both in user space; while the
                 // sender is away the receiver gets blocks by cross-memory attach (CMA)
    split_cma,   // both sides, by CMA
    mapped_get,  // the receiver alone, by loads and stores, as it has mapped the sender's buffer
    mapped_both, // both sides, as each has mapped the other's buffer
};
inline constexpr int movers = 4;

// The descriptor of a rendezvous (see transfer.hpp). The sender fills in the RTS's part, the receiver the CTS's, which is all the rest;
// the sender reuses it when both sides are done.
struct alignas(64) Transfer {
    uint64_t from;                      // by the RTS: address of the sender's data; 0 if not contiguous, or not to be read by others
    std::atomic<uint32_t> state;        // State
    std::atomic<uint32_t> receiver_done;
    uint32_t mapped;                    // by the RTS: `from` means the same in every process that has mapped the shared heap
    uint32_t block;                     // by the CTS: bytes that a side claims at a time, except by pipelined copy
    uint64_t to;                        // address of the receive buffer; 0 if only the receiver can write to it
    uint64_t limit;                     // bytes to move: the message's, or the receive buffer's if that is smaller
    uint64_t receive;                   // identity of the receiver's record (lane/ids.hpp)
    std::atomic<uint32_t> fault;        // Fault: why a copy failed
    std::atomic<Mover> mover;           // chosen by the receiver; either side changes it to `pipelined` when the kernel refuses CMA
    // Bytes copied by each side, so each number has one writer. The sender polls `left`, the receiver polls `arrived`. In a
    // pipelined copy each side writes only the line that it polls, so neither line moves between the cores.
    struct Copied {
        std::atomic<uint64_t> by[2];
    };
    alignas(64) std::atomic<uint64_t> claimed;  // bytes claimed so far, by both sides; may exceed limit
    Copied left;                                // that have left the sender's buffer
    // The part of a block that the kernel refused to copy for each side: the sender moves it by pipelined copy. Each side writes its
    // own once, `end` last with release; after that only the sender changes `at`.
    struct Refused {
        std::atomic<uint64_t> at, end;
    } refused[2];
    std::atomic<uint32_t> any_refused;          // 1: there is, or was, such a part
    alignas(64) Copied arrived;                 // that are in the receiver's buffer
    enum Side : uint8_t { sender, receiver };
    enum State : uint32_t { has_rts, has_cts };
    enum Fault : uint32_t { none, senders_buffer, receivers_buffer };  // which buffer is not accessible
};

// Offsets of the parts, for `ranks` ranks on the node.
struct Layout {
    int ranks;
    static constexpr size_t page(size_t n) { return (n + 4095) / 4096 * 4096; }
    size_t mailbox(int r) const { return page(sizeof(Mailbox)) * static_cast<size_t>(r); }
    size_t transfers(int r) const {
        return mailbox(ranks) + sizeof(Transfer) * transfers_per_rank * static_cast<size_t>(r);
    }
    size_t pair(int to, int from) const {
        return static_cast<size_t>(to) * static_cast<size_t>(ranks) + static_cast<size_t>(from);
    }
    size_t control(int to, int from) const { return transfers(ranks) + sizeof(Control) * pair(to, from); }
    size_t ring(int to, int from) const { return page(control(ranks, 0)) + sizeof(Ring) * pair(to, from); }
    size_t pool(int r) const { return ring(ranks, 0) + size_t{block_bytes} * Pool::blocks_for(ranks) * static_cast<size_t>(r); }
    size_t bytes() const { return pool(ranks); }
};

}  // namespace weft::wire::shm
