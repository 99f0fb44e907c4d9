// Memory of this rank that every rank of the node can reach: page-granular blocks from the rank's own slice of the
// segment; private memory where there is no segment. Used by obj/ and above. Thread-safe: one lock per heap.
// Only the owner frees into its slice; a foreign rank's block is refused with an error.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "heap/segment.hpp"
#include "os/spin.hpp"

namespace weft::heap {

struct Heap {
    // `segment` may be null or without slices: then blocks are private memory.
    void open(Segment* segment);
    void close();  // forgets all blocks; those of the slice are given back to the system

    // `align` is a power of two, at most 2 MiB. Null when memory is exhausted. bytes == 0 gives a valid unique block.
    void* allocate(size_t bytes, size_t align = 64);
    // Err::arg for a pointer that allocate() did not return here.
    Err release(void* p);

    uint64_t bytes_in_use() const { return used_; }

private:
    struct Extent {        // a run of bytes of the slice (or a private mapping), in address order
        Extent* next;
        char* at;
        size_t bytes;
        bool used;
        bool mapped;       // a private mapping of its own
    };
    Extent* split(Extent* e, size_t bytes);

    os::SpinLock lock_;
    Segment* segment_ = nullptr;
    Extent* extents_ = nullptr;
    uint64_t used_ = 0;
};

}  // namespace weft::heap
