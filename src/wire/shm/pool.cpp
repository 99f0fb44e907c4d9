#include "wire/shm/pool.hpp"

#include <cstdlib>

namespace weft::wire::shm {

Err Pool::open(int pairs) {
    count_ = pairs;
    const uint32_t blocks = blocks_for(pairs);
    blocks_ = static_cast<Block*>(malloc(blocks * sizeof(Block)));
    if (blocks_ == nullptr) return fail(Err::no_mem, "no memory for the pool of %d peers", pairs);
    without_ = static_cast<uint32_t>(pairs);
    free_count_ = blocks;
    recent_count_ = 0;
    free_ = none;
    made_ = first_ = last_ = nullptr;
    for (uint32_t b = blocks; b-- > 0;) push(static_cast<uint16_t>(b));   // so that the block with the lowest address is used first
    return Err::ok;
}

void Pool::connect(Pair& p) {
    p.next_made = made_;
    made_ = &p;
}

void Pool::close() {
    ::free(blocks_);
    blocks_ = nullptr;
}

uint32_t Pool::reserve(Pair& p, uint32_t bytes) {
    if (p.used + round_line(bytes) > block_bytes && !next_block(p)) return nowhere;
    return reserve_here(p, bytes);
}

bool Pool::has_room(Pair& p, uint32_t chunks, uint32_t bytes) {
    const uint32_t room = round_line(bytes), per_block = block_bytes / room, here = (block_bytes - p.used) / room;
    if (chunks <= here) return true;
    free_consumed(p);
    return (chunks - here + per_block - 1) / per_block <= may_take(p);
}

// Cells that the reader has not consumed.
static uint32_t unread(const uint32_t* tail, const std::atomic<uint32_t>* consumed) {
    return *tail - consumed->load(std::memory_order_acquire);  // pairs with publish(): the reader has read all consumed cells and their chunks
}

// Whether the cell before `after` has been consumed. Compares distances from the tail, so it stays right when the positions wrap.
static bool is_read(uint32_t after, uint32_t tail, uint32_t unread_cells) { return tail - after >= unread_cells; }

// Makes an empty block current.
bool Pool::next_block(Pair& p) {
    free_consumed(p);
    if (p.oldest == none && p.current != none && is_read(p.after, *p.tail, unread(p.tail, p.consumed))) {
        give(p.current);
        p.current = none;
        p.used = block_bytes;
        p.held = 0;
        ++without_;
    }
    if (may_take(p) == 0) {
        look_at_another(p);
        if (may_take(p) == 0) return false;
    }
    retire_current(p);
    p.current = take();
    p.used = 0;
    if (p.held++ == 0) --without_;
    return true;
}

// Frees the full blocks that the reader has consumed.
void Pool::free_consumed(Pair& p) {
    if (p.oldest == none) return;
    const uint32_t cells = unread(p.tail, p.consumed);
    while (p.oldest != none && is_read(blocks_[p.oldest].after, *p.tail, cells)) {
        const uint16_t block = p.oldest;
        p.oldest = blocks_[block].next;
        give(block);
        --p.held;
    }
}

// The current block, if there is one, is full.
void Pool::retire_current(Pair& p) {
    if (p.current == none) return;
    blocks_[p.current] = Block{p.after, none};
    if (p.oldest == none) p.oldest = p.current;
    else blocks_[p.newest].next = p.current;
    p.newest = p.current;
    p.current = none;
    if (!p.listed) list(p);
}

void Pool::list(Pair& p) {
    p.listed = true;
    p.next = nullptr;
    if (first_ == nullptr) first_ = &p;
    else last_->next = &p;
    last_ = &p;
}

// Frees consumed blocks of another pair that holds full ones, which may not have sent for long. One pair per call, in turn,
// because each reads a cache line that another rank writes.
void Pool::look_at_another(const Pair& than) {
    for (int tries = 0; tries < 2 && first_ != nullptr; ++tries) {
        Pair& p = *first_;
        first_ = p.next;
        if (first_ == nullptr) last_ = nullptr;
        p.listed = false;
        if (&p != &than) free_consumed(p);
        if (p.oldest != none) list(p);
        if (&p != &than) return;
    }
}

// How many blocks the pair may take now. Each one narrows the gap between spare and held by two: one more held, one less spare.
uint32_t Pool::may_take(const Pair& p) const {
    const uint32_t spare = free_count_ - without_;
    if (p.held == 0) return 1 + (spare + 1) / 2;
    const uint32_t beyond_first = p.held - 1u;
    return spare > beyond_first ? (spare - beyond_first + 1) / 2 : 0;
}

uint16_t Pool::take() {
    --free_count_;
    if (recent_count_ == resting_blocks || free_ == none) return pop_recent();
    const uint16_t block = free_;
    free_ = blocks_[block].next;
    return block;
}

void Pool::give(uint16_t block) {
    ++free_count_;
    if (recent_count_ == resting_blocks) push(pop_recent());
    recent_[recent_count_++] = block;
}

void Pool::push(uint16_t block) {
    blocks_[block].next = free_;
    free_ = block;
}

uint16_t Pool::pop_recent() {
    const uint16_t oldest = recent_[0];
    --recent_count_;
    for (uint32_t i = 0; i < recent_count_; ++i) recent_[i] = recent_[i + 1];
    return oldest;
}

bool Pool::is_sound() const {
    const uint32_t blocks = blocks_for(count_);
    auto* seen = static_cast<bool*>(calloc(blocks, sizeof(bool)));
    if (seen == nullptr) return false;
    uint32_t found = 0, holding = 0;
    bool twice = false;
    const auto see = [&](uint16_t b) {
        twice |= b >= blocks || seen[b];
        if (!twice) seen[b] = true;
        return !twice && ++found <= blocks;
    };
    for (uint16_t b = free_; b != none && see(b); b = blocks_[b].next) {}
    for (uint32_t i = 0; i < recent_count_; ++i) see(recent_[i]);
    const bool counted = found == free_count_;
    bool held = true;
    for (const Pair* i = made_; i != nullptr; i = i->next_made) {
        const Pair& p = *i;
        const uint32_t before = found;
        if (p.current != none) see(p.current);
        for (uint16_t b = p.oldest; b != none && see(b); b = blocks_[b].next) {}
        held &= p.held == found - before && (p.oldest == none || p.listed);
        holding += p.held != 0;
    }
    ::free(seen);
    return !twice && counted && held && found == blocks && holding + without_ == static_cast<uint32_t>(count_) && free_count_ >= without_;
}

}  // namespace weft::wire::shm
