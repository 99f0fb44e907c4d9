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

// Partitions of three bytes, each behind its mark. Two threads of the receiver look at all: whoever claims one reads it, and turns its mark
// into that of one in place; one of them ends the epoch when it sees all such marks, and starts the next when the other has gone. Each is
// read once an epoch, whole, and no mark of a later epoch is lost.
TEST(Board, EachStagedPartitionIsTakenOnce) {
    constexpr uint32_t epochs = 500, pitch = 8;
    OwnBoard b = make(0);
    std::atomic<uint32_t> claims[partitions] = {}, taken[partitions] = {}, gone{0};
    const auto mark = [&](uint32_t e, uint32_t i) -> std::atomic<uint32_t>& { return mark_at(b->row(e), pitch, i); };
    std::thread sender([&] {
        for (uint32_t e = 1; e <= epochs; ++e) {
            while (!b->has_room(e)) std::this_thread::yield();
            for (uint32_t i = 0; i < partitions; ++i) {
                memset(b->area(e) + pitch * i, static_cast<int>((e + i) % 100), 3);
                mark(e, i).store(mark_of(e, Where::staged), std::memory_order_release);
            }
        }
    });
    // True when all are in place.
    const auto take = [&](uint32_t e) {
        uint32_t in_place = 0;
        for (uint32_t i = 0; i < partitions; ++i) {
            const uint32_t seen = mark(e, i).load(std::memory_order_acquire);
            in_place += seen == mark_of(e, Where::in_place);
            uint32_t before = claims[i].load(std::memory_order_relaxed);
            if (seen != mark_of(e, Where::staged) || before == e || !claims[i].compare_exchange_strong(before, e, std::memory_order_relaxed)) continue;
            for (uint32_t k = 0; k < 3; ++k) EXPECT_EQ(b->area(e)[pitch * i + k], static_cast<char>((e + i) % 100));
            taken[i].fetch_add(1, std::memory_order_relaxed);
            mark(e, i).store(mark_of(e, Where::in_place), std::memory_order_release);
        }
        return in_place == partitions;
    };
    std::thread other([&] {
        for (uint32_t e = 1; e <= epochs; gone.store(e++, std::memory_order_release))
            while (b->done.load(std::memory_order_acquire) != e) {
                if (b->open.load(std::memory_order_acquire) == e) take(e);
                std::this_thread::yield();
            }
    });
    for (uint32_t e = 1; e <= epochs; ++e) {
        b->start_epoch(e);
        while (!take(e)) std::this_thread::yield();
        b->end_epoch(e);
        while (gone.load(std::memory_order_acquire) != e) std::this_thread::yield();
    }
    other.join();
    sender.join();
    for (auto& n : taken) EXPECT_EQ(n.load(), epochs);
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
