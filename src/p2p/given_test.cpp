// Ownership passing between ranks that are threads of one process, which share all memory: every address counts as one of the heap.
#include "p2p/given.hpp"

#include <sys/mman.h>

#include <cstring>
#include <random>

#include "heap/heap.hpp"
#include "p2p/ranks_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using obj::Status;
using obj::ThreadLevel;
using p2p::Envelope;
using p2p::Request;

struct alignas(64) Lines {
    char of_ranks[256] = {};   // of Segment: one mapping, so that ThreadSanitizer sees the lists
};

// Lets a rank share all memory. Every rank must have done so before the first give.
void share_all(Process& p, Lines& s) {
    p.segment->slices = reinterpret_cast<char*>(os::page_bytes);
    p.segment->shift = 47;
    p.segment->lines = s.of_ranks;
    p.lane->owned.open(p.heap, p.segment, {});
    p.lane->shm.tell_sharing(true);
    barrier(p);
}

void share_nothing(Process& p) {
    barrier(p);
    EXPECT_TRUE(p.lane->owned.is_sound());
    p.segment->slices = nullptr;
}

// The calls as the bindings make them.
Err give(Process& p, void* data, size_t n, Envelope e) {
    return p2p::give_inline(p, p.world, bytes(data, n), e) ? Err::ok : p2p::give_slow(p, p.world, bytes(data, n), e);
}
Err take(Process& p, void** data, size_t n, Envelope e, Status* s) {
    return p2p::take_inline(p, p.world, bytes(data, n), e, s) ? Err::ok : p2p::take_slow(p, p.world, bytes(data, n), e, s);
}

// Message `n` from a rank: its number, its sender, and its own address.
struct Note {
    uint64_t n;
    int32_t from;
    bool given;
    void* at;
};

void send_notes(Process& p, int to, int tag, int count, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
        const bool gives = random() % 2 == 0;
        Note here{static_cast<uint64_t>(i), p.world_rank, false, nullptr};
        if (!gives) {
            ASSERT_EQ(p2p::send(p, p.world, bytes(&here, sizeof here), {to, tag}, p2p::Mode::standard), Err::ok);
            continue;
        }
        auto* note = static_cast<Note*>(p2p::allocate_buffer(p, random() % 10000 + sizeof(Note)));
        ASSERT_NE(note, nullptr);
        *note = Note{here.n, here.from, true, note};
        if (random() % 2 == 0) {
            ASSERT_EQ(give(p, note, sizeof(Note), {to, tag}), Err::ok);
        } else {
            Request* r = nullptr;
            ASSERT_EQ(p2p::igive_slow(p, p.world, bytes(note, sizeof(Note)), {to, tag}, &r), Err::ok);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
        }
    }
}

void receive_notes(Process& p, int from, int tag, int count, unsigned seed, bool wild = false) {
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
        const unsigned how = random() % 3;
        const Envelope e{wild && random() % 2 ? obj::any_source : from, tag};
        Note here;
        auto* note = &here;
        Status s{};
        if (how == 0) {
            ASSERT_EQ(p2p::recv(p, p.world, bytes(note, sizeof here), e, &s), Err::ok);
        } else if (how == 1) {
            ASSERT_EQ(take(p, reinterpret_cast<void**>(&note), sizeof here, e, &s), Err::ok);
        } else {
            Request* r = nullptr;
            ASSERT_EQ(p2p::itake(p, p.world, bytes(&note, sizeof here), e, &r), Err::ok);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, &s), Err::ok);
        }
        ASSERT_EQ(note->n, static_cast<uint64_t>(i));
        ASSERT_EQ(note->from, from);
        ASSERT_EQ(s.bytes, static_cast<int64_t>(sizeof here));
        ASSERT_EQ(s.source, from);
        if (how == 0) continue;
        ASSERT_TRUE(!note->given || note->at == note) << "the buffer has moved";
        ASSERT_TRUE(p2p::release_buffer(p, note));
    }
}

TEST(Given, AllPairingsInOrderBothWays) {
    Lines lines;
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        share_all(p, lines);
        for (int turn = 0; turn < 20; ++turn) {
            const auto seed = static_cast<unsigned>(turn);
            const bool sends = (turn + p.world_rank) % 2 == 0;
            if (sends) send_notes(p, 1 - p.world_rank, 3, 100, seed);
            else receive_notes(p, 1 - p.world_rank, 3, 100, seed + 1000, true);
        }
        share_nothing(p);
    });
}

// More gives than the ring and the credit hold: they wait for their match, in order with what is sent.
TEST(Given, OverTheCreditAGiveWaits) {
    Lines lines;
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        share_all(p, lines);
        p.lane->limits.credit = 4000;
        constexpr int count = 500;
        if (p.world_rank == 0) {
            std::vector<Request*> requests(count);
            for (int i = 0; i < count; ++i) {
                auto* note = static_cast<Note*>(p2p::allocate_buffer(p, sizeof(Note)));
                *note = Note{static_cast<uint64_t>(i), 0, true, note};
                ASSERT_EQ(p2p::igive_slow(p, p.world, bytes(note, sizeof(Note)), {1, 5}, &requests[static_cast<size_t>(i)]), Err::ok);
            }
            ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {1, 6}, p2p::Mode::standard), Err::ok);
            for (Request* r : requests) {
                p2p::wait(p, *r);
                ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            }
        } else {
            // Behind all gives, so they have to be kept.
            ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {0, 6}, nullptr), Err::ok);
            receive_notes(p, 0, 5, count, 7);
        }
        share_nothing(p);
    });
}

TEST(Given, SeveralThreadsOfEachRank) {
    Lines lines;
    run_ranks(2, ThreadLevel::multiple, [&](Process& p) {
        share_all(p, lines);
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t)
            threads.emplace_back([&, t] {
                adopt(p);
                const auto seed = static_cast<unsigned>(t);
                if ((t + p.world_rank) % 2 == 0) {
                    send_notes(p, 1 - p.world_rank, 10 + t, 300, seed);
                    receive_notes(p, 1 - p.world_rank, 20 + t, 300, seed + 50);
                } else {
                    receive_notes(p, 1 - p.world_rank, 10 + t, 300, seed + 100);
                    send_notes(p, 1 - p.world_rank, 20 + t, 300, seed);
                }
            });
        for (auto& t : threads) t.join();
        share_nothing(p);
    });
}

// A rank whose heap is not at the common address gets copies.
TEST(Given, WithoutASharedHeapGivesAreMessages) {
    Lines lines;
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        share_all(p, lines);
        if (p.world_rank == 1) p.lane->shm.tell_sharing(false);
        barrier(p);
        void* data = nullptr;
        if (p.world_rank == 0) {
            data = p2p::allocate_buffer(p, 100000);
            memset(data, 7, 100000);
            ASSERT_EQ(give(p, data, 100000, {1, 1}), Err::ok);
            EXPECT_FALSE(p2p::release_buffer(p, data)) << "freed when it was sent";
        } else {
            ASSERT_EQ(take(p, &data, 100000, {0, 1}, nullptr), Err::ok);
            EXPECT_EQ(static_cast<char*>(data)[99999], 7);
            EXPECT_TRUE(p2p::release_buffer(p, data));
        }
        share_nothing(p);
    });
}

}  // namespace
