// Sends without a request: a communicator keeps those that are not complete, until they are waited for together. Included by the bindings
// and comm/. Each call takes the lane's guard itself, and `Requestless::lock`, a leaf, for the list.
#pragma once
#include "p2p/p2p.hpp"

namespace weft::p2p {

// As isend_slow(). What does not complete at once is kept with the communicator.
Err send_requestless(Process&, Comm&, Buffer, Envelope);
// Waits for all that were kept before the call, by any thread. The first error is returned; the others are lost.
Err wait_requestless(Process&, Comm&);
// When a communicator is freed: what is kept completes on its own.
void close_requestless(Process&, Comm&);

}  // namespace weft::p2p
