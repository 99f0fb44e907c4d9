// The short paths of a mapped window: puts and gets of dense bytes, atomic operations on one integer, and flushes. They check all
// arguments: what is wrong, or anything else, is left to the slow path. Included by the bindings. No lock; they take no reference.
#pragma once
#include "base/copy.hpp"
#include "obj/addresses.hpp"
#include "rma/element.hpp"
#include "rma/window.hpp"
#include "type/predefined.hpp"

namespace weft::rma {

// The call of memcpy() is the last thing that is done, so only what makes it pays for it.
WEFT_INLINE void copy_bytes(void* to, const void* from, int64_t bytes) {
    if (WEFT_LIKELY(bytes <= 64)) copy_small(to, from, static_cast<size_t>(bytes));
    else memcpy(to, from, static_cast<size_t>(bytes));
}

// Whether the arguments that no other test here looks at are right; of the datatypes, predefined ones alone. What is no datatype lacks
// these flags: the object behind a bad or null handle has none.
WEFT_INLINE bool is_right(const Buffer& origin, const Type& t, const Window& w) {
    constexpr uint32_t flags = Type::predefined | Type::committed | Type::dense;
    return w.kind == Kind::win && (t.flags & flags) == flags && !obj::no_data_at(origin.base) &&
           w.open_epochs.load(std::memory_order_relaxed) != 0;
}

// Whether an access may be short: of one type and count on both sides. Of a count below 0 has() finds that it is too large.
WEFT_INLINE bool is_short(const Buffer& origin, int target, int64_t count, const Type& t, const Window& w) {
    if (WEFT_UNLIKELY(origin.type != &t || origin.count != count)) return false;
    if (WEFT_CHECKS ? !WEFT_LIKELY(is_right(origin, t, w)) : !WEFT_LIKELY(type::is_dense(t))) return false;
    return WEFT_LIKELY(static_cast<uint32_t>(target) < w.reach);
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
    if (!is_short(origin, target, count, t, w)) return false;
    const int64_t bytes = type::bytes_of(origin);
    char* there;
    if (WEFT_UNLIKELY(!find_place(w, target, disp, bytes, &there))) return false;
    copy_bytes(there, anonymous(origin.base), bytes);
    return true;
}
WEFT_INLINE bool get_inline(Process&, const Buffer& origin, int target, MPI_Aint disp, int64_t count, const Type& t, Win& win) {
    const Window& w = window_of(win);
    if (!is_short(origin, target, count, t, w)) return false;
    const int64_t bytes = type::bytes_of(origin);
    char* there;
    if (WEFT_UNLIKELY(!find_place(w, target, disp, bytes, &there))) return false;
    copy_bytes(anonymous(origin.base), there, bytes);
    return true;
}
// A put to an address of the target's.
WEFT_INLINE bool put_virtual_inline(Process&, const Buffer& origin, int target, MPI_Aint at, int64_t count, const Type& t, Win& win) {
    const Window& w = window_of(win);
    if (!is_short(origin, target, count, t, w)) return false;
    const int64_t bytes = type::bytes_of(origin);
    if (WEFT_UNLIKELY(static_cast<uint64_t>(bytes) > 64)) return false;   // a call of memcpy() would need a frame
    if (WEFT_CHECKS && WEFT_UNLIKELY(!has(w.parts[target], at - reinterpret_cast<intptr_t>(w.parts[target].base), bytes))) return false;
    copy_small(reinterpret_cast<void*>(at), anonymous(origin.base), static_cast<size_t>(bytes));
    return true;
}

// Where the one element of an atomic operation is: an aligned integer of 4 or 8 bytes. `a` and `b`: the other places that are read or written.
// False: take the slow path.
WEFT_INLINE bool find_integer(const Type& t, int target, MPI_Aint disp, const void* a, const void* b, const Window& w, char** place) {
    if (WEFT_UNLIKELY(!(w.kind == Kind::win && t.is(Type::predefined) && t.elem >= type::Elem::i32 && t.elem <= type::Elem::u64 && !t.is_pair() &&
                        !obj::no_data_at(a) && !obj::no_data_at(b) && w.open_epochs.load(std::memory_order_relaxed) != 0 &&
                        static_cast<uint32_t>(target) < w.reach)))
        return false;
    return find_place(w, target, disp, t.size, place) && (reinterpret_cast<uintptr_t>(*place) & static_cast<uintptr_t>(t.size - 1)) == 0;
}

WEFT_INLINE bool fetch_inline(Process&, void* origin, void* result, const Type& t, int target, MPI_Aint disp, const op::Op& op, Win& win) {
    char* there;
    if (op.kind != Kind::op || !find_integer(t, target, disp, result, origin, window_of(win), &there)) return false;
    return t.size == 8 ? fetch_integer<uint64_t>(op.code, there, origin, result) : fetch_integer<uint32_t>(op.code, there, origin, result);
}

WEFT_INLINE bool swap_inline(Process&, void* origin, void* compare, void* result, const Type& t, int target, MPI_Aint disp, Win& win) {
    char* there;
    if (obj::no_data_at(compare) || !find_integer(t, target, disp, result, origin, window_of(win), &there)) return false;
    if (t.size == 8) swap_integer<uint64_t>(there, compare, origin, result);
    else swap_integer<uint32_t>(there, compare, origin, result);
    return true;
}

// Whether a flush of `target` is one of a part that is held.
WEFT_INLINE bool may_flush(int target, const Window& w) {
    return (!WEFT_CHECKS || WEFT_LIKELY(w.kind == Kind::win)) && WEFT_LIKELY(static_cast<uint32_t>(target) < w.reach) &&
           WEFT_LIKELY(w.all_locked || w.locks[target] != Held::no);
}
WEFT_INLINE bool flush_inline(Process&, int target, Win& win) {
    if (!may_flush(target, window_of(win))) return false;
    full_fence();
    return true;
}
WEFT_INLINE bool flush_local_inline(Process&, int target, Win& win) { return may_flush(target, window_of(win)); }

}  // namespace weft::rma
