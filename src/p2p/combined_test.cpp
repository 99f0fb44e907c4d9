#include "p2p/combined.hpp"

#include <atomic>
#include <cstring>

#include "p2p/ranks_test.hpp"

using namespace weft;
using namespace weft::test;
using obj::Status;
using obj::ThreadLevel;
using p2p::BufferOwner;
using p2p::Envelope;
using p2p::Mode;
using p2p::Request;

namespace {

// A persistent request is used again without another block: the pools stand still after the first round.
TEST(Combined, StartingTakesNothing) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        const Envelope peer{1 - p.world_rank, 3};
        int64_t out = 0, in = -1;
        Request *send = nullptr, *recv = nullptr;
        ASSERT_EQ(p2p::send_init(p, p.world, bytes(&out, 8), peer, Mode::standard, &send), Err::ok);
        ASSERT_EQ(p2p::recv_init(p, p.world, bytes(&in, 8), peer, &recv), Err::ok);
        const void* free_blocks = nullptr;
        const void* fresh_blocks = nullptr;
        for (int round = 0; round < 200; ++round) {
            out = p.world_rank * 1000 + round;
            ASSERT_EQ(p2p::start(p, &recv), Err::ok);
            ASSERT_EQ(p2p::start(p, &send), Err::ok);
            Status s{};
            Request *r = recv, *w = send;
            ASSERT_EQ(p2p::wait_request(p, &r, &s), Err::ok);
            ASSERT_EQ(p2p::wait_request(p, &w, nullptr), Err::ok);
            ASSERT_EQ(r, recv);
            ASSERT_EQ(s.source, peer.rank);
            ASSERT_EQ(in, peer.rank * 1000 + round);
            if (round == 0) {
                free_blocks = p.lane->requests.free;
                fresh_blocks = p.lane->requests.fresh;
            }
            ASSERT_EQ(p.lane->requests.free, free_blocks);
            ASSERT_EQ(p.lane->requests.fresh, fresh_blocks);
        }
        p2p::free_request(p, *send);
        p2p::free_request(p, *recv);
    });
}

// Threads of one rank send through one buffer while another one flushes it; all messages arrive.
TEST(Combined, ThreadsShareABuffer) {
    run_ranks(2, ThreadLevel::multiple, [](Process& p) {
        constexpr int threads = 3, messages = 40;
        constexpr size_t size = 100000;
        const int peer = 1 - p.world_rank;
        void* automatic = reinterpret_cast<void*>(2);
        ASSERT_EQ(p2p::buffer_attach(p, BufferOwner(), automatic, 0), Err::ok);
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                adopt(p);
                std::vector<char> data(size);
                for (int n = 0; n < messages; ++n) {
                    const size_t length = n % 2 ? size : 16;
                    memset(data.data(), t * 50 + n, length);
                    EXPECT_EQ(p2p::bsend(p, p.world, bytes(data.data(), length), {peer, t}), Err::ok);
                    if (n % 10 == 9) {
                        EXPECT_EQ(p2p::buffer_flush(p, BufferOwner()), Err::ok);
                    }
                }
            });
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                adopt(p);
                std::vector<char> data(size);
                for (int n = 0; n < messages; ++n) {
                    Status s{};
                    EXPECT_EQ(p2p::recv(p, p.world, bytes(data.data(), size), {peer, t}, &s), Err::ok);
                    EXPECT_EQ(s.bytes, static_cast<int64_t>(n % 2 ? size : 16));
                    const std::vector<char> want(static_cast<size_t>(s.bytes), static_cast<char>(t * 50 + n));
                    EXPECT_EQ(memcmp(data.data(), want.data(), want.size()), 0) << "message " << n;
                }
            });
        for (auto& t : all) t.join();
        void* address = nullptr;
        int64_t bytes_attached = -1;
        ASSERT_EQ(p2p::buffer_detach(p, BufferOwner(), &address, &bytes_attached, true), Err::ok);
        ASSERT_EQ(address, automatic);
    });
}

// What has left a buffer frees its room, however many messages that are and however few of them a round of progress ends.
TEST(Combined, AllThatHasLeftABufferIsRoom) {
    std::atomic<bool> received{false};
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        constexpr int many = 40;
        constexpr size_t size = 1 << 20;
        std::vector<char> message(size), buffer(many * (size + MPI_BSEND_OVERHEAD));
        const auto whole = static_cast<int64_t>(buffer.size());
        if (p.world_rank == 0) {
            ASSERT_EQ(p2p::buffer_attach(p, BufferOwner(), buffer.data(), whole), Err::ok);
            for (int i = 0; i < many; ++i) ASSERT_EQ(p2p::bsend(p, p.world, bytes(message.data(), size), {1, i}), Err::ok);
            // The receiver reads by itself what this rank, outside the library, does not send; where it may not, this rank helps.
            char byte;
            const bool readable = os::read_process(os::process_id(), &byte, reinterpret_cast<uint64_t>(message.data()), 1) == 1;
            while (!received) {
                if (!readable) p2p::progress(p);
                std::this_thread::yield();
            }
            p.lane->rounds = 0;
            std::vector<char> large(buffer.size() - MPI_BSEND_OVERHEAD);
            const Err err = p2p::bsend(p, p.world, bytes(large.data(), large.size()), {1, many});
            EXPECT_EQ(err, Err::ok) << fail_text();
            if (err != Err::ok) (void)p2p::send(p, p.world, bytes(nullptr, 0), {1, many}, Mode::standard);  // so that the other one ends
            p2p::close_buffers(p);
        } else {
            for (int i = many - 1; i >= 0; --i)
                ASSERT_EQ(p2p::recv(p, p.world, bytes(message.data(), size), {0, i}, nullptr), Err::ok);
            received = true;
            ASSERT_EQ(p2p::recv(p, p.world, bytes(buffer.data(), buffer.size()), {0, many}, nullptr), Err::ok);
        }
    });
}

}  // namespace
