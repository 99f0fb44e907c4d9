// Sends that wait for room on their wire, in order with the protocol's control messages. Included by p2p/ and above.
// All under the lane's guard.
#pragma once
#include "p2p/match.hpp"

namespace weft::p2p {

// Queues `r` behind all that waits for `peer`, and holds the wire.
void enqueue(LaneGuard&, int peer, Request& r);
// All queued sends, as far as their wires take them. True when something moved.
bool push_pending(LaneGuard&);

// Control messages to `peer`: an SSEND_ACK for its request `send`; a CTS for its record `send` from this rank's record `receive`.
void send_ssend_ack(LaneGuard&, int peer, uint64_t send);
void send_cts(LaneGuard&, int peer, uint64_t send, uint64_t receive, int64_t limit);

// Whether something that this rank waits for may lie behind an unexpected message of `peer`; then its wire is drained beyond the credit.
bool must_drain(LaneGuard&, int peer);

// This lane's own state of `peer`, made when it is first needed. Ends the job when out of memory.
lane::PeerState& state_of(LaneGuard&, int peer);
// A new identity for `record`. Ends the job when out of memory, as the peer would wait for ever.
uint64_t identity_of(lane::Ids&, int peer, void* record);
// Ends the job: `peer` has sent a control message that fits nothing here. Only damaged memory does that.
[[noreturn]] WEFT_COLD void damaged(int peer, const char* what);
// Ends the job and says why: there is no memory for a message of `bytes` to or from `peer`.
[[noreturn]] WEFT_COLD void out_of_memory(int64_t bytes, int peer);

}  // namespace weft::p2p
