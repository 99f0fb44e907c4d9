// Blocks that ranks free although another rank owns them: a stack in the owner's slice, pushed to by everybody and emptied by the
// owner. Included by heap/ alone. Lock-free.
// Invariant: what hangs from `first_` was pushed and not yet taken, each block once; its first word is the next one, or 0. Only
// take_all() removes, and all at once, so that a block that comes back in between (ABA) does no harm.
#pragma once
#include <atomic>
#include <cstdint>

namespace weft::heap {

class Returned {
public:
    // The caller owns the block until now, and nothing of it afterwards.
    void push(void* block) {
        // Atomic because a later owner of the memory may be read by a push that has lost the race; nobody reads it then.
        std::atomic<uint64_t>& next = *static_cast<std::atomic<uint64_t>*>(block);
        uint64_t first = first_.load(std::memory_order_relaxed);
        do next.store(first, std::memory_order_relaxed);
        while (!first_.compare_exchange_weak(first, reinterpret_cast<uint64_t>(block), std::memory_order_release, std::memory_order_relaxed));
    }
    bool empty() const { return first_.load(std::memory_order_relaxed) == 0; }
    // Calls `f` with each block, last pushed first. Pairs with the release of push(): what was written to a block is seen.
    template <class F>
    void take_all(F&& f) {
        uint64_t at = first_.exchange(0, std::memory_order_acquire);
        while (at != 0) {
            void* const block = reinterpret_cast<void*>(at);
            at = static_cast<std::atomic<uint64_t>*>(block)->load(std::memory_order_relaxed);
            f(block);
        }
    }
    // Of a list whose blocks are not there any more.
    void forget() { first_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<uint64_t> first_{0};
};

}  // namespace weft::heap
