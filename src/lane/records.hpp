// Allocator of a lane's unexpected messages and queued control messages: blocks of equal size from slabs of 256 KiB. An empty slab is
// returned to the system, so a burst does not keep its memory. Included by lane.hpp; all under the lane's guard.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "base/list.hpp"

namespace weft::lane {

class Records {
public:
    constexpr explicit Records(uint32_t block_bytes) : bytes_(block_bytes) {}
    void open() { with_room_.make_head(); }
    // Frees the slabs; no block may be in use.
    void close();

    // Null when out of memory. The block is not cleared.
    WEFT_INLINE void* take() {
        if (WEFT_UNLIKELY(with_room_.alone()) && !add_slab()) return nullptr;
        auto* slab = reinterpret_cast<Slab*>(with_room_.next);
        Free* b = slab->free;
        if (b != nullptr) {
            slab->free = b->next;
        } else {
            b = reinterpret_cast<Free*>(reinterpret_cast<char*>(slab) + slab->fresh);
            slab->fresh += bytes_;
        }
        ++slab->live;
        if (slab->free == nullptr && slab->fresh + bytes_ > slab_bytes) slab->in_list.unlink();  // full
        return b;
    }
    WEFT_INLINE void give(void* block) {
        auto* slab = reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(block) & ~uintptr_t{slab_bytes - 1});
        if (slab->free == nullptr && slab->fresh + bytes_ > slab_bytes) with_room_.push_back(&slab->in_list);
        auto* b = static_cast<Free*>(block);
        b->next = slab->free;
        slab->free = b;
        if (--slab->live == 0 && slabs_ > 1) remove_slab(slab);
    }
    uint32_t slabs() const { return slabs_; }
    static constexpr size_t slab_bytes = 256 * 1024;

private:
    struct Free { Free* next; };
    struct Slab {          // begins at a multiple of its size
        Ring2 in_list;     // of those with room
        Free* free;
        uint32_t fresh;    // offset of the first block that was never taken
        uint32_t live;     // blocks in use
    };
    WEFT_COLD bool add_slab();
    WEFT_COLD void remove_slab(Slab*);

    Ring2 with_room_{};
    uint32_t bytes_;
    uint32_t slabs_ = 0;
};

}  // namespace weft::lane
