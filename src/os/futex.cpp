#include "os/futex.hpp"

#include <cerrno>
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

void futex_wait_any(const FutexWait* waits, int n, uint32_t timeout_us) {
    constexpr long number = 449, words_of_32_bits = 2;   // of futex_waitv, which headers of older systems lack
    struct Entry {
        uint64_t expected, address;
        uint32_t flags, zero;
    } entries[most_futex_waits];
    for (int i = 0; i < n; ++i) entries[i] = {waits[i].expected, reinterpret_cast<uint64_t>(waits[i].word), words_of_32_bits, 0};
    timespec until{};
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t nanoseconds = static_cast<uint64_t>(until.tv_nsec) + uint64_t{timeout_us} * 1000;
    until.tv_sec += static_cast<time_t>(nanoseconds / 1'000'000'000);
    until.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
    if (syscall(number, entries, n, 0, &until, CLOCK_MONOTONIC) >= 0) return;
    if (errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR) return;
    if (n > 0) futex_wait(*waits[0].word, waits[0].expected, timeout_us < 1000 ? timeout_us : 1000);
}

void futex_wake(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

bool register_fence() { return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0; }
bool heavy_fence() { return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0; }

}  // namespace weft::os
