// Sleeping on a word of shared memory, and the barrier that lets the sleeper pay for it. No lock.
#pragma once
#include <atomic>
#include <cstdint>

namespace weft::os {

// Sleeps while `word` is `expected`, at most `timeout_us`. May return early; the caller looks again.
void futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint32_t timeout_us);
// Sleeps while each of the words is as expected, at most `timeout_us`; where the kernel cannot wait for several (before Linux 5.16, or
// denied), on the first word alone and at most for a millisecond. May return early.
struct FutexWait {
    std::atomic<uint32_t>* word;
    uint32_t expected;
};
inline constexpr int most_futex_waits = 16;
void futex_wait_any(const FutexWait* waits, int n, uint32_t timeout_us);
// Wakes all who sleep on `word`, in any process.
void futex_wake(std::atomic<uint32_t>& word);

// Asymmetric fence: after heavy_fence() in one process, every store that a registered process of the machine did
// before its next load of ours is visible, without a fence of its own. `register_fence` is called once per process;
// false where the kernel denies it, and then heavy_fence() is of no use (sleep with short time-outs instead).
bool register_fence();
bool heavy_fence();

}  // namespace weft::os
