// The short paths of posted receives, persistent requests and matched probes, by several threads over one ring: they must
// agree on whose the next message is. Under ThreadSanitizer in `make tsan`.
#include <gtest/gtest.h>

#include "p2p/combined.hpp"
#include "p2p/ranks_test.hpp"

namespace {

using namespace weft;
using namespace weft::test;
using obj::ThreadLevel;

// A call as the bindings make it: the attempt, then the slow way.
Err started(Process& p, p2p::Request* r) { return p2p::start_inline(p, &r) ? Err::ok : p2p::start(p, &r); }
Err waited(Process& p, p2p::Request*& r, p2p::Status* s) {
    return p2p::wait_inline(p, &r, s) ? Err::ok : p2p::wait_request(p, &r, s);
}
Err matched(Process& p, p2p::Envelope e, p2p::Message** m, p2p::Status* s) {
    return p2p::mprobe(p, p.world, e, m, s);
}
Err received(Process& p, type::Buffer b, p2p::Message** m, p2p::Status* s) {
    return p2p::mrecv(p, b, m, s);
}

void send_all(Process& p, int tag, int rounds) {
    int64_t out = 0;
    p2p::Request* r = nullptr;
    ASSERT_EQ(p2p::send_init(p, p.world, bytes(&out, sizeof out), {0, tag}, p2p::Mode::standard, &r), Err::ok);
    for (int i = 0; i < rounds; ++i) {
        out = tag * 1000 + i;
        if (i % 2 == 0) {
            ASSERT_EQ(started(p, r), Err::ok);
            ASSERT_EQ(waited(p, r, nullptr), Err::ok);
            ASSERT_NE(r, nullptr);
        } else {
            ASSERT_EQ(p2p::send(p, p.world, bytes(&out, sizeof out), {0, tag}, p2p::Mode::standard), Err::ok);
        }
    }
    p2p::free_request(p, *r);
}

void receive_all(Process& p, int tag, int rounds) {
    int64_t in = 0;
    p2p::Request* kept = nullptr;
    ASSERT_EQ(p2p::recv_init(p, p.world, bytes(&in, sizeof in), {1, tag}, &kept), Err::ok);
    for (int i = 0; i < rounds; ++i) {
        p2p::Status s{};
        in = -1;
        if (i % 4 == 0) {
            p2p::Request* r = nullptr;
            ASSERT_EQ(p2p::irecv(p, p.world, bytes(&in, sizeof in), {1, tag}, &r), Err::ok);
            ASSERT_EQ(waited(p, r, &s), Err::ok);
            ASSERT_EQ(r, nullptr);
        } else if (i % 4 == 1) {
            ASSERT_EQ(started(p, kept), Err::ok);
            ASSERT_EQ(waited(p, kept, &s), Err::ok);
            ASSERT_NE(kept, nullptr);
        } else if (i % 4 == 2) {
            p2p::Message* m = nullptr;
            ASSERT_EQ(matched(p, {1, tag}, &m, &s), Err::ok);
            ASSERT_EQ(s.bytes, 8);
            ASSERT_EQ(received(p, bytes(&in, sizeof in), &m, &s), Err::ok);
            ASSERT_EQ(m, nullptr);
        } else {
            ASSERT_EQ(p2p::recv(p, p.world, bytes(&in, sizeof in), {1, tag}, &s), Err::ok);
        }
        ASSERT_EQ(in, tag * 1000 + i);
        ASSERT_EQ(s.source, 1);
        ASSERT_EQ(s.tag, tag);
        ASSERT_EQ(s.bytes, 8);
    }
    p2p::free_request(p, *kept);
}

void exchange(int threads, ThreadLevel level, int rounds) {
    run_ranks(2, level, [&](Process& p) {
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                adopt(p);
                if (p.world_rank == 0) receive_all(p, t, rounds);
                else send_all(p, t, rounds);
            });
        for (auto& t : all) t.join();
    });
}

TEST(ShortPaths, OneThread) { exchange(1, ThreadLevel::serialized, 900); }
TEST(ShortPaths, ThreadsAgreeWhoseTheNextMessageIs) { exchange(4, ThreadLevel::multiple, 300); }

}  // namespace
