// Large messages between two ranks of a node. Both sides claim blocks by one fetch-and-add, whatever their Mover, so whichever side is
// inside the library moves data. A block that the kernel refuses to copy by CMA is moved by the sender's pipelined copy.
// Included by p2p/. Lock-free: blocks are claimed by an atomic counter.
//
// Invariant: every byte below min(claimed, limit) belongs to exactly one copier, or was refused. The sender's buffer may be
// reused when left == limit, the message is complete when arrived == limit, the descriptor is free once receiver_done is set, too.
#pragma once
#include "wire/shm/layout.hpp"

namespace weft::wire::shm {

// Sender: fills in the RTS's part; `from` is null where the data are not contiguous. The RTS that follows carries the
// descriptor's index, and publishes it.
void put_rts(Transfer& t, const void* from);
// Receiver: fills in the CTS's part, and publishes it: from now on blocks may be claimed. `to` is null where CMA cannot be used.
// `block`: bytes that CMA claims at a time.
void put_cts(Transfer& t, void* to, uint64_t limit, Mover mover, uint32_t block = 0);

// Claims up to `block` bytes; returns their offset, or limit when nothing is left.
inline uint64_t claim(Transfer& t, uint64_t block) {
    if (t.claimed.load(std::memory_order_relaxed) >= t.limit) return t.limit;
    const uint64_t at = t.claimed.fetch_add(block, std::memory_order_relaxed);
    return at < t.limit ? at : t.limit;
}
// Sender: claims up to `block` bytes of what was refused. False: nothing is left of it.
bool claim_refused(Transfer& t, uint64_t block, uint64_t* at, uint64_t* bytes);
// Adds to this side's counter: no read-modify-write, as it has one writer.
inline void add_copied(std::atomic<uint64_t>& by_me, uint64_t bytes) {
    by_me.store(by_me.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
}
// Claims a block and copies it by CMA; `pid` is the peer's. Returns the bytes copied: 0 if no block was left.
// If the kernel refuses, what is not copied of the block is left to the sender, and the mover is the pipelined copy.
uint64_t cma_block(Transfer& t, int pid, Transfer::Side side);

inline bool has_cts(const Transfer& t) { return t.state.load(std::memory_order_acquire) == Transfer::has_cts; }
// Acquire: pairs with the release in add_copied().
inline bool is_all(const Transfer::Copied& c, uint64_t limit) {
    return c.by[0].load(std::memory_order_acquire) + c.by[1].load(std::memory_order_acquire) >= limit;
}
inline bool all_left(const Transfer& t) { return is_all(t.left, t.limit); }
inline bool all_arrived(const Transfer& t) { return is_all(t.arrived, t.limit); }

// Whether this process may use CMA on `pid`'s memory: tries to read one byte at `address`.
bool can_cma(int pid, uint64_t address);

}  // namespace weft::wire::shm
