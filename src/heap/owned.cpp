#include "heap/owned.hpp"

#include "heap/heap.hpp"
#include "os/memory.hpp"

namespace weft::heap {

void Owned::open(Heap* heap, const Segment* segment, const OwnedPolicy& policy) {
    heap_ = heap;
    segment_ = segment != nullptr && segment->slices != nullptr ? segment : nullptr;
    policy_ = policy;
    if (policy_.guard && !guard_.open()) policy_.guard = false;
    static_assert(page == os::page_bytes);
    front_ = policy_.guard ? page : sizeof(Block);
    quick_ = policy_.pool == OwnedPolicy::receiver && !policy_.guard;
    newest_ = oldest_ = nullptr;
    count_ = 0;
}

void Owned::close() {
    guard_.close();
    *this = Owned{};
}

bool Owned::made_here(const Block* b) const { return segment_ == nullptr || b->maker == segment_->me; }

void Owned::unlink(Block* b) {
    if (b->newer != nullptr) b->newer->older = b->older;
    else newest_ = b->older;
    if (b->older != nullptr) b->older->newer = b->newer;
    else oldest_ = b->newer;
    --count_;
}

// The most recently freed buffer that is large enough, off the list; null when there is none.
Owned::Block* Owned::find(size_t bytes) {
    for (Block* b = newest_; b != nullptr; b = b->older)
        if (b->capacity >= bytes) {
            unlink(b);
            return b;
        }
    return nullptr;
}

// A new buffer from the heap, of whole pages.
Owned::Block* Owned::make(size_t bytes) {
    if (bytes > slice_bytes) return nullptr;
    const size_t all = (front_ + bytes + (bytes == 0) + page - 1) / page * page;
    void* const start = heap_->allocate(all, page);
    if (start == nullptr) return nullptr;
    Block* const b = block_of(static_cast<char*>(start) + front_);
    b->capacity = all - front_;
    b->maker = segment_ != nullptr ? segment_->me : 0;
    return b;
}

// Gives a buffer back to the rank that made it.
void Owned::evict(Block* b) {
    if (made_here(b)) (void)heap_->release(start_of(b));
    else segment_->returned(b->maker).push(b);
}

// With the guard on this rank's buffers stay buffers: other processes may have forbidden themselves the same addresses, where the heap
// could put something else.
bool Owned::may_leave(const Block* b) const { return !policy_.guard || !made_here(b); }

// A buffer that this rank freed, or got back, goes to the pool; the least recently freed leaves it where that is full.
void Owned::keep(Block* b) {
    if (policy_.guard) guard_.forbid_freed(data_of(b), b->capacity);
    push(b);
    while (count_ > policy_.cap) {
        Block* last = oldest_;
        while (last != nullptr && !may_leave(last)) last = last->newer;
        if (last == nullptr) break;
        unlink(last);
        evict(last);
    }
}

// Takes what other ranks have returned. False when that is nothing.
bool Owned::take_returned() {
    bool some = false;
    if (segment_ == nullptr) return some;
    segment_->returned(segment_->me).take_all([&](void* returned) {
        auto* b = static_cast<Block*>(returned);
        some = true;
        if (policy_.pool == OwnedPolicy::none && may_leave(b)) evict(b);
        else keep(b);
    });
    return some;
}

void* Owned::allocate_slow(size_t bytes) {
    Block* b = find(bytes);
    if (b == nullptr && take_returned()) b = find(bytes);
    if (b == nullptr) b = make(bytes);
    if (b == nullptr) return nullptr;
    b->mark = in_use;
    if (policy_.guard) guard_.permit(data_of(b), b->capacity);
    return data_of(b);
}

void Owned::release_slow(Block* b) {
    b->mark = free_mark;
    const bool keeps = policy_.pool == OwnedPolicy::receiver || (policy_.pool == OwnedPolicy::sender && made_here(b));
    if (keeps || !may_leave(b)) keep(b);
    else evict(b);
}

void Owned::forbid_given(void* data, int32_t to, int32_t tag, bool now) {
    guard_.forbid_given(data, block_of(data)->capacity, to, tag, now);
}
void Owned::permit(void* data) {
    if (policy_.guard) guard_.permit(data, block_of(data)->capacity);
}

bool Owned::is_sound() const {
    uint32_t n = 0;
    const Block* last = nullptr;
    for (const Block* b = newest_; b != nullptr && n <= count_; last = b, b = b->older, ++n)
        if (b->newer != last || b->mark != free_mark) return false;
    return n == count_ && last == oldest_;
}

}  // namespace weft::heap
