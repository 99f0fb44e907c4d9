// A greedy mapping (fill the machine slot by slot with the node that has the heaviest edges to nodes already close by), then
// exchanges of two nodes as long as one of them helps.
#include "topo/remap.hpp"

#include <cstdlib>
#include <cstring>

#include "base/scratch.hpp"
#include "boot/boot.hpp"
#include "obj/status.hpp"

namespace weft::topo {

namespace {

using boot::levels;
using comm::NodeLocality;

// Bounds on the time, a tenth of a second here for 4096 processes: how many edges exchanges may look at, and how many
// edges times nodes a graph may have for its nodes' neighbours to be looked at too.
constexpr int64_t most_looks = int64_t{1} << 22, most_neighbours = int64_t{1} << 27;

Err no_memory() { return fail(Err::no_mem, "no memory to arrange the processes"); }

int64_t distance(const NodeLocality& a, const NodeLocality& b) {
    int d = levels;
    for (int level = 0; level < levels; level++) d -= comm::share(a, b, level);
    return d;
}

// The edges by node, each at both its ends; without those that cost nothing wherever their ends are.
struct Graph {
    int32_t nodes;
    Scratch<int64_t> first;  // of node i; [nodes] is the end
    Scratch<int32_t> other;
    Scratch<int32_t> weight;

    Graph(int32_t n, int64_t n_edges) : nodes(n), first(int64_t{n} + 1), other(2 * n_edges), weight(2 * n_edges) {}
    explicit operator bool() const { return first && other && weight; }

    void fill(const Edge* edges, int64_t n_edges) {
        for (int32_t i = 0; i <= nodes; i++) first[i] = 0;
        auto counts = [](const Edge& e) { return e.source != e.destination && e.weight > 0; };
        for (int64_t i = 0; i < n_edges; i++) {
            if (!counts(edges[i])) continue;
            first[edges[i].source]++;
            first[edges[i].destination]++;
        }
        // Ends first; writing each node's edges backwards then turns them into beginnings.
        for (int32_t i = 1; i <= nodes; i++) first[i] += first[i - 1];
        for (int64_t i = 0; i < n_edges; i++) {
            const Edge& e = edges[i];
            if (!counts(e)) continue;
            put(--first[e.source], e.destination, e.weight);
            put(--first[e.destination], e.source, e.weight);
        }
    }
    void put(int64_t at, int32_t node, int32_t w) {
        other[at] = node;
        weight[at] = w;
    }
};

struct Slot {
    NodeLocality locality;
    int32_t process;
};

// Slots of one core side by side, then those of one package, and so on.
int by_locality(const void* left, const void* right) {
    const Slot &a = *static_cast<const Slot*>(left), &b = *static_cast<const Slot*>(right);
    if (a.locality.node != b.locality.node) return a.locality.node < b.locality.node ? -1 : 1;
    for (int level = 0; level < levels; level++)
        if (a.locality.on_node.at[level] != b.locality.on_node.at[level]) return a.locality.on_node.at[level] < b.locality.on_node.at[level] ? -1 : 1;
    return a.process < b.process ? -1 : 1;
}

// What each free node has to do with those mapped so far, level by level: the weight of its edges to nodes in the same
// instance as the slot that is to be filled next.
struct Ties {
    int32_t nodes;
    Scratch<int64_t> at;  // [level][node]
    Scratch<bool> mapped;

    explicit Ties(int32_t n) : nodes(n), at(int64_t{n} * levels), mapped(n) {}

    int64_t of(int32_t node) const {
        int64_t sum = 0;
        for (int level = 0; level < levels; level++) sum += at[int64_t{level} * nodes + node];
        return sum;
    }
    // The free neighbours that are tied to somebody mapped too: nodes that close a square go before those that make a line.
    int64_t of_neighbours(const Graph& g, int32_t node) const {
        int64_t sum = 0;
        for (int64_t i = g.first[node]; i < g.first[node + 1]; i++)
            if (!mapped[g.other[i]] && of(g.other[i]) > 0) sum += g.weight[i];
        return sum;
    }
    int32_t strongest(const Graph& g) const {
        bool sparse = g.first[nodes] * nodes <= most_neighbours;
        int32_t best = -1;
        int64_t most = -1, beyond = -1;
        for (int32_t node = 0; node < nodes; node++) {
            if (mapped[node]) continue;
            int64_t here = of(node);
            if (here < most) continue;
            int64_t next = sparse && here > 0 ? of_neighbours(g, node) : 0;
            if (here == most && next <= beyond) continue;
            best = node;
            most = here;
            beyond = next;
        }
        return best;
    }
    void map(const Graph& g, int32_t node, const NodeLocality& slot) {
        mapped[node] = true;
        for (int level = 0; level < levels; level++) {
            if (slot.on_node.at[level] < 0) continue;
            for (int64_t i = g.first[node]; i < g.first[node + 1]; i++) at[int64_t{level} * nodes + g.other[i]] += g.weight[i];
        }
    }
    // The next slot begins a new instance at the levels where it does not share the last one's.
    void go_on(const NodeLocality& from, const NodeLocality& to) {
        for (int level = 0; level < levels; level++)
            if (!comm::share(from, to, level)) memset(&at[int64_t{level} * nodes], 0, static_cast<size_t>(nodes) * sizeof(int64_t));
    }
};

Err map_greedily(const NodeLocality* localities, const Graph& g, int32_t* process_of) {
    int32_t n = g.nodes;
    Scratch<Slot> slots(n);
    Ties ties(n);
    if (!slots || !ties.at || !ties.mapped) return no_memory();
    for (int32_t i = 0; i < n; i++) {
        slots[i] = {localities[i], i};
        ties.mapped[i] = false;
    }
    qsort(slots.get(), static_cast<size_t>(n), sizeof(Slot), by_locality);
    memset(ties.at.get(), 0, static_cast<size_t>(n) * levels * sizeof(int64_t));
    for (int32_t i = 0; i < n; i++) {
        int32_t node = ties.strongest(g);
        process_of[node] = slots[i].process;
        ties.map(g, node, slots[i].locality);
        if (i + 1 < n) ties.go_on(slots[i].locality, slots[i + 1].locality);
    }
    return Err::ok;
}

// What node `a` would gain on the slot of `b`, their own edges left out: those stay as long as they are.
int64_t gain(const NodeLocality* localities, const Graph& g, const int32_t* process_of, int32_t a, int32_t b) {
    int64_t sum = 0;
    const NodeLocality &from = localities[process_of[a]], &to = localities[process_of[b]];
    for (int64_t i = g.first[a]; i < g.first[a + 1]; i++) {
        int32_t x = g.other[i];
        if (x == b) continue;
        const NodeLocality& there = localities[process_of[x]];
        sum += g.weight[i] * (distance(from, there) - distance(to, there));
    }
    return sum;
}

void refine(const NodeLocality* localities, const Graph& g, int32_t* process_of) {
    int64_t looks = 0;
    bool better = true;
    while (better) {
        better = false;
        for (int32_t a = 0; a < g.nodes; a++) {
            for (int32_t b = a + 1; b < g.nodes; b++) {
                looks += 1 + g.first[a + 1] - g.first[a] + g.first[b + 1] - g.first[b];
                if (looks > most_looks) return;
                if (gain(localities, g, process_of, a, b) + gain(localities, g, process_of, b, a) <= 0) continue;
                int32_t process = process_of[a];
                process_of[a] = process_of[b];
                process_of[b] = process;
                better = true;
            }
        }
    }
}

void identity(int32_t n, int32_t* process_of) {
    for (int32_t i = 0; i < n; i++) process_of[i] = i;
}

}  // namespace

int64_t weighted_distance(const NodeLocality* localities, const Edge* edges, int64_t n_edges, const int32_t* process_of) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n_edges; i++) {
        const Edge& e = edges[i];
        if (e.source != e.destination) sum += e.weight * distance(localities[process_of[e.source]], localities[process_of[e.destination]]);
    }
    return sum;
}

Err map_nodes(const NodeLocality* localities, int32_t n, const Edge* edges, int64_t n_edges, int32_t* process_of) {
    Graph g(n, n_edges);
    Scratch<int32_t> as_they_are(n);
    if (!g || !as_they_are) return no_memory();
    g.fill(edges, n_edges);
    identity(n, as_they_are.get());
    WEFT_TRY(map_greedily(localities, g, process_of));
    if (weighted_distance(localities, edges, n_edges, process_of) >= weighted_distance(localities, edges, n_edges, as_they_are.get()))
        identity(n, process_of);
    refine(localities, g, process_of);
    return Err::ok;
}

Err arrange(Process& p, Comm& c, bool reorder, const Edge* edges, int64_t n_edges, int32_t nodes, obj::Group** out) {
    Scratch<NodeLocality> localities(c.size);
    Scratch<int32_t> ranks(c.size);
    if (!localities || !ranks) return no_memory();
    identity(c.size, ranks.get());
    if (reorder) {
        NodeLocality mine = comm::own_locality(p);
        WEFT_TRY(comm::gather_localities(p, c, mine, localities.get()));
        WEFT_TRY(map_nodes(localities.get(), c.size, edges, n_edges, ranks.get()));
    }
    for (int32_t i = 0; i < nodes; i++) ranks[i] = c.group->at(ranks[i]);
    return obj::make_group(p, ranks.get(), nodes, c.session, out);
}

Err arranged_rank(Process& p, Comm& c, const Edge* edges, int64_t n_edges, int32_t nodes, int* rank) {
    Scratch<NodeLocality> localities(c.size);
    Scratch<int32_t> ranks(c.size);
    if (!localities || !ranks) return no_memory();
    identity(c.size, ranks.get());
    if (p.job->localities != nullptr) {  // mpiexec's: one node
        for (int32_t i = 0; i < c.size; i++) localities[i] = {0, p.job->localities[c.group->at(i)]};
        WEFT_TRY(map_nodes(localities.get(), c.size, edges, n_edges, ranks.get()));
    }
    int32_t node = 0;
    while (node < nodes && ranks[node] != c.rank) node++;
    *rank = node < nodes ? node : obj::undefined;
    return Err::ok;
}

}  // namespace weft::topo
