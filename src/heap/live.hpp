// Which blocks a heap has handed out, so that it can refuse to free what it did not allocate. Included by heap/ alone; the heap's lock
// guards it.
// Invariant: a table of a power of two of slots, at most half of them used; the block at address a stands in the first slot from
// place(a) on that was free when it came, with no free slot in between.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace weft::heap {

class LiveBlocks {
public:
    struct Block {
        void* at;      // null: a free slot
        size_t bytes;
    };

    // False when there is no memory for a larger table; then nothing has changed.
    bool add(void* at, size_t bytes) {
        if (2 * (count_ + 1) > slots_ && !grow()) return false;
        put({at, bytes});
        ++count_;
        bytes_ += bytes;
        return true;
    }

    // False when the block is not there. `bytes`: of the block.
    bool remove(const void* at, size_t* bytes) {
        size_t i = slots_ == 0 ? 0 : find(at);
        if (slots_ == 0 || table_[i].at == nullptr) return false;
        --count_;
        *bytes = table_[i].bytes;
        bytes_ -= *bytes;
        table_[i].at = nullptr;
        // What came after it and was pushed on moves up.
        for (size_t j = next(i); table_[j].at != nullptr; j = next(j)) {
            const Block b = table_[j];
            table_[j].at = nullptr;
            put(b);
        }
        return true;
    }

    // Forgets all, having called `f` with each address and size.
    template <class F>
    void clear(F&& f) {
        for (size_t i = 0; i < slots_; ++i)
            if (table_[i].at != nullptr) f(table_[i].at, table_[i].bytes);
        free(table_);
        *this = LiveBlocks{};
    }

    uint64_t bytes() const { return bytes_; }

private:
    // Fibonacci hashing: the upper bits of the product are well mixed.
    size_t place(const void* at) const { return (reinterpret_cast<uintptr_t>(at) * 0x9e3779b97f4a7c15) >> shift_; }
    size_t next(size_t i) const { return (i + 1) & (slots_ - 1); }
    size_t find(const void* at) const {
        size_t i = place(at);
        while (table_[i].at != nullptr && table_[i].at != at) i = next(i);
        return i;
    }
    void put(Block b) { table_[find(b.at)] = b; }

    bool grow() {
        LiveBlocks larger;
        larger.slots_ = slots_ == 0 ? 64 : 2 * slots_;
        larger.shift_ = 64 - __builtin_ctzll(larger.slots_);
        larger.table_ = static_cast<Block*>(calloc(larger.slots_, sizeof(Block)));
        if (larger.table_ == nullptr) return false;
        for (size_t i = 0; i < slots_; ++i)
            if (table_[i].at != nullptr) larger.put(table_[i]);
        larger.count_ = count_;
        larger.bytes_ = bytes_;
        free(table_);
        *this = larger;
        return true;
    }

    Block* table_ = nullptr;
    size_t slots_ = 0, count_ = 0;
    int shift_ = 64;
    uint64_t bytes_ = 0;
};

}  // namespace weft::heap
