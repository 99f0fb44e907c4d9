#include "coll/levels.hpp"

#include <cstdlib>
#include <new>

#include "base/scratch.hpp"
#include "coll/area.hpp"
#include "obj/group.hpp"

namespace weft::coll {

// The members of a communicator by node. Nodes are numbered in the order of their lowest ranks. One block, with the arrays behind.
struct Nodes {
    int32_t count, mine;    // of nodes; the caller's
    int32_t place;          // the caller's among its node's members
    bool consecutive;       // no rank of one node lies between two of another
    int32_t* node;          // [size] of each rank
    int32_t* first;         // [count + 1] where each node's members begin in ...
    int32_t* members;       // [size] ... the ranks, node by node, each in ascending order
    int32_t* leaders;       // [count] the lowest rank of each
};

namespace {

// `numbers`: for every node of the job, its number here.
Nodes* make_nodes(const Process& p, const Comm& c, int32_t* numbers) {
    size_t ints = 2 * static_cast<size_t>(c.size) + 2 * static_cast<size_t>(p.nodes) + 1;
    auto* n = static_cast<Nodes*>(malloc(sizeof(Nodes) + ints * sizeof(int32_t)));
    if (n == nullptr) return nullptr;
    auto* array = reinterpret_cast<int32_t*>(n + 1);
    *n = {0, 0, 0, true, array, array + c.size, array + c.size + p.nodes + 1, array + 2 * c.size + p.nodes + 1};
    for (int32_t i = 0; i < p.nodes; i++) numbers[i] = -1;
    for (int32_t i = 0; i <= p.nodes; i++) n->first[i] = 0;
    for (int32_t r = 0; r < c.size; r++) {
        int32_t& number = numbers[obj::node_of(p, c.group->at(r))];
        if (number < 0) {
            number = n->count;
            n->leaders[n->count++] = r;
        } else if (n->node[r - 1] != number) {
            n->consecutive = false;
        }
        n->node[r] = number;
        n->first[number + 1]++;
    }
    for (int32_t i = 0; i < n->count; i++) n->first[i + 1] += n->first[i];
    for (int32_t i = 0; i < n->count; i++) numbers[i] = n->first[i];  // from here on: where each one's next member goes
    for (int32_t r = 0; r < c.size; r++) {
        int32_t& next = numbers[n->node[r]];
        if (r == c.rank) n->place = next - n->first[n->node[r]];
        n->members[next++] = r;
    }
    n->mine = n->node[c.rank];
    return n;
}

const Nodes* nodes_of(const Process& p, Comm& c) {
    CommState* state = state_of(c);
    if (state == nullptr) return nullptr;
    if (const Nodes* known = state->nodes.load(std::memory_order_acquire)) return known;
    Scratch<int32_t> numbers(p.nodes);
    Nodes* fresh = numbers ? make_nodes(p, c, numbers.get()) : nullptr;
    Nodes* none = nullptr;
    // Release: pairs with the load above, for the thread that comes later.
    if (fresh == nullptr || state->nodes.compare_exchange_strong(none, fresh, std::memory_order_acq_rel)) return fresh;
    free(fresh);
    return none;
}

}  // namespace

bool find_levels(Schedule& s, const Team& t, int32_t root, Order order, Levels* out) {
    if (t.ranks != nullptr) return false;
    const Nodes* n = nodes_of(*s.process, *t.comm);
    if (n == nullptr) {
        s.out_of_memory();
        return false;
    }
    if (n->count == 1 || n->count == t.size || (order == Order::of_ranks && !n->consecutive)) return false;
    auto team_of = [&](int32_t node) {
        return Team{t.comm, n->members + n->first[node], n->place, n->first[node + 1] - n->first[node]};
    };
    Levels l{team_of(n->mine), 0, {t.comm, n->leaders, n->mine, n->count}, n->node[root], n->first};
    if (n->leaders[l.root] != root) {  // the root speaks for its node
        auto* heads = static_cast<int32_t*>(s.temp(n->count * static_cast<int64_t>(sizeof(int32_t))));
        if (heads == nullptr) return false;
        for (int32_t i = 0; i < n->count; i++) heads[i] = n->leaders[i];
        heads[l.root] = root;
        l.leaders.ranks = heads;
        if (l.root == n->mine)
            while (l.node.at(l.head) != root) l.head++;
    }
    *out = l;
    return true;
}

}  // namespace weft::coll
