#include "os/futex.hpp"

#include <ctime>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::os {

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t timeout_us) {
    timespec t{timeout_us / 1'000'000, static_cast<long>(timeout_us % 1'000'000) * 1000};
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &t, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

bool register_fence() { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0; }
bool heavy_fence() { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

}  // namespace weft::os
