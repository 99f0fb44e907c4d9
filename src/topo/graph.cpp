// Graph and distributed graph topologies.
#include <cstring>

#include "base/scratch.hpp"
#include "coll/coll.hpp"
#include "comm/comm.hpp"
#include "obj/status.hpp"
#include "topo/remap.hpp"
#include "topo/topo.hpp"

namespace weft::topo {

namespace {

using obj::undefined;

constexpr uintptr_t unweighted_address = 10, weights_empty_address = 11;
bool unweighted(const int* w) { return reinterpret_cast<uintptr_t>(w) == unweighted_address; }
bool weights_given(const int* w) {
    return w != nullptr && !unweighted(w) && reinterpret_cast<uintptr_t>(w) != weights_empty_address;
}

Err no_memory() { return fail(Err::no_mem, "no memory for the topology"); }

Err kind_of(const Comm& c, Topology::Kind kind, const char* name, const Topology** t) {
    *t = static_cast<const Topology*>(c.topology);
    if (*t != nullptr && (*t)->kind == kind) return Err::ok;
    return fail(Err::topology, "the communicator has no %s topology", name);
}

Err graph_of(const Comm& c, const Topology** t) { return kind_of(c, Topology::graph, "graph", t); }

Err check_rank(int rank, int32_t size) {
    if (rank >= 0 && rank < size) return Err::ok;
    return fail(Err::rank, "rank %d is not in the communicator of %d", rank, size);
}

Err check_graph(const Comm& c, int nnodes, const int* index, const int* edges) {
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator");
    if (nnodes < 0 || nnodes > c.size) return fail(Err::arg, "%d nodes for a communicator of %d", nnodes, c.size);
    int before = 0;
    for (int i = 0; i < nnodes; before = index[i++])
        if (index[i] < before) return fail(Err::arg, "index %d of the graph, %d, is less than the one before", i, index[i]);
    if (edges == nullptr && before > 0) return fail(Err::arg, "a null pointer for %d edges", before);
    for (int i = 0; i < before; i++)
        if (edges[i] < 0 || edges[i] >= nnodes) return fail(Err::arg, "edge %d leads to node %d of %d", i, edges[i], nnodes);
    return Err::ok;
}

void edges_of(int nnodes, const int* index, const int* edges, Edge* out) {
    for (int node = 0, i = 0; node < nnodes; node++)
        for (; i < index[node]; i++) out[i] = {node, edges[i], 1};
}

// Edges of node `rank`: [first, last) in the list.
void edge_range(const Topology& t, int32_t rank, int32_t* first, int32_t* last) {
    *first = rank == 0 ? 0 : t.ints()[rank - 1];
    *last = t.ints()[rank];
}

}  // namespace

Err graph_create(Process& p, Comm& c, int nnodes, const int* index, const int* edges, int reorder, Comm** out) {
    WEFT_TRY(comm::check_processes(c));
    int32_t tag = comm::take_tag(c);
    WEFT_TRY(check_graph(c, nnodes, index, edges));
    int64_t n = nnodes > 0 && reorder != 0 ? index[nnodes - 1] : 0;
    Scratch<Edge> list(n);
    if (!list) return no_memory();
    if (n > 0) edges_of(nnodes, index, edges, list.get());
    obj::Group* group = nullptr;
    WEFT_TRY(arrange(p, c, reorder != 0, list.get(), n, nnodes, &group));
    Comm* made = nullptr;
    Err e = comm::create_over(p, c, *group, tag, &made);
    obj::release(p, *group);
    WEFT_TRY(e);
    if (made != nullptr) {
        int nedges = index[nnodes - 1];
        Topology* t = obj::make_topology(Topology::graph, int64_t{nnodes} + nedges);
        if (t == nullptr) {
            obj::release(*made);
            return no_memory();
        }
        t->ndims = nnodes;
        t->edges = nedges;
        memcpy(t->ints(), index, static_cast<size_t>(nnodes) * sizeof(int));
        if (nedges > 0) memcpy(t->ints() + nnodes, edges, static_cast<size_t>(nedges) * sizeof(int));
        made->topology = t;
    }
    *out = made;
    return Err::ok;
}

Err graphdims_get(Process&, Comm& c, int* nnodes, int* nedges) {
    const Topology* t = nullptr;
    WEFT_TRY(graph_of(c, &t));
    *nnodes = t->ndims;
    *nedges = t->edges;
    return Err::ok;
}

Err graph_get(Process&, Comm& c, int maxindex, int maxedges, int* index, int* edges) {
    const Topology* t = nullptr;
    WEFT_TRY(graph_of(c, &t));
    if (maxindex < t->ndims || maxedges < t->edges)
        return fail(Err::arg, "room for %d nodes and %d edges of %d and %d", maxindex, maxedges, t->ndims, t->edges);
    for (int32_t i = 0; i < t->ndims; i++) index[i] = t->ints()[i];
    for (int32_t i = 0; i < t->edges; i++) edges[i] = t->ints()[t->ndims + i];
    return Err::ok;
}

Err graph_neighbors_count(Process&, Comm& c, int rank, int* count) {
    const Topology* t = nullptr;
    WEFT_TRY(graph_of(c, &t));
    WEFT_TRY(check_rank(rank, c.size));
    int32_t first = 0, last = 0;
    edge_range(*t, rank, &first, &last);
    *count = last - first;
    return Err::ok;
}

Err graph_neighbors(Process&, Comm& c, int rank, int maxneighbors, int* neighbors) {
    const Topology* t = nullptr;
    WEFT_TRY(graph_of(c, &t));
    WEFT_TRY(check_rank(rank, c.size));
    int32_t first = 0, last = 0;
    edge_range(*t, rank, &first, &last);
    if (maxneighbors < 0) return fail(Err::arg, "room for %d neighbours", maxneighbors);
    for (int32_t i = first; i < last && i - first < maxneighbors; i++) neighbors[i - first] = t->ints()[t->ndims + i];
    return Err::ok;
}

Err graph_map(Process& p, Comm& c, int nnodes, const int* index, const int* edges, int* newrank) {
    WEFT_TRY(check_graph(c, nnodes, index, edges));
    int64_t n = nnodes > 0 ? index[nnodes - 1] : 0;
    Scratch<Edge> list(n);
    if (!list) return no_memory();
    edges_of(nnodes, index, edges, list.get());
    return arranged_rank(p, c, list.get(), n, nnodes, newrank);
}

// ------------------------------------------------------------------------------------------ distributed graphs

namespace {

// Sizes of the four lists of a distributed graph's block.
int32_t* sources_of(Topology& t) { return t.ints(); }
int32_t* source_weights_of(Topology& t) { return t.ints() + t.sources; }
int32_t* destinations_of(Topology& t) { return t.ints() + 2 * int64_t{t.sources}; }
int32_t* destination_weights_of(Topology& t) { return destinations_of(t) + t.destinations; }

Topology* make_adjacent(int32_t sources, int32_t destinations, bool weighted) {
    Topology* t = obj::make_topology(Topology::dist_graph, 2 * (int64_t{sources} + destinations));
    if (t == nullptr) return nullptr;
    t->sources = sources;
    t->destinations = destinations;
    t->weighted = weighted;
    return t;
}

// The neighbours of node `rank`: the sources among the edges `in`, the destinations among the edges `out`, in their order.
Topology* pick_adjacent(int32_t rank, const Edge* in, int64_t n_in, const Edge* out, int64_t n_out, bool weighted) {
    int32_t sources = 0, destinations = 0;
    for (int64_t i = 0; i < n_in; i++) sources += in[i].destination == rank;
    for (int64_t i = 0; i < n_out; i++) destinations += out[i].source == rank;
    Topology* t = make_adjacent(sources, destinations, weighted);
    if (t == nullptr) return nullptr;
    sources = destinations = 0;
    for (int64_t i = 0; i < n_in; i++) {
        if (in[i].destination != rank) continue;
        sources_of(*t)[sources] = in[i].source;
        source_weights_of(*t)[sources++] = in[i].weight;
    }
    for (int64_t i = 0; i < n_out; i++) {
        if (out[i].source != rank) continue;
        destinations_of(*t)[destinations] = out[i].destination;
        destination_weights_of(*t)[destinations++] = out[i].weight;
    }
    return t;
}

// A communicator of `c`'s processes, in the order of `group`, with `t` attached; takes `t` over.
Err attach(Process& p, Comm& c, obj::Group& group, Topology* t, int32_t tag, Comm** out) {
    Comm* made = nullptr;
    Err e = comm::create_over(p, c, group, tag, &made);
    if (e != Err::ok) {
        free(t);
        return e;
    }
    made->topology = t;
    *out = made;
    return Err::ok;
}

Err check_peers(int n, const int* ranks, int32_t size) {
    if (n < 0) return fail(Err::arg, "the number of neighbours, %d, is negative", n);
    for (int i = 0; i < n; i++) WEFT_TRY(check_rank(ranks[i], size));
    return Err::ok;
}

Err check_weights(int n, const int* weights) {
    if (!weights_given(weights)) return Err::ok;
    for (int i = 0; i < n; i++)
        if (weights[i] < 0) return fail(Err::arg, "weight %d is negative", weights[i]);
    return Err::ok;
}

}  // namespace

namespace {

// What all processes have named, in the order of the naming ranks.
struct Edges {
    Edge* list = nullptr;
    int64_t count = 0;
    Edges() = default;
    Edges(const Edges&) = delete;
    Edges& operator=(const Edges&) = delete;
    ~Edges() { free(list); }
};

// Brings together, on everybody, what each has named.
Err gather_edges(Process& p, Comm& c, Edge* mine, int64_t count, Edges* all) {
    const type::Type& byte = coll::byte_type();
    int64_t bytes = count * static_cast<int64_t>(sizeof(Edge));
    Scratch<int64_t> counts(c.size), places(c.size);
    if (!counts || !places) return no_memory();
    WEFT_TRY(coll::blocking(p, c, coll::Allgather{{&bytes, 8, &byte}, coll::Blocks({counts.get(), 8, &byte})}));
    int64_t sum = 0;
    for (int32_t i = 0; i < c.size; i++) {
        places[i] = sum;
        sum += counts[i];
    }
    all->list = static_cast<Edge*>(malloc(static_cast<size_t>(sum + 1)));
    if (all->list == nullptr) return no_memory();
    all->count = sum / static_cast<int64_t>(sizeof(Edge));
    return coll::blocking(p, c, coll::Allgather{{mine, bytes, &byte},
                          coll::Blocks(all->list, coll::Numbers(counts.get()), coll::Numbers(places.get()), &byte)});
}

// Every node's neighbours are known to all, so any process can become any node.
Err create_from(Process& p, Comm& c, const Edges& in, const Edges& out, bool weighted, bool reorder, int32_t tag, Comm** made) {
    obj::Group* group = nullptr;
    WEFT_TRY(arrange(p, c, reorder, out.list, out.count, c.size, &group));
    Topology* t = pick_adjacent(group->rank, in.list, in.count, out.list, out.count, weighted);
    Err e = t == nullptr ? no_memory() : attach(p, c, *group, t, tag, made);
    obj::release(p, *group);
    return e;
}

}  // namespace

Err dist_graph_create_adjacent(Process& p, Comm& c, int indegree, const int* sources, const int* source_weights,
                               int outdegree, const int* destinations, const int* destination_weights, Info*,
                               int reorder, Comm** out) {
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator");
    WEFT_TRY(comm::check_processes(c));
    int32_t tag = comm::take_tag(c);
    WEFT_TRY(check_peers(indegree, sources, c.size));
    WEFT_TRY(check_peers(outdegree, destinations, c.size));
    WEFT_TRY(check_weights(indegree, source_weights));
    WEFT_TRY(check_weights(outdegree, destination_weights));
    bool weighted = !unweighted(source_weights) && !unweighted(destination_weights);
    Scratch<Edge> in(indegree), outgoing(outdegree);
    if (!in || !outgoing) return no_memory();
    for (int i = 0; i < indegree; i++)
        in[i] = {sources[i], c.rank, weights_given(source_weights) ? source_weights[i] : 1};
    for (int i = 0; i < outdegree; i++)
        outgoing[i] = {c.rank, destinations[i], weights_given(destination_weights) ? destination_weights[i] : 1};
    if (reorder == 0) {
        Topology* t = pick_adjacent(c.rank, in.get(), indegree, outgoing.get(), outdegree, weighted);
        return t == nullptr ? no_memory() : attach(p, c, *c.group, t, tag, out);
    }
    Edges all_in, all_out;
    WEFT_TRY(gather_edges(p, c, in.get(), indegree, &all_in));
    WEFT_TRY(gather_edges(p, c, outgoing.get(), outdegree, &all_out));
    return create_from(p, c, all_in, all_out, weighted, true, tag, out);
}

Err dist_graph_create(Process& p, Comm& c, int n, const int* sources, const int* degrees, const int* destinations,
                      const int* weights, Info*, int reorder, Comm** out) {
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator");
    WEFT_TRY(comm::check_processes(c));
    int32_t tag = comm::take_tag(c);
    WEFT_TRY(check_peers(n, sources, c.size));
    int64_t named = 0;
    for (int i = 0; i < n; i++) {
        if (degrees[i] < 0) return fail(Err::arg, "degree %d is negative", degrees[i]);
        named += degrees[i];
    }
    if (destinations == nullptr && named > 0)
        return fail(Err::arg, "a null pointer for %lld destinations", static_cast<long long>(named));
    WEFT_TRY(check_peers(static_cast<int>(named), destinations, c.size));
    WEFT_TRY(check_weights(static_cast<int>(named), weights));
    Scratch<Edge> mine(named);
    if (!mine) return no_memory();
    int32_t k = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < degrees[i]; j++, k++)
            mine[k] = {sources[i], destinations[k], weights_given(weights) ? weights[k] : 1};
    Edges all;
    WEFT_TRY(gather_edges(p, c, mine.get(), k, &all));
    return create_from(p, c, all, all, !unweighted(weights), reorder != 0, tag, out);
}

Err dist_graph_neighbors_count(Process&, Comm& c, int* indegree, int* outdegree, int* weighted) {
    const Topology* t = nullptr;
    WEFT_TRY(kind_of(c, Topology::dist_graph, "distributed graph", &t));
    *indegree = t->sources;
    *outdegree = t->destinations;
    *weighted = t->weighted;
    return Err::ok;
}

Err dist_graph_neighbors(Process&, Comm& c, int maxin, int* sources, int* source_weights, int maxout,
                         int* destinations, int* destination_weights) {
    const Topology* found = nullptr;
    WEFT_TRY(kind_of(c, Topology::dist_graph, "distributed graph", &found));
    if (maxin < 0 || maxout < 0) return fail(Err::arg, "room for %d and %d neighbours", maxin, maxout);
    auto& t = const_cast<Topology&>(*found);
    for (int32_t i = 0; i < t.sources && i < maxin; i++) {
        sources[i] = sources_of(t)[i];
        if (t.weighted && weights_given(source_weights)) source_weights[i] = source_weights_of(t)[i];
    }
    for (int32_t i = 0; i < t.destinations && i < maxout; i++) {
        destinations[i] = destinations_of(t)[i];
        if (t.weighted && weights_given(destination_weights)) destination_weights[i] = destination_weights_of(t)[i];
    }
    return Err::ok;
}

// ------------------------------------------------------------------------------------------------- neighbours

Err neighbours(const Comm& c, Neighbours* out) {
    if (c.topology == nullptr) return fail(Err::topology, "the communicator has no topology");
    auto& t = *static_cast<Topology*>(c.topology);
    int32_t first = 0, last = 0;
    switch (t.kind) {
        case Topology::cart: *out = {2 * t.ndims, 2 * t.ndims, t.ints() + 3 * t.ndims, t.ints() + 3 * t.ndims, true}; break;
        case Topology::graph:
            edge_range(t, c.rank, &first, &last);
            *out = {last - first, last - first, t.ints() + t.ndims + first, t.ints() + t.ndims + first, false};
            break;
        case Topology::dist_graph: *out = {t.sources, t.destinations, sources_of(t), destinations_of(t), false}; break;
    }
    return Err::ok;
}

}  // namespace weft::topo
