#include "heap/mapped.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

using namespace weft;
using heap::Mapped;

namespace {

// A segment of `slices` slices at an address that nobody reads.
heap::Segment segment_of(int slices) {
    heap::Segment s;
    s.ranks = slices;
    s.slices = reinterpret_cast<char*>(uintptr_t{1} << 44);
    s.same_address = true;
    return s;
}

TEST(Mapped, FindsWhatLiesWholeInTheHeap) {
    const heap::Segment s = segment_of(2);
    const uint64_t all = s.slices_bytes();
    char outside = 0;
    EXPECT_TRUE(heap::find(&s, s.slices, all));
    EXPECT_TRUE(heap::find(&s, s.slices + 12345, 1));
    EXPECT_TRUE(heap::find(&s, s.slice(1) - 1, 2));
    EXPECT_TRUE(heap::find(&s, s.slices + all - 1, 1));
    EXPECT_FALSE(heap::find(&s, s.slices + all - 1, 2));
    EXPECT_FALSE(heap::find(&s, s.slices + all, 0));
    EXPECT_FALSE(heap::find(&s, s.slices - 1, 2));
    EXPECT_FALSE(heap::find(&s, s.slices + 8, UINT64_MAX));
    EXPECT_FALSE(heap::find(&s, &outside, 1));
    EXPECT_FALSE(heap::find(nullptr, s.slices, 1));
}

TEST(Mapped, MeansTheSameWhereTheHeapIsMappedAndNothingElsewhere) {
    const heap::Segment owner = segment_of(1);
    const Mapped m = heap::find(&owner, owner.slices + 100, 50);
    heap::Segment elsewhere = owner;
    EXPECT_EQ(heap::address_of(&owner, m), owner.slices + 100);
    elsewhere.same_address = false;
    EXPECT_EQ(heap::address_of(&elsewhere, m), nullptr);
    EXPECT_EQ(heap::address_of(nullptr, m), nullptr);
    EXPECT_EQ(heap::address_of(&owner, Mapped{}), nullptr);
}

// Litmus: the owner writes to a range again only after all users have read what it wrote before.
TEST(References, TheOwnerWaitsForEveryUser) {
    constexpr uint32_t users = 3;
    constexpr int rounds = 2000;
    struct Shared {
        std::vector<int> range = std::vector<int>(64);
        heap::References references{};
        std::atomic<int> round{0};
    };
    auto shared = std::make_unique<Shared>();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (uint32_t u = 0; u < users; ++u)
        threads.emplace_back([&] {
            for (int round = 1; round <= rounds; ++round) {
                while (shared->round.load(std::memory_order_acquire) < round) std::this_thread::yield();
                for (const int v : shared->range) wrong += v != round;
                shared->references.release();
            }
        });
    for (int round = 1; round <= rounds; ++round) {
        for (int& v : shared->range) v = round;
        shared->references.promise(users);
        shared->round.store(round, std::memory_order_release);
        while (!shared->references.is_free()) std::this_thread::yield();
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
