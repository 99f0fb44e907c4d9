// Memory for the length of a scope: what a cold path needs and gives back. Any floor may include this; no lock.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace weft {

// `count` objects of a plain type T, not initialised. False where there was no memory; the user says so.
template <class T> class Scratch {
public:
    explicit Scratch(int64_t count) : p_(static_cast<T*>(malloc(static_cast<size_t>(count > 0 ? count : 1) * sizeof(T)))) {}
    ~Scratch() { free(p_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    explicit operator bool() const { return p_ != nullptr; }
    T* get() const { return p_; }
    T& operator[](int64_t i) const { return p_[i]; }

private:
    T* p_;
};

}  // namespace weft
