// Chunks in both directions at once, through the pools of both ends: nothing is written to that is unread.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "os/clock.hpp"
#include "wire/shm/shm.hpp"

using namespace weft;
using namespace weft::wire::shm;
using wire::BulkRef;
using wire::Cell;
using wire::Header;

namespace {

struct Place {
    size_t bytes = Layout{2}.bytes();
    std::unique_ptr<void, void (*)(void*)> memory{aligned_alloc(4096, bytes), free};
    Place() { memset(memory.get(), 0, bytes); }
    char* base() { return static_cast<char*>(memory.get()); }
};

// One rank: trains of chunks with random sizes and known bytes, and what it expects from the other.
struct End {
    Shm shm;
    int me;
    std::mt19937 random, theirs;          // what this one sends; what the other sends, drawn again here
    uint32_t chunks = 0, left = 0;        // sent so far; of the train
    uint32_t taken = 0;                   // read so far
    uint32_t awaited = 0;                 // sent after one from the other had come
    uint32_t train_chunks, largest;

    End(Place& place, int self, uint32_t most_chunks, uint32_t most_bytes, bool claim)
        : me(self), random(static_cast<unsigned>(self) + 1), theirs(static_cast<unsigned>(1 - self) + 1), train_chunks(most_chunks), largest(most_bytes) {
        EXPECT_EQ(shm.open(place.base(), 2, self, false, claim), Err::ok);
    }
    ~End() { shm.close(); }
    static char byte_of(uint32_t chunk, size_t at) { return static_cast<char>(chunk * 131 + at / 64 * 7 + at); }

    // The next chunk of the train, of `size` bytes or of any, if there is room. A quarter of the reservations are given up first.
    bool send(uint32_t size = 0) {
        const uint32_t n = size != 0 ? size : 1 + draw(random) % largest;
        if (left == 0) {
            left = 1 + chunks % train_chunks;
            promised = shm.has_room(1 - me, left, largest) ? left : 0;
        }
        Cell* c = shm.reserve(1 - me);
        if (c == nullptr) return undo();
        BulkRef ref{};
        char* to = shm.reserve_bulk(1 - me, n, &ref);
        const bool is_awaited = shm.to(1 - me).awaited;
        if (to != nullptr && chunks % 4 == 3) {
            shm.discard(1 - me, c);
            to = shm.reserve_bulk(1 - me, n, &ref);
            EXPECT_NE(to, nullptr);
        }
        if (to == nullptr) {
            shm.discard(1 - me, c);
            return undo();
        }
        for (size_t k = 0; k < n; ++k) to[k] = byte_of(chunks, k);
        shm.written(1 - me, to, n);
        awaited += is_awaited;
        memcpy(c->payload, &ref, sizeof ref);
        --left;
        shm.commit(1 - me, c, Header{1, sizeof ref, wire::has_bulk, me, static_cast<int32_t>(chunks), 0});
        if (promised != 0) --promised;
        ++chunks;
        drawn = false;
        return true;
    }
    bool take(uint64_t, const Cell&) { return false; }
    bool arrive(int, const Header& h, const char* payload, const char* bulk) {
        BulkRef ref;
        memcpy(&ref, payload, sizeof ref);
        const uint32_t n = ref.bytes;
        EXPECT_TRUE(n == 1 + theirs() % largest);
        EXPECT_EQ(h.tag, static_cast<int32_t>(taken));
        std::unique_ptr<char[]> copy(new char[n]);
        shm.copy_out(copy.get(), bulk, n);
        size_t wrong = 0;
        for (size_t k = 0; k < n; ++k) wrong += copy[k] != byte_of(taken, k);
        EXPECT_EQ(wrong, 0u) << "chunk " << taken << " of " << n << " bytes";
        ++taken;
        return true;
    }
    struct Sink {
        End& e;
        bool take(uint64_t, const Cell&) { return false; }
        bool arrive(int peer, const Header& h, const char* payload, const char* bulk) { return e.arrive(peer, h, payload, bulk); }
    };
    template <uint32_t burst>
    bool poll() { return shm.poll_from<burst>(shm.from(1 - me), Sink{*this}); }

private:
    uint32_t value = 0;
    bool drawn = false;
    uint32_t promised = 0;                // chunks of this train that has_room() found room for, still to be sent
    uint32_t draw(std::mt19937& from) {
        if (!drawn) value = from();
        drawn = true;
        return value;
    }
    bool undo() const {
        EXPECT_EQ(promised, 0u) << "there was room for all of the train";
        return false;
    }
};

// All ways of taking turns, from strict question and answer to both sending as much as there is room for.
void both_ways(uint32_t most_chunks, uint32_t most_bytes, bool claim, unsigned most_sends) {
    Place place;
    End a(place, 0, most_chunks, most_bytes, claim), b(place, 1, most_chunks, most_bytes, claim);
    std::mt19937 turns(5);
    for (int step = 0; step < 1500 && !testing::Test::HasFailure(); ++step) {
        End& e = turns() % 2 != 0 ? a : b;
        const unsigned sends = turns() % most_sends;
        for (unsigned k = 0; k < sends && e.send(); ++k) {}
        End& r = turns() % 2 != 0 ? a : b;
        if (turns() % 3 != 0) r.poll<3>();
    }
    while (int{a.poll<64>()} + int{b.poll<64>()} > 0) {}
    EXPECT_EQ(a.taken, b.chunks);
    EXPECT_EQ(b.taken, a.chunks);
    EXPECT_GT(a.chunks, 200u);
}

TEST(Bulk, NothingUnreadIsWrittenTo) {
    for (const bool claim : {false, true})
        for (const uint32_t bytes : {200u, 5000u, largest_chunk})
            for (const uint32_t chunks : {1u, 4u, 20u})
                for (const unsigned most_sends : {2u, 9u, 60u}) {
                    SCOPED_TRACE(testing::Message() << bytes << " bytes, " << chunks << " chunks, " << most_sends);
                    both_ways(chunks, bytes, claim, most_sends);
                    if (HasFailure()) return;
                }
}

// Nobody is taken to wait for the next chunk of a stream.
TEST(Bulk, AStreamIsNotAwaited) {
    Place place;
    End a(place, 0, 1, 600, false), b(place, 1, 1, 600, false);
    for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(a.send());
        ASSERT_TRUE(b.poll<64>());
    }
    EXPECT_EQ(a.awaited, 0u);
}

// Litmus: the same with both running freely.
TEST(Bulk, BothWaysAtOnce) {
    for (const uint32_t bytes : {300u, 9000u, largest_chunk}) {
        Place place;
        constexpr uint32_t chunks = 6000;
        auto run = [&](int self) {
            End e(place, self, 5, bytes, true);
            std::mt19937 turns(static_cast<unsigned>(self) + 9);
            while (e.taken < chunks || e.chunks < chunks) {
                bool moved = false;
                for (unsigned k = turns() % 8; k > 0 && e.chunks < chunks && e.send(); --k) moved = true;
                if (e.poll<8>()) moved = true;
                if (!moved) os::yield_cpu();
            }
        };
        std::thread other(run, 1);
        run(0);
        other.join();
    }
}

}  // namespace
