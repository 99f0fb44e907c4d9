/* mimalloc 2.0.9 in one piece. Its calls of the system for memory are the four below; they are renamed for it, so that nothing it
 * allocates, its own books included, lies outside the slice. */
#include "heap/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void* take_pages(void* hint, size_t bytes, int protection, int flags, int fd, off_t offset) {
    (void)hint, (void)protection, (void)fd, (void)offset;
    void* pages = flags & MAP_HUGETLB ? NULL : weft_pages_take(bytes);
    if (pages != NULL) return pages;
    errno = ENOMEM;
    return MAP_FAILED;
}

static int give_pages(void* pages, size_t bytes) {
    weft_pages_give(pages, bytes);
    return 0;
}

/* Of shared memory MADV_DONTNEED gives nothing back and zeroes nothing. That mimalloc resets memory lazily (MADV_FREE) is only advice. */
static int advise_pages(void* pages, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED) weft_pages_clear(pages, bytes);
    return 0;
}

static int protect_pages(void* pages, size_t bytes, int protection) {
    (void)pages, (void)bytes, (void)protection;
    return 0;
}

#define mmap take_pages
#define munmap give_pages
#define madvise advise_pages
#define mprotect protect_pages
#define MI_SKIP_COLLECT_ON_EXIT 1
#include <static.c>

#if MI_MALLOC_VERSION != 209
#error "src/heap/blocks.c is written for mimalloc 2.0.9"
#endif

/* Not mi_malloc_aligned(): of 2.0.9, that takes all blocks of 256, 512 and 1024 bytes to be aligned to their size, which they are not. */
void* weft_block_allocate(size_t bytes, size_t align) {
    void* block = mi_malloc_aligned_at(bytes, align, 0);
    if (block == NULL) errno = ENOMEM;
    return block;
}

void weft_block_free(void* block) { mi_free(block); }
