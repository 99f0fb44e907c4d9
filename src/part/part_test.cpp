// Partitioned messages with ranks as threads, so that ThreadSanitizer sees threads that mark partitions at once while
// others make progress for them.
#include "part/part.hpp"

#include <thread>

#include "coll/calls.hpp"
#include "p2p/ranks_test.hpp"

using namespace weft;
using namespace weft::test;
using obj::Request;
using obj::ThreadLevel;

namespace {

TEST(Partitioned, ThreadsMarkAndLook) {
    constexpr int partitions = 12, each = 50, total = partitions * each;
    run_ranks(2, ThreadLevel::multiple, [](Process& p) {
        int peer = 1 - p.world_rank;
        std::vector<int> out(total), in(total);
        Request *s = nullptr, *r = nullptr;
        ASSERT_EQ(part::psend_init(p, p.world, ints(out.data(), each), partitions, {peer, 4}, nullptr, &s), Err::ok);
        ASSERT_EQ(part::precv_init(p, p.world, ints(in.data(), each * 3), partitions / 3, {peer, 4}, nullptr, &r), Err::ok);
        for (int round = 0; round < 10; round++) {
            std::fill(in.begin(), in.end(), -1);
            for (int i = 0; i < total; i++) out[static_cast<size_t>(i)] = p.world_rank * 100000 + round * 1000 + i;
            ASSERT_EQ(r->ops->start(*r), Err::ok);
            ASSERT_EQ(s->ops->start(*s), Err::ok);
            std::vector<std::thread> markers;
            for (int t = 0; t < 3; t++)
                markers.emplace_back([&p, s, t] {
                    adopt(p);
                    for (int i = t; i < partitions; i += 3) ASSERT_EQ(part::pready(p, i, *s), Err::ok);
                });
            for (int i = 0; i < partitions / 3; i++) {
                bool there = false;
                while (!there) ASSERT_EQ(part::parrived(p, *r, i, &there), Err::ok);
                for (int k = i * each * 3; k < (i + 1) * each * 3; k++)
                    ASSERT_EQ(in[static_cast<size_t>(k)], peer * 100000 + round * 1000 + k);
            }
            for (auto& t : markers) t.join();
            for (Request* x : {s, r}) {
                p2p::wait(p, *x);
                ASSERT_EQ(p2p::finish(p, *x, nullptr), Err::ok);
            }
        }
        p2p::free_request(p, *s);
        p2p::free_request(p, *r);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

}  // namespace
