// malloc and its family from this process's slice of the job's heap: what `mpiexec --shared-heap` loads before all other libraries.
// mimalloc does the work (heap/blocks.c). A block of another rank's slice is given back to that rank; where there is no slice, memory
// is private and all else is the same.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mimalloc.h>
#include <unistd.h>

#include "heap/blocks.h"
#include "heap/replaced.hpp"
#include "os/env.hpp"
#include "os/memory.hpp"

using namespace weft;
using heap::own_slices;

namespace {

constinit os::SpinLock begin_lock;
constinit std::atomic<bool> begun{false};

// Maps what mpiexec has made; anything in the way leaves memory private, and libmpi_abi tells so (WEFT_LOG).
void map_heap() {
    const char* text = os::env(heap::env_heap);
    int fd, ranks, rank;
    unsigned long long file;
    if (text == nullptr || sscanf(text, "%d:%llu:%d:%d", &fd, &file, &ranks, &rank) != 4) return;
    if (ranks < 1 || rank < 0 || rank >= ranks || os::file_number(fd) != file || os::under_valgrind()) return;
    own_slices.map(fd, 0, heap::Geometry::of(ranks, heap::parts_of_malloc), rank);
}

// mimalloc calls it now and then when it looks for memory.
void free_returned(bool, unsigned long long, void*) {
    if (own_slices.base == nullptr || own_slices.own_head().memory.empty()) return;
    own_slices.own_head().memory.take_all([](void* p) { mi_free(p); });
}

[[gnu::constructor]] void listen() { mi_register_deferred_free(free_returned, nullptr); }

WEFT_INLINE void* checked(void* p) {
    if (WEFT_UNLIKELY(p == nullptr)) errno = ENOMEM;
    return p;
}

bool is_foreign(const void* p) { return own_slices.contains(p) && !own_slices.is_own(p); }

// Of another process; a forked child leaves it alone, as its parent has the same block.
WEFT_COLD void return_block(void* p) {
    if (!own_slices.forked) own_slices.head_of(p).memory.push(p);
}

WEFT_COLD void* move_here(void* p, size_t bytes) {
    void* const copy = checked(mi_malloc(bytes));
    if (copy == nullptr) return nullptr;
    const size_t had = mi_usable_size(p);
    memcpy(copy, p, had < bytes ? had : bytes);
    return_block(p);
    return copy;
}

// From here on calloc looks which pages there are instead of writing zeros to all: glibc's, too, takes fresh pages from there on.
constexpr size_t untouched_from = 128 << 10;

WEFT_COLD void* zeroed(size_t bytes) {
    void* const p = checked(mi_malloc(bytes));
    if (p == nullptr) return nullptr;
    if (own_slices.is_own(p)) own_slices.zero(p, bytes);
    else memset(p, 0, bytes);
    return p;
}

bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace

// Before libc has its environment nobody can be asked: such early blocks are private.
void weft_pages_begin() {
    if (WEFT_LIKELY(begun.load(std::memory_order_acquire)) || environ == nullptr) return;
    SpinGuard guard(begin_lock);
    if (begun.load(std::memory_order_relaxed)) return;
    map_heap();
    begun.store(true, std::memory_order_release);
}

#define WEFT_EXPORT extern "C" __attribute__((visibility("default")))

WEFT_EXPORT heap::Slices* weft_slices_of_malloc_2() { return own_slices.base != nullptr ? &own_slices : nullptr; }

WEFT_EXPORT void* malloc(size_t bytes) noexcept { return checked(mi_malloc(bytes)); }
WEFT_EXPORT void* calloc(size_t count, size_t bytes) noexcept {
    size_t all;
    const bool large = !__builtin_mul_overflow(count, bytes, &all) && all >= untouched_from;
    return WEFT_UNLIKELY(large) && own_slices.base != nullptr ? zeroed(all) : checked(mi_calloc(count, bytes));
}

WEFT_EXPORT void free(void* p) noexcept {
    if (WEFT_LIKELY(own_slices.is_own(p)) || !is_foreign(p)) mi_free(p);
    else return_block(p);
}
WEFT_EXPORT void cfree(void* p) noexcept { free(p); }

WEFT_EXPORT void* realloc(void* p, size_t bytes) noexcept {
    return WEFT_UNLIKELY(is_foreign(p)) ? move_here(p, bytes) : checked(mi_realloc(p, bytes));
}
WEFT_EXPORT void* reallocarray(void* p, size_t count, size_t bytes) noexcept {
    size_t all;
    if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(p, all);
    errno = ENOMEM;
    return nullptr;
}

WEFT_EXPORT void* memalign(size_t align, size_t bytes) noexcept {
    if (is_power_of_two(align)) return weft_block_allocate(bytes, align);
    errno = EINVAL;
    return nullptr;
}
WEFT_EXPORT void* aligned_alloc(size_t align, size_t bytes) noexcept { return memalign(align, bytes); }
WEFT_EXPORT int posix_memalign(void** out, size_t align, size_t bytes) noexcept {
    if (!is_power_of_two(align) || align % sizeof(void*) != 0) return EINVAL;
    void* const p = weft_block_allocate(bytes, align);
    if (p == nullptr) return ENOMEM;
    *out = p;
    return 0;
}
WEFT_EXPORT void* valloc(size_t bytes) noexcept { return memalign(os::page_bytes, bytes); }
WEFT_EXPORT void* pvalloc(size_t bytes) noexcept {
    size_t whole;
    if (!__builtin_add_overflow(bytes, os::page_bytes - 1, &whole)) return valloc(whole & ~(os::page_bytes - 1));
    errno = ENOMEM;
    return nullptr;
}
WEFT_EXPORT size_t malloc_usable_size(void* p) noexcept { return mi_usable_size(p); }
