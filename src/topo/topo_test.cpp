#include "topo/topo.hpp"

#include <gtest/gtest.h>

#include <vector>

using namespace weft;

namespace {

TEST(Dims, AreFactorsInOrderAndAsCloseAsCanBe) {
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
