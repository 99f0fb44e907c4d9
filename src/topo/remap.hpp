// Which process becomes which node of a topology, so that neighbours are close together. topo/ includes this.
// Everybody computes the same from the same localities; no lock is held.
#pragma once
#include <cstdint>

#include "comm/locality.hpp"
#include "topo/topo.hpp"

namespace weft::topo {

struct Edge {
    int32_t source, destination, weight;
};

// process_of[i] becomes the process, an index into `localities`, that is node i: a permutation of all of them. The weighted
// distance of all edges is at most that of the identity, and the identity it is if nothing is closer.
Err map_nodes(const comm::NodeLocality* localities, int32_t processes, const Edge* edges, int64_t n_edges, int32_t* process_of);

// Edges by weight times distance, which is the number of levels of the hardware the two ends do not share.
int64_t weighted_distance(const comm::NodeLocality* localities, const Edge* edges, int64_t n_edges, const int32_t* process_of);

// The group of the processes of `c` that become the nodes 0 .. nodes-1, in that order. Collective if `reorder`.
Err arrange(Process&, Comm& c, bool reorder, const Edge*, int64_t n_edges, int32_t nodes, obj::Group** out);
// The node that the caller would become; undefined if none. Asks nobody: where mpiexec did not tell all localities, it is
// the rank the process has.
Err arranged_rank(Process&, Comm& c, const Edge*, int64_t n_edges, int32_t nodes, int* rank);

}  // namespace weft::topo
