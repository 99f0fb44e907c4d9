// Communicators of several lanes, by ranks that are threads: what hints ask for, which lane a message goes by, and threads at work.
#include <array>
#include <atomic>
#include <string>

#include "coll/calls.hpp"
#include "comm/agree.hpp"
#include "obj/info.hpp"
#include "obj/status.hpp"
#include "p2p/lanes.hpp"
#include "p2p/ranks_test.hpp"

using namespace weft;
using namespace weft::test;
using obj::By;
using obj::Comm;
using obj::Info;
using p2p::Envelope;

namespace {

using Hints = std::vector<std::pair<const char*, const char*>>;

Info* info_of(const Hints& hints) {
    Info* info = nullptr;
    EXPECT_EQ(obj::make_info(*obj::process, &info), Err::ok);
    for (const auto& [key, value] : hints) EXPECT_EQ(obj::info_put(*info, key, value), Err::ok);
    return info;
}

const Hints no_tag{{"mpi_assert_no_any_tag", "true"}}, no_source{{"mpi_assert_no_any_source", "true"}};
// The layout of the programs for which these hints were thought out: 5 bits each for the sender's and the receiver's thread, then 12.
const Hints layout{{"mpi_assert_no_any_tag", "true"}, {"mpi_assert_no_any_source", "true"}, {"mpi_assert_tag_based_parallelism", "true"},
                   {"mpi_num_tag_bits_for_vci", "5"}, {"mpi_num_tag_bits_for_app", "12"}};

Hints with(Hints some, std::initializer_list<std::pair<const char*, const char*>> more) {
    some.insert(some.end(), more);
    return some;
}

TEST(Fronts, HintsSayWhatChooses) {
    constexpr uint32_t all = INT32_MAX;
    const struct {
        Hints hints;
        bool several;
        comm::Several want;
    } table[] = {
        {with(no_tag, {{"mpi_num_vcis", "4"}}), true, {4, By::tag, 0, all}},
        {with(no_source, {{"mpi_num_vcis", "3"}}), true, {3, By::source, 0, 0}},
        {with(layout, {{"mpi_num_vcis", "8"}}), true, {8, By::tag, 12, 31}},
        {with(no_tag, {{"mpi_num_vcis", "64"}}), true, {lane::most_lanes, By::tag, 0, all}},
        // Without the assertion that tags tell threads, or without its bits, all of the tag counts.
        {with(no_tag, {{"mpi_num_vcis", "4"}, {"mpi_num_tag_bits_for_vci", "5"}, {"mpi_num_tag_bits_for_app", "12"}}), true, {4, By::tag, 0, all}},
        {with(no_tag, {{"mpi_num_vcis", "4"}, {"mpi_assert_tag_based_parallelism", "true"}}), true, {4, By::tag, 0, all}},
        {with(no_tag, {{"mpi_num_vcis", "4"}, {"mpi_assert_tag_based_parallelism", "true"}, {"mpi_num_tag_bits_for_vci", "3"}}), true, {4, By::tag, 0, 7}},
        // 31 bits are all that a tag has.
        {with(no_tag, {{"mpi_num_vcis", "4"}, {"mpi_assert_tag_based_parallelism", "true"}, {"mpi_num_tag_bits_for_vci", "8"}, {"mpi_num_tag_bits_for_app", "15"}}),
         true, {4, By::tag, 15, 255}},
        {with(no_tag, {{"mpi_num_vcis", "4"}, {"mpi_assert_tag_based_parallelism", "true"}, {"mpi_num_tag_bits_for_vci", "8"}, {"mpi_num_tag_bits_for_app", "16"}}),
         false, {}},
        // No number, and no promise.
        {no_tag, false, {}},
        {with(no_tag, {{"mpi_num_vcis", "1"}}), false, {}},
        {with(no_tag, {{"mpi_num_vcis", "many"}}), false, {}},
        {with(no_tag, {{"mpi_num_vcis", "-2"}}), false, {}},
        {{{"mpi_num_vcis", "4"}}, false, {}},
        {{{"mpi_num_vcis", "4"}, {"mpi_assert_allow_overtaking", "true"}}, false, {}},
        {{{"mpi_num_vcis", "4"}, {"mpi_assert_no_any_tag", "false"}}, false, {}},
        {{{"mpi_num_vcis", "4"}, {"mpi_assert_tag_based_parallelism", "true"}, {"mpi_num_tag_bits_for_vci", "5"}}, false, {}},
    };
    EXPECT_FALSE(comm::wants_several(nullptr, nullptr));
    for (const auto& line : table) {
        Info* info = info_of(line.hints);
        comm::Several got{};
        const bool several = comm::wants_several(info, &got);
        const std::string of = line.hints.back().first + std::string(" = ") + line.hints.back().second;
        EXPECT_EQ(several, line.several) << of;
        if (several && line.several) {
            EXPECT_EQ(got.lanes, line.want.lanes) << of;
            EXPECT_EQ(got.by, line.want.by) << of;
            EXPECT_EQ(got.shift, line.want.shift) << of;
            if (got.by == By::tag) { EXPECT_EQ(got.mask, line.want.mask) << of; }
        }
        obj::free_info(*obj::process, *info);
    }
}

int32_t number_of(const Comm& front, const Comm& branch) {
    for (int32_t i = 0; i < front.branches->count; ++i)
        if (front.branches->at[i] == &branch) return i;
    return -1;
}

// A message from the rank `source` with that tag: the number of the branch that chooses its lane.
struct Line {
    int32_t tag, source, want;
};

// Checks the lines on both sides: every rank as the sender, and as the receiver from each.
void check_lines(Comm& front, const std::vector<Line>& lines) {
    for (const Line& l : lines) {
        if (front.rank == l.source) { EXPECT_EQ(number_of(front, p2p::sender(front, 0, l.tag, 0)), l.want) << l.tag << " from " << l.source; }
        Comm* by = nullptr;
        ASSERT_EQ(p2p::receiver(front, l.source, l.tag, 0, &by), Err::ok);
        EXPECT_EQ(number_of(front, *by), l.want) << l.tag << " from " << l.source;
    }
}

// Under WEFT_LANES=hints: `lanes` branches on as many lanes, none of them the root lane, the same numbers in all ranks.
void check_mapping(const Hints& hints, int32_t lanes, const std::vector<Line>& lines) {
    constexpr int ranks = 3;
    static std::array<std::atomic<uint32_t>, ranks * lane::most_lanes> numbers;
    run_ranks(ranks, obj::ThreadLevel::multiple, [&](Process& p) {
        Info* info = info_of(hints);
        Comm *front = nullptr, *plain = nullptr;
        ASSERT_EQ(comm::dup_with_info(p, p.world, info, &front), Err::ok);
        ASSERT_EQ(comm::dup(p, *front, &plain), Err::ok);
        EXPECT_EQ(plain->lane, p.lane);   // no hints, no lane of its own
        ASSERT_NE(front->branches, nullptr);
        ASSERT_EQ(front->branches->count, lanes);
        uint32_t used = 0;
        for (int32_t i = 0; i < lanes; ++i) {
            const Comm& b = *front->branches->at[i];
            EXPECT_EQ(b.lane->number(), p.contexts.lane_of(b.context));
            used |= 1u << b.lane->number();
            numbers[static_cast<size_t>(p.world_rank * lane::most_lanes + i)] = b.context;
        }
        EXPECT_EQ(__builtin_popcount(used), lanes);
        EXPECT_EQ(used & 1, lanes == lane::most_lanes ? 1u : 0u);   // the root lane is one of 16
        barrier(p);
        for (int32_t i = 0; i < lanes; ++i)
            EXPECT_EQ(front->branches->at[i]->context, numbers[static_cast<size_t>((p.world_rank + 1) % ranks * lane::most_lanes + i)].load());
        check_lines(*front, lines);
        barrier(p);
        obj::release(*plain);
        obj::release(*front);
        obj::free_info(*obj::process, *info);
    });
}

TEST(Fronts, TagsAndSourcesChooseTheSameLaneOnBothSides) {
    setenv("WEFT_LANES", "hints", 1);
    check_mapping(with(no_tag, {{"mpi_num_vcis", "4"}}), 4, {{0, 0, 0}, {1, 0, 1}, {3, 1, 3}, {4, 1, 0}, {7, 2, 3}, {INT32_MAX, 2, 3}});
    check_mapping(with(no_source, {{"mpi_num_vcis", "2"}}), 2, {{0, 0, 0}, {9, 0, 0}, {0, 1, 1}, {9, 1, 1}, {0, 2, 0}, {9, 2, 0}});
    const auto tag = [](int from, int to, int app) { return from << 17 | to << 12 | app; };
    check_mapping(with(layout, {{"mpi_num_vcis", "5"}}), 5,
                  {{tag(0, 0, 0), 0, 0}, {tag(0, 1, 0), 0, 1}, {tag(1, 0, 0), 0, 0}, {tag(31, 4, 4095), 1, 4}, {tag(3, 5, 1), 2, 0}, {tag(0, 31, 77), 2, 1}});
    unsetenv("WEFT_LANES");
}

constexpr int threads = 3;

void run_threads(Process& p, const std::function<void(int)>& body) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back([&, i] {
            adopt(p);
            body(i);
        });
    for (auto& t : all) t.join();
}

// Sends `bytes` that tell from whom they are to `to`, and receives as many from `from`, by one of several ways.
void exchange(Process& p, Comm& c, Envelope to, Envelope from, size_t size, int round) {
    std::string out(size, static_cast<char>('a' + (to.tag + round) % 20)), in(size, 0);
    p2p::Request *receive = nullptr, *send = nullptr;
    const p2p::Mode mode = round % 5 == 0 ? p2p::Mode::synchronous : p2p::Mode::standard;
    obj::Status s{};
    if (round % 3 == 0) {
        ASSERT_EQ(p2p::isend(p, c, bytes(out.data(), size), to, mode, &send), Err::ok);
        ASSERT_EQ(p2p::probe(p, c, from, &s), Err::ok);
        ASSERT_EQ(p2p::recv(p, c, bytes(in.data(), size), from, &s), Err::ok);
    } else {
        ASSERT_EQ(p2p::irecv(p, c, bytes(in.data(), size), from, &receive), Err::ok);
        ASSERT_EQ(p2p::isend(p, c, bytes(out.data(), size), to, mode, &send), Err::ok);
        p2p::wait(p, *receive);
        ASSERT_EQ(p2p::finish(p, *receive, &s), Err::ok);
    }
    p2p::wait(p, *send);
    ASSERT_EQ(p2p::finish(p, *send, nullptr), Err::ok);
    EXPECT_EQ(in, std::string(size, static_cast<char>('a' + (from.tag + round) % 20)));
}

constexpr size_t sizes[] = {8, 200, 6000, 40, 150'000};

// All endpoints of two ranks exchange with all others, their own neighbours too; each then meets the others in collectives on a duplicate,
// while some are freed before others have left the last round.
TEST(Fronts, EndpointsOfThreads) {
    constexpr int ranks = 2, total = ranks * threads;
    run_ranks(ranks, obj::ThreadLevel::multiple, [](Process& p) {
        Comm* ep[threads];
        ASSERT_EQ(comm::create_endpoints(p, p.world, threads, ep), Err::ok);
        run_threads(p, [&](int i) {
            const int me = p.world_rank * threads + i;
            EXPECT_EQ(ep[i]->rank, me);
            for (int round = 0; round < 2 * total; ++round) {
                const int distance = round % total;
                exchange(p, *ep[i], {(me + distance) % total, distance}, {(me + total - distance) % total, distance}, sizes[(round + distance) % 5], round);
            }
            Comm* twin = nullptr;
            ASSERT_EQ(comm::dup(p, *ep[i], &twin), Err::ok);
            obj::release(*ep[i]);
            for (int round = 0; round < 20; ++round) {
                int all[total];
                const int mine = me + round;
                ASSERT_EQ(coll::allgather(p, *twin, ints(&mine, 1), ints(all, 1)), Err::ok);
                for (int r = 0; r < total; ++r) EXPECT_EQ(all[r], r + round);
            }
            obj::release(*twin);
        });
        barrier(p);
    });
}

// Threads of two ranks on one communicator whose tags tell the receiver's thread.
TEST(Fronts, ThreadsByTags) {
    run_ranks(2, obj::ThreadLevel::multiple, [](Process& p) {
        Info* info = info_of(with(layout, {{"mpi_num_vcis", "3"}}));
        Comm* front = nullptr;
        ASSERT_EQ(comm::dup_with_info(p, p.world, info, &front), Err::ok);
        const int peer = 1 - p.world_rank;
        run_threads(p, [&](int i) {
            for (int round = 0; round < 60; ++round) {
                const int to = (i + round) % threads, from = (i + 2 * threads - round % threads) % threads;
                exchange(p, *front, {peer, i << 17 | to << 12}, {peer, from << 17 | i << 12}, sizes[round % 5], round);
            }
        });
        barrier(p);
        obj::release(*front);
        obj::free_info(*obj::process, *info);
    });
}

}  // namespace
