// A spin lock of one word, for leaf lists: nobody takes another lock, calls user code or waits while holding it. Any floor may
// include this; what the system can do for one who waits is in os/spin.hpp.
// Invariant: the word is 1 exactly while some thread is between lock() and unlock().
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"

namespace weft {

class Spin {
public:
    // One attempt. Who repeats it asks seems_free() first, which leaves the cache line with the holder. To set a bit and test it takes
    // two instructions, an exchange and a comparison four.
    WEFT_INLINE bool try_lock() { return (word_.fetch_or(1, std::memory_order_acquire) & 1) == 0; }
    WEFT_INLINE bool seems_free() const { return word_.load(std::memory_order_relaxed) == 0; }
    void lock() {
        while (!seems_free() || !try_lock()) __builtin_ia32_pause();
    }
    // Pairs with the acquire in try_lock().
    WEFT_INLINE void unlock() { word_.store(0, std::memory_order_release); }

private:
    std::atomic<uint32_t> word_{0};
};

// Holds a lock for a scope.
template <class Lock>
class SpinGuard {
public:
    explicit SpinGuard(Lock& l) : lock_(l) { lock_.lock(); }
    ~SpinGuard() { lock_.unlock(); }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

private:
    Lock& lock_;
};

}  // namespace weft
