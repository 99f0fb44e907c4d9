#include "obj/contexts.hpp"

#include <gtest/gtest.h>

using namespace weft;
using obj::Contexts;

namespace {

TEST(Contexts, AFreedOneComesBackLateButComesBack) {
    Contexts c;
    c.open(3, 8);
    uint32_t first = 0, next = 0, largest = 0, between = 0;
    ASSERT_EQ(c.take(&first), Err::ok);
    c.give(first);
    bool again = false;
    for (int i = 0; i < 200'000; ++i) {
        ASSERT_EQ(c.take(&next), Err::ok);
        if (next == first) again = true;
        if (!again) ++between;
        if (next > largest) largest = next;
        c.give(next);
    }
    EXPECT_TRUE(again);
    EXPECT_GE(between, Contexts::kept_freed - 1);
    // What is kept for freed ones grows with the numbers in use alone.
    EXPECT_LE(largest - first, 4 * lane::most_lanes * (Contexts::kept_freed + 1));
    c.close();
}

TEST(Contexts, TellTheirLane) {
    Contexts c;
    c.open(3, 8);
    EXPECT_EQ(c.lane_of(c.reserved(0, Contexts::of_world)), 0u);
    EXPECT_EQ(c.lane_of(c.reserved(7, Contexts::of_universe)), 0u);
    uint32_t seen[lane::most_lanes]{};
    for (uint32_t lane = 0; lane < lane::most_lanes; ++lane) {
        ASSERT_EQ(c.take(&seen[lane], {lane, lane + 1}), Err::ok);
        EXPECT_EQ(c.lane_of(seen[lane]), lane);
        for (uint32_t before = 0; before < lane; ++before) EXPECT_NE(seen[before], seen[lane]);
    }
    // The lane that fewest have is next.
    c.give(seen[5]);
    ASSERT_EQ(c.take(&seen[5], {0, lane::most_lanes}), Err::ok);
    EXPECT_EQ(c.lane_of(seen[5]), 5u);
    c.close();
    c.open(0, 1 << 20);   // no bits for lanes
    ASSERT_EQ(c.take(&seen[0], {5, 6}), Err::ok);
    EXPECT_EQ(c.lane_of(seen[0]), 0u);
    c.close();
}

}  // namespace
