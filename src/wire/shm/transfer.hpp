// Large messages copied once, by cross-memory attach, by whichever side is inside the library: both claim blocks by one
// fetch-and-add and copy them, the receiver by reading, the sender by writing. Included by p2p/. The descriptor's fields
// say who may write what; the claim counter makes the copying itself lock-free.
//
// Invariant: every byte below min(claimed, limit) belongs to exactly one copier; the transfer is over when copied ==
// limit, and the descriptor may be reused once receiver_done is set as well.
#pragma once
#include "wire/shm/layout.hpp"

namespace weft::wire::shm {

// Sender: describes the message. The receiver learns of it by a message that carries the descriptor's index.
void offer(Transfer& t, const void* from, uint64_t bytes);
// Receiver: from now on both sides may copy.
void accept(Transfer& t, void* to, uint64_t limit);
// Copies one block, if one is left; `pid` is the peer's. True when it did.
bool copy_block(Transfer& t, int pid, bool sender);

inline bool started(const Transfer& t) { return t.state.load(std::memory_order_acquire) == Transfer::copying; }
inline bool finished(const Transfer& t) {
    return started(t) && t.copied.load(std::memory_order_acquire) >= t.limit;  // pairs with copy_block()
}

// Whether this process may read and write `pid`'s memory: tried on one word at `address`.
bool can_attach(int pid, uint64_t address);

}  // namespace weft::wire::shm
