// What blocking and persistent collectives by lines have in common (coll/small.cpp, coll/prepared.cpp), which alone include it.
#pragma once
#include <cstring>

#include "base/copy.hpp"
#include "coll/coll.hpp"
#include "op/op.hpp"
#include "p2p/progress.hpp"

namespace weft::coll {

// Other traffic may need this rank while its collectives never have to wait.
inline constexpr uint64_t calls_between_progress = 64;

WEFT_INLINE uint64_t next_call(Process& p, Share& s) {
    const uint64_t n = ++s.call;
    if (WEFT_UNLIKELY(n % calls_between_progress == 0)) p2p::progress(p);
    return n;
}

WEFT_INLINE void move(void* to, const void* from, int64_t bytes) {
    if (WEFT_LIKELY(bytes <= Line::room)) copy_small(to, anonymous(from), static_cast<size_t>(bytes));
    else memcpy(to, from, static_cast<size_t>(bytes));
}

// What the types hold, packed, to or from memory of the area.
WEFT_INLINE void put(char* to, const Buffer& b, int64_t bytes) {
    if (WEFT_LIKELY(b.dense())) move(to, b.data(), bytes);
    else type::pack(b, 0, bytes, to);
}
WEFT_INLINE void get(const Buffer& b, const void* from, int64_t bytes) {
    if (WEFT_LIKELY(b.dense())) move(b.data(), from, bytes);
    else type::unpack(b, 0, bytes, from);
}

// Where sizes are compared: whether members [from, end) have brought as many bytes to call n as this one expects of each.
inline Err compare(const Share& s, uint64_t n, int32_t from, int32_t end, int64_t bytes) {
    for (int32_t i = from; compares_sizes && i < end; i++)
        if (i != s.me) WEFT_TRY(s.compare(i, s.line(n, i).bytes, bytes));
    return Err::ok;
}

// A reduction of vectors that all members have in their lines or slots. Of predefined types alone: the same in all, without gaps.
struct Fold {
    const op::Op& op;
    op::Kernel kernel = nullptr;   // null: a user's operation, or one that copies

    WEFT_INLINE bool can(const Share& s, Operation o, const Buffer& b) {
        return s.lines(o, b.bytes()) && fits(b);
    }
    WEFT_INLINE bool fits(const Buffer& b) {
        if (!b.type->is(type::Type::predefined) || !b.type->is(type::Type::dense)) return false;
        kernel = op::kernel_of(op, *b.type);
        return kernel != nullptr || op::check(op, *b.type) == Err::ok;
    }
    // Combines those of members [0, end) in their order, from the last one on: the same bits wherever it is done. `result` is a part of
    // the vector, `from` bytes behind the start of one that has `all`.
    WEFT_INLINE Err into(const Buffer& result, const Share& s, uint64_t n, int32_t end, int64_t from, int64_t all) const {
        if (compares_sizes) WEFT_TRY(compare(s, n, 0, end, all));
        const bool in_lines = all <= Line::room;
        return combine(result, result.bytes(), (in_lines ? s.line(n, 0).data : s.slot(n, 0)) + from, in_lines ? line_bytes : Layout::slot_bytes, end);
    }
    // `first`: the part of member 0, the others' `step` bytes apart.
    WEFT_INLINE Err combine(const Buffer& result, int64_t bytes, const char* first, int64_t step, int32_t end) const {
        const char* at = first + (end - 1) * step;
        move(result.base, at, bytes);
        for (int32_t i = end - 1; i > 0; i--) {
            at -= step;
            if (WEFT_LIKELY(kernel != nullptr)) kernel(at, result.base, result.count);
            else WEFT_TRY(op::apply(op, at, result.base, result.count, *result.type));
        }
        return Err::ok;
    }
    WEFT_INLINE Err into(const Buffer& result, const Share& s, uint64_t n) const { return into(result, s, n, s.ranks, 0, result.bytes()); }
};

inline Buffer operand(const void* send, const Buffer& recv) {
    return {in_place(send) ? recv.base : const_cast<void*>(send), recv.count, recv.type};
}

}  // namespace weft::coll
