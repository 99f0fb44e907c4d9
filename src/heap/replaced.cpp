#include "heap/replaced.hpp"

#include "heap/blocks.h"
#include "os/env.hpp"
#include "os/library.hpp"

namespace weft::heap {

Replaced replaced_malloc() {
    if (os::env(env_heap) == nullptr) return {nullptr, false};
    auto* const tell = reinterpret_cast<SlicesOfMalloc*>(os::find_loaded(slices_of_malloc));
    return {tell != nullptr ? tell() : nullptr, true};
}

}  // namespace weft::heap

void weft_pages_begin() {}   // heap/segment.cpp has mapped the slices
