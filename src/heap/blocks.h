/* mimalloc, confined to this process's slice of the node's heap (heap/slices.hpp): what it would ask the system for, it asks the slice
 * for. Where there is no slice it is given private memory. Included by heap/ and by the library that replaces malloc, in C and in C++.
 * Thread-safe; a block may be freed by any thread of the process that allocated it, and by no other process. */
#ifndef WEFT_HEAP_BLOCKS_H
#define WEFT_HEAP_BLOCKS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Contents are undefined. `align` is a power of two. Null, with ENOMEM, when the slice has no room. */
void* weft_block_allocate(size_t bytes, size_t align);
void weft_block_free(void* block);

/* Called before pages are taken: where malloc is replaced, the first call maps the slices. */
void weft_pages_begin(void);

/* What blocks.c asks for memory: heap/system.cpp. Addresses are whole pages; what is taken reads as zero. */
void* weft_pages_take(size_t bytes);
void weft_pages_give(void* pages, size_t bytes);
void weft_pages_clear(void* pages, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
