// Sends that wait for room on their wire, in order, and the protocol's own control messages among them. Included by p2p/ and above.
// All under the lane's guard.
#pragma once
#include "p2p/match.hpp"

namespace weft::p2p {

// Sends as much of `r` to `peer` as its wire takes; true when nothing of it is left to send.
bool push(LaneGuard&, int peer, Request& r);
// Queues `r` behind whatever waits for `peer`.
void enqueue(LaneGuard&, int peer, Request& r);
// push(), or enqueue() where something waits already or the wire is full.
void push_or_enqueue(LaneGuard&, int peer, Request& r);
// All queued sends, as far as their wires take them. True when something moved.
bool push_pending(LaneGuard&);

// Control messages: SSEND_ACK to the synchronous send `send` of `peer`; CTS to the RTS of `send`, from the record `receive`.
void send_ssend_ack(LaneGuard&, int peer, uint64_t send);
void send_cts(LaneGuard&, int peer, uint64_t send, uint64_t receive, int64_t limit);

// Whether what this rank waits for may lie behind an unmatched message of `peer`: then its wire is drained beyond the credit.
bool must_drain(LaneGuard&, int peer);

// An identity for `record`. Without the few bytes for that, this rank's peers would wait for it for ever, so the job ends.
uint64_t identity_of(LaneGuard&, int peer, void* record);
// Ends the job and says why: there is no memory for a message of `bytes` to or from `peer`.
[[noreturn]] WEFT_COLD void out_of_memory(int64_t bytes, int peer);

}  // namespace weft::p2p
