#include "base/pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

using namespace weft;

namespace {

TEST(Pool, BlocksAreDistinctAlignedAndFreshOnesZero) {
    Pool p(64, 7);
    std::set<char*> seen;
    for (int i = 0; i < 100000; ++i) {
        auto* b = static_cast<char*>(p.take());
        ASSERT_NE(b, nullptr);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(b) % 64, 0u);
        ASSERT_TRUE(seen.insert(b).second);
        for (int k = 16; k < 64; ++k) ASSERT_EQ(b[k], 0);
        memset(b, 0xff, 64);
    }
    // No two overlap.
    char* last = nullptr;
    for (char* b : seen) {
        ASSERT_TRUE(last == nullptr || last + 64 <= b);
        last = b;
    }
}

TEST(Pool, GivenBlocksComeBackAndKeepTheirHead) {
    Pool p(192, 3);
    std::vector<void*> all;
    for (int i = 0; i < 1000; ++i) all.push_back(p.take());
    for (void* b : all) {
        *static_cast<uint64_t*>(b) = 7;
        p.give(b);
        ASSERT_EQ(*static_cast<uint64_t*>(b), 7u);
    }
    std::set<void*> before(all.begin(), all.end());
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(before.count(p.take()));
}

TEST(Pool, EachVisitsWhatWasTakenOnce) {
    for (int n : {0, 1, 3, 4, 17, 1000}) {
        Pool p(64, 3);
        std::set<void*> taken, seen;
        for (int i = 0; i < n; ++i) taken.insert(p.take());
        for (void* b : taken) *static_cast<uint64_t*>(b) = 7;
        p.each([&](void* b) {
            ASSERT_TRUE(p.owns(b));
            ASSERT_TRUE(seen.insert(b).second);
            ASSERT_EQ(*static_cast<uint64_t*>(b), taken.count(b) ? 7u : 0u);
        });
        for (void* b : taken) ASSERT_TRUE(seen.count(b));
        ASSERT_FALSE(p.owns(&p));
    }
}

}  // namespace
