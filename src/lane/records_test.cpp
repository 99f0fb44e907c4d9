#include "lane/records.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

using namespace weft;
using lane::Records;

namespace {

// Blocks do not overlap, are used again, and what is empty goes back, whatever the order.
TEST(Records, MemoryGoesBack) {
    constexpr uint32_t bytes = 144;
    Records r(bytes);
    r.open();
    for (unsigned order = 0; order < 3; ++order) {
        std::vector<char*> all;
        for (int i = 0; i < 20000; ++i) {
            auto* b = static_cast<char*>(r.take());
            ASSERT_NE(b, nullptr);
            memset(b, i % 100, bytes);
            all.push_back(b);
        }
        ASSERT_EQ(std::set<char*>(all.begin(), all.end()).size(), all.size());
        EXPECT_GT(r.slabs(), 8u);
        for (int i = 0; i < 20000; ++i)
            for (uint32_t k = 0; k < bytes; ++k) ASSERT_EQ(all[i][k], i % 100);
        if (order == 1) std::reverse(all.begin(), all.end());
        std::mt19937 random(order);
        if (order == 2) std::shuffle(all.begin(), all.end(), random);
        char* const last = all.back();
        all.pop_back();
        for (char* b : all) r.give(b);
        EXPECT_LE(r.slabs(), 2u);
        r.give(last);
        EXPECT_EQ(r.slabs(), 1u);
    }
    r.close();
    EXPECT_EQ(r.slabs(), 0u);
}

}  // namespace
