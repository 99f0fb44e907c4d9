#include "os/spin.hpp"

#include "os/clock.hpp"

namespace weft::os {

void SpinLock::wait() {
    for (unsigned tries = 0; !seems_free() || !try_lock(); ++tries) {
        if (tries < 64) pause_cpu();
        else yield_cpu();  // the holder may need this very core
    }
}

}  // namespace weft::os
