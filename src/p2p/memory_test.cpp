// What arrives while malloc fails. The tests' link puts these between the library and the allocator.
#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#include "p2p/p2p.hpp"
#include "p2p/ranks_test.hpp"

namespace weft::test {
thread_local bool none_left = false;
thread_local size_t asked = 0;   // bytes, by malloc() and calloc()
}
using weft::test::asked;
using weft::test::none_left;

extern "C" {
void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
void* __wrap_malloc(size_t n) {
    asked += n;
    return none_left ? nullptr : __real_malloc(n);
}
void* __wrap_calloc(size_t n, size_t each) {
    asked += n * each;
    return none_left ? nullptr : __real_calloc(n, each);
}
}

using namespace weft;
using namespace weft::test;
using obj::ThreadLevel;
using p2p::Mode;
using p2p::Request;

namespace {

// Rounds of progress without memory, until what the other rank has sent before has surely been looked at.
void progress_without_memory(Process& p) {
    none_left = true;
    for (int i = 0; i < 1000; ++i) p2p::progress(p);
    none_left = false;
}

// A message that cannot be kept stays where it is, and its receive finds it there.
TEST(Memory, AnUnmatchedMessageStaysInItsRing) {
    std::atomic<bool> sent{false};
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        std::vector<char> data(5000, 'a'), got(5000);
        if (p.world_rank == 0) {
            ASSERT_EQ(p2p::send(p, p.world, bytes(data.data(), data.size()), {1, 1}, Mode::standard), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, bytes(data.data(), 8), {1, 2}, Mode::standard), Err::ok);
            sent = true;
        } else {
            while (!sent) std::this_thread::yield();
            progress_without_memory(p);
            EXPECT_EQ(p.lane->unexpected_count.load(), 0u);
            ASSERT_EQ(p2p::recv(p, p.world, bytes(got.data(), got.size()), {0, 1}, nullptr), Err::ok);
            EXPECT_EQ(data, got);
            ASSERT_EQ(p2p::recv(p, p.world, bytes(got.data(), 8), {0, 2}, nullptr), Err::ok);
        }
    });
}

// A rank that cannot serve a receive would let its peer wait for ever: it ends the job and says why.
TEST(Memory, TheJobEndsWhereAReceiveCannotBeServed) {
    std::atomic<bool> posted{false}, sent{false};
    EXPECT_EXIT(run_ranks(2, ThreadLevel::single, [&](Process& p) {
        std::vector<char> data(600'000);  // more than goes eagerly anywhere
        const p2p::Envelope peer{1 - p.world_rank, 1};
        Request* r = nullptr;
        if (p.world_rank == 0) {
            while (!posted) std::this_thread::yield();
            ASSERT_EQ(p2p::isend(p, p.world, bytes(data.data(), data.size()), peer, Mode::standard, &r), Err::ok);
            sent = true;
        } else {
            ASSERT_EQ(p2p::irecv(p, p.world, bytes(data.data(), data.size()), peer, &r), Err::ok);
            posted = true;
            while (!sent) std::this_thread::yield();
            none_left = true;
        }
        p2p::wait(p, *r);
    }), testing::ExitedWithCode(static_cast<int>(Err::no_mem)), "out of memory: none for a message of 600000 bytes");
}

// What a lane asks for to reach `count` peers, none of which it talks to.
size_t bytes_for(int count, lane::Peer::Wire wire) {
    std::vector<lane::Peer> peers(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        peers[static_cast<size_t>(i)].wire = wire;
        peers[static_cast<size_t>(i)].index = i;
    }
    const size_t bytes = wire::shm::Layout{count}.bytes();
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(base, MAP_FAILED);
    wire::sock::Key key{};
    snprintf(reinterpret_cast<char*>(key.name), sizeof key.name, "%d", getpid());
    auto l = std::make_unique<lane::Lane>();
    const size_t before = asked;
    const bool shares = wire == lane::Peer::shm;
    EXPECT_EQ(l->open(peers.data(), count, 0, shares ? static_cast<char*>(base) : nullptr, true, shares ? nullptr : &key), Err::ok) << fail_text();
    const size_t taken = asked - before;
    EXPECT_FALSE(l->peers.has(count - 1));
    EXPECT_TRUE(l->is_sound());
    if (shares) {
        EXPECT_FALSE(l->shm.is_connected(count - 1));
        EXPECT_NE(l->reserve(count - 1), nullptr);   // makes the ends of this peer and of no other
        EXPECT_TRUE(l->shm.is_connected(count - 1));
        EXPECT_FALSE(l->shm.is_connected(count - 2));
        EXPECT_TRUE(l->is_sound());
    }
    l->close();
    munmap(base, bytes);
    return taken;
}

TEST(Memory, APeerNeverTalkedToCostsLessThan100Bytes) {
    for (const lane::Peer::Wire wire : {lane::Peer::shm, lane::Peer::sock}) {
        constexpr int few = 20, many = 120;   // more than are always polled
        const size_t each = (bytes_for(many, wire) - bytes_for(few, wire)) / (many - few) + sizeof(lane::Peer) + sizeof(obj::Route);
        EXPECT_LT(each, 100u);
        RecordProperty(wire == lane::Peer::shm ? "shared_memory" : "sockets", static_cast<int>(each));
        printf("%zu bytes\n", each);
    }
}

}  // namespace
