// How the shared-memory wire lays out its part of the node's segment. Offsets only: no pointers are stored there, so that
// it may be mapped anywhere. Included by wire/shm and its tests. Fresh memory is zero, and zero is the valid empty state
// of everything here: no rank waits for another to initialise.
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

// The messages from one rank to one other. One writer, one reader.
// Invariant: tail - consumed <= ring_cells; cells [consumed, tail) are published and unread, and so are the chunks that they refer to.
struct alignas(4096) Ring {
    Cell cells[ring_cells];
};
static_assert(sizeof(Ring) == 4096, "a page");

// What the reader of a ring tells its writer. A reader's are beside each other.
struct Control {
    // Read by the writer only when the ring, or a block of its pool, seems full.
    alignas(64) std::atomic<uint32_t> consumed;       // cells given back, free-running
    std::atomic<uint32_t> over_credit;                // 1 while the reader keeps more of this ring's messages than its credit
    // Written when the reader's attention changes: 1 while it polls this ring, 0 when the writer must ring the bell.
    alignas(64) std::atomic<uint32_t> polled;
};

// How a rank is called and woken.
struct Mailbox {
    alignas(64) std::atomic<uint32_t> word;           // futex; counts the bells rung
    std::atomic<uint32_t> asleep;
    std::atomic<int32_t> pid;                         // 0 until the rank has joined
    alignas(64) std::atomic<uint64_t> doorbells[max_ranks / 64];  // one bit per sender whose ring is not being polled
    alignas(64) std::atomic<uint32_t> eager_max;      // a hint: bytes of a message that this rank wants without an offer; 0: not known yet
};

// One large message on its way (see transfer.hpp). Made by the sender, accepted by the receiver; the sender uses it again
// when both are done with it.
struct alignas(64) Transfer {
    uint64_t from;                      // the sender's data, or 0 where it is not one run of bytes
    uint64_t bytes;
    uint64_t to;                        // the receiver's, likewise; valid once state is accepted
    uint64_t limit;                     // bytes the receiver wants, <= bytes
    uint64_t receive;                   // the receiver's own note
    std::atomic<uint32_t> state;        // State
    std::atomic<uint32_t> receiver_done;
    std::atomic<uint32_t> fault;        // Fault: why a copy failed
    uint32_t block;                     // bytes that each side copies at once by split CMA; 0: pipelined copy. The receiver's choice
    alignas(64) std::atomic<uint64_t> claimed;  // bytes given to a copier
    // A block that the kernel refused to copy for a side, and gave back: the sender moves it by pipelined copy. Written once by
    // that side, `end` last with release; from then on `at` is the sender's.
    struct GivenBack {
        std::atomic<uint64_t> at, end;
    } given_back[2];
    std::atomic<uint32_t> refused;              // some block was: no more is copied by the kernel
    // Bytes copied, by which side: each number has one writer. The sender looks at `left` all the time, the receiver at
    // `arrived`; in a pipelined copy each writes the line that it looks at, and none goes to and fro.
    struct alignas(64) Copied {
        std::atomic<uint64_t> by[2];
    } left, arrived;                            // left the sender's buffer; are in the receiver's
    enum Side : uint8_t { sender, receiver };
    enum State : uint32_t { offered, accepted };
    enum Fault : uint32_t { none, senders_buffer, receivers_buffer };  // which memory is not there
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
