// Tells ThreadSanitizer, in the preset where ranks are threads of one process, of an order that it cannot see: each rank maps the rings at
// an address of its own, so a store to a ring and the load of it are of different memory for it. What a thread did before leaves(p) comes
// before what another does after arrives(p). Any floor above may include this; nothing happens in other builds.
#pragma once

#if WEFT_THREADS_PRESET && defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace weft::os {

inline void leaves([[maybe_unused]] void* p) {
#if WEFT_THREADS_PRESET && defined(__SANITIZE_THREAD__)
    __tsan_release(p);
#endif
}
inline void arrives([[maybe_unused]] void* p) {
#if WEFT_THREADS_PRESET && defined(__SANITIZE_THREAD__)
    __tsan_acquire(p);
#endif
}

}  // namespace weft::os
