#include "os/spin.hpp"

#include "os/clock.hpp"

namespace weft::os {

void spin_contended(std::atomic<uint32_t>& word) {
    for (unsigned tries = 0;; ++tries) {
        if (word.load(std::memory_order_relaxed) == 0 && word.exchange(1, std::memory_order_acquire) == 0) return;
        if (tries < 64) pause_cpu();
        else yield_cpu();  // the holder may need this very core
    }
}

}  // namespace weft::os
