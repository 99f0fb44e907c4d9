// Memory of this rank that every rank of the node can reach: blocks of the rank's own slice (heap/slices.hpp), by mimalloc, and behind all
// slices those that it has no room for (heap/large.hpp); private memory where the heap is not shared. Used by lane/, obj/ and above.
// Thread-safe: one lock per heap.
// A block belongs to the heap that allocated it; another rank of the node gives it back by its own heap, and the owner frees it when
// it next allocates or releases.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "heap/live.hpp"
#include "heap/segment.hpp"
#include "os/spin.hpp"

namespace weft::heap {

struct Heap {
    // `segment` may be null or without slices: then blocks are private memory.
    void open(Segment* segment);
    void close();  // frees all blocks that are still there

    // `align` is a power of two, at most 2 MiB. Null when memory is exhausted. bytes == 0 gives a valid unique block. Contents are
    // undefined.
    void* allocate(size_t bytes, size_t align = 64);
    // A block of this heap, or of another rank's that has the same slices. Err::arg for any other pointer; of another rank's slice it
    // must be a block's.
    Err release(void* p);

    uint64_t bytes_in_use() const { return live_.bytes(); }

private:
    void free_returned();
    void* find_memory(size_t bytes, size_t align);
    void free_block(void* p, size_t bytes);
    PartHead* find_owner(const void* p) const;

    os::SpinLock lock_;
    Segment* segment_ = nullptr;
    bool by_malloc_ = true;   // blocks are malloc's: private memory, or of the slice where malloc is replaced
    LiveBlocks live_;
};

}  // namespace weft::heap
