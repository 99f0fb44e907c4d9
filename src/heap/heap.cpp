#include "heap/heap.hpp"

#include <cstdlib>

#include "heap/blocks.h"
#include "os/memory.hpp"

namespace weft::heap {

namespace {

constexpr size_t large_from = 1 << 20;             // what is less fits, or the slice is full
constexpr size_t own_pages_from = size_t{1} << 30;   // that malloc might refuse, though most of it may never be touched

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Private pages, of which nothing is taken before it is touched.
void* reserve(size_t bytes, size_t align) {
    const size_t pages = round_up(bytes, os::page_bytes), more = align > os::page_bytes ? align : 0;
    auto* const from = static_cast<char*>(os::reserve_private(pages + more));
    if (from == nullptr || more == 0) return from;
    auto* const at = from + (round_up(reinterpret_cast<uintptr_t>(from), align) - reinterpret_cast<uintptr_t>(from));
    if (at != from) os::unmap(from, static_cast<size_t>(at - from));
    if (at + pages != from + pages + more) os::unmap(at + pages, static_cast<size_t>(from + more - at));
    return at;
}

}  // namespace

void Heap::open(Segment* segment) {
    SpinGuard g(lock_);
    segment_ = segment != nullptr && segment->heap != nullptr ? segment : nullptr;
    by_malloc_ = segment_ == nullptr || segment_->malloc_shares;
}

void Heap::close() {
    SpinGuard g(lock_);
    free_returned();
    live_.clear([this](void* p, size_t bytes) { free_block(p, bytes); });
    segment_ = nullptr;
}

// The allocator's block, or one beside it: a large one of the node's, or pages of this process's own.
void* Heap::find_memory(size_t bytes, size_t align) {
    if (segment_ == nullptr && bytes >= own_pages_from) return reserve(bytes, align);
    void* p = by_malloc_ ? aligned_alloc(align, round_up(bytes, align)) : weft_block_allocate(bytes, align);
    return p == nullptr && segment_ != nullptr && bytes >= large_from ? segment_->heap->take_large(bytes, align) : p;
}

void Heap::free_block(void* p, size_t bytes) {
    if (segment_ == nullptr && bytes >= own_pages_from) os::unmap(p, round_up(bytes, os::page_bytes));
    else if (segment_ != nullptr && segment_->heap->is_large(p)) segment_->heap->give_large(p);
    else if (by_malloc_) free(p);
    else weft_block_free(p);
}

// Frees what other ranks have given back.
void Heap::free_returned() {
    if (segment_ == nullptr || segment_->heap->own_head().blocks.empty()) return;
    segment_->heap->own_head().blocks.take_all([this](void* p) {
        size_t bytes;
        if (live_.remove(p, &bytes)) free_block(p, bytes);
    });
}

void* Heap::allocate(size_t bytes, size_t align) {
    if (bytes > most_large_bytes) return nullptr;
    if (bytes == 0) bytes = 1;
    SpinGuard g(lock_);
    free_returned();
    void* p = find_memory(bytes, align);
    if (p == nullptr || live_.add(p, bytes)) return p;
    free_block(p, bytes);
    return nullptr;
}

// Of another rank's block; null if it is none.
PartHead* Heap::find_owner(const void* p) const {
    if (segment_ == nullptr || !segment_->in_heap(p)) return nullptr;
    if (!segment_->heap->is_large(p)) return segment_->owner(p) != segment_->me ? &segment_->heap->head_of(p) : nullptr;
    PartHead* const head = segment_->heap->head_of_large(p);
    return head != &segment_->heap->own_head() ? head : nullptr;
}

Err Heap::release(void* p) {
    SpinGuard g(lock_);
    size_t bytes;
    if (live_.remove(p, &bytes)) {
        free_block(p, bytes);
        return Err::ok;
    }
    PartHead* const owner = find_owner(p);
    if (owner == nullptr) return fail(Err::arg, "address %p was not allocated here, or is free already", p);
    owner->blocks.push(p);
    return Err::ok;
}

}  // namespace weft::heap
