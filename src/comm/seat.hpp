// A process's seat: which node, and where in it. topo/ and comm/ include this. Plain data; gathering it is collective,
// and no lock is held.
#pragma once
#include <cstdint>

#include "boot/place.hpp"
#include "comm/comm.hpp"

namespace weft::comm {

struct Seat {
    uint64_t node;
    boot::Place place;
};

// The caller's.
Seat own_seat(const Process&);
// Those of a communicator's processes; of an intercommunicator's, those of the remote group.
Err gather_seats(Process&, Comm&, Seat& mine, Seat* all);

// Are both confined to the same instance?
inline bool share(const Seat& a, const Seat& b, int level) {
    return a.node == b.node && boot::share(a.place, b.place, level);
}

}  // namespace weft::comm
