// Rendezvous: RTS, CTS, data, done. Both sides have a record and a descriptor (claimed, left, arrived: wire/shm/layout.hpp), which
// they share where they share memory. Movers work on the descriptor: mapped copy, pipelined copy, split CMA, CMA get. All of them
// claim from it, so a transfer may change its mover. Included by p2p/ only; all under the lane's guard.
#pragma once
#include "p2p/match.hpp"
#include "p2p/protocol.hpp"
#include "wire/shm/transfer.hpp"

namespace weft::p2p {

// This side's record of a large message.
struct Rndv : Link {
    wire::shm::Transfer* transfer;
    Request* request;    // null once it has completed; the sender's record then waits until the receiver is done with the descriptor
    uint64_t id;         // this record's identity
    uint64_t other;      // the other side's record, where the descriptor is not shared
    int64_t bytes;       // to report on completion: of the message (sender), or received (receiver)
    int32_t peer;
    bool sending;
    bool shared;         // one descriptor for both sides
};
static_assert(sizeof(Rndv) <= 64);

// Sender: sends an RTS for `r`. False when the wire is full.
bool push_rts(LaneGuard&, int peer, Request& r);
// Receiver: `r` has matched this RTS, and takes `limit` bytes; chooses the mover and sends the CTS. A mapped copy begins
// at once and may complete `r`. Ends the job when out of memory.
void accept_rts(LaneGuard&, Request& r, int peer, const Rts& o, int64_t limit);
// Sender: the CTS has come as a cell, because the descriptor is not shared.
void arrive_cts(LaneGuard&, int peer, const Cts&);
// Receiver: data by pipelined copy.
void arrive_data(LaneGuard&, int peer, const RndvData&, const char* chunk);

// Moves one block, of the oldest transfer that can move one, and completes finished transfers. `busy`: messages have just arrived.
bool move_transfers(LaneGuard&, bool busy);

}  // namespace weft::p2p
