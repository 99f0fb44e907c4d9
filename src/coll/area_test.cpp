// Areas with ranks as threads: all memory is at the same address in all of them, so ThreadSanitizer sees lines, slots, staging memory
// and marks.
#include "coll/area.hpp"

#include <atomic>
#include <cstdlib>
#include <random>
#include <thread>

#include "coll/calls.hpp"
#include "comm/comm.hpp"
#include "heap/heap.hpp"
#include "op/predefined.hpp"
#include "os/clock.hpp"
#include "p2p/calls.hpp"
#include "p2p/ranks_test.hpp"

using namespace weft;
using namespace weft::test;
using coll::Forced;
using coll::Layout;
using coll::Line;
using coll::Share;
using obj::Comm;
using obj::Request;
using obj::ThreadLevel;

namespace {

const op::Op& sum() { return *op::predefined_at(33); }

void share_memory(Process& p, Forced f) {
    if (p.segment != nullptr) p.segment->same_address = true;
    p.coll_choice = static_cast<uint8_t>(f);
}

// Runs `body` in every rank, in areas from the first collectives on.
void run_in_areas(int ranks, Forced f, const std::function<void(Process&)>& body, ThreadLevel level = ThreadLevel::single) {
    run_ranks(ranks, level, [&](Process& p) {
        share_memory(p, f);
        for (int i = 0; i < 6; i++) ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        EXPECT_EQ(coll::share_of(p.world) != nullptr, f != Forced::messages);
        body(p);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

TEST(Layout, NothingOverlaps) {
    for (int32_t ranks : {2, 3, 8, 64}) {
        const Layout l{ranks, 4096};
        EXPECT_GE(l.marks(), sizeof(coll::Head));
        EXPECT_GE(l.lines(), l.marks() + static_cast<size_t>(ranks) * 64);
        EXPECT_GE(l.slots(), l.lines() + static_cast<size_t>(ranks) * 64 * Layout::depth);
        EXPECT_GE(l.stages(), l.slots() + static_cast<size_t>(ranks) * 4096 * Layout::depth);
        EXPECT_EQ(l.bytes(), l.stages() + static_cast<size_t>(ranks) * 4096);
        EXPECT_EQ(l.stages() % 64, 0u);
    }
}

// Litmus: who sees the number of a call in a line sees that call's data, and nobody writes what somebody still reads. Members run
// ahead of each other as far as their lines allow.
TEST(Area, LinesHoldWhatTheirNumberSays) {
    constexpr int members = 3;
    constexpr uint64_t calls = 20000;
    const Layout l{members, 4096};
    void* memory = nullptr;
    ASSERT_EQ(posix_memalign(&memory, 4096, l.bytes()), 0);
    memset(memory, 0, l.bytes());
    std::vector<std::thread> pool;
    for (int32_t me = 0; me < members; me++)
        pool.emplace_back([&, me] {
            Share s;
            s.layout = l;
            s.base = static_cast<char*>(memory);
            s.me = me;
            s.ranks = members;
            auto until = [](coll::Watch w) {
                while (!w.over()) std::this_thread::yield();
            };
            for (uint64_t n = 1; n <= calls; n++) {
                const auto writer = static_cast<int32_t>(n % members);
                if (writer == me) {
                    if (n > Layout::depth) until(s.marks_of(Share::mark_done(n - Layout::depth)));
                    Line& line = s.line(n, me);
                    line.bytes = static_cast<int64_t>(n);
                    memset(line.data, static_cast<int>(n % 251), Line::room);
                    line.call.store(n, std::memory_order_seq_cst);
                } else {
                    until(s.line_of(n, writer));
                    const Line& line = s.line(n, writer);
                    ASSERT_EQ(line.bytes, static_cast<int64_t>(n));
                    for (char c : line.data) ASSERT_EQ(static_cast<unsigned char>(c), n % 251);
                }
                s.mark(me).store(Share::mark_done(n), std::memory_order_seq_cst);
            }
        });
    for (auto& t : pool) t.join();
    free(memory);
}

// Blocks whose sizes two members know: some fit into a line or slot, others do not. What member a has for b is a * 1000 + b + i, and more
// of it the larger their sum.
void of_any_sizes(Process& p, int i, int count, int root) {
    const int ranks = p.world_size, me = p.world_rank;
    std::vector<int> counts(static_cast<size_t>(ranks)), at(counts.size());
    int all = 0;
    for (int k = 0; k < ranks; k++) {
        counts[static_cast<size_t>(k)] = (me + k) * count / 2;
        at[static_cast<size_t>(k)] = all;
        all += counts[static_cast<size_t>(k)];
    }
    std::vector<int> out(static_cast<size_t>(all) + 1, -1), back(out.size(), -1);
    for (int k = 0; k < ranks; k++) std::fill_n(out.begin() + at[static_cast<size_t>(k)], counts[static_cast<size_t>(k)], me * 1000 + k + i);
    auto& t = const_cast<type::Type&>(*ints(nullptr, 0).type);
    const obj::Ints c{counts.data(), false}, d{at.data(), false};
    const auto mine = static_cast<size_t>(root);
    auto expect = [&](int a, int b, int from) {
        for (int k = 0; k < (a + b) * count / 2; k++) ASSERT_EQ(back[static_cast<size_t>(from + k)], a * 1000 + b + i);
    };
    ASSERT_EQ(coll::alltoallv(p, p.world, out.data(), c, d, t, back.data(), c, d, t), Err::ok);
    for (int k = 0; k < ranks; k++) expect(k, me, at[static_cast<size_t>(k)]);
    ASSERT_EQ(coll::gatherv(p, p.world, ints(out.data() + at[mine], counts[mine]), back.data(), c, d, t, root), Err::ok);
    for (int k = 0; k < ranks && me == root; k++) expect(k, root, at[static_cast<size_t>(k)]);
    ASSERT_EQ(coll::scatterv(p, p.world, out.data(), c, d, t, ints(back.data() + at[mine], counts[mine]), root), Err::ok);
    expect(root, me, at[mine]);
}

// Calls of all kinds and sizes in a random order that all members draw alike; some members are late.
void mixed(Process& p, unsigned seed, int calls) {
    std::mt19937 same(seed), own(seed + static_cast<unsigned>(p.world_rank) + 1);
    const int ranks = p.world_size, me = p.world_rank;
    for (int i = 0; i < calls; i++) {
        const int what = static_cast<int>(same() % 11), root = static_cast<int>(same() % static_cast<unsigned>(ranks));
        const int count = std::array{1, 5, 12, 13, 300, 1024, 1025, 40000}[same() % 8];
        const auto n = static_cast<size_t>(count), all = n * static_cast<size_t>(ranks);
        if (own() % 16 == 0) std::this_thread::yield();
        std::vector<int> in(all), out(all, -1);
        for (size_t k = 0; k < all; k++) in[k] = static_cast<int>(k) + me + i;
        const int base = ranks * (ranks - 1) / 2 + ranks * i;
        switch (what) {
            case 0: ASSERT_EQ(coll::barrier(p, p.world), Err::ok); break;
            case 1:
                ASSERT_EQ(coll::bcast(p, p.world, ints(in.data(), count), root), Err::ok);
                for (size_t k = 0; k < n; k++) ASSERT_EQ(in[k], static_cast<int>(k) + root + i);
                break;
            case 2:
                ASSERT_EQ(coll::reduce(p, p.world, ints(in.data(), count), ints(out.data(), count), sum(), root), Err::ok);
                for (size_t k = 0; k < n; k++) ASSERT_EQ(out[k], me == root ? static_cast<int>(k) * ranks + base : -1);
                break;
            case 3:
                ASSERT_EQ(coll::allreduce(p, p.world, ints(in.data(), count), ints(out.data(), count), sum()), Err::ok);
                for (size_t k = 0; k < n; k++) ASSERT_EQ(out[k], static_cast<int>(k) * ranks + base);
                break;
            case 4:
                ASSERT_EQ(coll::allgather(p, p.world, ints(in.data(), count), ints(out.data(), count)), Err::ok);
                for (size_t k = 0; k < all; k++) ASSERT_EQ(out[k], static_cast<int>(k % n) + static_cast<int>(k / n) + i);
                break;
            case 5:
                ASSERT_EQ(coll::alltoall(p, p.world, ints(in.data(), count), ints(out.data(), count)), Err::ok);
                for (size_t k = 0; k < all; k++) ASSERT_EQ(out[k], static_cast<int>(k % n) + me * count + static_cast<int>(k / n) + i);
                break;
            case 6:
                ASSERT_EQ(coll::gather(p, p.world, ints(in.data(), count), ints(out.data(), count), root), Err::ok);
                for (size_t k = 0; k < all; k++) ASSERT_EQ(out[k], me == root ? static_cast<int>(k % n) + static_cast<int>(k / n) + i : -1);
                break;
            case 7:
                ASSERT_EQ(coll::scatter(p, p.world, ints(in.data(), count), ints(out.data(), count), root), Err::ok);
                for (size_t k = 0; k < n; k++) ASSERT_EQ(out[k], static_cast<int>(k) + me * count + root + i);
                break;
            case 8:
                ASSERT_EQ(coll::reduce_scatter_block(p, p.world, ints(in.data(), count), ints(out.data(), count), sum()), Err::ok);
                for (size_t k = 0; k < n; k++) ASSERT_EQ(out[k], (static_cast<int>(k) + me * count) * ranks + base);
                break;
            case 9:
                ASSERT_EQ(coll::scan(p, p.world, ints(in.data(), count), ints(out.data(), count), sum()), Err::ok);
                for (size_t k = 0; k < n; k++) ASSERT_EQ(out[k], (static_cast<int>(k) + i) * (me + 1) + me * (me + 1) / 2);
                break;
            default:
                of_any_sizes(p, i, count, root);
        }
    }
}

TEST(Area, AllCallsByLines) { run_in_areas(3, Forced::lines, [](Process& p) { mixed(p, 1, 200); }); }
TEST(Area, AllCallsByStages) { run_in_areas(3, Forced::stages, [](Process& p) { mixed(p, 2, 60); }); }
TEST(Area, AllCallsAsTheTableSays) {
    for (int ranks : {2, 4}) run_in_areas(ranks, Forced::no, [](Process& p) { mixed(p, 3, 60); });
}
TEST(Area, NoneWhereMessagesAreAskedFor) { run_in_areas(2, Forced::messages, [](Process& p) { mixed(p, 4, 20); }); }

TEST(Area, NoneWhereOneMemberCannotAddressIt) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        share_memory(p, Forced::no);
        if (p.world_rank == 1) p.segment->same_address = false;
        const uint64_t before = p.heap->bytes_in_use();
        mixed(p, 5, 20);
        EXPECT_EQ(coll::share_of(p.world), nullptr);
        EXPECT_EQ(p.heap->bytes_in_use(), before);
        coll::close(p);
    });
}

// Nonblocking ones in their own area, many at once, while blocking ones go on.
TEST(Area, NonblockingBesideBlocking) {
    run_in_areas(3, Forced::stages, [](Process& p) {
        constexpr int many = 20, count = 3000;
        std::vector<std::vector<int>> in(many, std::vector<int>(count)), out(many, std::vector<int>(count, -1));
        Request* r[many];
        for (int i = 0; i < many; i++) {
            for (int k = 0; k < count; k++) in[static_cast<size_t>(i)][static_cast<size_t>(k)] = k + p.world_rank + i;
            const auto n = static_cast<size_t>(i);
            ASSERT_EQ(coll::allreduce(p, p.world, ints(in[n].data(), count), ints(out[n].data(), count), sum(), &r[i]), Err::ok);
            int told = p.world_rank == i % 3 ? i : -1;
            ASSERT_EQ(coll::bcast(p, p.world, ints(&told, 1), i % 3), Err::ok);
            EXPECT_EQ(told, i);
        }
        for (int i = 0; i < many; i++) {
            p2p::wait(p, *r[i]);
            ASSERT_EQ(p2p::finish(p, *r[i], nullptr), Err::ok);
            for (int k = 0; k < count; k++) ASSERT_EQ(out[static_cast<size_t>(i)][static_cast<size_t>(k)], 3 * (k + i) + 3);
        }
    });
}

// Members start persistent ones in different orders, again and again; the memory of each comes back.
void persistent_ones(Process& p, int count) {
    constexpr int many = 4, starts = 20;
    const auto n = static_cast<size_t>(count);
    const uint64_t before = p.heap->bytes_in_use();
    std::vector<std::vector<int>> in(many, std::vector<int>(n)), out(many, std::vector<int>(n));
    Request* r[many];
    for (int i = 0; i < many; i++) {
        const auto k = static_cast<size_t>(i);
        ASSERT_EQ(coll::allreduce(p, p.world, ints(in[k].data(), count), ints(out[k].data(), count), sum(), nullptr, &r[i]), Err::ok);
    }
    EXPECT_TRUE(p.world_rank != 0 || p.heap->bytes_in_use() > before);
    for (int s = 0; s < starts; s++) {
        for (int i = 0; i < many; i++) {
            const int which = (i + p.world_rank + s) % many;
            std::fill(in[static_cast<size_t>(which)].begin(), in[static_cast<size_t>(which)].end(), p.world_rank + which + s);
            ASSERT_EQ(p2p::start(p, &r[which]), Err::ok);
        }
        for (int i = 0; i < many; i++) {
            p2p::wait(p, *r[i]);
            ASSERT_EQ(p2p::finish(p, *r[i], nullptr), Err::ok);
            for (int got : out[static_cast<size_t>(i)]) ASSERT_EQ(got, p.world_size * (p.world_size - 1) / 2 + p.world_size * (i + s));
        }
    }
    for (Request* one : r) p2p::free_request(p, *one);
    barrier(p);
    coll::sweep_areas(p);
    EXPECT_EQ(p.heap->bytes_in_use(), before);
}

TEST(Area, PersistentOnesNeedNoCommonOrder) {
    run_in_areas(3, Forced::lines, [](Process& p) { persistent_ones(p, 3); });
    run_in_areas(3, Forced::stages, [](Process& p) { persistent_ones(p, 5000); });
}

// Nobody overwrites a line that somebody still reads, though who hears nothing from its readers is some calls ahead of them.
TEST(Area, PersistentWritersRunAheadOfTheirReaders) {
    run_in_areas(3, Forced::lines, [](Process& p) {
        constexpr int calls = 400, root = 2;
        int told = -1, mine = 0, all = -1;
        Request *bcast = nullptr, *reduce = nullptr;
        ASSERT_EQ(coll::bcast(p, p.world, ints(&told, 1), 0, nullptr, &bcast), Err::ok);
        ASSERT_EQ(coll::reduce(p, p.world, ints(&mine, 1), ints(&all, 1), sum(), root, nullptr, &reduce), Err::ok);
        for (int i = 0; i < calls; i++) {
            if (i / 50 % 3 == p.world_rank) std::this_thread::yield();
            told = p.world_rank == 0 ? i : -1;
            mine = i + p.world_rank;
            for (Request* r : {bcast, reduce}) ASSERT_EQ(p2p::start(p, &r), Err::ok);
            bool over = false;
            while (!over) ASSERT_EQ(p2p::test_request(p, &bcast, &over, nullptr), Err::ok);
            p2p::wait(p, *reduce);
            ASSERT_EQ(p2p::finish(p, *reduce, nullptr), Err::ok);
            ASSERT_EQ(told, i);
            ASSERT_EQ(all, p.world_rank == root ? 3 * i + 3 : -1);
        }
        for (Request* r : {bcast, reduce}) p2p::free_request(p, *r);
        barrier(p);
    });
}

// Members begin nonblocking and blocking ones in different orders, also around the call that makes the area.
TEST(Area, TheTwoKindsNeedNoCommonOrder) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        share_memory(p, Forced::stages);
        for (int i = 0; i < 20; i++) {
            int in[300], out[300], told = p.world_rank == 0 ? i : -1;
            for (int k = 0; k < 300; k++) in[k] = p.world_rank + i + k;
            Request* r = nullptr;
            auto add = [&] { ASSERT_EQ(coll::allreduce(p, p.world, ints(in, 300), ints(out, 300), sum(), &r), Err::ok); };
            if ((p.world_rank + i) % 2 == 0) add();
            ASSERT_EQ(coll::bcast(p, p.world, ints(&told, 1), 0), Err::ok);
            if ((p.world_rank + i) % 2 != 0) add();
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            EXPECT_EQ(told, i);
            for (int k = 0; k < 300; k++) ASSERT_EQ(out[k], 3 * (i + k) + 3);
        }
        EXPECT_NE(coll::share_of(p.world), nullptr);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

// Members that bring different sizes are told, where the library looks for it, and the area can be used again.
TEST(Area, DifferentSizesAreAnError) {
    if (!coll::compares_sizes) GTEST_SKIP() << "this build does not look";
    for (Forced f : {Forced::lines, Forced::stages})
        run_in_areas(3, f, [](Process& p) {
            std::vector<int> in(600, 1), out(600, -1);
            const int mine = p.world_rank == 1 ? 100 : 101;
            const Err e = coll::allreduce(p, p.world, ints(in.data(), mine), ints(out.data(), mine), sum());
            EXPECT_EQ(e, Err::truncate);
            ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
            EXPECT_EQ(coll::allgather(p, p.world, ints(in.data(), mine), ints(out.data(), mine)), Err::truncate);
            ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
            const Err gathered = coll::gather(p, p.world, ints(in.data(), mine), ints(out.data(), mine), 0);
            EXPECT_EQ(gathered, p.world_rank == 0 ? Err::truncate : Err::ok);
            mixed(p, 6, 30);
        });
}

// A member that sleeps is woken by a word of another.
TEST(Area, SleepersAreWoken) {
    run_in_areas(2, Forced::no, [](Process& p) {
        p.lane->limits.sleep_ns = 0;
        for (int i = 0; i < 30; i++) {
            if (p.world_rank == i % 2) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            const uint64_t began = os::now_ns();
            ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
            EXPECT_LT(os::now_ns() - began, uint64_t{2'000'000'000});
        }
    });
}

// What an area takes comes back when its communicator is freed by all, in whatever order. (Only where each thread has a Process of its
// own does the end of a communicator know which rank's it was.)
#if WEFT_THREADS_PRESET
TEST(Area, MemoryComesBack) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        share_memory(p, Forced::no);
        const uint64_t before = p.heap->bytes_in_use();
        for (int i = 0; i < 20; i++) {
            Comm* c = nullptr;
            ASSERT_EQ(comm::dup(p, p.world, &c), Err::ok);
            for (int k = 0; k < 8; k++) ASSERT_EQ(coll::barrier(p, *c), Err::ok);
            EXPECT_NE(coll::share_of(*c), nullptr);
            int told = i;
            ASSERT_EQ(coll::bcast(p, *c, ints(&told, 1), 0), Err::ok);
            ASSERT_EQ(comm::free_comm(p, &c), Err::ok);
        }
        barrier(p);
        coll::sweep_areas(p);
        EXPECT_EQ(p.heap->bytes_in_use(), before);
        coll::close(p);
    });
}

#endif

TEST(Area, ThreadsOnTheirOwnCommunicators) {
    constexpr int threads = 3;
    run_ranks(2, ThreadLevel::multiple, [](Process& p) {
        share_memory(p, Forced::no);
        Comm* comms[threads] = {};
        for (Comm*& c : comms) ASSERT_EQ(comm::dup(p, p.world, &c), Err::ok);
        std::vector<std::thread> pool;
        for (int t = 0; t < threads; t++)
            pool.emplace_back([&p, &comms, t] {
                adopt(p);
                for (int i = 0; i < 60; i++) {
                    int in = p.world_rank + i + t, out = -1, told = p.world_rank == i % 2 ? i : -1;
                    ASSERT_EQ(coll::allreduce(p, *comms[t], ints(&in, 1), ints(&out, 1), sum()), Err::ok);
                    ASSERT_EQ(coll::bcast(p, *comms[t], ints(&told, 1), i % 2), Err::ok);
                    EXPECT_EQ(out, 1 + 2 * (i + t));
                    EXPECT_EQ(told, i);
                }
            });
        for (auto& t : pool) t.join();
        for (Comm*& c : comms) ASSERT_EQ(comm::free_comm(p, &c), Err::ok);
        ASSERT_EQ(coll::barrier(p, p.world), Err::ok);
        coll::close(p);
    });
}

}  // namespace
