// The short path of put and get: a few dense bytes of a mapped window, are loaded and stored by the caller
// itself. It checks all arguments: what is wrong, or anything else, is left to the slow path. Included by the bindings. No lock; takes no reference.
#pragma once
#include "base/copy.hpp"
#include "obj/addresses.hpp"
#include "rma/window.hpp"
#include "type/predefined.hpp"

namespace weft::rma {

inline constexpr int64_t short_bytes = 64;   // copy_small() copies no more

// Whether the arguments that no other test here looks at are right; of the datatypes, predefined ones alone. What is no datatype lacks
// these flags: the object behind a bad or null handle has none.
WEFT_INLINE bool is_right(const Buffer& origin, const Type& t, const Window& w) {
    constexpr uint32_t flags = Type::predefined | Type::committed | Type::dense;
    return w.kind == Kind::win && (t.flags & flags) == flags && !obj::no_data_at(origin.base) &&
           w.open_epochs.load(std::memory_order_relaxed) != 0;
}

// The bytes of an access that may be short: of one type and count on both sides. -1: take the slow path, which checks all arguments.
WEFT_INLINE int64_t short_access(const Buffer& origin, int target, int64_t count, const Type& t, const Window& w) {
    if (WEFT_UNLIKELY(origin.type != &t || origin.count != count)) return -1;
    if (WEFT_CHECKS ? !WEFT_LIKELY(is_right(origin, t, w)) : !WEFT_LIKELY(type::is_dense(t))) return -1;
    if (WEFT_UNLIKELY(static_cast<uint32_t>(target) >= w.reach)) return -1;
    const int64_t bytes = type::bytes_of(origin);
    return WEFT_LIKELY(static_cast<uint64_t>(bytes) <= static_cast<uint64_t>(short_bytes)) ? bytes : -1;
}

// Whether [offset, offset + bytes) is in the part. Of an offset below 0 the end is too large, or the sum overflows.
WEFT_INLINE bool has(const Part& part, int64_t offset, int64_t bytes) {
    uint64_t end;
    if (!WEFT_CHECKS) return true;
    return !WEFT_UNLIKELY(__builtin_add_overflow(static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes), &end)) &&
           WEFT_LIKELY(end <= static_cast<uint64_t>(part.bytes));
}

// Sets `*place` to the target's first byte, for an access of `bytes`. False: take the slow path.
WEFT_INLINE bool find_place(const Window& w, int target, MPI_Aint disp, int64_t bytes, char** place) {
    const Part& part = w.parts[target];
    int64_t offset = 0;
    if (!WEFT_CHECKS) offset = disp * part.disp_unit;
    else if (WEFT_UNLIKELY(__builtin_mul_overflow(disp, part.disp_unit, &offset))) return false;
    if (!has(part, offset, bytes)) return false;
    *place = address(part, offset);
    return true;
}

// False: nothing happened, take the slow path.
WEFT_INLINE bool put_inline(Process&, const Buffer& origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& win) {
    const Window& w = window_of(win);
    const int64_t bytes = short_access(origin, target, count, t, w);
    if (WEFT_UNLIKELY(bytes < 0)) return false;
    char* there;
    if (WEFT_UNLIKELY(!find_place(w, target, disp, bytes, &there))) return false;
    copy_small(there, anonymous(origin.base), static_cast<size_t>(bytes));
    return true;
}
WEFT_INLINE bool get_inline(Process&, const Buffer& origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& win) {
    const Window& w = window_of(win);
    const int64_t bytes = short_access(origin, target, count, t, w);
    if (WEFT_UNLIKELY(bytes < 0)) return false;
    char* there;
    if (WEFT_UNLIKELY(!find_place(w, target, disp, bytes, &there))) return false;
    copy_small(anonymous(origin.base), there, static_cast<size_t>(bytes));
    return true;
}
// A put to an address of the target's.
WEFT_INLINE bool put_virtual_inline(Process&, const Buffer& origin, int target, MPI_Aint at, int64_t count, const Type& t, Win& win) {
    const Window& w = window_of(win);
    const int64_t bytes = short_access(origin, target, count, t, w);
    if (WEFT_UNLIKELY(bytes < 0)) return false;
    if (WEFT_CHECKS && WEFT_UNLIKELY(!has(w.parts[target], at - reinterpret_cast<intptr_t>(w.parts[target].base), bytes))) return false;
    copy_small(reinterpret_cast<void*>(at), anonymous(origin.base), static_cast<size_t>(bytes));
    return true;
}

}  // namespace weft::rma
