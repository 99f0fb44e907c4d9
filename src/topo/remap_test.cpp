#include "topo/remap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

using namespace weft;
using comm::NodeLocality;
using topo::Edge;

namespace {

// A process on core `core` of machines with two cores per cache, two caches per package, two packages per node.
NodeLocality on_core(int core) {
    NodeLocality s{uint64_t(1000 - core / 8), {}};
    int on_node = core % 8;
    s.on_node.at[boot::package] = s.on_node.at[boot::numa_node] = on_node / 4 * 4;
    s.on_node.at[boot::l3_cache] = on_node / 2 * 2;
    s.on_node.at[boot::core] = s.on_node.at[boot::hardware_thread] = on_node;
    return s;
}

NodeLocality unbound() {
    NodeLocality s{7, {}};
    for (int level = boot::package; level < boot::levels; level++) s.on_node.at[level] = boot::Locality::spread;
    return s;
}

std::vector<Edge> grid(int columns, int rows) {
    std::vector<Edge> edges;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            int r = y * columns + x;
            if (x + 1 < columns) edges.push_back({r, r + 1, 1});
            if (y + 1 < rows) edges.push_back({r, r + columns, 1});
        }
    return edges;
}

std::vector<int32_t> mapped(const std::vector<NodeLocality>& localities, const std::vector<Edge>& edges) {
    std::vector<int32_t> of(localities.size(), -1);
    EXPECT_EQ(topo::map_nodes(localities.data(), int32_t(localities.size()), edges.data(), int64_t(edges.size()), of.data()), Err::ok);
    return of;
}

std::vector<int32_t> in_order(size_t n) {
    std::vector<int32_t> v(n);
    std::iota(v.begin(), v.end(), 0);
    return v;
}

int64_t cost(const std::vector<NodeLocality>& localities, const std::vector<Edge>& edges, const std::vector<int32_t>& of) {
    return topo::weighted_distance(localities.data(), edges.data(), int64_t(edges.size()), of.data());
}

TEST(Remap, DistanceIsTheNumberOfLevelsNotShared) {
    std::vector<NodeLocality> localities{on_core(0), on_core(0), on_core(1), on_core(2), on_core(4), on_core(8), unbound(), unbound()};
    auto between = [&](int a, int b) { return cost(localities, {{a, b, 3}}, in_order(localities.size())); };
    EXPECT_EQ(between(0, 1), 0);      // one thread
    EXPECT_EQ(between(0, 2), 3 * 2);  // one cache
    EXPECT_EQ(between(0, 3), 3 * 3);  // one package, and one NUMA node
    EXPECT_EQ(between(0, 4), 3 * 5);  // one machine
    EXPECT_EQ(between(0, 5), 3 * 6);  // different machines
    EXPECT_EQ(between(6, 7), 3 * 5);
}

TEST(Remap, IsAPermutationAndNeverWorseThanTheIdentity) {
    std::mt19937 random(1);
    auto below = [&](int n) { return int(random() % unsigned(n)); };
    int better = 0;
    for (int round = 0; round < 400; round++) {
        int n = 1 + below(20);
        std::vector<NodeLocality> localities;
        for (int i = 0; i < n; i++) localities.push_back(below(8) == 0 ? unbound() : on_core(below(24)));
        std::vector<Edge> edges;
        for (int i = below(60); i > 0; i--) edges.push_back({below(n), below(n), below(3) == 0 ? INT32_MAX - below(9) : below(5)});
        std::vector<int32_t> of = mapped(localities, edges), sorted = of;
        std::sort(sorted.begin(), sorted.end());
        ASSERT_EQ(sorted, in_order(size_t(n)));
        int64_t now = cost(localities, edges, of), before = cost(localities, edges, in_order(size_t(n)));
        ASSERT_LE(now, before);
        better += now < before;
        ASSERT_EQ(mapped(localities, edges), of);
    }
    EXPECT_GT(better, 200);
}

TEST(Remap, NothingMovesWhereNothingIsCloser) {
    std::vector<NodeLocality> alike(12, unbound()), apart;
    for (int i = 0; i < 12; i++) apart.push_back(on_core(8 * (11 - i)));  // a machine each, and not in order
    EXPECT_EQ(mapped(alike, grid(4, 3)), in_order(12));
    EXPECT_EQ(mapped(apart, grid(4, 3)), in_order(12));
    EXPECT_EQ(mapped({on_core(0), on_core(5), on_core(1)}, {}), in_order(3));
    EXPECT_EQ(mapped({on_core(0), on_core(5), on_core(1)}, {{0, 0, 9}, {0, 1, 0}}), in_order(3));
}

// Pairs dealt out so that the partners sit on different packages come together.
TEST(Remap, PartnersMeet) {
    std::vector<NodeLocality> localities;
    for (int core : {0, 4, 1, 5, 2, 6, 3, 7}) localities.push_back(on_core(core));
    std::vector<Edge> pairs{{0, 1, 10}, {2, 3, 10}, {4, 5, 10}, {6, 7, 10}, {1, 2, 1}};
    std::vector<int32_t> of = mapped(localities, pairs);
    EXPECT_EQ(cost(localities, pairs, of), 4 * 10 * 2 + 3);
}

// 4 x 4 nodes on two machines of eight cores, each with two packages of four: every package gets a square, and the
// machines are cut apart once.
TEST(Remap, AGridIsCutIntoSquares) {
    std::vector<NodeLocality> localities;
    for (int core = 0; core < 16; core++) localities.push_back(on_core(core));
    std::vector<int64_t> costs;
    std::mt19937 random(2);
    for (int round = 0; round < 20; round++) {
        std::vector<int32_t> of = mapped(localities, grid(4, 4));
        int64_t best = 8 * 2 + 8 * 3 + 4 * 5 + 4 * 6;  // within a cache, a package, a machine, and between machines
        EXPECT_LE(cost(localities, grid(4, 4), of), best + (round == 0 ? 0 : best / 20)) << round;
        std::shuffle(localities.begin(), localities.end(), random);
    }
}

// The heaviest edges decide.
TEST(Remap, WeightsCount) {
    std::vector<NodeLocality> localities{on_core(0), on_core(4), on_core(1), on_core(5)};
    std::vector<Edge> edges{{0, 1, 1}, {1, 2, 50}, {2, 3, 1}, {3, 0, 50}};
    std::vector<int32_t> of = mapped(localities, edges);
    EXPECT_EQ(cost(localities, edges, of), 2 * 50 * 2 + 2 * 5);
}

}  // namespace
