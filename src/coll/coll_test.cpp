// The schedule engine with ranks as threads, so that ThreadSanitizer sees it: several threads of a rank in collectives at
// once, each advancing the others' schedules.
#include "coll/calls.hpp"

#include <atomic>
#include <thread>

#include "coll/levels.hpp"
#include "comm/agree.hpp"
#include "comm/comm.hpp"
#include "op/predefined.hpp"
#include "p2p/ranks_test.hpp"

using namespace weft;
using namespace weft::test;
using obj::Comm;
using obj::Request;
using obj::ThreadLevel;

namespace {

const op::Op& sum() { return *op::predefined_at(33); }

int expected_sum(int ranks, int salt) { return ranks * (ranks - 1) / 2 + ranks * salt; }

TEST(Schedules, BlockingOnAnyNumberOfRanksAndNodes) {
    for (int ranks = 1; ranks <= 9; ranks += ranks < 5 ? 1 : 2)
        run_ranks(ranks, ThreadLevel::single, [&](Process& p) {
            obj::see_nodes(p, ranks % 4);
            for (int root = 0; root < ranks; root++) {
                int mine = p.world_rank, result = -1, told = p.world_rank == root ? 77 + root : -1;
                ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
                ASSERT_EQ(coll::bcast(p, p.world, ints(&told, 1), root), Err::ok);
                EXPECT_EQ(told, 77 + root);
                ASSERT_EQ(coll::allreduce(p, p.world, ints(&mine, 1), ints(&result, 1), sum()), Err::ok);
                EXPECT_EQ(result, expected_sum(ranks, 0));
                result = -1;
                ASSERT_EQ(coll::reduce(p, p.world, ints(&mine, 1), ints(&result, 1), sum(), root), Err::ok);
                EXPECT_EQ(result, p.world_rank == root ? expected_sum(ranks, 0) : -1);
            }
            coll::close(p);
        });
}

// Broadcast and allreduce of every size around the limits between algorithms.
void large_ones(int ranks, int node_ranks) {
    run_ranks(ranks, ThreadLevel::single, [&](Process& p) {
        obj::see_nodes(p, node_ranks);
        for (int count : {2, 3, 4095, 4096, 16383, 16384, 16385, 100003}) {
            std::vector<int> data(static_cast<size_t>(count)), in(data.size()), out(data.size(), -1);
            for (size_t i = 0; i < data.size(); i++) {
                data[i] = p.world_rank == 1 ? static_cast<int>(i) * 3 : -1;
                in[i] = static_cast<int>(i) + p.world_rank;
            }
            ASSERT_EQ(coll::bcast(p, p.world, ints(data.data(), count), 1), Err::ok);
            ASSERT_EQ(coll::allreduce(p, p.world, ints(in.data(), count), ints(out.data(), count), sum()), Err::ok);
            for (size_t i = 0; i < data.size(); i++) {
                ASSERT_EQ(data[i], static_cast<int>(i) * 3) << count;
                ASSERT_EQ(out[i], static_cast<int>(i) * ranks + ranks * (ranks - 1) / 2) << count;
            }
        }
        coll::close(p);
    });
}

TEST(Schedules, LargeOnesAreCutAndPutTogether) { large_ones(3, 0); }
TEST(Schedules, LargeOnesOnSeveralNodes) { large_ones(5, 2); }

// Every member sees the same nodes, and the root speaks for its own.
TEST(Levels, NodesAndTheirHeads) {
    run_ranks(7, ThreadLevel::single, [](Process& p) {
        obj::see_nodes(p, 3);
        Comm *backwards = nullptr, *mixed = nullptr;
        ASSERT_EQ(comm::split(p, p.world, 0, -p.world_rank, &backwards), Err::ok);
        ASSERT_EQ(comm::split(p, p.world, 0, p.world_rank % 2, &mixed), Err::ok);  // 0 2 4 6 1 3 5
        for (Comm* c : {&p.world, backwards, mixed})
            for (int root = 0; root < 7; root++) {
                coll::Schedule* s = nullptr;
                coll::Levels l;
                ASSERT_EQ(coll::open(p, *c, coll::of_sequence, false, &s), Err::ok);
                coll::Team all = coll::local_team(*c);
                EXPECT_EQ(coll::in_levels(*s, all, root, coll::Order::of_ranks, &l), c != mixed);
                ASSERT_TRUE(coll::in_levels(*s, all, root, coll::Order::any, &l));
                auto node = [&](int rank) { return c->group->at(rank) / 3; };
                EXPECT_EQ(l.node.size, p.world_rank == 6 ? 1 : 3);
                EXPECT_EQ(l.node.at(l.node.rank), c->rank);
                for (int i = 0; i < l.node.size; i++) EXPECT_EQ(node(l.node.at(i)), node(c->rank));
                EXPECT_EQ(l.leaders.size, 3);
                EXPECT_EQ(l.leaders.at(l.root), root);
                EXPECT_EQ(l.leads(), l.leaders.at(l.leaders.rank) == c->rank);
                EXPECT_EQ(node(l.leaders.at(l.leaders.rank)), node(c->rank));
                coll::Team part = l.node;   // a part has one level
                EXPECT_FALSE(coll::in_levels(*s, part, 0, coll::Order::any, &l));
                (void)coll::abandon(*s, Err::ok);
            }
        ASSERT_EQ(comm::free_comm(p, &mixed), Err::ok);
        ASSERT_EQ(comm::free_comm(p, &backwards), Err::ok);
        coll::close(p);
    });
}

// What goes from node to node, in all: as few messages as if every node were one process.
TEST(Levels, OnlyHeadsTalkToOtherNodes) {
    for (auto [ranks, each, nodes] : {std::array{7, 3, 3}, {9, 2, 5}, {6, 3, 2}})
        for (int root : {0, 4}) {
            std::atomic<int> sent[5] = {};
            run_ranks(ranks, ThreadLevel::single, [&, per_node = each](Process& p) {
                obj::see_nodes(p, per_node);
                int64_t a = p.world_rank, b = 0, all[9] = {};
                const type::Type& t = *type::predefined_at(0x247);
                auto count = [&](int which, const auto& call) {
                    coll::Schedule* s = nullptr;
                    ASSERT_EQ(coll::open(p, p.world, coll::of_sequence, false, &s), Err::ok);
                    ASSERT_EQ(coll::build(*s, call), Err::ok);
                    for (const coll::Step& step : s->steps())
                        if (step.what == coll::Step::send && obj::node_of(p, step.peer) != obj::node_of(p, p.world_rank)) sent[which]++;
                    ASSERT_EQ(coll::run(*s), Err::ok);
                };
                count(0, coll::Bcast{{&a, 8, &t}, root});
                count(1, coll::Reduce{&a, {&b, 1, type::predefined_at(0x245)}, &sum(), root});
                count(2, coll::Gather{{&a, 8, &t}, coll::Blocks({all, 8, &t}), root, true});
                count(3, coll::Scatter{coll::Blocks({all, 8, &t}), {&a, 8, &t}, root, true});
                count(4, coll::Barrier{});
                coll::close(p);
            });
            int rounds = 0;
            while (1 << rounds < nodes) rounds++;
            for (int i = 0; i < 4; i++) EXPECT_EQ(sent[i], nodes - 1) << i;
            EXPECT_EQ(sent[4], nodes * rounds);
        }
}

// A wait for a message looks at one ring alone while no collective is under way, however many have been.
TEST(Schedules, WhatIsOverCostsNothingLater) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        EXPECT_EQ(p.hook_work.load(), 0);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        EXPECT_GT(p.hook_count.load(), 0);
        EXPECT_EQ(p.hook_work.load(), 0);
        Request* r = nullptr;
        if (p.world_rank == 0) {
            ASSERT_EQ(coll::barrier(p, p.world, &r), Err::ok);
            EXPECT_EQ(p.hook_work.load(), 1);
        }
        barrier(p);
        if (p.world_rank == 1) {
            ASSERT_EQ(coll::barrier(p, p.world, &r), Err::ok);
        }
        p2p::wait(p, *r);
        ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
        EXPECT_EQ(p.hook_work.load(), 0);
        struct Close {
            Process& p;
            ~Close() { coll::close(p); }
        } close{p};
        if (p.world_rank == 1) {
            ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {0, 1}, nullptr), Err::ok);
            return;
        }
        uint32_t looks = 0;
        p2p::Next next;
        EXPECT_FALSE(p2p::comes_within(p, *p.lane, p.lane->shm.from(1), 100, &next, [&] { return ++looks == 200; }));
        EXPECT_EQ(looks, 100u);
        ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {1, 1}, p2p::Mode::standard), Err::ok);
    });
}

TEST(Schedules, ManyOutstandingNeverMix) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        constexpr int n = 40;
        int in[n], out[n];
        Request* r[n];
        for (int i = 0; i < n; i++) {
            in[i] = p.world_rank + i;
            out[i] = -1;
            ASSERT_EQ(coll::allreduce(p, p.world, ints(&in[i], 1), ints(&out[i], 1), sum(), &r[i]), Err::ok);
        }
        for (int k = 0; k < n; k++) {
            int i = (k * 7 + p.world_rank * 11) % n;
            p2p::wait(p, *r[i]);
            ASSERT_EQ(p2p::finish(p, *r[i], nullptr), Err::ok);
            EXPECT_EQ(out[i], expected_sum(3, i));
        }
        coll::close(p);
    });
}

// Blocking and nonblocking ones are numbered apart: ranks may begin them in different orders.
TEST(Schedules, TheTwoKindsNeedNoCommonOrder) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        for (int i = 0; i < 20; i++) {
            int in = p.world_rank + i, out = -1, told = p.world_rank == 0 ? i : -1;
            Request* r = nullptr;
            auto add = [&] { ASSERT_EQ(coll::allreduce(p, p.world, ints(&in, 1), ints(&out, 1), sum(), &r), Err::ok); };
            if ((p.world_rank + i) % 2 == 0) add();
            ASSERT_EQ(coll::bcast(p, p.world, ints(&told, 1), 0), Err::ok);
            if ((p.world_rank + i) % 2 != 0) add();
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            EXPECT_EQ(out, expected_sum(3, i));
            EXPECT_EQ(told, i);
        }
        coll::close(p);
    });
}

// String tags that are numbers to messages: two that share the number are told apart, and nobody gets the other's context.
TEST(Creation, SealsTellTagsApart) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        for (uint64_t seal : {uint64_t{7}, uint64_t{8} + static_cast<uint64_t>(p.world_rank)}) {
            uint32_t context = comm::no_context;
            Err e = comm::agree_context(p, p.world, coll::local_team(p.world), comm::creation_tag(3), &context, seal);
            EXPECT_EQ(e, seal == 7 || p.world_rank == 0 ? Err::ok : Err::other);
            EXPECT_EQ(context != comm::no_context, e == Err::ok);
        }
        coll::close(p);
    });
}

TEST(Creation, EveryTagHasItsOwn) {
    const int32_t tags[] = {0, 1, 5, 5 + (1 << 27), 5 + (1 << 30), INT32_MAX - 2, INT32_MAX - 1, INT32_MAX};
    for (int32_t a : tags)
        for (int32_t b : tags) {
            EXPECT_EQ(comm::creation_tag(a) == comm::creation_tag(b), a == b);
            EXPECT_NE(comm::creation_tag(a), obj::any_tag);
        }
}

TEST(Schedules, PersistentOnesStartInAnyOrder) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        int in[2], out[2];
        Request* r[2] = {};
        for (int i = 0; i < 2; i++)
            ASSERT_EQ(coll::allreduce(p, p.world, ints(&in[i], 1), ints(&out[i], 1), sum(), static_cast<obj::Info*>(nullptr), &r[i]),
                      Err::ok);
        for (int round = 0; round < 20; round++) {
            for (int k = 0; k < 2; k++) {
                int i = (k + p.world_rank) % 2;   // a different order on different ranks
                in[i] = p.world_rank + round * 10 + i;
                ASSERT_EQ(r[i]->ops->start(*r[i]), Err::ok);
            }
            for (int i = 0; i < 2; i++) {
                p2p::wait(p, *r[i]);
                ASSERT_EQ(p2p::finish(p, *r[i], nullptr), Err::ok);
                EXPECT_EQ(out[i], expected_sum(3, round * 10 + i));
            }
        }
        for (Request* x : r) p2p::free_request(p, *x);
        coll::close(p);
    });
}

TEST(Schedules, ThreadsOnTheirOwnCommunicators) {
    constexpr int threads = 3;
    run_ranks(2, ThreadLevel::multiple, [](Process& p) {
        Comm* comms[threads] = {};
        for (Comm*& c : comms) ASSERT_EQ(comm::dup(p, p.world, &c), Err::ok);
        std::vector<std::thread> pool;
        for (int t = 0; t < threads; t++)
            pool.emplace_back([&p, &comms, t] {
                adopt(p);
                for (int i = 0; i < 30; i++) {
                    int in = p.world_rank + i + t, out = -1, told = p.world_rank == 0 ? i : -1;
                    Request* r = nullptr;
                    ASSERT_EQ(coll::allreduce(p, *comms[t], ints(&in, 1), ints(&out, 1), sum(), &r), Err::ok);
                    ASSERT_EQ(coll::bcast(p, *comms[t], ints(&told, 1), 0), Err::ok);
                    p2p::wait(p, *r);
                    ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
                    EXPECT_EQ(out, expected_sum(2, i + t));
                    EXPECT_EQ(told, i);
                    Comm* child = nullptr;
                    ASSERT_EQ(comm::split(p, *comms[t], 0, -p.world_rank, &child), Err::ok);
                    EXPECT_EQ(child->rank, 1 - p.world_rank);
                    ASSERT_EQ(coll::barrier(p, *child), Err::ok);
                    ASSERT_EQ(comm::free_comm(p, &child), Err::ok);
                }
            });
        for (auto& t : pool) t.join();
        for (Comm*& c : comms) ASSERT_EQ(comm::free_comm(p, &c), Err::ok);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

}  // namespace
