#include "heap/heap.hpp"

#include <cstdlib>

#include "os/memory.hpp"

namespace weft::heap {

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

void Heap::open(Segment* segment) {
    SpinGuard g(lock_);
    segment_ = segment != nullptr && segment->slices != nullptr ? segment : nullptr;
    if (segment_ == nullptr) return;
    auto* whole = static_cast<Extent*>(malloc(sizeof(Extent)));
    if (whole == nullptr) {
        segment_ = nullptr;
        return;
    }
    *whole = Extent{nullptr, segment_->slice(segment_->me), slice_bytes, false, false};
    extents_ = whole;
}

void Heap::close() {
    SpinGuard g(lock_);
    while (extents_ != nullptr) {
        Extent* e = extents_;
        extents_ = e->next;
        if (e->mapped) os::unmap(e->at, e->bytes);
        else if (e->used) os::punch(e->at, e->bytes);
        free(e);
    }
    segment_ = nullptr;
    used_ = 0;
}

// Makes `e` exactly `bytes` long; the rest becomes an extent of its own behind it. Null when out of memory.
Heap::Extent* Heap::split(Extent* e, size_t bytes) {
    if (e->bytes == bytes) return e;
    auto* rest = static_cast<Extent*>(malloc(sizeof(Extent)));
    if (rest == nullptr) return nullptr;
    *rest = Extent{e->next, e->at + bytes, e->bytes - bytes, false, false};
    e->next = rest;
    e->bytes = bytes;
    return e;
}

void* Heap::allocate(size_t bytes, size_t align) {
    if (bytes > slice_bytes) return nullptr;
    bytes = round_up(bytes == 0 ? 1 : bytes, os::page_bytes);
    if (align < os::page_bytes) align = os::page_bytes;
    SpinGuard g(lock_);
    if (segment_ == nullptr) {
        auto* e = static_cast<Extent*>(malloc(sizeof(Extent)));
        void* p = e == nullptr ? nullptr : os::map_private(bytes + align);
        if (p == nullptr) {
            free(e);
            return nullptr;
        }
        auto at = reinterpret_cast<uintptr_t>(p), aligned = round_up(at, align);
        if (aligned != at) os::unmap(p, aligned - at);
        if (size_t tail = at + align - aligned; tail != 0) os::unmap(reinterpret_cast<char*>(aligned) + bytes, tail);
        *e = Extent{extents_, reinterpret_cast<char*>(aligned), bytes, true, true};
        extents_ = e;
        used_ += bytes;
        return e->at;
    }
    for (Extent* e = extents_; e != nullptr; e = e->next) {
        if (e->used) continue;
        const auto at = reinterpret_cast<uintptr_t>(e->at);
        const size_t skip = round_up(at, align) - at;
        if (e->bytes < skip + bytes) continue;
        if (skip != 0) {
            if (split(e, skip) == nullptr) return nullptr;
            e = e->next;
        }
        if (split(e, bytes) == nullptr) return nullptr;
        e->used = true;
        used_ += bytes;
        return e->at;
    }
    return nullptr;
}

Err Heap::release(void* p) {
    SpinGuard g(lock_);
    Extent* before = nullptr;
    for (Extent* e = extents_; e != nullptr; before = e, e = e->next) {
        if (e->at != p || !e->used) continue;
        used_ -= e->bytes;
        if (e->mapped) {
            os::unmap(e->at, e->bytes);
            if (before == nullptr) extents_ = e->next;
            else before->next = e->next;
            free(e);
            return Err::ok;
        }
        os::punch(e->at, e->bytes);
        e->used = false;
        // Coalesce with the free neighbours.
        if (Extent* n = e->next; n != nullptr && !n->used) {
            e->bytes += n->bytes;
            e->next = n->next;
            free(n);
        }
        if (before != nullptr && !before->used) {
            before->bytes += e->bytes;
            before->next = e->next;
            free(e);
        }
        return Err::ok;
    }
    if (segment_ != nullptr && segment_->in_heap(p) && segment_->owner(p) != segment_->me)
        return fail(Err::arg, "address %p belongs to the heap of rank %d of this node", p, segment_->owner(p));
    return fail(Err::arg, "address %p was not allocated here, or is free already", p);
}

}  // namespace weft::heap
