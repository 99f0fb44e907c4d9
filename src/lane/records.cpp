#include "lane/records.hpp"

#include "os/memory.hpp"

namespace weft::lane {

// Maps twice the size and unmaps what lies before and after the aligned slab.
bool Records::add_slab() {
    auto* const begin = static_cast<char*>(os::map_private(2 * slab_bytes));
    if (begin == nullptr) return false;
    auto* const at = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(begin) + slab_bytes - 1) & ~uintptr_t{slab_bytes - 1});
    if (at != begin) os::unmap(begin, static_cast<size_t>(at - begin));
    os::unmap(at + slab_bytes, slab_bytes - static_cast<size_t>(at - begin));
    auto* slab = reinterpret_cast<Slab*>(at);
    slab->free = nullptr;
    slab->fresh = (sizeof(Slab) + 63) / 64 * 64;
    slab->live = 0;
    with_room_.push_back(&slab->in_list);
    ++slabs_;
    return true;
}

void Records::remove_slab(Slab* slab) {
    slab->in_list.unlink();
    --slabs_;
    os::unmap(slab, slab_bytes);
}

void Records::close() {
    if (with_room_.next == nullptr) return;  // never opened
    while (!with_room_.alone() && reinterpret_cast<Slab*>(with_room_.next)->live == 0) remove_slab(reinterpret_cast<Slab*>(with_room_.next));
}

}  // namespace weft::lane
