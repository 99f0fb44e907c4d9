#include "lane/ids.hpp"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

using namespace weft;
using lane::Ids;

namespace {

// Against a map: every identity finds its own record while that is there, and nothing ever after.
TEST(Ids, FindTheirOwnRecordOrNothing) {
    Ids ids;
    std::mt19937 random(1);
    std::vector<int> records(5000);
    std::unordered_map<uint64_t, void*> live;
    std::vector<uint64_t> dead;
    for (int step = 0; step < 50000; ++step) {
        if (live.empty() || random() % 3 != 0) {
            void* const record = &records[random() % records.size()];
            const uint64_t id = ids.put(record);
            ASSERT_NE(id, 0u);
            ASSERT_TRUE(live.emplace(id, record).second) << "two records have one identity";
        } else {
            const auto any = live.begin();
            ASSERT_EQ(ids.find(any->first), any->second);
            ASSERT_EQ(ids.take(any->first), any->second);
            dead.push_back(any->first);
            live.erase(any);
        }
        if (!dead.empty()) {
            const uint64_t old = dead[random() % dead.size()];
            ASSERT_EQ(ids.find(old), nullptr);
            ASSERT_EQ(ids.take(old), nullptr);
        }
    }
    EXPECT_EQ(ids.in_use(), live.size());
    for (const auto& [id, record] : live) ASSERT_EQ(ids.find(id), record);
    ids.close();
}

TEST(Ids, ThoseOfOtherLanesFindNothing) {
    Ids ids(3), others(7);
    int record;
    for (int i = 0; i < 3; ++i) {
        const uint64_t id = ids.put(&record), other = others.put(&record);
        EXPECT_NE(id, other);
        EXPECT_EQ(ids.find(other), nullptr);
        EXPECT_EQ(others.take(id), nullptr);
        EXPECT_EQ(ids.take(id), &record);
    }
    ids.close();
    others.close();
}

TEST(Ids, DamagedOnesFindNothing) {
    Ids ids;
    int record;
    EXPECT_EQ(ids.find(0), nullptr);
    const uint64_t id = ids.put(&record);
    EXPECT_EQ(ids.find(0), nullptr);
    for (int bit = 0; bit < 64; ++bit) EXPECT_EQ(ids.find(id ^ 1ull << bit), nullptr) << bit;
    EXPECT_EQ(ids.find(id), &record);
    ids.close();
}

}  // namespace
