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

struct Layout;    // envelope, contents and the flattened program; private to type/

struct Type : Object {
    enum Flag : uint32_t {
        predefined = 1,   // never freed, never counted
        committed = 2,
        dense = 4,        // count elements are exactly count*size bytes, starting at the buffer: a memcpy
        contiguous = 8,   // one element is one run of `size` bytes at true_lb (but extent may differ)
        absolute = 16,    // built from addresses: a null buffer (MPI_BOTTOM) makes sense with it
        unsupported = 32, // a Fortran type whose size nobody has said: use is MPI_ERR_TYPE
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
    Layout* layout;       // null for predefined types
    void* extra;          // name and attributes; owned by obj/

    bool is(Flag f) const { return (flags & f) != 0; }
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
// The reverse: writes bytes [from, from+bytes) of the packed form, given at `src`, into `b`.
void unpack(const Buffer& b, int64_t from, int64_t bytes, const void* src);

// References: a derived type lives while someone may still use it. Predefined types are not counted.
inline void retain(const Type& t) {
    if (!t.is(Type::predefined)) const_cast<Type&>(t).refs.fetch_add(1, std::memory_order_relaxed);
}
void release(const Type& t);  // frees at zero

}  // namespace weft::type
