// One contract suite over every wire: what p2p/ relies on, whichever way the bytes go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "wire/null/null.hpp"
#include "wire/shm/shm.hpp"
#include "wire/sock/sock.hpp"

using namespace weft;
using wire::BulkRef;
using wire::Cell;
using wire::Header;

namespace {

// Two ends of a wire in one process, and whether what is sent arrives.
struct ShmPair {
    static constexpr bool delivers = true;
    static constexpr size_t largest_bulk = wire::shm::largest_chunk;
    explicit ShmPair(bool claim_lines = false)
        : bytes(wire::shm::Layout{2}.bytes()), memory(aligned_alloc(4096, bytes), free) {
        memset(memory.get(), 0, bytes);
        EXPECT_EQ(a.open(static_cast<char*>(memory.get()), 2, 0, false, claim_lines), Err::ok);
        EXPECT_EQ(b.open(static_cast<char*>(memory.get()), 2, 1, false, claim_lines), Err::ok);
    }
    ~ShmPair() {
        a.close();
        b.close();
    }
    size_t bytes;
    std::unique_ptr<void, void (*)(void*)> memory;
    wire::shm::Shm a, b;
    int peer_of_a = 1;
};
struct SockPair {
    static constexpr bool delivers = true;
    static constexpr size_t largest_bulk = wire::sock::largest_chunk;
    SockPair() {
        wire::sock::Key key;
        EXPECT_TRUE(os::random_bytes(&key, sizeof key));
        EXPECT_EQ(a.open(key, 2, 0), Err::ok);
        EXPECT_EQ(b.open(key, 2, 1), Err::ok);
        EXPECT_EQ(a.chunk_limit, largest_bulk);
    }
    ~SockPair() {
        a.close();
        b.close();
    }
    wire::sock::Sock a, b;
    int peer_of_a = 1;
};
struct NullPair {
    static constexpr bool delivers = false;
    static constexpr size_t largest_bulk = wire::null::Null::bulk_bytes;
    wire::null::Null a{}, b{};
    int peer_of_a = 1;
};

struct Message {
    int peer;
    Header header;
    std::string payload, bulk;
};
struct Collector {
    std::vector<Message>* all;
    bool accept = true;
    bool take(uint64_t, const Cell&) { return false; }
    bool arrive(int peer, const Header& h, const char* payload, const char* bulk) {
        if (!accept) return false;
        Message m{peer, h, std::string(payload, h.bytes), ""};
        if (h.flags & wire::has_bulk) {
            BulkRef ref;
            memcpy(&ref, payload, sizeof ref);
            m.bulk.assign(bulk, ref.bytes);
        }
        all->push_back(m);
        return true;
    }
};
static_assert(wire::Sink<Collector>);

template <class P>
struct WireContract : testing::Test {
    std::unique_ptr<P> pair = std::make_unique<P>();
    std::vector<Message> got;

    bool send(uint8_t kind, int tag, const std::string& payload) {
        Cell* c = pair->a.reserve(pair->peer_of_a);
        if (c == nullptr) return false;
        memcpy(c->payload, payload.data(), payload.size());
        pair->a.commit(pair->peer_of_a, c, Header{kind, static_cast<uint8_t>(payload.size()), 0, 5, tag, 77});
        return true;
    }
    bool send_bulk(int tag, const std::string& data) {
        Cell* c = pair->a.reserve(pair->peer_of_a);
        if (c == nullptr) return false;
        BulkRef ref;
        char* to = pair->a.reserve_bulk(pair->peer_of_a, data.size(), &ref);
        if (to == nullptr) {
            pair->a.discard(pair->peer_of_a, c);
            return false;
        }
        EXPECT_EQ(ref.bytes, data.size());
        memcpy(to, data.data(), data.size());
        memcpy(c->payload, &ref, sizeof ref);
        pair->a.commit(pair->peer_of_a, c, Header{9, sizeof ref, wire::has_bulk, 5, tag, 77});
        return true;
    }
    bool poll(bool accept = true) { return pair->b.poll(Collector{&got, accept}); }
};

using Wires = testing::Types<ShmPair, SockPair, NullPair>;
TYPED_TEST_SUITE(WireContract, Wires);

TYPED_TEST(WireContract, HeaderAndPayloadArriveWholeAndInOrder) {
    for (int i = 0; i <= wire::inline_bytes; ++i)
        ASSERT_TRUE(this->send(static_cast<uint8_t>(1 + i % 7), i - 20, std::string(static_cast<size_t>(i), static_cast<char>('a' + i % 26))));
    while (this->poll()) {}
    if (!TypeParam::delivers) {
        EXPECT_TRUE(this->got.empty());
        return;
    }
    ASSERT_EQ(this->got.size(), static_cast<size_t>(wire::inline_bytes) + 1);
    for (int i = 0; i <= wire::inline_bytes; ++i) {
        const Message& m = this->got[static_cast<size_t>(i)];
        EXPECT_EQ(m.peer, 0);
        EXPECT_EQ(m.header.kind, 1 + i % 7);
        EXPECT_EQ(m.header.tag, i - 20);
        EXPECT_EQ(m.header.source, 5);
        EXPECT_EQ(m.header.context, 77u);
        EXPECT_EQ(m.payload, std::string(static_cast<size_t>(i), static_cast<char>('a' + i % 26)));
    }
}

TYPED_TEST(WireContract, DiscardedCellsAreNeverSeen) {
    Cell* c = this->pair->a.reserve(1);
    ASSERT_NE(c, nullptr);
    BulkRef ref;
    ASSERT_NE(this->pair->a.reserve_bulk(1, 100, &ref), nullptr);
    this->pair->a.discard(1, c);
    EXPECT_FALSE(this->poll());
    ASSERT_TRUE(this->send(3, 1, "x"));
    while (this->poll()) {}
    if (TypeParam::delivers) {
        ASSERT_EQ(this->got.size(), 1u);
        EXPECT_EQ(this->got[0].payload, "x");
    }
}

TYPED_TEST(WireContract, BulkOfEverySizeArrives) {
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        const size_t n = 1 + random() % TypeParam::largest_bulk;
        std::string data(n, 0);
        for (char& x : data) x = static_cast<char>(random());
        while (!this->send_bulk(i, data)) ASSERT_TRUE(this->poll());
        if (i % 3 == 0) this->poll();
        if (!TypeParam::delivers) continue;
        while (this->poll()) {}
        ASSERT_EQ(this->got.back().header.tag, i);
        ASSERT_EQ(this->got.back().bulk, data);
    }
}

TYPED_TEST(WireContract, FullMeansAgainLaterAndLosesNothing) {
    int sent = 0;
    while (sent < 100000 && this->send(2, sent, "12345678")) ++sent;
    if (!TypeParam::delivers) {
        EXPECT_EQ(sent, 100000);
        return;
    }
    EXPECT_GE(sent, 64);
    EXPECT_EQ(this->pair->a.reserve(1), nullptr);
    for (int more = 0; more < 1000; ++more) {
        while (!this->send(2, sent, "12345678")) ASSERT_TRUE(this->poll());
        ++sent;
    }
    while (this->poll()) {}
    ASSERT_EQ(this->got.size(), static_cast<size_t>(sent));
    for (int i = 0; i < sent; ++i) ASSERT_EQ(this->got[static_cast<size_t>(i)].header.tag, i);
}

TYPED_TEST(WireContract, WhatTheSinkLeavesIsOfferedAgain) {
    ASSERT_TRUE(this->send(2, 1, "first"));
    ASSERT_TRUE(this->send(2, 2, "second"));
    EXPECT_FALSE(this->poll(false));
    EXPECT_TRUE(this->got.empty());
    while (this->poll()) {}
    if (TypeParam::delivers) {
        ASSERT_EQ(this->got.size(), 2u);
        EXPECT_EQ(this->got[0].payload, "first");
    }
}

// ---- the shared-memory wire alone

// Litmus of commit/poll: whatever the interleaving, a message that is seen is whole, in order, and seen once.
void stream_is_whole_and_in_order(bool claim_lines) {
    ShmPair pair(claim_lines);
    constexpr int messages = 200000;
    std::thread sender([&] {
        std::mt19937 random(3);
        for (int i = 0; i < messages;) {
            Cell* c = pair.a.reserve(1);
            if (c == nullptr) {
                os::yield_cpu();
                continue;
            }
            Header h{1, 8, 0, 0, i, 0};
            BulkRef ref{};
            if (i % 16 == 0) {
                const size_t n = 8 + random() % 5000;
                char* to = pair.a.reserve_bulk(1, n, &ref);
                if (to == nullptr) {
                    pair.a.discard(1, c);
                    os::yield_cpu();
                    continue;
                }
                memset(to, i & 0xff, n);
                h.flags = wire::has_bulk;
            } else {
                const uint32_t words[2] = {static_cast<uint32_t>(i), ~static_cast<uint32_t>(i)};
                memcpy(c->payload, words, sizeof words);
            }
            if (h.flags != 0) memcpy(c->payload, &ref, sizeof ref);
            pair.a.commit(1, c, h);
            ++i;
        }
    });
    struct Check {
        int* next;
        wire::shm::Shm& shm;
        bool take(uint64_t, const Cell&) { return false; }
        bool arrive(int, const Header& h, const char* payload, const char* bulk) {
            EXPECT_EQ(h.tag, *next);
            uint32_t word[2];
            memcpy(word, payload, sizeof word);
            if (h.flags & wire::has_bulk) {
                const auto wanted = static_cast<char>(*next & 0xff);
                EXPECT_TRUE(std::all_of(bulk, bulk + (word[1]), [&](char c) { return c == wanted; }));
                shm.claim_lines(bulk, word[1]);
            } else {
                EXPECT_EQ(word[0], static_cast<uint32_t>(*next));
                EXPECT_EQ(word[1], ~static_cast<uint32_t>(*next));
            }
            ++*next;
            return true;
        }
    };
    int next = 0;
    while (next < messages) {
        if (!pair.b.poll(Check{&next, pair.b})) os::yield_cpu();
    }
    sender.join();
}
TEST(Shm, ConcurrentStreamIsWholeAndInOrder) { stream_is_whole_and_in_order(false); }
TEST(Shm, ConcurrentStreamIsWholeAndInOrderWhereLinesAreClaimed) { stream_is_whole_and_in_order(true); }

// Litmus of sleep/ring_doorbell: no message is slept through, however the two meet. A lost wake-up shows as a sleep that ends
// by its time-out.
TEST(Shm, NoWakeUpIsLost) {
    const size_t bytes = wire::shm::Layout{2}.bytes();
    std::unique_ptr<void, void (*)(void*)> memory(aligned_alloc(4096, bytes), free);
    memset(memory.get(), 0, bytes);
    if (!os::register_fence()) GTEST_SKIP() << "membarrier is denied here; sleeps are then bounded to a millisecond";
    wire::shm::Shm a, b;
    ASSERT_EQ(a.open(static_cast<char*>(memory.get()), 2, 0, true), Err::ok);
    ASSERT_EQ(b.open(static_cast<char*>(memory.get()), 2, 1, true), Err::ok);
    constexpr int rounds = 3000;
    std::atomic<int> seen{0};
    std::thread sender([&] {
        std::mt19937 random(5);
        for (int i = 0; i < rounds; ++i) {
            while (seen.load() != i) os::yield_cpu();
            for (unsigned spin = random() % 3000; spin > 0; --spin) __builtin_ia32_pause();
            a.commit(1, a.reserve(1), Header{1, 0, 0, 0, i, 0});
        }
    });
    struct Count {
        int* n;
        bool take(uint64_t, const Cell&) { return false; }
        bool arrive(int, const Header&, const char*, const char*) {
            ++*n;
            return true;
        }
    };
    constexpr uint32_t timeout_us = 20'000'000;
    uint64_t longest_ns = 0;   // of one sleep: beside a busy neighbour thousands of short ones may take long together
    int n = 0;
    while (n < rounds) {
        const uint64_t start = os::now_ns();
        const uint32_t seen_word = b.sleep_prepare();
        if (!b.poll(Count{&n})) b.sleep(seen_word, timeout_us);
        b.sleep_end();
        longest_ns = std::max(longest_ns, os::now_ns() - start);
        b.poll(Count{&n});
        seen.store(n);
    }
    sender.join();
    EXPECT_LT(longest_ns, uint64_t{timeout_us} * 1000) << "a sleep ended by its time-out";
    a.close();
    b.close();
}

// After a sleep writers go on ringing, so that the next sleep needs no fence, until messages come without one.
TEST(Shm, PollingResumesWithTraffic) {
    const size_t bytes = wire::shm::Layout{2}.bytes();
    std::unique_ptr<void, void (*)(void*)> memory(aligned_alloc(4096, bytes), free);
    memset(memory.get(), 0, bytes);
    wire::shm::Shm a, b;
    const bool can_fence = os::register_fence();
    ASSERT_EQ(a.open(static_cast<char*>(memory.get()), 2, 0, can_fence), Err::ok);
    ASSERT_EQ(b.open(static_cast<char*>(memory.get()), 2, 1, can_fence), Err::ok);
    const auto polled = [&] { return a.to(1).control->polled.load(); };
    std::vector<Message> got;
    const auto sends = [&](int n) {
        for (int i = 0; i < n; ++i) {
            a.commit(1, a.reserve(1), Header{1, 0, 0, 0, i, 0});
            b.poll(Collector{&got});
        }
    };
    EXPECT_EQ(polled(), 1u);
    for (int sleeps = 0; sleeps < 3; ++sleeps) {
        const uint32_t seen = b.sleep_prepare();
        EXPECT_EQ(polled(), 0u);
        sends(1);
        b.sleep(seen, 20'000'000);  // the bell has been rung: returns at once
        b.sleep_end();
        EXPECT_EQ(polled(), 0u);
    }
    sends(wire::shm::ring_cells + 16);
    EXPECT_EQ(polled(), 1u);
    EXPECT_EQ(got.size(), 3u + wire::shm::ring_cells + 16);
    a.close();
    b.close();
}

// With more peers than are always polled, a writer rings once and is polled from then on; idle rings are left again.
TEST(Shm, ManyPeersRingTheBell) {
    if (!os::register_fence()) GTEST_SKIP() << "membarrier is denied here; every ring is then polled";
    constexpr int ranks = 40;
    const size_t bytes = wire::shm::Layout{ranks}.bytes();
    std::unique_ptr<void, void (*)(void*)> memory(calloc(1, bytes + 4096), free);
    char* base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.get()) + 4095) & ~uintptr_t{4095});
    std::vector<wire::shm::Shm> all(ranks);
    for (int i = 0; i < ranks; ++i) ASSERT_EQ(all[static_cast<size_t>(i)].open(base, ranks, i, true), Err::ok);
    std::vector<Message> got;
    wire::shm::Shm& me = all[0];
    EXPECT_FALSE(me.poll(Collector{&got}));
    EXPECT_EQ(me.active_count, 0);
    for (int i = 1; i < ranks; ++i) {
        auto& s = all[static_cast<size_t>(i)];
        s.commit(0, s.reserve(0), Header{1, 0, 0, i, i, 0});
    }
    while (me.poll(Collector{&got})) {}
    EXPECT_EQ(got.size(), static_cast<size_t>(ranks) - 1);
    EXPECT_EQ(me.active_count, ranks - 1);
    // Only rank 7 goes on: the others' rings are left, and found again when they speak.
    for (int i = 0; i < 40000; ++i) {
        all[7].commit(0, all[7].reserve(0), Header{1, 0, 0, 7, i, 0});
        me.poll(Collector{&got});
    }
    EXPECT_LE(me.active_count, wire::shm::Shm::always_polled);
    got.clear();
    all[23].commit(0, all[23].reserve(0), Header{1, 0, 0, 23, 99, 0});
    while (me.poll(Collector{&got})) {}
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].header.tag, 99);
    for (auto& s : all) s.close();
}

}  // namespace
