// A thread that makes progress now and then, for windows whose accesses are messages: their targets are served, slowly, while no thread of
// the program is in MPI. So networks behave whose one-sided operations are software; WEFT_POLICY.rma_helper sets the period. Used by rma/
// alone. There is one while the process has such windows; several threads may make and free windows at once.
#pragma once
#include <atomic>
#include <cstdint>

#include "obj/process.hpp"
#include "os/spin.hpp"
#include "os/thread.hpp"

namespace weft::rma {

struct Helper {
    os::SpinLock lock;             // of the next two; held while the thread starts, and while it ends
    int32_t users;                 // windows' lanes
    bool runs;
    os::Thread thread;
    std::atomic<uint32_t> over;    // the thread is to end; a futex
    obj::Process* process;
};

// Before the first access to a lane of a window may come, and after the last. Without MPI_THREAD_MULTIPLE there is no helper, nor where
// the system has no thread: then targets are served when they are in MPI, as without this policy.
void use_helper(obj::Process&, Helper&);
void leave_helper(Helper&);

}  // namespace weft::rma
