// The neighbourhood collectives: builders for the engine of coll/. Included by the door's calls; no lock is held.
#pragma once
#include "coll/coll.hpp"
#include "topo/topo.hpp"

namespace weft::topo {

struct NeighborAllgather { type::Buffer send; coll::Blocks recv; };
struct NeighborAlltoall { coll::Blocks send, recv; };

// Found by argument-dependent lookup from coll::blocking and its like.
Err build(coll::Schedule&, const NeighborAllgather&);
Err build(coll::Schedule&, const NeighborAlltoall&);

}  // namespace weft::topo
