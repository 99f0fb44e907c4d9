// What mimalloc (heap/blocks.c) takes for the system: this process's part of the slices, and private memory where there is none.
#include "heap/blocks.h"
#include "heap/slices.hpp"
#include "os/memory.hpp"

using weft::heap::own_slices;

void* weft_pages_take(size_t bytes) {
    weft_pages_begin();
    return own_slices.base != nullptr ? own_slices.take(bytes) : weft::os::reserve_private(bytes);
}

void weft_pages_give(void* pages, size_t bytes) {
    if (own_slices.is_own(pages)) own_slices.give(pages, bytes);
    else weft::os::unmap(pages, bytes);
}

void weft_pages_clear(void* pages, size_t bytes) {
    if (own_slices.is_own(pages)) own_slices.clear(pages, bytes);
    else weft::os::drop_private(pages, bytes);
}

#if !WEFT_MIMALLOC
// Never called: no slices are mapped then.
void* weft_block_allocate(size_t, size_t) { return nullptr; }
void weft_block_free(void*) {}
#endif
