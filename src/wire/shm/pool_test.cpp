// The bookkeeping of a pool alone. What both sides make of it is in bulk_test.cpp.
#include "wire/shm/pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

using namespace weft;
using namespace weft::wire::shm;

namespace {

// A pool with the rings of its pairs, of which there are the positions only.
struct Pairs {
    struct Chunk {
        uint32_t from, to, position;   // the bytes, and the position after the cell that refers to them
    };
    struct Ring {
        uint32_t tail;
        std::atomic<uint32_t> consumed;
        std::deque<Chunk> unread;
        Pool::Pair pair;
    };
    Pool pool;
    std::vector<Ring> rings;

    explicit Pairs(int n, uint32_t start = 0) : rings(static_cast<size_t>(n)) {
        EXPECT_EQ(pool.open(n), Err::ok);
        for (int i = 0; i < n; ++i) {
            rings[static_cast<size_t>(i)].tail = start;
            rings[static_cast<size_t>(i)].consumed = start;
            pair(i).tail = &ring(i).tail;
            pair(i).consumed = &ring(i).consumed;
            pool.connect(pair(i));
        }
    }
    ~Pairs() { pool.close(); }
    Ring& ring(int i) { return rings[static_cast<size_t>(i)]; }
    Pool::Pair& pair(int i) { return ring(i).pair; }
    uint32_t held(int i) { return pair(i).held; }

    bool send(int i, uint32_t bytes) {
        const uint32_t at = pool.reserve(pair(i), bytes);
        if (at == Pool::nowhere) return false;
        EXPECT_EQ(at % 64, 0u);
        EXPECT_EQ(at / block_bytes, (at + bytes - 1) / block_bytes) << "crosses a block";
        EXPECT_LE(at + bytes, Pool::blocks_for(static_cast<int>(rings.size())) * block_bytes);
        for (const Ring& other : rings)
            for (const Chunk& c : other.unread) EXPECT_TRUE(at >= c.to || at + bytes <= c.from) << "an unread chunk is written to";
        Ring& r = ring(i);
        ++r.tail;
        pool.commit(pair(i));
        r.unread.push_back({at, at + bytes, r.tail});
        return true;
    }
    void send_cells(int i, uint32_t n) { ring(i).tail += n; }
    // All cells before `position`.
    void consume(int i, uint32_t position) {
        Ring& r = ring(i);
        r.consumed = position;
        while (!r.unread.empty() && static_cast<int32_t>(position - r.unread.front().position) >= 0) r.unread.pop_front();
    }
    void consume_all(int i) { consume(i, ring(i).tail); }
    uint32_t fill(int i) {
        uint32_t n = 0;
        while (n < 1000 && send(i, block_bytes)) ++n;
        return n;
    }
};

TEST(Pool, OneSlowReaderTakesHalfOfWhatIsFreeAtMost) {
    Pairs p(4);
    EXPECT_EQ(p.fill(0), 1 + spare_blocks / 2);
    EXPECT_EQ(p.fill(1), 1 + spare_blocks / 4);
    EXPECT_TRUE(p.pool.is_sound());
    // The others go on for ever.
    for (int k = 0; k < 1000; ++k) {
        ASSERT_TRUE(p.send(2, block_bytes));
        p.consume_all(2);
    }
    EXPECT_EQ(p.held(2), 1u);
    EXPECT_EQ(p.held(0), 1 + spare_blocks / 2);
}

TEST(Pool, EachPairHasItsBlockWithAllOthersHeld) {
    constexpr int pairs = 40;
    Pairs p(pairs);
    for (int i = 0; i + 1 < pairs; ++i) EXPECT_GE(p.fill(i), 1u);
    EXPECT_EQ(p.fill(pairs - 1), 1u);
    EXPECT_EQ(p.pool.free(), 0u);
    for (int i = 0; i < pairs; ++i) EXPECT_FALSE(p.send(i, 1));
    for (int i = pairs - 1; i >= 0; --i) {
        p.consume_all(i);
        EXPECT_TRUE(p.send(i, block_bytes));
        EXPECT_TRUE(p.pool.is_sound());
    }
}

TEST(Pool, BlocksOfIdlePairsAreTakenBack) {
    Pairs p(3);
    const uint32_t most = p.fill(0), less = p.fill(1);
    EXPECT_LT(less, most);
    p.consume_all(0);          // it sends nothing more, so it does not look itself
    EXPECT_EQ(p.held(0), most);
    EXPECT_GT(p.fill(1), 0u);  // looks at pair 0
    EXPECT_EQ(p.held(0), 1u);
    EXPECT_EQ(p.held(1), most);
}

// One message at a time goes round a few blocks, and none is used again at once.
TEST(Pool, ABlockThatCameBackRests) {
    Pairs p(2);
    std::vector<uint32_t> blocks;
    for (size_t k = 0; k < 100; ++k) {
        const uint32_t first = p.pool.reserve(p.pair(1), 20000);
        EXPECT_EQ(first % block_bytes, 0u);
        blocks.push_back(first / block_bytes);
        ASSERT_TRUE(p.send(1, 20000));
        p.consume_all(1);
        EXPECT_EQ(p.held(1), 1u);
        if (k >= resting_blocks) { EXPECT_EQ(blocks[k], blocks[k - resting_blocks]); }
    }
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(std::unique(blocks.begin(), blocks.end()) - blocks.begin(), resting_blocks);
}

TEST(Pool, WhatIsNotCommittedIsNotTaken) {
    Pairs p(2);
    const uint32_t at = p.pool.reserve(p.pair(1), 5000);
    EXPECT_EQ(p.pool.reserve(p.pair(1), 64), at);
    ASSERT_TRUE(p.send(1, 30000));
    ASSERT_NE(p.pool.reserve(p.pair(1), 5000), Pool::nowhere);   // of a second block
    p.consume_all(1);
    EXPECT_EQ(p.fill(1), 1 + spare_blocks / 2);
}

// A pair that has sent more cells since its last chunk than a position counts.
TEST(Pool, APositionOfLongAgoCountsAsRead) {
    Pairs p(2);
    for (const uint32_t cells : {1u << 30, 1u << 31, (1u << 31) + 100, UINT32_MAX - 200}) {
        EXPECT_EQ(p.fill(1), 1 + spare_blocks / 2) << cells;
        EXPECT_EQ(p.fill(0), 1 + spare_blocks / 4) << cells;
        for (int i : {0, 1}) {
            p.consume_all(i);
            p.send_cells(i, cells);
            p.consume(i, p.ring(i).tail - 3);    // three are on their way
        }
        EXPECT_EQ(p.fill(1), 1 + spare_blocks / 2) << cells;
        for (int i : {0, 1}) {
            p.consume_all(i);
            ASSERT_TRUE(p.send(i, 1));
            p.consume_all(i);
        }
    }
}

TEST(Pool, HoldsWhateverTheOrder) {
    for (unsigned seed = 0; seed < 12; ++seed) {
        std::mt19937 random(seed);
        const int pairs = 1 + static_cast<int>(random() % 9);
        Pairs p(pairs, seed % 2 != 0 ? UINT32_MAX - 500 : 0);
        const uint32_t largest = seed % 3 == 0 ? 500 : block_bytes;
        uint32_t sent = 0, refused = 0;
        for (int step = 0; step < 3000; ++step) {
            const int i = static_cast<int>(random() % static_cast<unsigned>(pairs));
            Pairs::Ring& r = p.ring(i);
            const uint32_t outstanding = r.tail - r.consumed.load();
            if (random() % 4 == 0) {
                p.consume(i, r.tail - static_cast<uint32_t>(random() % (outstanding + 1)));
            } else {
                const uint32_t train = 1 + random() % 6, bytes = 1 + random() % largest;
                const bool promised = random() % 2 != 0 && p.pool.has_room(p.pair(i), train, bytes);
                for (uint32_t k = 0; k < train && r.tail - r.consumed.load() < 64; ++k) {
                    const bool is_sent = p.send(i, k + 1 < train ? bytes : 1 + random() % bytes);
                    ASSERT_TRUE(is_sent || !promised) << "there was room for all";
                    if (is_sent) ++sent;
                    else ++refused;
                }
            }
            ASSERT_TRUE(p.pool.is_sound());
            if (HasFailure()) return;
        }
        EXPECT_GT(sent, 1000u);
        if (largest == block_bytes && pairs > 2) { EXPECT_GT(refused, 0u); }
    }
}

}  // namespace
