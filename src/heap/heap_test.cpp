#include "heap/heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "heap/mapped.hpp"
#include "os/memory.hpp"

using namespace weft;

namespace {

// What a forked child has found: its exit status, once it has ended.
int status_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

constexpr char no_slices[] = "the machine denies the common address, or ThreadSanitizer owns it";

// Rank 1 of two. The slices stay with the process: all tests here are this rank.
struct Mapped {
    int fd = os::make_memfd("weft-test");
    heap::Segment segment;
    heap::Heap heap;

    Mapped() {
        EXPECT_EQ(segment.map(fd, 2, 1, 12345, !WEFT_THREADS_PRESET), Err::ok);  // ThreadSanitizer owns the common address
        heap.open(&segment);
    }
    ~Mapped() {
        heap.close();
        segment.unmap();
        close(fd);
    }
};

TEST(Heap, PrivateBlocksAreAlignedAndReturned) {
    heap::Heap h;
    h.open(nullptr);
    for (size_t align : {size_t{64}, size_t{4096}, size_t{65536}, size_t{2} << 20}) {
        void* p = h.allocate(1000, align);
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u);
        memset(p, 1, 1000);
        EXPECT_EQ(h.release(p), Err::ok);
        EXPECT_EQ(h.release(p), Err::arg);
    }
    EXPECT_EQ(h.bytes_in_use(), 0u);
    h.close();
}

TEST(Heap, BlocksOfASliceAreItsOwn) {
    Mapped m;
    if (!m.segment.same_address) GTEST_SKIP() << no_slices << "; private blocks are tested above";
    std::mt19937 random(7);
    std::vector<std::pair<char*, size_t>> live;
    for (int i = 0; i < 4000; ++i) {
        if (live.size() < 20 || random() % 2) {
            const size_t n = random() % 50 == 0 ? random() % (40 << 20) : random() % 50000, align = 1u << (6 + random() % 16);
            auto* p = static_cast<char*>(m.heap.allocate(n, align));
            ASSERT_NE(p, nullptr);
            ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u);
            ASSERT_TRUE(m.segment.in_heap(p) && m.segment.in_heap(p + n));
            ASSERT_EQ(m.segment.owner(p), 1);
            for (auto& [q, k] : live) ASSERT_TRUE(p + n <= q || q + k <= p);
            if (n) p[0] = p[n - 1] = 1;
            live.push_back({p, n});
        } else {
            const size_t k = random() % live.size();
            ASSERT_EQ(m.heap.release(live[k].first), Err::ok);
            ASSERT_EQ(m.heap.release(live[k].first), Err::arg) << "twice";
            live.erase(live.begin() + static_cast<long>(k));
        }
    }
    for (auto& [p, n] : live) ASSERT_EQ(m.heap.release(p), Err::ok);
    EXPECT_EQ(m.heap.bytes_in_use(), 0u);
    int local;
    EXPECT_EQ(m.heap.release(&local), Err::arg);
    EXPECT_EQ(m.heap.allocate(heap::most_large_bytes), nullptr) << "the table of large blocks is there, too";
}

TEST(Heap, BlocksOfEverySizeAreAligned) {
    Mapped m;
    for (size_t bytes = 1; bytes <= 8192; bytes *= 2)
        for (size_t align = 64; align <= 2 << 20; align *= 2) {
            void* blocks[3];
            for (void*& p : blocks) {
                p = m.heap.allocate(bytes, align);
                ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u) << bytes << " bytes, to " << align;
            }
            for (void* p : blocks) ASSERT_EQ(m.heap.release(p), Err::ok);
        }
}

TEST(Heap, WhatAnotherRankReturnsIsFreed) {
    Mapped m;
    if (!m.segment.same_address) GTEST_SKIP() << no_slices;
    void* p = m.heap.allocate(1000);
    m.segment.heap->head_of(p).blocks.push(p);   // as the other rank's heap does
    EXPECT_EQ(m.heap.bytes_in_use(), 1000u);
    void* q = m.heap.allocate(10);
    EXPECT_EQ(m.heap.bytes_in_use(), 10u);
    EXPECT_EQ(m.heap.release(p), Err::arg) << "it is free";
    EXPECT_EQ(m.heap.release(q), Err::ok);
    // To a rank that is not there: its slice is mapped, its list is there.
    EXPECT_EQ(m.heap.release(m.segment.slice(0) + (1 << 20)), Err::ok);
    EXPECT_FALSE(m.segment.shares_heap(0));
    EXPECT_TRUE(m.segment.shares_heap(1));
}

TEST(Heap, BlocksLargerThanASliceLieBehindAllSlices) {
    Mapped m;
    if (!m.segment.same_address) GTEST_SKIP() << no_slices;
    constexpr size_t bytes = (size_t{64} << 30) + 12345;
    char* p[3];
    for (char*& one : p) {
        one = static_cast<char*>(m.heap.allocate(bytes, size_t{2} << 20));
        ASSERT_NE(one, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(one) % (2 << 20), 0u);
        EXPECT_TRUE(heap::find(&m.segment, one, bytes));
        EXPECT_TRUE(one[0] == 0 && one[bytes / 2] == 0 && one[bytes - 1] == 0);
        one[0] = one[bytes - 1] = 1;
    }
    EXPECT_TRUE(p[0] + bytes <= p[1] && p[1] + bytes <= p[2]);
    EXPECT_EQ(m.heap.release(p[1] + (1 << 20)), Err::arg) << "none begins there";
    EXPECT_EQ(m.heap.release(p[1]), Err::ok);
    EXPECT_EQ(m.heap.release(p[1]), Err::arg) << "twice";
    auto* const again = static_cast<char*>(m.heap.allocate(bytes - 5, size_t{2} << 20));
    EXPECT_EQ(again, p[1]) << "the first gap that is long enough";
    EXPECT_TRUE(again[0] == 0 && again[bytes - 6] == 0) << "what was there is gone";
    // As another rank frees it: the owner does when it next looks.
    m.segment.heap->head_of_large(p[2])->blocks.push(p[2]);
    void* const small = m.heap.allocate(10);
    EXPECT_EQ(m.heap.bytes_in_use(), bytes + bytes - 5 + 10);
    for (void* one : {static_cast<void*>(p[0]), static_cast<void*>(again), small}) EXPECT_EQ(m.heap.release(one), Err::ok);
}

TEST(Heap, LargePrivateBlocksTakeNoMemoryBeforeTheyAreTouched) {
    heap::Heap h;
    h.open(nullptr);
    constexpr size_t bytes = (size_t{65} << 30) + 1;
    for (size_t align : {size_t{64}, size_t{2} << 20}) {
        auto* const p = static_cast<char*>(h.allocate(bytes, align));
        ASSERT_NE(p, nullptr);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % align, 0u);
        p[0] = p[bytes - 1] = 1;
        EXPECT_EQ(h.release(p), Err::ok);
    }
    h.close();
}

TEST(Heap, AForkedChildHasACopy) {
    Mapped m;
    if (!m.segment.same_address) GTEST_SKIP() << no_slices;
    constexpr size_t bytes = 3 << 20;
    auto* p = static_cast<char*>(m.heap.allocate(bytes));
    ASSERT_NE(p, nullptr);
    memset(p, 7, bytes);
    const pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < bytes; i++)
            if (p[i] != 7) _exit(1);
        memset(p, 8, bytes);
        auto* q = static_cast<char*>(m.heap.allocate(bytes));
        if (q == nullptr) _exit(2);
        memset(q, 9, bytes);
        _exit(m.heap.release(p) == Err::ok && m.heap.release(q) == Err::ok ? 0 : 3);
    }
    memset(p, 6, bytes);   // fork() returns when the child has its copy
    EXPECT_EQ(status_of(child), 0);
    for (size_t i = 0; i < bytes; i++) ASSERT_EQ(p[i], 6);
    EXPECT_EQ(m.heap.release(p), Err::ok);
}

TEST(Segment, AnotherRankInTheSameProcessDoesNotShare) {
    Mapped m;
    heap::Segment second;
    ASSERT_EQ(second.map(m.fd, 2, 0, 8192, !WEFT_THREADS_PRESET), Err::ok);
    EXPECT_FALSE(second.same_address);
    EXPECT_FALSE(second.in_heap(&m));
    EXPECT_FALSE(second.in_heap(nullptr));
    m.segment.wires[100] = 42;
    EXPECT_EQ(second.wires[100], 42);
    second.unmap();
}

// ---- slices, at an address of their own; ThreadSanitizer owns all of them

constexpr uint64_t test_address = heap::heap_address + (1ull << 44);

TEST(Slices, UnitsAreDisjointAndZero) {
    const int fd = os::make_memfd("weft-test");
    heap::Slices s;
    if (WEFT_THREADS_PRESET || !s.map(fd, 4096, heap::Geometry::of(3, 4), 1, test_address)) GTEST_SKIP() << no_slices;
    EXPECT_EQ(s.owner(s.own), 1);
    EXPECT_TRUE(s.is_own(s.own) && s.contains(s.slice(2)) && !s.is_own(s.slice(2)) && !s.contains(s.base + s.bytes));
    std::mt19937 random(11);
    std::vector<std::pair<char*, size_t>> live;
    uint64_t taken = 0;
    for (int i = 0; i < 3000; ++i) {
        if (live.size() < 10 || random() % 2) {
            const size_t n = (1 + random() % 64) * (random() % 4 == 0 ? size_t{1} << 20 : size_t{4096});
            auto* p = static_cast<char*>(s.take(n));
            ASSERT_TRUE(p != nullptr && s.is_own(p) && s.is_own(p + n - 1));
            if (n >= 1 << 20) {
                ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % (32 << 20), 0u);
            }
            for (auto& [q, k] : live) ASSERT_TRUE(p + n <= q || q + k <= p);
            ASSERT_TRUE(p[0] == 0 && p[n / 2] == 0 && p[n - 1] == 0);
            p[0] = p[n / 2] = p[n - 1] = 1;
            live.push_back({p, n});
            taken += (n + heap::unit_bytes - 1) / heap::unit_bytes * heap::unit_bytes;
        } else {
            const size_t k = random() % live.size();
            s.give(live[k].first, live[k].second);
            taken -= (live[k].second + heap::unit_bytes - 1) / heap::unit_bytes * heap::unit_bytes;
            live.erase(live.begin() + static_cast<long>(k));
        }
        ASSERT_EQ(s.own_head().taken, taken);
    }
    EXPECT_GE(s.own_head().most_taken, taken);
    for (auto& [p, n] : live) s.give(p, n);
    // All but the head is free again, and no more than that.
    EXPECT_EQ(s.take(s.own_bytes), nullptr);
    void* most = s.take(s.own_bytes - (32 << 20));
    EXPECT_EQ(most, s.own + (32 << 20));
    EXPECT_EQ(s.take(32 << 20), nullptr);
    EXPECT_NE(s.take(4096), nullptr) << "before the first aligned address there is room for small ones";
    os::unmap(s.base, s.geometry.mapped_bytes());
    close(fd);
}

TEST(Slices, EachProcessOfARankHasAPart) {
    const int fd = os::make_memfd("weft-test");
    heap::Slices first;
    const heap::Geometry g = heap::Geometry::of(2, 2);
    if (WEFT_THREADS_PRESET || !first.map(fd, 0, g, 1, test_address)) GTEST_SKIP() << no_slices;
    const pid_t child = fork();
    if (child == 0) {
        heap::Slices second, third;
        if (!second.map(fd, 0, g, 1, test_address + g.mapped_bytes())) _exit(1);
        if (second.own != second.slice(1) + g.part_bytes() || second.owner(second.own) != 1) _exit(2);
        static_cast<char*>(second.take(4096))[0] = 1;
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(third.map(fd, 0, g, 1, test_address + 2 * g.mapped_bytes()));   // both parts are in use
        _exit(status_of(grandchild) == 0 ? 0 : 3);
    }
    EXPECT_EQ(status_of(child), 0);
    // The dead child's part is taken over, empty.
    const pid_t next = fork();
    if (next == 0) {
        heap::Slices again;
        if (!again.map(fd, 0, g, 1, test_address + g.mapped_bytes())) _exit(1);
        if (again.own != again.slice(1) + g.part_bytes() || again.own_head().taken != 0) _exit(2);
        _exit(static_cast<char*>(again.take(4096))[0] != 0);
    }
    EXPECT_EQ(status_of(next), 0);
    os::unmap(first.base, g.mapped_bytes());
    close(fd);
}

TEST(Geometry, FitsTheAddresses) {
    for (int ranks : {1, 2, 3, 100, 256, 257, 1024})
        for (int parts : {1, 4}) {
            const heap::Geometry g = heap::Geometry::of(ranks, parts);
            EXPECT_LE(g.bytes(), heap::all_slices_bytes);
            EXPECT_LE(g.mapped_bytes(), heap::all_slices_bytes);
            EXPECT_EQ(g.large_bytes(), ranks <= 100 ? heap::most_large_bytes : g.large_bytes());
            EXPECT_LE(g.part_bytes(), heap::largest_part_bytes);
            EXPECT_GE(g.part_bytes(), 8ull << 30);
        }
}

// ---- blocks that others return; what is live

TEST(Returned, EveryBlockComesOnce) {
    constexpr int threads = 4, each = 20000;
    struct Block {
        std::atomic<uint64_t> link;
        int value;
    };
    heap::Returned list;
    std::vector<Block> blocks(threads * each);
    std::vector<std::thread> others;
    for (int t = 0; t < threads; ++t)
        others.emplace_back([&, t] {
            for (int i = 0; i < each; ++i) {
                Block& b = blocks[static_cast<size_t>(t * each + i)];
                b.value = 1;
                list.push(&b);
            }
        });
    int came = 0;
    while (came < threads * each)
        list.take_all([&](void* p) {
            ASSERT_EQ(static_cast<Block*>(p)->value++, 1);
            ++came;
        });
    for (std::thread& t : others) t.join();
    EXPECT_TRUE(list.empty());
}

TEST(LiveBlocks, AreWhatWasAddedAndNotRemoved) {
    heap::LiveBlocks live;
    std::mt19937 random(3);
    std::vector<bool> there(3000);
    uint64_t bytes = 0;
    const auto at = [](size_t i) { return reinterpret_cast<void*>(heap::heap_address + i * 64); };
    size_t removed = 0;
    EXPECT_FALSE(live.remove(at(1), &removed));
    for (int i = 0; i < 100000; ++i) {
        const size_t k = random() % there.size();
        if (there[k] || random() % 3 == 0) {
            ASSERT_EQ(live.remove(at(k), &removed), there[k]);
            if (there[k]) bytes -= removed;
            ASSERT_TRUE(!there[k] || removed == k);
            there[k] = false;
        } else {
            ASSERT_TRUE(live.add(at(k), k));
            bytes += k;
            there[k] = true;
        }
        ASSERT_EQ(live.bytes(), bytes);
    }
    live.clear([&](void* p, size_t) { there[(reinterpret_cast<uint64_t>(p) - heap::heap_address) / 64].flip(); });
    for (bool b : there) EXPECT_FALSE(b);
}

}  // namespace
