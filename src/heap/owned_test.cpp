#include "heap/owned.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

#include "heap/heap.hpp"
#include "os/memory.hpp"

using namespace weft;
using heap::Owned;
using heap::OwnedPolicy;

namespace {

void share_all(heap::Segment& s) {
    s.slices = reinterpret_cast<char*>(os::page_bytes);
    s.shift = 47;
}

// Some ranks in one process, which share all memory: every address counts as one of the heap.
struct Node {
    struct Rank {
        heap::Segment segment;
        heap::Heap heap;
        Owned owned;
    };
    explicit Node(int ranks, OwnedPolicy policy = {}) : fd(os::make_memfd("weft-test")), all(static_cast<size_t>(ranks)) {
        for (int r = 0; r < ranks; ++r) {
            Rank& rank = all[static_cast<size_t>(r)];
            EXPECT_EQ(rank.segment.map(fd, ranks, r, 4096, false), Err::ok);
            share_all(rank.segment);
            rank.segment.lines = all[0].segment.lines;   // one mapping, so that ThreadSanitizer sees the lists
            rank.heap.open(&rank.segment);
            rank.owned.open(&rank.heap, &rank.segment, policy);
        }
    }
    ~Node() {
        for (Rank& r : all) EXPECT_TRUE(r.owned.is_sound());   // all before any heap frees what lies in others' pools
        for (Rank& r : all) {
            r.owned.close();
            r.heap.close();
            r.segment.slices = nullptr;
            r.segment.unmap();
        }
        close(fd);
    }
    Owned& operator[](size_t r) { return all[r].owned; }
    int fd;
    std::vector<Rank> all;
};

TEST(Owned, TheMostRecentlyFreedThatIsLargeEnough) {
    Node node(1);
    Owned& o = node[0];
    void *small = o.allocate(100), *large = o.allocate(100000), *other = o.allocate(100);
    for (void* p : {small, large, other}) {
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
        memset(p, 1, 100);
    }
    EXPECT_TRUE(o.release(small));
    EXPECT_TRUE(o.release(large));
    EXPECT_TRUE(o.release(other));
    EXPECT_EQ(o.pooled(), 3u);
    EXPECT_EQ(o.allocate(5000), large);
    EXPECT_EQ(o.allocate(4000), other);
    EXPECT_EQ(o.allocate(0), small);
    EXPECT_EQ(o.pooled(), 0u);
    EXPECT_FALSE(o.release(static_cast<char*>(large) + 64));
    EXPECT_TRUE(o.release(large));
    EXPECT_FALSE(o.release(large)) << "freed twice";
    EXPECT_FALSE(o.release(nullptr));
    EXPECT_EQ(o.allocate(heap::slice_bytes + 1), nullptr);
}

TEST(Owned, TheCapHolds) {
    Node node(1, {OwnedPolicy::receiver, 5, false});
    std::vector<void*> live;
    for (int i = 0; i < 20; ++i) live.push_back(node[0].allocate(1000));
    for (void* p : live) EXPECT_TRUE(node[0].release(p));
    EXPECT_EQ(node[0].pooled(), 5u);
    EXPECT_EQ(node.all[0].heap.bytes_in_use(), 5u * 4096);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(node[0].allocate(1000), live[19 - i]) << "most recently freed first";
}

// What a rank gets and frees stays with it up to the cap; the rest returns to its maker, who uses it again.
TEST(Owned, BuffersReturnToTheirMaker) {
    for (auto pool : {OwnedPolicy::receiver, OwnedPolicy::sender, OwnedPolicy::none}) {
        Node node(2, {pool, 4, false});
        for (int turn = 0; turn < 50; ++turn) {
            void* p[10];
            for (void*& one : p) one = node[0].allocate(5000);
            for (void* one : p) EXPECT_TRUE(node[1].release(one));
        }
        EXPECT_EQ(node[1].pooled(), pool == OwnedPolicy::receiver ? 4u : 0u);
        EXPECT_LE(node.all[0].heap.bytes_in_use(), 24u * 8192);
        EXPECT_EQ(node.all[1].heap.bytes_in_use(), 0u);
    }
}

TEST(Owned, PrivateMemoryWorksAlone) {
    heap::Heap h;
    h.open(nullptr);
    Owned o;
    o.open(&h, nullptr, {OwnedPolicy::receiver, 2, false});
    void* p[5];
    for (void*& one : p) ASSERT_NE(one = o.allocate(10000), nullptr);
    EXPECT_FALSE(o.is_shared(p[0]));
    for (void* one : p) EXPECT_TRUE(o.release(one));
    EXPECT_EQ(o.pooled(), 2u);
    o.close();
    h.close();
}

// Each side in a thread of its own: one allocates and hands over, three free; every buffer has one owner at any time.
TEST(Owned, ManyReturnWhileTheMakerTakes) {
    constexpr int takers = 3, turns = 3000;
    Node node(takers + 1, {OwnedPolicy::receiver, 2, false});
    std::atomic<uint64_t*> slot[takers]{};
    std::vector<std::thread> threads;
    for (int t = 0; t < takers; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < turns; ++i) {
                uint64_t* p;
                while ((p = slot[t].exchange(nullptr, std::memory_order_acquire)) == nullptr) std::this_thread::yield();
                ASSERT_EQ(*p, static_cast<uint64_t>(i) << 8 | static_cast<uint64_t>(t)) << "somebody else wrote into a buffer with an owner";
                *p = 0;
                ASSERT_TRUE(node[static_cast<size_t>(t) + 1].release(p));
            }
        });
    int given[takers] = {};
    for (int left = takers * turns; left > 0; std::this_thread::yield())
        for (int t = 0; t < takers; ++t) {
            if (given[t] == turns || slot[t].load(std::memory_order_relaxed) != nullptr) continue;
            auto* p = static_cast<uint64_t*>(node[0].allocate(64));
            ASSERT_NE(p, nullptr);
            *p = static_cast<uint64_t>(given[t]++) << 8 | static_cast<uint64_t>(t);
            slot[t].store(p, std::memory_order_release);
            --left;
        }
    for (auto& t : threads) t.join();
    EXPECT_LE(node.all[0].heap.bytes_in_use(), 64u * 4096) << "returned buffers are used again";
}

TEST(OwnedDeathTest, TheGuardNamesWhoTouchesWhatItGaveAway) {
    if (WEFT_ASSERTIONS || WEFT_THREADS_PRESET) GTEST_SKIP() << "a sanitizer has the signal";
    const auto touch_given = [] {
        Node node(1, {OwnedPolicy::receiver, 4, true});
        auto* p = static_cast<char*>(node[0].allocate(10000));
        p[7000] = 1;
        node[0].forbid_given(p, 3, 17, true);
        p[7000] = 2;
    };
    EXPECT_DEATH(touch_given(), "touches byte 7000 of the buffer at .* which it gave to rank 3 with tag 17.* the access is at ");
    const auto touch_freed = [] {
        Node node(1, {OwnedPolicy::receiver, 4, true});
        auto* p = static_cast<char*>(node[0].allocate(10000));
        EXPECT_TRUE(node[0].release(p));
        EXPECT_EQ(node[0].allocate(10), p);
        p[9] = 1;
        EXPECT_TRUE(node[0].release(p));
        p[0] = 2;
    };
    EXPECT_DEATH(touch_freed(), "touches byte 0 of the buffer at .* which it freed");
}

}  // namespace
