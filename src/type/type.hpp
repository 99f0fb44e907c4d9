// Datatypes: what the rest of the library may know of one. Any floor above base/ may include this.
// A Type is immutable once committed, except for its reference count (atomic) and its name and attributes, which
// belong to the floor above and are guarded there.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"

namespace weft::type {

struct Layout;    // envelope, contents and the flattened program; private to type/ (layout.hpp)

// How the bytes of one predefined element are to be read: what reductions and conversions go by.
enum class Elem : uint8_t {
    none,             // a derived type
    i8, u8, i16, u16, i32, u32, i64, u64, i128,
    f16, f32, f64, f80, f128,              // f80: the x87 format in 16 bytes
    cf16, cf32, cf64, cf80, cf128,         // complex numbers of these
    boolean, l8, l16, l32, l64, l128,      // C's truth values, and Fortran's by size
    byte, character, wide, packed,
};

struct alignas(64) Type : Object {
    enum Flag : uint32_t {
        predefined = 1,   // never freed, never counted
        committed = 2,
        dense = 4,        // count elements are exactly count*size bytes, starting at the buffer: a memcpy
        contiguous = 8,   // one element is one run of `size` bytes at true_lb (but extent may differ)
        absolute = 16,    // built from addresses: a null buffer (MPI_BOTTOM) makes sense with it
        unsupported = 32, // a Fortran type that the compiler lacks (set_fortran_sizes): not committed, use is MPI_ERR_TYPE
        named = 64,       // its handle is its ABI number (`id`); all others' handles are their addresses
        marked_lb = 128,  // the lower bound was set by the user (resized, subarray), here or further in
        marked_ub = 256,  // likewise the upper bound
    };
    // First cache line: all that a send of a predefined type reads.
    uint32_t flags;
    uint32_t align;       // of the strictest basic member, bytes
    int64_t size;         // bytes of data in one element
    int64_t extent;       // ub - lb
    int64_t lb;
    int64_t true_lb;
    int64_t true_extent;
    std::atomic<int32_t> refs;
    Elem elem;            // predefined types only: what it is, or the value of a pair
    Elem index;           // a pair's index; Elem::none where it is no pair
    uint16_t unused_;
    Layout* layout;       // null for predefined types without holes
    void* extra;          // name and attributes; owned by obj/

    bool is(Flag f) const { return (flags & f) != 0; }
    bool is_pair() const { return index != Elem::none; }
    int64_t ub() const { return lb + extent; }
};

// A user's buffer with its shape.
struct Buffer {
    void* base;
    int64_t count;
    const Type* type;
    int64_t bytes() const { return count * type->size; }
    bool dense() const { return type->is(Type::dense) || (count == 1 && type->is(Type::contiguous)); }
    // Start of the data where dense() holds.
    char* data() const { return static_cast<char*>(base) + type->true_lb; }
};

// Packs bytes [from, from+bytes) of the packed form of `b` into `to`; any split of the packed form is allowed, also
// inside a basic element. No allocation, no lock, O(log blocks) to find the start.
void pack(const Buffer& b, int64_t from, int64_t bytes, void* to);
// The reverse: writes bytes [from, from+bytes) of the packed form, given at `src`, into `b`. Gaps are never written.
void unpack(const Buffer& b, int64_t from, int64_t bytes, const void* src);

// Copies the first `bytes` of the packed form of `from` to that of `to`. They must not overlap unless both are dense.
void copy(const Buffer& from, const Buffer& to, int64_t bytes);

// Basic elements in the first `bytes` of data of this type repeated; -1 where the last one is not whole.
int64_t elements(const Type& t, int64_t bytes);
// The reverse: bytes that the first `count` basic elements take; -1 beyond 63 bits, or where there are none to count.
int64_t element_bytes(const Type& t, int64_t count);

// The MPI handle of a type, as user functions are given it.
inline void* handle_of(const Type& t) {
    return t.is(Type::named) ? reinterpret_cast<void*>(static_cast<uintptr_t>(t.id)) : const_cast<Type*>(&t);
}

// References: a derived type lives while someone may still use it. Predefined types are not counted.
inline void retain(const Type& t) {
    if (!t.is(Type::predefined)) const_cast<Type&>(t).refs.fetch_add(1, std::memory_order_relaxed);
}
void release(const Type& t);  // frees at zero

}  // namespace weft::type
