// The virtual topology of a communicator, as one block of memory that a duplicate copies as it is. Included by comm/
// and topo/; immutable once attached.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace weft::obj {

struct Topology {
    enum Kind : int32_t { cart = 211, graph = 212, dist_graph = 213 };  // as MPI_CART and its like in the ABI
    int64_t bytes;   // of the whole block
    Kind kind;
    int32_t ndims;   // cart: dimensions; graph: nodes
    int32_t edges;   // graph: all of them
    int32_t sources, destinations;   // dist_graph: of this process
    bool weighted;                   // dist_graph
    // cart: dims, periods, coordinates (ndims each), neighbours (2 * ndims: one step down and one up each dimension). graph: index
    // (ndims), edges.
    // dist_graph: sources, their weights, destinations, their weights.
    int32_t* ints() { return reinterpret_cast<int32_t*>(this + 1); }
    const int32_t* ints() const { return reinterpret_cast<const int32_t*>(this + 1); }
};

// A zeroed topology with room for `ints` numbers; null without memory.
inline Topology* make_topology(Topology::Kind kind, int64_t ints) {
    size_t bytes = sizeof(Topology) + static_cast<size_t>(ints) * sizeof(int32_t);
    auto* t = static_cast<Topology*>(calloc(1, bytes));
    if (t == nullptr) return nullptr;
    t->bytes = static_cast<int64_t>(bytes);
    t->kind = kind;
    return t;
}

inline void* copy_topology(const void* topology) {
    auto bytes = static_cast<size_t>(static_cast<const Topology*>(topology)->bytes);
    void* copy = malloc(bytes);
    return copy == nullptr ? nullptr : memcpy(copy, topology, bytes);
}

}  // namespace weft::obj
