// Messages whose buffers lie in memory that both ranks have mapped, beside those that do not.
#include <cstring>
#include <random>
#include <vector>

#include "heap/mapped.hpp"
#include "p2p/p2p.hpp"
#include "p2p/ranks_test.hpp"
#include "type/build.hpp"

using namespace weft;
using namespace weft::test;
using obj::ThreadLevel;
using p2p::Mode;
using p2p::Request;
using wire::shm::Mover;

namespace {

constexpr size_t room = 8 << 20;
char ordinary[6][room];   // two for each rank, of the program itself: never in the heap

// Memory of which both ranks of a test say that all have mapped it, which is true of threads.
class Place {
public:
    Place() {
        segment_.ranks = 1;
        segment_.slices = static_cast<char*>(os::map_private(6 * room));
        segment_.same_address = true;
    }
    ~Place() { os::unmap(segment_.slices, 6 * room); }
    void enter(Process& p, int64_t both, uint32_t block) const {
        p.lane->segment = &segment_;
        p.lane->limits.mapped_min = 64;
        p.lane->limits.chunk_max = 63;
        p.lane->limits.mapped_both = both;
        p.lane->limits.mapped_block = block;
        barrier(p);
    }
    // Buffer `n` of the rank's two.
    char* buffer(const Process& p, int n, bool mapped) const {
        const int i = 2 * p.world_rank + n;
        return mapped ? segment_.slices + static_cast<size_t>(i) * room : ordinary[i];
    }

private:
    heap::Segment segment_;
};

char pattern(size_t i, uint32_t id) { return static_cast<char>(i * 31 + i / 251 + id * 7); }
void fill(char* b, size_t bytes, uint32_t id) {
    for (size_t i = 0; i < bytes; ++i) b[i] = pattern(i, id);
}
bool holds(const char* b, size_t bytes, uint32_t id) {
    for (size_t i = 0; i < bytes; ++i)
        if (b[i] != pattern(i, id)) return false;
    return true;
}
uint64_t by(const Process& p, Mover m) { return p.lane->counters.received_by[static_cast<int>(m)]; }

TEST(Mapped, EverySizeArrivesWhereverTheBuffersLie) {
    const Place place;
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        place.enter(p, 400, 200);
        uint32_t id = 0;
        for (const size_t size : {63, 64, 65, 199, 200, 201, 399, 400, 401, 601, 4097, 65536, 524289, 3000001})
            for (const bool from : {false, true})
                for (const bool to : {false, true}) {
                    ++id;
                    const uint64_t gets = by(p, Mover::mapped_get), boths = by(p, Mover::mapped_both);
                    if (p.world_rank == 0) {
                        char* const b = place.buffer(p, 0, from);
                        fill(b, size, id);
                        ASSERT_EQ(p2p::send(p, p.world, bytes(b, size), {1, 1}, Mode::standard), Err::ok);
                    } else {
                        char* const b = place.buffer(p, 0, to);
                        b[size] = 0x5a;
                        ASSERT_EQ(p2p::recv(p, p.world, bytes(b, room), {0, 1}, nullptr), Err::ok);
                        EXPECT_TRUE(holds(b, size, id)) << size << from << to;
                        EXPECT_EQ(b[size], 0x5a) << size;
                        const bool mapped = from && size >= 64, both = mapped && to && size >= 400;
                        EXPECT_EQ(by(p, Mover::mapped_get) - gets, mapped && !both ? 1u : 0u) << size << from << to;
                        EXPECT_EQ(by(p, Mover::mapped_both) - boths, both ? 1u : 0u) << size << from << to;
                    }
                }
    });
}

TEST(Mapped, WhatDoesNotFitIsCutOffAndWhatIsNotContiguousIsUnpacked) {
    const Place place;
    type::Type* vector = nullptr;
    ASSERT_EQ(type::vector(type::Width::classic, 1000, 100, 150, *type::predefined_at(0x247), &vector), Err::ok);
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        place.enter(p, 400, 300);
        char* const b = place.buffer(p, 0, true);
        const type::Buffer strided{b, 1, vector};
        fill(b, 150'000, 1);
        if (p.world_rank == 0) {
            ASSERT_EQ(p2p::send(p, p.world, bytes(b, 100'000), {1, 1}, Mode::standard), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, bytes(b, 100'000), {1, 2}, Mode::standard), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, strided, {1, 3}, Mode::standard), Err::ok);
            return;
        }
        memset(b, 0, 150'000);
        ASSERT_EQ(p2p::recv(p, p.world, bytes(b, 70'001), {0, 1}, nullptr), Err::truncate);
        EXPECT_TRUE(holds(b, 70'001, 1));
        EXPECT_EQ(b[70'001], 0);
        ASSERT_EQ(p2p::recv(p, p.world, strided, {0, 2}, nullptr), Err::ok);
        EXPECT_EQ(by(p, Mover::mapped_get), 1u);
        for (size_t i = 0; i < 100'000; ++i) ASSERT_EQ(b[i / 100 * 150 + i % 100], pattern(i, 1)) << i;
        ASSERT_EQ(p2p::recv(p, p.world, bytes(b, 100'000), {0, 3}, nullptr), Err::ok);
        for (size_t i = 0; i < 100'000; ++i) ASSERT_EQ(b[i], pattern(i / 100 * 150 + i % 100, 1)) << i;
    });
    type::release(*vector);
}

// A sender that computes does not hold up the receiver, nor a receiver that does the sender once both have begun.
TEST(Mapped, EitherSideFinishesAlone) {
    const Place place;
    constexpr size_t size = 4 << 20;
    std::atomic<int> step{0};
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        place.enter(p, 0, 4096);
        const auto reached = [&](int n) {
            while (step.load(std::memory_order_acquire) < n) std::this_thread::yield();
        };
        char* const b = place.buffer(p, 0, true);
        Request* r = nullptr;
        if (p.world_rank == 0) {
            fill(b, size, 1);
            ASSERT_EQ(p2p::isend(p, p.world, bytes(b, size), {1, 1}, Mode::standard, &r), Err::ok);
            reached(1);   // outside MPI until the receiver has all
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            fill(b, size, 2);
            ASSERT_EQ(p2p::isend(p, p.world, bytes(b, size), {1, 2}, Mode::standard, &r), Err::ok);
            step.store(2, std::memory_order_release);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            step.store(3, std::memory_order_release);
            return;
        }
        ASSERT_EQ(p2p::recv(p, p.world, bytes(b, size), {0, 1}, nullptr), Err::ok);
        EXPECT_TRUE(holds(b, size, 1));
        EXPECT_EQ(p.lane->counters.assisted, 0u);
        step.store(1, std::memory_order_release);
        reached(2);
        ASSERT_EQ(p2p::irecv(p, p.world, bytes(b, size), {0, 2}, &r), Err::ok);
        while (p.lane->rndvs.empty() && !r->done()) (void)p2p::test(p, *r);   // begins: a share of the message, and no more
        reached(3);       // outside MPI until the sender has copied the rest
        p2p::wait(p, *r);
        ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
        EXPECT_TRUE(holds(b, size, 2));
        EXPECT_EQ(p.lane->counters.assisted, 1u);
    });
}

// Each message is in one class: what is counted when it is sent, and by its mover where it is received, adds up.
TEST(Mapped, TheCensusAddsUp) {
    const Place place;
    std::atomic<uint64_t> messages{0}, sent{0}, large{0}, received{0};
    run_ranks(3, ThreadLevel::single, [&](Process& p) {
        p.lane->limits.split_cma = p.world_rank == 1;
        place.enter(p, 2000, 700);
        const lane::Counters before = p.lane->counters;
        const uint64_t before_inline = p.lane->sent_inline();
        std::mt19937 random(static_cast<uint32_t>(p.world_rank) + 1);
        const int next = (p.world_rank + 1) % 3, previous = (p.world_rank + 2) % 3;
        for (int i = 0; i < 300; ++i) {
            const size_t size = size_t{1} << random() % 21;
            const bool from = random() % 2 != 0, to = random() % 2 != 0;
            const Mode mode = random() % 4 == 0 ? Mode::synchronous : Mode::standard;
            Request* r = nullptr;
            ASSERT_EQ(p2p::isend(p, p.world, bytes(place.buffer(p, 0, from), size), {next, 1}, mode, &r), Err::ok);
            ASSERT_EQ(p2p::recv(p, p.world, bytes(place.buffer(p, 1, to), room), {previous, 1}, nullptr), Err::ok);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            ++messages;
        }
        const lane::Counters& now = p.lane->counters;
        sent += p.lane->sent_inline() - before_inline + now.sent_eager - before.sent_eager + now.sent_large - before.sent_large;
        large += now.sent_large - before.sent_large;
        for (int m = 0; m < wire::shm::movers; ++m) received += now.received_by[m] - before.received_by[m];
    });
    EXPECT_EQ(sent.load(), messages.load());
    EXPECT_EQ(received.load(), large.load());
}

}  // namespace
