#include "heap/heap.hpp"

#include <cstdlib>

#include "heap/blocks.h"

namespace weft::heap {

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

void Heap::open(Segment* segment) {
    SpinGuard g(lock_);
    segment_ = segment != nullptr && segment->heap != nullptr ? segment : nullptr;
    by_malloc_ = segment_ == nullptr || segment_->malloc_shares;
}

void Heap::close() {
    SpinGuard g(lock_);
    free_returned();
    live_.clear([this](void* p) { free_block(p); });
    segment_ = nullptr;
}

void Heap::free_block(void* p) {
    if (by_malloc_) free(p);
    else weft_block_free(p);
}

// Frees what other ranks have given back.
void Heap::free_returned() {
    if (segment_ == nullptr || segment_->heap->own_head().blocks.empty()) return;
    segment_->heap->own_head().blocks.take_all([this](void* p) {
        if (live_.remove(p)) free_block(p);
    });
}

void* Heap::allocate(size_t bytes, size_t align) {
    if (bytes > largest_part_bytes) return nullptr;
    if (bytes == 0) bytes = 1;
    SpinGuard g(lock_);
    free_returned();
    void* p = by_malloc_ ? aligned_alloc(align, round_up(bytes, align)) : weft_block_allocate(bytes, align);
    if (p == nullptr || live_.add(p, bytes)) return p;
    free_block(p);
    return nullptr;
}

Err Heap::release(void* p) {
    SpinGuard g(lock_);
    if (live_.remove(p)) {
        free_block(p);
        return Err::ok;
    }
    if (segment_ == nullptr || !segment_->in_heap(p) || segment_->owner(p) == segment_->me)
        return fail(Err::arg, "address %p was not allocated here, or is free already", p);
    segment_->heap->head_of(p).blocks.push(p);
    return Err::ok;
}

}  // namespace weft::heap
