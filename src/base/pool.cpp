#include "base/pool.hpp"

#include <cstdlib>

namespace weft {

void* Pool::refill() {
    if (fresh == fresh_end) {
        // Zeroed memory that nothing has touched costs nothing until it is used. One line at the front is the chain.
        const size_t size = static_cast<size_t>(bytes) * slab_blocks;
        auto* slab = static_cast<char*>(calloc(1, size + 2 * 64));
        if (slab == nullptr) return nullptr;
        auto* chain = reinterpret_cast<Block*>(slab);
        chain->next = slabs;
        chain->head = size;
        slabs = chain;
        fresh = first_of(chain);
        fresh_end = fresh + size;
        if (size < size_t{1} << 20) slab_blocks *= 2;
    }
    // A few at a time, so that most calls of take() find the free list.
    for (int i = 0; i < 16 && fresh + bytes < fresh_end; ++i, fresh += bytes) give(fresh);
    void* b = fresh;
    fresh += bytes;
    return b;
}

}  // namespace weft
