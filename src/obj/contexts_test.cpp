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
    EXPECT_LE(largest - first, 4 * (Contexts::kept_freed + 1));
    c.close();
}

}  // namespace
