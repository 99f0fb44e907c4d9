// Virtual topologies: Cartesian, graph and distributed graph, and who is whose neighbour. Included by topo/ and the
// bindings' calls. What is attached to a communicator never changes; no lock is held.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/process.hpp"
#include "obj/topology.hpp"

namespace weft::obj { struct Info; }

namespace weft::topo {

using obj::Comm;
using obj::Info;
using obj::Process;
using obj::Topology;

// Creation; *out is null for processes that are left over. With `reorder` ranks are given out anew, see remap.hpp.
Err cart_create(Process&, Comm&, int ndims, const int* dims, const int* periods, int reorder, Comm** out);
Err cart_sub(Process&, Comm&, const int* remain_dims, Comm** out);
Err graph_create(Process&, Comm&, int nnodes, const int* index, const int* edges, int reorder, Comm** out);
Err dist_graph_create(Process&, Comm&, int n, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, Info*, int reorder, Comm** out);
Err dist_graph_create_adjacent(Process&, Comm&, int indegree, const int* sources, const int* source_weights,
                               int outdegree, const int* destinations, const int* destination_weights, Info*,
                               int reorder, Comm** out);

Err dims_create(Process&, int nnodes, int ndims, int* dims);
Err topo_test(Process&, Comm&, int* status);
Err cartdim_get(Process&, Comm&, int* ndims);
Err cart_get(Process&, Comm&, int maxdims, int* dims, int* periods, int* coords);
Err cart_rank(Process&, Comm&, const int* coords, int* rank);
Err cart_coords(Process&, Comm&, int rank, int maxdims, int* coords);
Err cart_shift(Process&, Comm&, int direction, int disp, int* source, int* dest);
Err cart_map(Process&, Comm&, int ndims, const int* dims, const int* periods, int* newrank);
Err graphdims_get(Process&, Comm&, int* nnodes, int* nedges);
Err graph_get(Process&, Comm&, int maxindex, int maxedges, int* index, int* edges);
Err graph_neighbors_count(Process&, Comm&, int rank, int* count);
Err graph_neighbors(Process&, Comm&, int rank, int maxneighbors, int* neighbors);
Err graph_map(Process&, Comm&, int nnodes, const int* index, const int* edges, int* newrank);
Err dist_graph_neighbors_count(Process&, Comm&, int* indegree, int* outdegree, int* weighted);
Err dist_graph_neighbors(Process&, Comm&, int maxin, int* sources, int* source_weights, int maxout, int* destinations,
                         int* destination_weights);

// The neighbours of the caller, in the order of the neighbourhood collectives.
struct Neighbours {
    int32_t sources, destinations;  // how many
    const int32_t *from, *to;       // their ranks, which live as long as the communicator
    bool grid;
};
Err neighbours(const Comm&, Neighbours* out);

}  // namespace weft::topo
