#include "lane/ways.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

using namespace weft;
using lane::Contest;
using lane::Ways;
using wire::shm::Blocks;
using wire::shm::Transfer;

namespace {

// Pieces and halves take turns until one is known to be the better: soon where it is by far.
TEST(Contest, EndsSoonWhereOneWayIsFarBetter) {
    Contest c{};
    for (const bool way : {false, false, false, false, false, true, true, true, true, true}) {
        EXPECT_FALSE(c.over());
        EXPECT_EQ(c.halves(), way);
        c.report(way, 1 << 20, way ? 160'000 : 100'000);
    }
    EXPECT_TRUE(c.over());
    EXPECT_FALSE(c.halves());
    EXPECT_FALSE(c.asking_pays(true) || c.asking_pays(false));
}

TEST(Contest, TriesLongerWhereBothAreNear) {
    Contest c{};
    for (uint32_t k = 0; k < 2 * Contest::trials; ++k) {
        EXPECT_FALSE(c.over());
        const bool way = k / Contest::in_a_row % 2 == 1;
        EXPECT_EQ(c.halves(), way);
        c.report(way, 1 << 20, way ? 95'000 : 100'000);
    }
    EXPECT_TRUE(c.over());
    EXPECT_TRUE(c.halves());
    EXPECT_FALSE(c.asking_pays(true)) << "not for a twentieth";
    EXPECT_TRUE(c.asking_pays(false));
}

TEST(Contest, LongTrialsCountForMore) {
    Contest c{};
    for (const bool way : {false, false, true, true}) {
        EXPECT_FALSE(c.over());
        EXPECT_EQ(c.halves(), way);
        c.report(way, Contest::long_bytes, way ? 1'000'000 : 2'000'000);
    }
    EXPECT_TRUE(c.over());
}

// A machine that takes so many ns for each MiB by either way, and a lane that learns about it.
struct Machine {
    uint64_t pieces, halves;
    std::unique_ptr<Ways> ways = std::make_unique<Ways>();
    uint64_t now = 1;

    explicit Machine(uint64_t by_pieces, uint64_t by_halves, Ways::Choice choice = Ways::automatic)
        : pieces(by_pieces), halves(by_halves) {
        ways->start(choice);
    }
    // `n` messages of `bytes` accepted together; the way of the first. The receiver copies what it claims first, alone.
    Blocks go(uint64_t bytes, int n = 1, bool waited = false) {
        std::vector<std::unique_ptr<Transfer>> all;
        for (int i = 0; i < n; ++i) {
            all.push_back(std::make_unique<Transfer>());
            wire::shm::offer(*all[i], nullptr, bytes);
            wire::shm::accept(*all[i], nullptr, bytes, ways->begin(bytes, i > 0, now));
            all[i]->arrived.by[Transfer::receiver] = all[i]->blocks.of[Transfer::receiver];
        }
        for (int i = 0; i < n; ++i) {
            now += (bytes * (all[i]->blocks.any() ? halves : pieces)) >> 20;
            ways->end(*all[i], waited, i + 1 < n, false, now);
        }
        return all[0]->blocks;
    }
    bool unasked(uint64_t bytes) const { return (ways->unasked() >> Ways::size_of(bytes) & 1) != 0; }
};

TEST(Ways, SizesAreBinaryOrders) {
    EXPECT_EQ(Ways::size_of(1), 0);
    EXPECT_EQ(Ways::size_of(Ways::least), 0);
    EXPECT_EQ(Ways::size_of(2 * Ways::least - 1), 0);
    EXPECT_EQ(Ways::size_of(2 * Ways::least), 1);
    EXPECT_EQ(Ways::size_of(uint64_t{1} << 40), Ways::sizes - 1);
}

// Each size, alone and in a crowd, keeps the way that was the faster there, and of pieces its senders are told.
TEST(Ways, EachSizeLearnsByItself) {
    Machine m(100'000, 200'000);
    for (int k = 0; k < 20; ++k) m.go(128 * 1024);
    EXPECT_FALSE(m.go(128 * 1024).any());
    EXPECT_TRUE(m.unasked(128 * 1024));
    EXPECT_FALSE(m.unasked(256 * 1024)) << "nothing is known of that yet";
    m.pieces = 300'000;
    for (int k = 0; k < 20; ++k) m.go(256 * 1024);
    EXPECT_TRUE(m.go(256 * 1024).any());
    EXPECT_FALSE(m.unasked(256 * 1024));
}

TEST(Ways, ACrowdIsAnotherMatterThanOneMessageAlone) {
    Machine m(100'000, 200'000);
    for (int k = 0; k < 20; ++k) m.go(1 << 20, 1);
    EXPECT_FALSE(m.go(1 << 20).any());
    m.pieces = 300'000;
    for (int k = 0; k < 20; ++k) m.go(1 << 20, 8);
    const Blocks b = m.go(1 << 20, 8);
    EXPECT_EQ(b.of[Transfer::sender], Ways::most_in_crowd);
    EXPECT_EQ(b.of[Transfer::receiver], Ways::most_in_crowd);
    m.go(1 << 20);   // the way of a crowd, as the last one was one
    EXPECT_FALSE(m.go(1 << 20).any());
}

// What one size has been told to senders is not taken back.
TEST(Ways, BitsStay) {
    Machine m(100'000, 200'000);
    for (int k = 0; k < 20; ++k) m.go(128 * 1024);
    m.pieces = 1'000'000;
    for (int k = 0; k < 20; ++k) m.go(128 * 1024, 8);
    EXPECT_TRUE(m.go(128 * 1024, 8).any());
    EXPECT_TRUE(m.unasked(128 * 1024));
}

// A stream in which there is always one under way has busy times, too.
TEST(Ways, AStreamWithoutEndIsTimed) {
    Machine m(300'000, 100'000);
    auto one = [&] {
        auto t = std::make_unique<Transfer>();
        wire::shm::offer(*t, nullptr, 4 << 20);
        wire::shm::accept(*t, nullptr, 4 << 20, m.ways->begin(4 << 20, true, m.now));
        return t;
    };
    auto before = one();
    for (int k = 0; k < 400; ++k) {
        auto next = one();
        m.now += 4 * (before->blocks.any() ? m.halves : m.pieces);
        m.ways->end(*before, false, true, false, m.now);
        before = std::move(next);
    }
    EXPECT_TRUE(before->blocks.any());
}

// In an exchange, pieces bring what arrives first and halves what leaves; what counts is when both are over.
TEST(Ways, AnExchangeIsTimedToItsEnd) {
    Ways w{};
    w.start(Ways::automatic);
    uint64_t now = 1;
    auto exchange = [&] {
        Transfer t{};
        wire::shm::offer(t, nullptr, 1 << 20);
        wire::shm::accept(t, nullptr, 1 << 20, w.begin(1 << 20, true, now));
        const bool halves = t.blocks.any();
        w.end(t, false, true, true, now + (halves ? 100'000 : 80'000));
        EXPECT_TRUE(w.waits_for_leaving());
        w.sent_last(now += halves ? 105'000 : 170'000);
        EXPECT_FALSE(w.waits_for_leaving());
        return halves;
    };
    for (int k = 0; k < 20; ++k) exchange();
    EXPECT_TRUE(exchange());
}

// Of one message alone, each side claims a share; the side that waited gets more of the next one.
TEST(Ways, SharesAreBalanced) {
    Machine m(100'000, 100'000, Ways::halves);
    const uint64_t bytes = 512 * 1024;
    const Blocks first = m.go(bytes, 1, true);
    EXPECT_EQ(first.of[0] + first.of[1], bytes);
    const Blocks more = m.go(bytes, 1, true);
    EXPECT_EQ(more.of[0] + more.of[1], bytes);
    EXPECT_GT(more.of[Transfer::receiver], first.of[Transfer::receiver]);
    for (int k = 0; k < 100; ++k) m.go(bytes, 1, true);
    EXPECT_EQ(m.go(bytes, 1, false).of[Transfer::receiver], bytes * Ways::most_share / 64);
    for (int k = 0; k < 100; ++k) m.go(bytes, 1, false);
    EXPECT_EQ(m.go(bytes, 1, true).of[Transfer::receiver], bytes * Ways::least_share / 64);
    for (const uint64_t n : {uint64_t{1}, uint64_t{4096}, uint64_t{5000}, uint64_t{65537}, uint64_t{100} << 20}) {
        const Blocks b = m.go(n);
        EXPECT_GT(b.of[0], 0u) << n;
        EXPECT_GT(b.of[1], 0u) << n;
        EXPECT_LE(b.of[0] + b.of[1], Ways::most_alone + 8192) << n;
    }
}

TEST(Ways, AChoiceIsKept) {
    Machine never(300'000, 100'000, Ways::pieces), always(100'000, 300'000, Ways::halves);
    for (int k = 0; k < 20; ++k) {
        EXPECT_FALSE(never.go(1 << 20).any());
        EXPECT_TRUE(always.go(1 << 20, 1 + k % 3).any());
    }
    EXPECT_TRUE(never.unasked(128 * 1024));
    EXPECT_FALSE(always.unasked(128 * 1024));
}

}  // namespace
