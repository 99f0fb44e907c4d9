// Large messages between two ranks of a node. Both sides claim blocks by one fetch-and-add; the movers of a claimed block are
//   pipelined copy   the sender copies it into its ring, the receiver out of it: two copies, but both in user space and at once
//   CMA get          the receiver alone, by cross-memory attach: when the sender is away
//   split CMA        both sides, by cross-memory attach: where that is faster than a pipelined copy (lane/machine.hpp)
// so whoever is inside the library moves data. A block that the kernel refuses to copy is given back, and the sender moves it by
// pipelined copy. Included by p2p/. The claim counter makes all of it lock-free.
//
// Invariant: every byte below min(claimed, limit) belongs to exactly one copier, or was given back. The sender's buffer is free when left ==
// limit, the message is there when arrived == limit, and the descriptor may be reused once receiver_done is set as well.
#pragma once
#include "wire/shm/layout.hpp"

namespace weft::wire::shm {

// Sender: describes the message; `from` null where the data is not one run of bytes. The receiver learns of it by a
// message that carries the descriptor's index.
void offer(Transfer& t, const void* from, uint64_t bytes);
// Receiver: from now on blocks may be claimed. `to` null where the buffer is not one run of bytes.
// `block`: what each side copies at once by cross-memory attach; 0: pipelined copy.
void accept(Transfer& t, void* to, uint64_t limit, uint32_t block);

// Claims up to `block` bytes: their offset, or limit when nothing is left.
inline uint64_t claim(Transfer& t, uint64_t block) {
    if (t.claimed.load(std::memory_order_relaxed) >= t.limit) return t.limit;
    const uint64_t at = t.claimed.fetch_add(block, std::memory_order_relaxed);
    return at < t.limit ? at : t.limit;
}
// Sender: a part of what was given back, of up to `block` bytes. False: nothing is.
bool take_back(Transfer& t, uint64_t block, uint64_t* at, uint64_t* bytes);
// Adds to this side's number: no read-modify-write, as nobody else writes it.
inline void add_copied(std::atomic<uint64_t>& by_me, uint64_t bytes) {
    by_me.store(by_me.load(std::memory_order_relaxed) + bytes, std::memory_order_release);
}
// Copies one block by cross-memory attach, if one is left; `pid` is the peer's. Bytes copied; 0 when none is left, or the kernel refuses:
// then the block has been given back.
uint64_t attach_block(Transfer& t, int pid, Transfer::Side side);

inline bool accepted(const Transfer& t) { return t.state.load(std::memory_order_acquire) == Transfer::accepted; }
// Each pairs with the release with which the copiers count.
inline bool is_all(const Transfer::Copied& c, uint64_t limit) {
    return c.by[0].load(std::memory_order_acquire) + c.by[1].load(std::memory_order_acquire) >= limit;
}
inline bool all_left(const Transfer& t) { return is_all(t.left, t.limit); }
inline bool all_arrived(const Transfer& t) { return is_all(t.arrived, t.limit); }

// Whether this process may read and write `pid`'s memory: tried on one byte at `address`.
bool can_attach(int pid, uint64_t address);

}  // namespace weft::wire::shm
