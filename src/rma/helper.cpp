#include "rma/helper.hpp"

#include "lane/lane.hpp"
#include "os/futex.hpp"
#include "p2p/progress.hpp"

namespace weft::rma {

namespace {

void help(void* helper) {
    auto& h = *static_cast<Helper*>(helper);
    obj::Process& p = *h.process;
#if WEFT_THREADS_PRESET
    obj::process = &p;
#endif
    while (h.over.load(std::memory_order_acquire) == 0) {
        os::futex_wait(h.over, 0, p.rma_helper_us);
        (void)p2p::progress(p);
    }
}

}  // namespace

void use_helper(obj::Process& p, Helper& h) {
    if (p.rma_helper_us == 0 || !p.lane->threads) return;
    SpinGuard guard(h.lock);
    if (h.users++ > 0) return;
    h.process = &p;
    h.over.store(0, std::memory_order_relaxed);
    h.runs = os::start_thread(h.thread, help, &h);
}

void leave_helper(Helper& h) {
    SpinGuard guard(h.lock);
    if (h.users == 0 || --h.users > 0 || !h.runs) return;
    h.over.store(1, std::memory_order_release);
    os::futex_wake(h.over);
    os::join_thread(h.thread);
    h.runs = false;
}

}  // namespace weft::rma
