// Where a process runs: on which node, and where in it. topo/ and comm/ include this. Plain data; gathering it is collective,
// and no lock is held.
#pragma once
#include <cstdint>

#include "boot/locality.hpp"
#include "comm/comm.hpp"

namespace weft::comm {

struct NodeLocality {
    uint64_t node;
    boot::Locality on_node;
};

// The caller's.
NodeLocality own_locality(const Process&);
// Those of a communicator's processes; of an intercommunicator's, those of the remote group.
Err gather_localities(Process&, Comm&, NodeLocality& mine, NodeLocality* all);

// Are both confined to the same instance?
inline bool share(const NodeLocality& a, const NodeLocality& b, int level) {
    return a.node == b.node && boot::share(a.on_node, b.on_node, level);
}

}  // namespace weft::comm
