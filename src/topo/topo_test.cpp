#include "topo/topo.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace weft;

namespace {

// Every way to write `left` as factors that do not increase.
void every_way(int left, int open, int most, std::vector<int>& way, std::vector<int>& best) {
    if (open == 0) {
        if (left != 1) return;
        const int spread = way.front() - way.back(), least = best.empty() ? spread + 1 : best.front() - best.back();
        if (spread < least || (spread == least && way < best)) best = way;
        return;
    }
    for (int f = 1; f <= most && f <= left; f++) {
        if (left % f != 0) continue;
        way.push_back(f);
        every_way(left / f, open - 1, f, way, best);
        way.pop_back();
    }
}

// Against brute force: no other factors lie closer together.
TEST(Dims, AreAsBalancedAsCanBe) {
    obj::Process& p = *static_cast<obj::Process*>(calloc(1, sizeof(obj::Process)));
    const auto same = [&](int nodes, int ndims) {
        std::vector<int> way, best, got(static_cast<size_t>(ndims));
        every_way(nodes, ndims, nodes, way, best);
        ASSERT_EQ(topo::dims_create(p, nodes, ndims, got.data()), Err::ok);
        ASSERT_EQ(got, best) << nodes << " in " << ndims;
    };
    for (int ndims = 1; ndims <= 5; ndims++) {
        for (int nodes = 1; nodes <= 1200; nodes++) same(nodes, ndims);
        for (int nodes = 1201; nodes <= 10000; nodes += ndims < 4 ? 13 : 101) same(nodes, ndims);
        for (int nodes : {7488, 5040, 7560, 8192, 9240, 9973, 10000}) same(nodes, ndims);
    }
    // The most divisors that a count can have, and the most dimensions: at once, not in the lifetime of the program.
    for (int ndims = 1; ndims <= 40; ndims++)
        for (int nodes : {2095133040, 2118916800, 1 << 30, 2147483647}) {
            std::vector<int> d(static_cast<size_t>(ndims));
            ASSERT_EQ(topo::dims_create(p, nodes, ndims, d.data()), Err::ok);
            int64_t product = 1;
            for (int f : d) product *= f;
            EXPECT_EQ(product, nodes);
        }
}

TEST(Dims, AreFactorsInOrder) {
    obj::Process& p = *static_cast<obj::Process*>(calloc(1, sizeof(obj::Process)));
    for (int nodes = 1; nodes <= 400; nodes++) {
        int d[2] = {0, 0};
        ASSERT_EQ(topo::dims_create(p, nodes, 2, d), Err::ok);
        int first = 1;   // the smallest divisor that is at least the square root
        while (nodes % first != 0 || first * first < nodes) first++;
        EXPECT_EQ(d[0], first) << nodes;
        EXPECT_EQ(d[0] * d[1], nodes);
        int e[4] = {0, 0, 0, 0};
        ASSERT_EQ(topo::dims_create(p, nodes, 4, e), Err::ok);
        EXPECT_EQ(e[0] * e[1] * e[2] * e[3], nodes);
        EXPECT_TRUE(e[0] >= e[1] && e[1] >= e[2] && e[2] >= e[3]);
    }
    int large[2] = {0, 0};
    ASSERT_EQ(topo::dims_create(p, 2147483647, 2, large), Err::ok);   // a prime
    EXPECT_EQ(large[0], 2147483647);
    int fixed[3] = {0, 4, 0}, bad[2] = {5, 0}, full[2] = {2, 2};
    ASSERT_EQ(topo::dims_create(p, 48, 3, fixed), Err::ok);
    EXPECT_EQ(std::vector<int>(fixed, fixed + 3), (std::vector<int>{4, 4, 3}));
    EXPECT_EQ(topo::dims_create(p, 12, 2, bad), Err::dims);
    EXPECT_EQ(topo::dims_create(p, 12, 2, full), Err::dims);
    EXPECT_EQ(topo::dims_create(p, 4, 2, full), Err::ok);
}

}  // namespace
