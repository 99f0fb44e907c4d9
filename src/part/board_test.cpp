// Litmus tests of a board: both sides run freely against each other.
#include "part/board.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

using namespace weft::part;

namespace {

constexpr int32_t partitions = 5;
constexpr uint32_t stride = 64;

struct BoardFree {
    void operator()(Board* b) const { free(b); }
};
using OwnBoard = std::unique_ptr<Board, BoardFree>;

OwnBoard make(uint64_t area) {
    const size_t size = Board::size(partitions, stride, area);
    void* memory = aligned_alloc(64, (size + 63) / 64 * 64);
    memset(memory, 0, size);
    auto* b = new (memory) Board;
    b->partitions = partitions;
    b->stride = stride;
    b->row_bytes = Board::row_size(partitions, stride);
    b->area_bytes = area;
    return OwnBoard(b);
}

// The sender stages each epoch as soon as there is room, so it is up to an epoch ahead; or it copies in place when it finds the epoch open.
TEST(Board, NothingUnseenIsOverwritten) {
    constexpr uint32_t epochs = 20000;
    OwnBoard b = make(64 * partitions);
    uint32_t buffer[partitions][16] = {};
    std::thread sender([&] {
        for (uint32_t e = 1; e <= epochs; ++e) {
            while (!b->has_room(e)) std::this_thread::yield();
            for (int32_t i = 0; i < partitions; ++i) {
                const bool in_place = b->open.load(std::memory_order_acquire) == e;
                char* to = in_place ? reinterpret_cast<char*>(buffer[i]) : b->area(e) + 64 * i;
                const uint32_t value = e * 10 + static_cast<uint32_t>(i);
                memcpy(to, &value, sizeof value);
                mark_at(b->row(e), stride, static_cast<uint32_t>(i)).store(mark_of(e, in_place ? Where::in_place : Where::staged), std::memory_order_release);
            }
        }
    });
    uint32_t staged = 0;
    for (uint32_t e = 1; e <= epochs; ++e) {
        if (e % 3 == 0) std::this_thread::yield();
        b->start_epoch(e);
        for (int32_t i = 0; i < partitions; ++i) {
            uint32_t mark;
            while ((mark = mark_at(b->row(e), stride, static_cast<uint32_t>(i)).load(std::memory_order_acquire)) >> 2 != e) std::this_thread::yield();
            uint32_t value;
            const bool in_place = mark == mark_of(e, Where::in_place);
            memcpy(&value, in_place ? reinterpret_cast<char*>(buffer[i]) : b->area(e) + 64 * i, sizeof value);
            ASSERT_EQ(value, e * 10 + static_cast<uint32_t>(i));
            staged += !in_place;
        }
        b->end_epoch(e);
    }
    sender.join();
    EXPECT_LE(staged, epochs * partitions);
}

// The receiver says that it waits for a partition, and looks again; the sender marks it, and asks. One of them must see the other.
TEST(Board, AwaitedIsSeenOrMarkIs) {
    constexpr uint32_t epochs = 20000;
    OwnBoard b = make(0);
    std::atomic<uint32_t> rung{0}, asked{0}, ended{0};
    std::thread sender([&] {
        for (uint32_t e = 1; e <= epochs; ++e) {
            mark_at(b->row(0), stride, 1).store(mark_of(e, Where::in_place), std::memory_order_release);
            if (b->is_awaited(1)) rung.store(e, std::memory_order_relaxed);
            asked.store(e, std::memory_order_release);
            while (ended.load(std::memory_order_acquire) != e) std::this_thread::yield();
        }
    });
    for (uint32_t e = 1; e <= epochs; ++e) {
        b->await(1);
        const bool seen = mark_at(b->row(0), stride, 1).load(std::memory_order_acquire) == mark_of(e, Where::in_place);
        while (asked.load(std::memory_order_acquire) != e) std::this_thread::yield();
        ASSERT_TRUE(seen || rung.load(std::memory_order_relaxed) == e) << e;
        b->await(0);
        ended.store(e, std::memory_order_release);
    }
    sender.join();
}

}  // namespace
