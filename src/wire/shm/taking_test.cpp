#include "wire/shm/taking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>


using namespace weft;
using wire::shm::Taking;

namespace {

// A stream of chunks from one writer, whose pace depends on how the lines of the chunk before were read.
struct Stream {
    static constexpr uint32_t chunk = 16384;
    Taking t{};
    uint64_t ns = 1000, ns_left, ns_taken;
    uint64_t taken_chunks = 0, chunks = 0;
    Stream(uint64_t left, uint64_t taken, Taking::Choice choice = Taking::automatic) : ns_left(left), ns_taken(taken) { t.start(choice); }
    void read(uint64_t bytes, bool waiting = true) {
        for (uint64_t at = 0; at < bytes; at += chunk) {
            ++chunks;
            taken_chunks += t.now;
            ns += t.now ? ns_taken : ns_left;
            t.read(this, chunk, waiting, &ns);
        }
    }
};

constexpr uint64_t mib = 1 << 20;

TEST(Taking, KeepsTheFasterWayWhicheverItBeganWith) {
    Stream faster_taken(2000, 500), faster_left(500, 800);
    faster_taken.read(16 * mib);
    faster_left.read(16 * mib);
    EXPECT_TRUE(faster_taken.t.now);
    EXPECT_FALSE(faster_left.t.now);
}

TEST(Taking, TrialsBecomeRare) {
    Stream s(500, 2000);
    s.read(16 * mib);
    const uint64_t chunks = s.chunks, taken = s.taken_chunks;
    s.read(65536 * mib);
    EXPECT_LT(static_cast<double>(s.taken_chunks - taken), 0.002 * static_cast<double>(s.chunks - chunks));
    EXPECT_GT(s.taken_chunks, taken) << "it never looked again";
}

TEST(Taking, FollowsAChangeOfTheMachine) {
    Stream s(500, 2000);
    s.read(8192 * mib);
    ASSERT_FALSE(s.t.now);
    std::swap(s.ns_left, s.ns_taken);
    s.read(8192 * mib);
    EXPECT_TRUE(s.t.now);
}

TEST(Taking, OnlyChunksThatWereWaitedForCount) {
    Stream s(2000, 500);
    const bool first = s.t.now;
    s.read(1024 * mib, false);
    EXPECT_EQ(s.t.now, first);
    EXPECT_TRUE(s.taken_chunks == 0 || s.taken_chunks == s.chunks) << "a trial without a sample";
}

TEST(Taking, ADifferenceOfLessThanAFifthChangesNothing) {
    Stream s(1000, 850);
    Stream t(850, 1000);
    const bool other = t.t.now;
    t.read(64 * mib);
    EXPECT_EQ(t.t.now, other);
    const bool first = s.t.now;
    s.read(64 * mib);
    EXPECT_EQ(s.t.now, first);
}

TEST(Taking, AFixedChoiceStays) {
    Stream taken(500, 2000, Taking::take), left(2000, 500, Taking::leave);
    taken.read(1024 * mib);
    left.read(1024 * mib);
    EXPECT_EQ(taken.taken_chunks, taken.chunks);
    EXPECT_EQ(left.taken_chunks, 0u);
}

// Every byte arrives, and none outside of what is copied is stored to, wherever both begin in a line.
void touches_nothing_else(void (Taking::*copy)(void*, const void*, size_t) const, Taking::Choice choice) {
    Taking t{};
    t.start(choice);
    constexpr size_t room = 768;
    alignas(64) char from[room], to[room];
    for (size_t s = 64; s < 128; s += 5)
        for (size_t d = 64; d < 128; d += 7)
            for (size_t n : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{130}, size_t{300}, 256 + 128 - d, 512 + 128 - d}) {
                for (size_t i = 0; i < room; ++i) from[i] = static_cast<char>(i * 7 % 255 + 1);   // never 0
                memset(to, 0x55, room);
                const std::vector<char> before(from, from + room);
                (t.*copy)(to + d, from + s, n);
                ASSERT_TRUE(std::equal(to + d, to + d + n, before.begin() + static_cast<long>(s))) << s << ' ' << d << ' ' << n;
                for (size_t i = 0; i < room; ++i) {
                    ASSERT_TRUE(to[i] == 0x55 || (i >= d && i < d + n)) << i;
                    ASSERT_TRUE(from[i] == before[i] || (i >= s && i < s + n)) << i;
                }
                if (choice == Taking::leave) {
                    ASSERT_TRUE(std::equal(from, from + room, before.begin()));
                    continue;
                }
                for (size_t line = s / 64; n != 0 && line <= (s + n - 1) / 64; ++line) {
                    const size_t lo = std::max(line * 64, s), hi = std::min(line * 64 + 64, s + n);
                    ASSERT_FALSE(std::equal(from + lo, from + hi, before.begin() + static_cast<long>(lo)))
                        << "line " << line << " was not taken";
                }
            }
}

TEST(Taking, CopiesTouchNothingElse) {
    touches_nothing_else(&Taking::copy, Taking::take);
    touches_nothing_else(&Taking::copy_past_caches, Taking::take);
    touches_nothing_else(&Taking::copy_past_caches, Taking::leave);
}

}  // namespace
