#include "lane/lane.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "os/clock.hpp"
#include "os/process.hpp"

using namespace weft;
using lane::Lane;
using lane::LaneGuard;

namespace {

// Litmus of sleep_until_woken/wake_sleepers: no completion by another thread of the process is slept through. A lost wake-up shows
// as a sleep that ends by its time-out. The thread sleeps at all `n` lanes, and what it waits for is completed at any of them.
void no_completion_is_slept_through(Lane* const* lanes, int n) {
    constexpr int rounds = 3000;
    constexpr uint32_t timeout_us = 20'000'000;
    for (int i = 0; i < n; ++i) lanes[i]->threads = true;
    std::atomic<int> completed{0}, seen{0};
    std::thread other([&] {
        std::mt19937 random(7);
        for (int i = 1; i <= rounds; ++i) {
            while (seen.load() != i - 1) os::yield_cpu();
            for (unsigned spin = random() % 3000; spin > 0; --spin) __builtin_ia32_pause();
            Lane& at = *lanes[random() % static_cast<unsigned>(n)];
            LaneGuard g(at);
            completed.store(i, std::memory_order_release);
            lane::wake_sleepers(at);
        }
    });
    uint64_t longest_ns = 0;   // of one sleep: beside a busy neighbour thousands of short ones may take long together
    for (int i = 1; i <= rounds; ++i) {
        auto done = [&] { return completed.load(std::memory_order_acquire) == i; };
        const uint64_t start = os::now_ns();
        while (!done()) lane::sleep_until_woken(lanes, n, timeout_us, done);
        longest_ns = std::max(longest_ns, os::now_ns() - start);
        seen.store(i);
    }
    other.join();
    EXPECT_LT(longest_ns, uint64_t{timeout_us} * 1000) << "a sleep ended by its time-out";
    for (int i = 0; i < n; ++i) EXPECT_EQ(lanes[i]->sleepers.load(), 0u);
}
void no_completion_is_slept_through(Lane& l) {
    Lane* const lanes[] = {&l};
    no_completion_is_slept_through(lanes, 1);
}

TEST(Lane, NoCompletionIsSleptThroughAlone) {
    auto l = std::make_unique<Lane>();
    lane::Peer self{0, 0, 0, lane::Peer::shm, {0}, {0}};
    ASSERT_EQ(l->open(&self, 1, 0, nullptr, false), Err::ok);
    no_completion_is_slept_through(*l);
    l->close();
}

TEST(Lane, NoCompletionIsSleptThroughAtSeveral) {
    constexpr int n = 3;
    std::unique_ptr<Lane> owned[n];
    Lane* lanes[n];
    lane::Peer self{0, 0, 0, lane::Peer::shm, {0}, {0}};
    for (int i = 0; i < n; ++i) {
        owned[i] = std::make_unique<Lane>();
        lanes[i] = owned[i].get();
        ASSERT_EQ(lanes[i]->open(&self, 1, 0, nullptr, false), Err::ok);
    }
    no_completion_is_slept_through(lanes, n);
    for (Lane* l : lanes) l->close();
}

TEST(Lane, TwoShareNoCacheLine) {
    static_assert(alignof(Lane) % 64 == 0 && sizeof(Lane) % 64 == 0);
    Lane* const l = lane::renew(nullptr, 7);
    ASSERT_NE(l, nullptr);
    EXPECT_EQ(l->number(), 7);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(l) % 64, 0u);
    EXPECT_LE(sizeof(Lane), 8192u) << "docs/lanes.md tells how much";
    EXPECT_EQ(lane::renew(l, 3), l);   // of an earlier time
    EXPECT_EQ(l->number(), 3);
    free(l);
}

// Litmus: a rank that sleeps for both wires is woken by a message in shared memory and by one in a socket, and by the completions of
// its own threads.
TEST(Lane, NoMessageIsSleptThroughWithBothWires) {
    if (!os::register_fence()) GTEST_SKIP() << "membarrier is denied here; sleeps are then bounded to a millisecond";
    const size_t bytes = wire::shm::Layout{2}.bytes();
    std::unique_ptr<void, void (*)(void*)> memory(aligned_alloc(4096, bytes), free);
    memset(memory.get(), 0, bytes);
    wire::sock::Key key;
    ASSERT_TRUE(os::random_bytes(&key, sizeof key));
    // Ranks 0 and 1 share memory; rank 2 is reached by the socket.
    std::unique_ptr<Lane> ranks[3];
    lane::Peer peers[3][3]{};
    for (int r = 0; r < 3; ++r) {
        for (int to = 0; to < 3; ++to) {
            peers[r][to].world_rank = peers[r][to].index = to;
            peers[r][to].wire = r < 2 && to < 2 ? lane::Peer::shm : lane::Peer::sock;
        }
        ranks[r] = std::make_unique<Lane>();
        ASSERT_EQ(ranks[r]->open(peers[r], 3, r, r < 2 ? static_cast<char*>(memory.get()) : nullptr, true, &key), Err::ok);
    }
    constexpr int rounds = 2000;
    constexpr uint32_t timeout_us = 20'000'000;
    std::atomic<int> received{0};
    std::thread others([&] {
        std::mt19937 random(3);
        for (int i = 0; i < rounds; ++i) {
            while (received.load() != i) os::yield_cpu();
            for (unsigned spin = random() % 3000; spin > 0; --spin) __builtin_ia32_pause();
            Lane& from = *ranks[1 + random() % 2];
            wire::Cell* c;
            while ((c = from.reserve(0)) == nullptr) os::yield_cpu();
            from.commit(0, c, wire::Header{1, 0, 0, 0, i, 0});
        }
    });
    uint64_t longest_ns = 0;
    Lane* const me = ranks[0].get();
    while (received.load() != rounds) {
        const uint64_t start = os::now_ns();
        const auto poll = [&] { return me->poll(wire::NoSink{}); };
        bool came = false;
        lane::sleep_until_woken(&me, 1, timeout_us, [&] { return came = poll(); });
        longest_ns = std::max(longest_ns, os::now_ns() - start);
        if (came || poll()) received.fetch_add(1);
    }
    others.join();
    EXPECT_LT(longest_ns, uint64_t{timeout_us} * 1000) << "a sleep ended by its time-out";
    no_completion_is_slept_through(*me);
    for (auto& l : ranks) l->close();
}

TEST(Lane, NoCompletionIsSleptThroughAtTheWire) {
    if (!os::register_fence()) GTEST_SKIP() << "membarrier is denied here; sleeps are then bounded to a millisecond";
    const size_t bytes = wire::shm::Layout{2}.bytes();
    std::unique_ptr<void, void (*)(void*)> memory(aligned_alloc(4096, bytes), free);
    memset(memory.get(), 0, bytes);
    auto l = std::make_unique<Lane>();
    lane::Peer two[] = {{0, 0, 0, lane::Peer::shm, {0}, {0}}, {1, 0, 1, lane::Peer::shm, {0}, {0}}};
    ASSERT_EQ(l->open(two, 2, 0, static_cast<char*>(memory.get()), true), Err::ok);
    no_completion_is_slept_through(*l);
    l->close();
}

}  // namespace
