// A one-byte spin lock for cold lists (free lists, context ids, active schedules). Any floor may include this.
// It is a leaf: nobody takes another lock, calls user code or waits while holding it.
#pragma once
#include <atomic>
#include <cstdint>

namespace weft {

class Spin {
public:
    bool try_lock() {
        return state_.load(std::memory_order_relaxed) == 0 && state_.exchange(1, std::memory_order_acquire) == 0;
    }
    void lock() {
        while (!try_lock()) __builtin_ia32_pause();
    }
    // Pairs with the acquire in try_lock.
    void unlock() { state_.store(0, std::memory_order_release); }

private:
    std::atomic<uint8_t> state_{0};
};

// Holds a Spin for a scope.
class SpinGuard {
public:
    explicit SpinGuard(Spin& s) : spin_(s) { spin_.lock(); }
    ~SpinGuard() { spin_.unlock(); }
    SpinGuard(const SpinGuard&) = delete;
    SpinGuard& operator=(const SpinGuard&) = delete;

private:
    Spin& spin_;
};

}  // namespace weft
