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
