// Time and giving way. For all floors above os/; no lock.
#pragma once
#include <cstdint>
#include <sched.h>
#include <time.h>

namespace weft::os {

inline uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Seconds between two values of now_ns().
inline double clock_tick_s() {
    timespec t;
    clock_getres(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// CPU time that a process has used, all its threads together; 0 if it cannot be told, as of one that has ended. A system call.
inline uint64_t ran_ns(int pid) {
    clockid_t clock;
    timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

inline void yield_cpu() { sched_yield(); }

// Cycles of the counter that runs at one rate on all CPUs: 1 to 5 a nanosecond. For telling long from short, at a quarter of the
// price of now_ns().
inline uint64_t cycles() { return __builtin_ia32_rdtsc(); }

}  // namespace weft::os
