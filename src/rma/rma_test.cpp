// Windows with ranks as threads, so that ThreadSanitizer sees origins and targets, and the threads that serve for each other. Ranks of one
// process have no shared heap, so all accesses here are messages.
#include "rma/rma.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include "obj/info.hpp"
#include "op/predefined.hpp"
#include "p2p/ranks_test.hpp"
#include "rma/window.hpp"

using namespace weft;
using namespace weft::test;
using obj::ThreadLevel;

namespace {

const op::Op& sum_of() { return op::predefined.at[op::predefined_index(number::op_sum)]; }
const type::Type& long_type() { return *type::predefined_at(number::type_int64_t); }
type::Buffer longs(const int64_t* p, int64_t n) { return {const_cast<int64_t*>(p), n, &long_type()}; }

// Communicators are made and freed through the one `obj::process`, which only this preset has for each rank.
#define NEEDS_THREADS_PRESET() \
    if (!WEFT_THREADS_PRESET) GTEST_SKIP() << "ranks as threads can have windows only in the threads preset"

TEST(Windows, EpochsByMessages) {
    NEEDS_THREADS_PRESET();
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        int64_t own[4] = {0, 0, 0, 0};
        obj::Win* w = nullptr;
        ASSERT_EQ(rma::create(p, own, sizeof own, 8, nullptr, p.world, &w), Err::ok) << fail_text();
        EXPECT_FALSE(rma::window_of(*w).mapped);
        const int next = (p.world_rank + 1) % 3, before = (p.world_rank + 2) % 3;
        ASSERT_EQ(rma::fence(p, 0, *w), Err::ok);
        const int64_t mine = 100 + p.world_rank, one = 1;
        ASSERT_EQ(rma::put(p, longs(&mine, 1), next, 0, 1, long_type(), *w), Err::ok) << fail_text();
        ASSERT_EQ(rma::accumulate(p, longs(&one, 1), 0, 1, 1, long_type(), sum_of(), *w), Err::ok) << fail_text();
        ASSERT_EQ(rma::fence(p, MPI_MODE_NOSUCCEED, *w), Err::ok);
        EXPECT_EQ(own[0], 100 + before);
        if (p.world_rank == 0) { EXPECT_EQ(own[1], 3); }
        barrier(p);
        for (int i = 0; i < 20; i++) {   // an exclusive lock excludes
            int64_t got = 0;
            ASSERT_EQ(rma::lock(p, MPI_LOCK_EXCLUSIVE, 0, 0, *w), Err::ok);
            ASSERT_EQ(rma::get(p, longs(&got, 1), 0, 2, 1, long_type(), *w), Err::ok);
            ASSERT_EQ(rma::flush(p, 0, *w), Err::ok);
            got++;
            ASSERT_EQ(rma::put(p, longs(&got, 1), 0, 2, 1, long_type(), *w), Err::ok);
            ASSERT_EQ(rma::unlock(p, 0, *w), Err::ok);
        }
        ASSERT_EQ(rma::free_win(p, &w), Err::ok);
        if (p.world_rank == 0) { EXPECT_EQ(own[2], 60); }
    });
}

// Threads of each rank draw numbers from rank 0's counter: each is drawn once, whoever serves. What a thread has put it gets.
void draw_numbers(obj::Info* (*hints)(Process&), uint32_t helper_us = 0) {
    constexpr int ranks = 2, threads = 2, rounds = 50;
    static std::atomic<int> drawn[ranks * threads * rounds];
    for (auto& d : drawn) d.store(0);
    run_ranks(ranks, ThreadLevel::multiple, [hints, helper_us](Process& p) {
        p.rma_helper_us = helper_us;
        int64_t own[1 + ranks * threads] = {};
        obj::Win* w = nullptr;
        obj::Info* info = hints(p);
        ASSERT_EQ(rma::create(p, own, sizeof own, 8, info, p.world, &w), Err::ok) << fail_text();
        if (info != nullptr) obj::free_info(p, *info);
        ASSERT_EQ(rma::lock_all(p, 0, *w), Err::ok);
        const auto work = [&](int thread) {
            adopt(p);
            const int place = 1 + 2 * p.world_rank + thread;
            for (int64_t i = 0; i < rounds; i++) {
                int64_t one = 1, ticket = -1, got = -1;
                ASSERT_EQ(rma::fetch_and_op(p, &one, &ticket, long_type(), 0, 0, sum_of(), *w), Err::ok) << fail_text();
                ASSERT_EQ(rma::put(p, longs(&i, 1), 0, place, 1, long_type(), *w), Err::ok) << fail_text();
                ASSERT_EQ(rma::flush(p, 0, *w), Err::ok);
                ASSERT_EQ(rma::get(p, longs(&got, 1), 0, place, 1, long_type(), *w), Err::ok) << fail_text();
                ASSERT_EQ(rma::flush(p, 0, *w), Err::ok);
                ASSERT_EQ(got, i);
                ASSERT_GE(ticket, 0);
                drawn[ticket].fetch_add(1);
            }
        };
        std::thread other(work, 1);
        work(0);
        other.join();
        ASSERT_EQ(rma::unlock_all(p, *w), Err::ok);
        ASSERT_EQ(rma::free_win(p, &w), Err::ok);
    });
    for (auto& d : drawn) EXPECT_EQ(d.load(), 1);
}

TEST(Windows, ThreadsByMessages) {
    NEEDS_THREADS_PRESET();
    draw_numbers([](Process&) -> obj::Info* { return nullptr; });
}

TEST(Windows, ThreadsBesideHelper) {
    NEEDS_THREADS_PRESET();
    draw_numbers([](Process&) -> obj::Info* { return nullptr; }, 20);
}

TEST(Windows, ThreadsByLanes) {
    NEEDS_THREADS_PRESET();
    draw_numbers([](Process& p) {
        obj::Info* info = nullptr;
        if (obj::make_info(p, &info) != Err::ok) return info;
        EXPECT_EQ(obj::info_put(*info, "mpi_num_vcis", "2"), Err::ok);
        EXPECT_EQ(obj::info_put(*info, "accumulate_ordering", "none"), Err::ok);
        return info;
    });
}

}  // namespace
