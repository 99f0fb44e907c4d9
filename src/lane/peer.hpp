// Other processes. A Peer says who one is, where it is and by which wire it is reached: the same for all lanes, in one table of the
// process. A PeerState is what one lane knows of it besides. Both are named by the peer's number, its index in the table. Included by
// lane.hpp; the table is written at start alone, except `heap` and `cma`; states are under the lane's guard.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/list.hpp"

namespace weft::lane {

struct Unexpected;

struct Peer {
    enum Wire : uint8_t { shm, sock, null };
    int32_t world_rank;
    int32_t node;
    int32_t index;            // on its wire
    Wire wire;
    std::atomic<int8_t> heap; // its slices of the shared heap lie where this process has them: 1 yes, -1 no, 0 not known. Any thread
    std::atomic<int8_t> cma;  // cross-memory attach to its memory: 1 works, -1 does not, 0 not tried. Any thread
};
static_assert(sizeof(Peer) == 16);

struct PeerState : Link {     // Link: of Lane::pending_peers, while `pending` is not empty
    int32_t peer;             // whose
    uint32_t idle;            // rounds since its last rndv_data, while one is due (p2p/rndv.cpp)
    Fifo pending;             // sends that found the wire full, in order; the wire is held meanwhile
    int64_t sent;             // bytes of the first pending message that have been committed
    Link* open;               // the receive whose fragments are arriving, or:
    Unexpected* open_unexpected;  // the unexpected message whose fragments are
    int64_t open_at;          // its bytes that have arrived
    int64_t open_bytes;       // all its bytes
    uint64_t open_send;       // identity to send an SSEND_ACK to after the last fragment; 0: none is due
    int64_t unexpected_bytes; // memory that this peer's unmatched messages take here
    uint32_t awaiting;        // SSEND_ACKs and ends of rendezvous that this rank waits for from it
    bool over_credit;         // it has been told that unexpected_bytes exceeds the credit
};

}  // namespace weft::lane
