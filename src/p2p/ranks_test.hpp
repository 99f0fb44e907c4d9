// Ranks as threads of one process, over a real segment: how two-sided messages are tested, and how ThreadSanitizer sees the
// rings. For unit tests only.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

#include "boot/boot.hpp"
#include "comm/world.hpp"
#include "lane/lane.hpp"
#include "obj/process.hpp"
#include "os/memory.hpp"
#include "p2p/calls.hpp"
#include "type/predefined.hpp"

namespace weft::test {

using obj::Process;

inline type::Buffer bytes(const void* p, size_t n) {
    return {const_cast<void*>(p), static_cast<int64_t>(n), type::predefined_at(0x247)};
}
inline type::Buffer ints(const void* p, int n) {
    return {const_cast<void*>(p), n, type::predefined_at(0x209)};
}

// What a thread must know that a rank starts, in the preset where ranks are threads themselves.
inline void adopt([[maybe_unused]] Process& p) {
#if WEFT_THREADS_PRESET
    obj::process = &p;
#endif
}

inline void barrier(Process& p) {
    for (int step = 1; step < p.world_size; step *= 2) {
        const p2p::Envelope to{(p.world_rank + step) % p.world_size, 1 << 20};
        const p2p::Envelope from{(p.world_rank - step + p.world_size) % p.world_size, 1 << 20};
        ASSERT_EQ(p2p::sendrecv(p, p.world, bytes(nullptr, 0), to, bytes(nullptr, 0), from, nullptr), Err::ok);
    }
}

// Runs `body` once per rank, each in a thread of its own, and closes everything after all are done.
inline void run_ranks(int ranks, obj::ThreadLevel level, const std::function<void(Process&)>& body) {
    const int fd = os::make_memfd("weft-test");
    ASSERT_GE(fd, 0);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
            auto* p = static_cast<Process*>(calloc(1, sizeof(Process)));
            obj::prepare_process(*p);
            adopt(*p);
            auto job = std::make_unique<boot::Job>();
            job->rank = job->node_rank = r;
            job->size = job->node_size = ranks;
            job->memfd = fd;
            job->cpus = 1;   // more ranks than that: give way at once
            job->singleton = ranks == 1;
            ASSERT_EQ(comm::start_process(*p, level, job.get()), Err::ok) << fail_text();
            body(*p);
            p2p::progress_until(*p, [&] { return p->lane->has_left(); });
            barrier(*p);
            p2p::progress_until(*p, [&] { return p->lane->has_left(); });
            EXPECT_EQ(p->lane->posted_count, 0u);
            EXPECT_EQ(p->lane->unexpected_count.load(), 0u);
            EXPECT_EQ(p->lane->rndv_ids.in_use() + p->lane->send_ids.in_use(), 0u);
            EXPECT_TRUE(p->lane->is_sound());
            comm::stop_process(*p);
            // The Process itself stays, as it does in a program: handles to its objects stay readable.
        });
    for (auto& t : threads) t.join();
    close(fd);
}

}  // namespace weft::test
