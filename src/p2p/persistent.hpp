// Persistent sends and receives: the request that the user holds is the one that is posted, each time anew. Included by
// p2p/. Like any request, one belongs to its lane: between start and completion it is touched under the guard.
#pragma once
#include "p2p/p2p.hpp"

namespace weft::p2p {

// What a start needs is kept behind the request, because completing overwrites the request's own fields.
struct Persistent : Request {
    enum How : uint8_t { standard, synchronous, buffered, receive };
    Buffer what;          // holds a reference on its type
    Envelope where;
    uint16_t start_flags;
    How how;
};
static_assert(sizeof(Persistent) <= 128, "a block of Lane::persistent_pool");

// Starts an inactive one; allocates nothing.
Err start_persistent(Process&, Persistent&);

}  // namespace weft::p2p
