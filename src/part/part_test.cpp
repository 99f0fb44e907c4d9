// Partitioned messages with ranks as threads, so that ThreadSanitizer sees threads that mark partitions at once while
// others make progress for them.
#include "part/part.hpp"

#include <thread>

#include "coll/calls.hpp"
#include "op/predefined.hpp"
#include "p2p/ranks_test.hpp"
#include "type/build.hpp"

using namespace weft;
using namespace weft::test;
using obj::Request;
using obj::ThreadLevel;

namespace {

constexpr int partitions = 12, each = 50, total = partitions * each;

void start(Request& r) { ASSERT_EQ(r.ops->start(r), Err::ok); }

// As the entry points do it: the short path first.
void mark(Process& p, int partition, Request& r) {
    if (part::pready_at_once(p, partition, r)) return;
    ASSERT_EQ(part::pready(p, partition, r), Err::ok);
}
bool arrived(Process& p, Request& r, int partition) {
    bool there = false;
    if (part::parrived_at_once(p, r, partition, &there)) return there;
    EXPECT_EQ(part::parrived(p, r, partition, &there), Err::ok);
    return there;
}

// Both directions at once, ten times: three threads mark while the main one looks. The receiver has `wide` of the sender's partitions in
// each of its own. With `ahead` the receive is started after some partitions have been marked. Every `gap`th integer is used.
void exchange(Process& p, int wide, bool ahead, const type::Type* type, int gap) {
    const int peer = 1 - p.world_rank;
    std::vector<int> out(total * static_cast<size_t>(gap)), in(total * static_cast<size_t>(gap));
    const auto of = [&](std::vector<int>& v, int n) { return type::Buffer{v.data(), n, type}; };
    Request *s = nullptr, *r = nullptr;
    ASSERT_EQ(part::psend_init(p, p.world, of(out, each), partitions, {peer, 4}, nullptr, &s), Err::ok);
    ASSERT_EQ(part::precv_init(p, p.world, of(in, each * wide), partitions / wide, {peer, 4}, nullptr, &r), Err::ok);
    for (int round = 0; round < 10; round++) {
        std::fill(in.begin(), in.end(), -1);
        for (size_t i = 0; i < total; i++) out[i * static_cast<size_t>(gap)] = p.world_rank * 100000 + round * 1000 + static_cast<int>(i);
        if (!ahead) start(*r);
        start(*s);
        std::vector<std::thread> markers;
        for (int t = 0; t < 3; t++)
            markers.emplace_back([&p, s, t] {
                adopt(p);
                for (int i = t; i < partitions; i += 3) mark(p, i, *s);
            });
        if (ahead) start(*r);
        for (int i = 0; i < partitions / wide; i++) {
            while (!arrived(p, *r, i)) {}
            for (int k = i * each * wide; k < (i + 1) * each * wide; k++)
                ASSERT_EQ(in[static_cast<size_t>(k * gap)], peer * 100000 + round * 1000 + k);
        }
        if (round % 2 == 0)
            for (auto& t : markers) t.join();
        for (Request* x : {s, r}) {
            p2p::wait(p, *x);
            ASSERT_EQ(p2p::finish(p, *x, nullptr), Err::ok);
        }
        if (round % 2 != 0)
            for (auto& t : markers) t.join();
    }
    p2p::free_request(p, *s);
    p2p::free_request(p, *r);
}

void on_two(const std::function<void(Process&)>& body) {
    run_ranks(2, ThreadLevel::multiple, [&](Process& p) {
        body(p);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

const type::Type* ints_type() { return type::predefined_at(0x209); }

TEST(Partitioned, ThreadsMarkAndLook) {
    on_two([](Process& p) { exchange(p, 3, false, ints_type(), 1); });
}

TEST(Partitioned, DividedAlike) {
    on_two([](Process& p) { exchange(p, 1, false, ints_type(), 1); });
}

TEST(Partitioned, MarkedBeforeTheReceiveIsStarted) {
    on_two([](Process& p) { exchange(p, 2, true, ints_type(), 1); });
}

// A thread marks while another waits for the send, frees the request and makes the next: who used the channel after the last mark
// would use what is gone. Partitions of 4 bytes are copied at once, those of a type with gaps by the longer path.
void free_behind_the_mark(Process& p, const type::Type* type, size_t gap) {
    for (int round = 0; round < 200; round++) {
        int out[8], in[8];
        std::fill(in, in + 8, -1);
        Request* r = nullptr;
        if (p.world_rank == 1) {
            ASSERT_EQ(part::precv_init(p, p.world, {in, 1, type}, 4, {0, 4}, nullptr, &r), Err::ok);
            start(*r);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            for (size_t i = 0; i < 4; i++) ASSERT_EQ(in[i * gap], round + static_cast<int>(i));
            p2p::free_request(p, *r);
            continue;
        }
        for (size_t i = 0; i < 4; i++) out[i * gap] = round + static_cast<int>(i);
        ASSERT_EQ(part::psend_init(p, p.world, {out, 1, type}, 4, {1, 4}, nullptr, &r), Err::ok);
        start(*r);
        std::thread marker([&p, r] {
            adopt(p);
            for (int i = 0; i < 4; i++) mark(p, i, *r);
        });
        p2p::wait(p, *r);
        ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
        p2p::free_request(p, *r);
        marker.join();
    }
}

TEST(Partitioned, FreedBehindTheLastMark) {
    on_two([](Process& p) { free_behind_the_mark(p, ints_type(), 1); });
}

TEST(Partitioned, FreedBehindTheLastMarkOfATypeWithGaps) {
    on_two([](Process& p) {
        type::Type* strided = nullptr;
        ASSERT_EQ(type::resized(type::Width::classic, *ints_type(), 0, 8, &strided), Err::ok);
        ASSERT_EQ(type::commit(*strided), Err::ok);
        free_behind_the_mark(p, strided, 2);
        type::release(*strided);
    });
}

// Three ranks, so that one has both parent and child; three threads of each mark while the main one waits or looks.
void combine(Process& p) {
    std::vector<int> own(total), sum(total);
    Request* r = nullptr;
    ASSERT_EQ(part::pallreduce_init(p, p.world, own.data(), {sum.data(), each, ints_type()}, partitions, *op::predefined_at(33), nullptr, &r), Err::ok);
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < total; i++) own[i] = p.world_rank * 100000 + round * 1000 + static_cast<int>(i);
        start(*r);
        std::vector<std::thread> markers;
        for (int t = 0; t < 3; t++)
            markers.emplace_back([&p, r, t] {
                adopt(p);
                for (int i = t; i < partitions; i += 3) mark(p, i, *r);
            });
        for (int i = 0; i < partitions && round % 2 == 0; i++)
            while (!arrived(p, *r, i)) {}
        p2p::wait(p, *r);
        for (auto& t : markers) t.join();
        ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
        for (size_t i = 0; i < total; i++) ASSERT_EQ(sum[i], 3 * (100000 + round * 1000 + static_cast<int>(i)));
    }
    p2p::free_request(p, *r);
}

TEST(Partitioned, Allreduce) {
    run_ranks(3, ThreadLevel::multiple, [](Process& p) {
        combine(p);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

// As with messages: the thread that marks may still be on its way out when another has completed the collective, and frees it.
TEST(Partitioned, CollectiveFreedBehindTheLastMark) {
    on_two([](Process& p) {
        for (int round = 0; round < 100; round++) {
            const int own[4] = {round, round + 1, round + 2, p.world_rank};
            int sum[4];
            Request* r = nullptr;
            ASSERT_EQ(part::pallreduce_init(p, p.world, own, {sum, 1, ints_type()}, 4, *op::predefined_at(33), nullptr, &r), Err::ok);
            start(*r);
            std::thread marker([&p, r] {
                adopt(p);
                for (int i = 0; i < 4; i++) mark(p, i, *r);
            });
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            for (int i = 0; i < 3; i++) ASSERT_EQ(sum[i], 2 * (round + i));
            ASSERT_EQ(sum[3], 1);
            p2p::free_request(p, *r);
            marker.join();
        }
    });
}

// Small partitions, of which many share a line: three threads mark, two look at all, and the main one waits, on one or two CPUs. The
// receive is started before, amid or after the marks. Each partition is `size` bytes, every `gap`th of the buffer.
void exchange_bytes(Process& p, int size, const type::Type* type, int gap) {
    constexpr int n = 40;
    const int bytes = n * size, peer = 1 - p.world_rank;
    std::vector<char> out(static_cast<size_t>(bytes * gap)), in(out.size());
    const auto value = [](int round, int k, int rank) { return static_cast<char>((round * 3 + k + rank) % 100); };
    const auto at = [&](std::vector<char>& v, int k) -> char& { return v[static_cast<size_t>(k * gap)]; };
    Request *s = nullptr, *r = nullptr;
    ASSERT_EQ(part::psend_init(p, p.world, {out.data(), size, type}, n, {peer, 4}, nullptr, &s), Err::ok);
    ASSERT_EQ(part::precv_init(p, p.world, {in.data(), size, type}, n, {peer, 4}, nullptr, &r), Err::ok);
    for (int round = 0; round < 40; round++) {
        std::fill(in.begin(), in.end(), -1);
        for (int k = 0; k < bytes; k++) at(out, k) = value(round, k, p.world_rank);
        start(*s);
        if (round % 2 == 0) start(*r);
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; t++)
            threads.emplace_back([&p, s, t] {
                adopt(p);
                for (int i = t; i < n; i += 3) mark(p, i, *s);
            });
        if (round % 2 != 0) start(*r);
        for (int t = 0; t < 2; t++)
            threads.emplace_back([&, t] {
                adopt(p);
                for (int left = n; left > 0; left--) {
                    const int i = t == 0 ? n - left : left - 1;
                    while (!arrived(p, *r, i)) std::this_thread::yield();
                    for (int k = i * size; k < (i + 1) * size; k++) EXPECT_EQ(at(in, k), value(round, k, peer));
                }
            });
        for (Request* x : {s, r}) p2p::wait(p, *x);
        for (auto& t : threads) t.join();
        for (Request* x : {s, r}) ASSERT_EQ(p2p::finish(p, *x, nullptr), Err::ok);
        for (int k = 0; k < bytes; k++) ASSERT_EQ(at(in, k), value(round, k, peer));
        ASSERT_TRUE(gap == 1 || in[1] == -1);
    }
    p2p::free_request(p, *s);
    p2p::free_request(p, *r);
}

// Behind their marks, which 28 bytes just fit; and in an area.
TEST(Partitioned, SmallOnes) {
    on_two([](Process& p) {
        for (const int size : {1, 3, 8, 28, 29, 63}) exchange_bytes(p, size, type::predefined_at(0x247), 1);
    });
}

// Staged always, also where ranks are threads and could write to each other's buffers.
TEST(Partitioned, SmallOnesWithGaps) {
    on_two([](Process& p) {
        type::Type* strided = nullptr;
        ASSERT_EQ(type::resized(type::Width::classic, *type::predefined_at(0x247), 0, 2, &strided), Err::ok);
        ASSERT_EQ(type::commit(*strided), Err::ok);
        for (const int size : {1, 3, 8, 28, 29, 63}) exchange_bytes(p, size, strided, 2);
        type::release(*strided);
    });
}

// A buffer with gaps is never written to in place: its partitions are staged.
TEST(Partitioned, WithGaps) {
    on_two([](Process& p) {
        type::Type* strided = nullptr;
        ASSERT_EQ(type::resized(type::Width::classic, *ints_type(), 0, 8, &strided), Err::ok);
        ASSERT_EQ(type::commit(*strided), Err::ok);
        exchange(p, 2, false, strided, 2);
        exchange(p, 1, true, strided, 2);
        type::release(*strided);
    });
}

}  // namespace
