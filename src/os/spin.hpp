// The lock of the library: spins briefly, then yields, so that it also works with more threads than cores. Free to all;
// held for short stretches only and never while user code runs (law 7).
#pragma once
#include <atomic>

#include "base/err.hpp"

namespace weft::os {

WEFT_INLINE void pause_cpu() { __builtin_ia32_pause(); }

WEFT_COLD void spin_contended(std::atomic<uint32_t>& word);

// Invariant: word is 1 exactly while some thread is between lock() and unlock(). One read-modify-write to take it
// (acquire, pairs with the release store of unlock), none to give it back.
struct SpinLock {
    std::atomic<uint32_t> word{0};

    WEFT_INLINE bool try_lock() {
        return word.load(std::memory_order_relaxed) == 0 && word.exchange(1, std::memory_order_acquire) == 0;
    }
    WEFT_INLINE void lock() {
        if (WEFT_UNLIKELY(word.exchange(1, std::memory_order_acquire) != 0)) spin_contended(word);
    }
    WEFT_INLINE void unlock() { word.store(0, std::memory_order_release); }
};

struct SpinGuard {
    explicit SpinGuard(SpinLock& l) : lock_(l) { lock_.lock(); }
    ~SpinGuard() { lock_.unlock(); }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

private:
    SpinLock& lock_;
};

}  // namespace weft::os
