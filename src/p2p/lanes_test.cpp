// Ranks whose threads use communicators of different lanes.
#include "p2p/lanes.hpp"

#include <atomic>
#include <string>

#include "comm/comm.hpp"
#include "p2p/ranks_test.hpp"

using namespace weft;
using namespace weft::test;
using p2p::Envelope;

namespace {

constexpr int threads = 3;

// Runs `body(thread, its communicator)` by several threads of this rank, on a duplicate of WORLD each.
void run_threads(Process& p, const std::function<void(int, obj::Comm&)>& body) {
    obj::Comm* comms[threads];
    for (auto& c : comms) ASSERT_EQ(comm::dup(p, p.world, &c), Err::ok);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back([&, i] {
            adopt(p);
            body(i, *comms[i]);
        });
    for (auto& t : all) t.join();
    barrier(p);
    for (auto& c : comms) obj::release(*c);
}

// A message each way between two ranks, by requests: `size` bytes that tell who sent them.
void swap(Process& p, obj::Comm& c, int peer, int tag, size_t size, p2p::Mode mode, int named) {
    std::string out(size, static_cast<char>('a' + p.world_rank + tag % 10)), in(size, 0);
    p2p::Request *receive = nullptr, *send = nullptr;
    ASSERT_EQ(p2p::irecv(p, c, bytes(in.data(), size), Envelope{named, tag}, &receive), Err::ok);
    ASSERT_EQ(p2p::isend(p, c, bytes(out.data(), size), Envelope{peer, tag}, mode, &send), Err::ok);
    p2p::wait(p, *receive);
    p2p::wait(p, *send);
    obj::Status s{};
    ASSERT_EQ(p2p::finish(p, *receive, &s), Err::ok);
    ASSERT_EQ(p2p::finish(p, *send, nullptr), Err::ok);
    EXPECT_EQ(s.source, peer);
    EXPECT_EQ(in, std::string(size, static_cast<char>('a' + peer + tag % 10)));
}

TEST(Lanes, AreMadeWithTheFirstCommunicatorThere) {
    run_ranks(2, obj::ThreadLevel::multiple, [](Process& p) {
        ASSERT_EQ(p.lane_count, lane::most_lanes);
        EXPECT_EQ(p.world.lane, p.lane);
        int made = 0;
        obj::each_lane(p, [&](lane::Lane&) { ++made; });
        EXPECT_EQ(made, 1);
        obj::Comm *first = nullptr, *second = nullptr;
        ASSERT_EQ(comm::dup(p, p.world, &first), Err::ok);
        ASSERT_EQ(comm::dup(p, p.world, &second), Err::ok);
        EXPECT_NE(first->lane, second->lane);
        EXPECT_NE(first->lane, p.lane);
        obj::each_lane(p, [&](lane::Lane& l) { made += l.number() == p.contexts.lane_of(first->context) && &l == first->lane; });
        EXPECT_EQ(made, 2);
        barrier(p);
        obj::release(*first);
        obj::release(*second);
    });
}

TEST(Lanes, AThreadThatAsksForLessHasOne) {
    run_ranks(2, obj::ThreadLevel::serialized, [](Process& p) {
        EXPECT_EQ(p.lane_count, 1);
        obj::Comm* c = nullptr;
        ASSERT_EQ(comm::dup(p, p.world, &c), Err::ok);
        EXPECT_EQ(c->lane, p.lane);
        barrier(p);
        obj::release(*c);
    });
}

TEST(Lanes, ThreadsOnTheirOwn) {
    constexpr int rounds = 60;
    run_ranks(2, obj::ThreadLevel::multiple, [](Process& p) {
        const int peer = 1 - p.world_rank;
        run_threads(p, [&](int thread, obj::Comm& c) {
            static constexpr size_t sizes[] = {8, 100, 6000, 40, 200'000};
            for (int i = 0; i < rounds; ++i)
                swap(p, c, peer, i, sizes[(i + thread) % 5], i % 7 == 0 ? p2p::Mode::synchronous : p2p::Mode::standard,
                     i % 3 == 0 ? obj::any_source : peer);
        });
    });
}

// A thread completes what another one made on another lane, and lists of requests are of several lanes.
TEST(Lanes, RequestsOfSeveralAtOnce) {
    run_ranks(2, obj::ThreadLevel::multiple, [](Process& p) {
        obj::Comm* comms[threads];
        for (auto& c : comms) ASSERT_EQ(comm::dup(p, p.world, &c), Err::ok);
        constexpr int n = 24;
        for (int round = 0; round < 20; ++round) {
            int in[n], out[n];
            p2p::Request *receives[n], *sends[n];
            for (int i = 0; i < n; ++i) {
                out[i] = round * n + i;
                ASSERT_EQ(p2p::irecv(p, *comms[i / 2 % threads], ints(&in[i], 1), Envelope{1 - p.world_rank, i}, &receives[i]), Err::ok);
            }
            for (int i = 0; i < n; ++i)
                ASSERT_EQ(p2p::isend(p, *comms[i / 2 % threads], ints(&out[i], 1), Envelope{1 - p.world_rank, i}, p2p::Mode::standard, &sends[i]), Err::ok);
            ASSERT_EQ(p2p::wait_all(p, n, receives, nullptr), Err::ok);
            ASSERT_EQ(p2p::wait_all(p, n, sends, nullptr), Err::ok);
            for (int i = 0; i < n; ++i) EXPECT_EQ(in[i], round * n + i);
        }
        barrier(p);
        for (auto& c : comms) obj::release(*c);
    });
}

// Threads sleep, each for its own lane, while others send: WEFT_SLEEP_MS is 0 there.
TEST(Lanes, SleepersAreWoken) {
    setenv("WEFT_SLEEP_MS", "0", 1);
    run_ranks(2, obj::ThreadLevel::multiple, [](Process& p) {
        run_threads(p, [&](int thread, obj::Comm& c) {
            for (int i = 0; i < 20; ++i) {
                if (p.world_rank == 0 && i % threads == thread) std::this_thread::sleep_for(std::chrono::milliseconds(2));
                swap(p, c, 1 - p.world_rank, i, 64, p2p::Mode::standard, 1 - p.world_rank);
            }
        });
    });
    unsetenv("WEFT_SLEEP_MS");
}

}  // namespace
