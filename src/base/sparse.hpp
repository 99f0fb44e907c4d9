// A table of pointers to objects that are made when they are first needed. Until then an entry points to the table's sentinel, so that
// readers need no test. Free to all; the owner of the table holds the lock that guards it, but any thread may read an entry.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/err.hpp"

namespace weft {

// T is trivially destructible, and T{} is what its user starts from. A table must not be moved, as entries point into it.
template <class T>
class Sparse {
public:
    T none{};   // the sentinel; written only before open()

    // False when out of memory.
    bool open(int entries) {
        at_ = static_cast<std::atomic<T*>*>(malloc(static_cast<size_t>(entries) * sizeof(T*)));
        count_ = at_ != nullptr ? entries : 0;
        for (int i = 0; i < count_; ++i) new (&at_[i]) std::atomic<T*>(&none);
        return at_ != nullptr;
    }
    void close() {
        for (int i = 0; i < count_; ++i)
            if (has(i)) free(&(*this)[i]);
        free(at_);
        at_ = nullptr;
        count_ = 0;
    }
    int count() const { return count_; }
    // Acquire: pairs with make().
    WEFT_INLINE T& operator[](int i) const { return *at_[i].load(std::memory_order_acquire); }
    bool has(int i) const { return &(*this)[i] != &none; }
    // Entry `i`, made and given to `fill` if it is not there; null when out of memory.
    template <class F>
    T* make(int i, F&& fill) {
        if (WEFT_LIKELY(has(i))) return &(*this)[i];
        void* const memory = aligned_alloc(64, (sizeof(T) + 63) / 64 * 64);
        if (memory == nullptr) return nullptr;
        T* const t = new (memory) T{};
        fill(*t);
        at_[i].store(t, std::memory_order_release);
        return t;
    }

private:
    std::atomic<T*>* at_ = nullptr;
    int count_ = 0;
};

}  // namespace weft
