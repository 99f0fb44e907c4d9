// The lock of the library: the leaf lock, but who waits for it spins briefly, then yields, so that it also works with more
// threads than cores. Free to all above; held for short stretches only and never while user code runs (law 7).
#pragma once
#include "base/spin.hpp"

namespace weft::os {

WEFT_INLINE void pause_cpu() { __builtin_ia32_pause(); }

// One read-modify-write to take it, none to give it back.
class SpinLock : public Spin {
public:
    WEFT_INLINE void lock() {
        if (WEFT_UNLIKELY(!try_lock())) wait();
    }

private:
    WEFT_COLD void wait();
};

}  // namespace weft::os
