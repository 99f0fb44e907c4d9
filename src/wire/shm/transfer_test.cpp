#include "wire/shm/transfer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "os/memory.hpp"

using namespace weft;
using namespace weft::wire::shm;

namespace {

// Litmus of claim(): whatever the interleaving, each byte belongs to exactly one copier.
TEST(Transfer, EveryByteIsClaimedOnce) {
    for (uint64_t limit : {uint64_t{1}, uint64_t{4096}, uint64_t{1000003}}) {
        auto t = std::make_unique<Transfer>();
        put_rts(*t, nullptr);
        EXPECT_FALSE(has_cts(*t));
        put_cts(*t, nullptr, limit, Mover::pipelined);
        ASSERT_TRUE(has_cts(*t));
        std::vector<std::atomic<uint8_t>> owner(limit);
        auto copier = [&](Transfer::Side side, uint64_t block) {
            for (uint64_t at; (at = claim(*t, block)) < limit;) {
                const uint64_t n = limit - at < block ? limit - at : block;
                for (uint64_t i = at; i < at + n; ++i) owner[i].fetch_add(1, std::memory_order_relaxed);
                add_copied(t->left.by[side], n);
                add_copied(t->arrived.by[side], n);
            }
        };
        std::thread other(copier, Transfer::sender, 777);
        copier(Transfer::receiver, 64);
        other.join();
        EXPECT_TRUE(all_left(*t));
        EXPECT_TRUE(all_arrived(*t));
        for (uint64_t i = 0; i < limit; ++i) ASSERT_EQ(owner[i].load(), 1) << i;
    }
}

TEST(Transfer, BothSidesCopyByCma) {
    const int me = os::process_id();
    std::vector<char> from(3'000'001), to(from.size(), 0);
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7);
    if (!can_cma(me, reinterpret_cast<uint64_t>(from.data()))) GTEST_SKIP() << "cross-memory attach is denied here";
    auto t = std::make_unique<Transfer>();
    put_rts(*t, from.data());
    put_cts(*t, to.data(), to.size(), Mover::split_cma, 100'000);
    std::thread sender([&] { while (cma_block(*t, me, Transfer::sender) != 0) {} });
    while (cma_block(*t, me, Transfer::receiver) != 0) {}
    sender.join();
    EXPECT_TRUE(all_arrived(*t));
    EXPECT_EQ(t->fault.load(), Transfer::none);
    EXPECT_EQ(memcmp(from.data(), to.data(), from.size()), 0);
}

// Litmus of a mapped copy by both sides: the receiver reads what the sender has written, whoever copied it, and the sender writes to its
// buffer again only after all of it has left.
TEST(Transfer, BothSidesCopyWhatIsMapped) {
    constexpr uint64_t bytes = 20'000;
    constexpr int rounds = 300;
    auto t = std::make_unique<Transfer>();
    std::vector<char> from(bytes), to(bytes);
    std::atomic<int> rts{0};   // stands for the cell that carries the RTS
    const auto copy = [&](Transfer::Side side, uint64_t most) {
        uint64_t done = 0;
        for (uint64_t at; done < most && (at = claim(*t, t->block)) < t->limit;) {
            const uint64_t n = t->limit - at < t->block ? t->limit - at : t->block;
            memcpy(reinterpret_cast<char*>(t->to) + at, reinterpret_cast<const char*>(t->from) + at, n);
            done += n;
        }
        if (done != 0) add_copied(t->left.by[side], done);
    };
    std::thread receiver([&] {
        for (int round = 1; round <= rounds; ++round) {
            while (rts.load(std::memory_order_acquire) < round) std::this_thread::yield();
            put_cts(*t, to.data(), bytes, Mover::mapped_both, 700);
            copy(Transfer::receiver, bytes / 3);   // as where a round of progress is over
            while (!all_left(*t)) copy(Transfer::receiver, bytes);
            for (const char c : to) ASSERT_EQ(c, static_cast<char>(round));
            t->receiver_done.store(1, std::memory_order_release);
        }
    });
    for (int round = 1; round <= rounds; ++round) {
        memset(from.data(), round, bytes);
        put_rts(*t, from.data(), true);
        rts.store(round, std::memory_order_release);
        while (!has_cts(*t)) std::this_thread::yield();
        while (!all_left(*t)) copy(Transfer::sender, bytes);
        while (t->receiver_done.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    }
    receiver.join();
}

TEST(Transfer, ABadAddressEndsBothSidesAndSaysWhose) {
    const int me = os::process_id();
    std::vector<char> from(100000);
    if (!can_cma(me, reinterpret_cast<uint64_t>(from.data()))) GTEST_SKIP() << "cross-memory attach is denied here";
    std::vector<char> to(from.size());
    void* const nowhere = reinterpret_cast<void*>(uintptr_t{16});
    for (Transfer::Side copier : {Transfer::sender, Transfer::receiver})
        for (Transfer::Fault fault : {Transfer::senders_buffer, Transfer::receivers_buffer}) {
            auto t = std::make_unique<Transfer>();
            put_rts(*t, fault == Transfer::senders_buffer ? nowhere : from.data());
            put_cts(*t, fault == Transfer::receivers_buffer ? nowhere : to.data(), from.size(), Mover::split_cma, 4096);
            while (cma_block(*t, me, copier) != 0) {}
            EXPECT_TRUE(all_left(*t));
            EXPECT_TRUE(all_arrived(*t));
            EXPECT_EQ(t->fault.load(), fault) << copier;
        }
    auto t = std::make_unique<Transfer>();
    put_rts(*t, from.data());
    put_cts(*t, to.data(), from.size(), Mover::split_cma, 40960);
    EXPECT_EQ(cma_block(*t, 0x7fffffff, Transfer::receiver), 0u);   // nobody
    EXPECT_EQ(t->fault.load(), Transfer::none);
    EXPECT_EQ(t->any_refused.load(), 1u);
    EXPECT_EQ(t->mover.load(), Mover::pipelined);
    EXPECT_FALSE(all_arrived(*t));
    // The sender takes it all back, in parts.
    uint64_t at, bytes, sum = 0;
    while (claim_refused(*t, 30'000, &at, &bytes)) {
        EXPECT_EQ(at, sum);
        EXPECT_LE(bytes, 30'000u);
        sum += bytes;
    }
    EXPECT_EQ(sum, 40960u);
}

}  // namespace
