#include "base/pool.hpp"

#include <cstdlib>
#include <cstring>

namespace weft {

void* Pool::refill() {
    // Block 0 of a slab chains the slabs, which keeps every slab reachable for leak checkers.
    const size_t size = static_cast<size_t>(bytes) * (slab_blocks + 1);
    auto* slab = static_cast<char*>(aligned_alloc(64, (size + 63) / 64 * 64));
    if (slab == nullptr) return nullptr;
    memset(slab, 0, size);
    auto* chain = reinterpret_cast<Block*>(slab);
    chain->next = slabs;
    slabs = chain;
    for (uint32_t i = slab_blocks; i > 1; --i) give(slab + static_cast<size_t>(i) * bytes);
    return slab + bytes;
}

}  // namespace weft
