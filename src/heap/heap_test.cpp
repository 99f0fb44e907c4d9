#include "heap/heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <unistd.h>
#include <vector>

#include "os/memory.hpp"

using namespace weft;

namespace {

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

TEST(Heap, SliceIsSharedAndCoalesces) {
    int fd = os::make_memfd("weft-test");
    ASSERT_GE(fd, 0);
    heap::Segment s;
    ASSERT_EQ(s.map(fd, 2, 1, 12345, !WEFT_THREADS_PRESET), Err::ok);  // ThreadSanitizer owns the common address
    if (!s.same_address) GTEST_SKIP() << "the machine denies the common address; private blocks are tested above";
    heap::Heap h;
    h.open(&s);
    std::mt19937 random(7);
    std::vector<std::pair<char*, size_t>> live;
    for (int i = 0; i < 2000; ++i) {
        if (live.size() < 20 || random() % 2) {
            size_t n = random() % 50000;
            auto* p = static_cast<char*>(h.allocate(n, 1u << (random() % 17)));
            ASSERT_NE(p, nullptr);
            ASSERT_TRUE(s.in_heap(p));
            ASSERT_EQ(s.owner(p), 1);
            for (auto& [q, m] : live) ASSERT_TRUE(p + n <= q || q + m <= p);
            if (n) p[0] = p[n - 1] = 1;
            live.push_back({p, n});
        } else {
            size_t k = random() % live.size();
            ASSERT_EQ(h.release(live[k].first), Err::ok);
            live.erase(live.begin() + static_cast<long>(k));
        }
    }
    for (auto& [p, n] : live) ASSERT_EQ(h.release(p), Err::ok);
    EXPECT_EQ(h.bytes_in_use(), 0u);
    // All free again: one block of the whole slice fits.
    void* whole = h.allocate(heap::slice_bytes);
    EXPECT_EQ(whole, s.slice(1));
    EXPECT_EQ(h.allocate(1), nullptr);
    EXPECT_EQ(h.release(s.slice(0)), Err::arg);
    h.close();
    s.unmap();
    close(fd);
}

TEST(Segment, AddressTakenMeansNoSharingButWiresWork) {
    int fd = os::make_memfd("weft-test");
    heap::Segment first, second;
    ASSERT_EQ(first.map(fd, 2, 0, 8192, !WEFT_THREADS_PRESET), Err::ok);
    ASSERT_EQ(second.map(fd, 2, 1, 8192, !WEFT_THREADS_PRESET), Err::ok);
    if (first.same_address) {
        EXPECT_FALSE(second.same_address);
    }
    first.wires[100] = 42;
    EXPECT_EQ(second.wires[100], 42);
    second.unmap();
    first.unmap();
    close(fd);
}

}  // namespace
