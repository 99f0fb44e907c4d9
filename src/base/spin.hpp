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
    WEFT_INLINE bool try_lock() {
        return word_.load(std::memory_order_relaxed) == 0 && take();
    }
    void lock() {
        while (!try_lock()) __builtin_ia32_pause();
    }
    // Pairs with the acquire in take().
    WEFT_INLINE void unlock() { word_.store(0, std::memory_order_release); }

protected:
    WEFT_INLINE bool take() { return word_.exchange(1, std::memory_order_acquire) == 0; }

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
