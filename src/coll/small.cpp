// Small blocking collectives over the lines and slots of a communicator's area: who has something to say publishes it, who needs it
// waits for it. No schedule, no message. Two calls with eight bytes each cost a rank as many transfers of lines as members.
#include <cstring>

#include "base/copy.hpp"
#include "coll/coll.hpp"
#include "op/op.hpp"
#include "p2p/progress.hpp"

namespace weft::coll {

namespace {

// Other traffic may need this rank while its collectives never have to wait.
constexpr uint64_t calls_between_progress = 64;

uint64_t next_call(Process& p, Share& s) {
    const uint64_t n = ++s.call;
    if (WEFT_UNLIKELY(n % calls_between_progress == 0)) p2p::progress(p);
    return n;
}

// For calls in which some members publish nothing, so that the others cannot tell by their lines how far they are: marks do.
uint64_t next_marked_call(Process& p, Share& s) {
    const uint64_t n = next_call(p, s);
    s.set_mark(p, Share::mark_done(n - 1));
    return n;
}

WEFT_COLD void wait_for_room(Process& p, Share& s, uint64_t n) {
    s.wait(p, s.marks_of(Share::mark_done(n - Layout::depth)));
    uint64_t least = n - 1;
    for (int32_t i = 0; i < s.ranks; i++) {
        const uint64_t done = (s.mark(i).load(std::memory_order_acquire) >> Share::phase_bits) - 1;
        if (i != s.me && done < least) least = done;
    }
    s.all_done = least;
}

// This member's line of call n, when nobody reads what it held before.
WEFT_INLINE Line& own_line(Process& p, Share& s, uint64_t n) {
    if (WEFT_UNLIKELY(s.all_done + Layout::depth < n)) wait_for_room(p, s, n);
    return s.line(n, s.me);
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

WEFT_INLINE void publish(Process& p, Share& s, uint64_t n, const Buffer& b, int64_t bytes) {
    Line& l = own_line(p, s, n);
    l.bytes = bytes;
    put(bytes <= Line::room ? l.data : s.slot(n, s.me), b, bytes);
    s.publish(p, l.call, n);
}

// Every member's line is there, so all are done with the calls before.
WEFT_INLINE void wait_for_all(Process& p, Share& s, uint64_t n) {
    s.wait(p, s.lines_of(n));
    s.all_done = n - 1;
}

bool is_small(const Share& s, Operation o, int64_t bytes) { return bytes > 0 && bytes <= s.limits_of(o).lines_most; }

// A reduction of vectors that all members have in their lines or slots. Of predefined types alone: the same in all, without gaps.
struct Fold {
    const op::Op& op;
    op::Kernel kernel = nullptr;   // null: a user's operation, or one that copies

    WEFT_INLINE bool can(const Share& s, Operation o, const Buffer& b) {
        if (!is_small(s, o, b.bytes()) || !b.type->is(type::Type::predefined) || !b.type->is(type::Type::dense)) return false;
        kernel = op::kernel_of(op, *b.type);
        return kernel != nullptr || op::check(op, *b.type) == Err::ok;
    }
    // Combined in the members' order, from the last one on: the same bits wherever it is done.
    WEFT_INLINE Err into(const Buffer& result, const Share& s, uint64_t n) const {
        const int64_t bytes = result.bytes(), step = bytes <= Line::room ? line_bytes : Layout::slot_bytes;
        const char* at = (bytes <= Line::room ? s.line(n, 0).data : s.slot(n, 0)) + (s.ranks - 1) * step;
        move(result.base, at, bytes);
        for (int32_t i = s.ranks - 1; i > 0; i--) {
            at -= step;
            if (WEFT_LIKELY(kernel != nullptr)) kernel(at, result.base, result.count);
            else WEFT_TRY(op::apply(op, at, result.base, result.count, *result.type));
        }
        return Err::ok;
    }
};

Buffer operand(const void* send, const Buffer& recv) {
    return {in_place(send) ? recv.base : const_cast<void*>(send), recv.count, recv.type};
}

}  // namespace

bool try_lines(Process& p, Share& s, const Barrier&, Err* e) {
    if (s.limits_of(Operation::barrier).lines_most < 0) return false;
    const uint64_t n = next_call(p, s);
    s.publish(p, own_line(p, s, n).call, n);
    wait_for_all(p, s, n);
    *e = Err::ok;
    return true;
}

bool try_lines(Process& p, Share& s, const Bcast& a, Err* e) {
    const int64_t bytes = a.buf.bytes();
    if (!is_small(s, Operation::bcast, bytes) || a.root < 0 || a.root >= s.ranks || in_place(a.buf.base)) return false;
    const uint64_t n = next_marked_call(p, s);
    *e = Err::ok;
    if (a.root == s.me) {
        publish(p, s, n, a.buf, bytes);
    } else {
        s.wait(p, s.line_of(n, a.root));
        const int64_t sent = s.line(n, a.root).bytes;
        if (WEFT_UNLIKELY(sent > bytes)) *e = fail(Err::truncate, "the root sends %lld bytes, and there is room for %lld",
                                                   static_cast<long long>(sent), static_cast<long long>(bytes));
        get(a.buf, s.data(n, a.root), sent < bytes ? sent : bytes);
    }
    s.set_mark(p, Share::mark_done(n));
    return true;
}

bool try_lines(Process& p, Share& s, const Reduce& a, Err* e) {
    const bool root = a.root == s.me;
    if (a.root < 0 || a.root >= s.ranks || (in_place(a.send) && !root) || (root && in_place(a.recv.base))) return false;
    Fold fold{*a.op};
    if (!fold.can(s, Operation::reduce, a.recv)) return false;
    const uint64_t n = next_marked_call(p, s);
    publish(p, s, n, operand(a.send, a.recv), a.recv.bytes());
    *e = Err::ok;
    if (root) {
        s.wait(p, s.lines_of(n));
        *e = fold.into(a.recv, s, n);
    }
    s.set_mark(p, Share::mark_done(n));
    return true;
}

bool try_lines(Process& p, Share& s, const Allreduce& a, Err* e) {
    Fold fold{*a.op};
    if (in_place(a.recv.base) || !fold.can(s, Operation::allreduce, a.recv)) return false;
    const uint64_t n = next_call(p, s);
    publish(p, s, n, operand(a.send, a.recv), a.recv.bytes());
    wait_for_all(p, s, n);
    *e = fold.into(a.recv, s, n);
    return true;
}

bool try_lines(Process& p, Share& s, const Allgather& a, Err* e) {
    const Buffer own = a.recv.at(s.me);
    const int64_t bytes = own.bytes();
    if (a.recv.counts || a.recv.in_place() || !is_small(s, Operation::allgather, bytes)) return false;
    const uint64_t n = next_call(p, s);
    publish(p, s, n, in_place(a.send.base) ? own : a.send, bytes);
    wait_for_all(p, s, n);
    for (int32_t i = 0; i < s.ranks; i++)
        if (i != s.me || !in_place(a.send.base)) get(a.recv.at(i), s.data(n, i), bytes);
    *e = Err::ok;
    return true;
}

bool try_lines(Process& p, Share& s, const Alltoall& a, Err* e) {
    if (a.recv.counts || a.recv.in_place()) return false;
    const Blocks& from = a.send.in_place() ? a.recv : a.send;
    const int64_t block = a.recv.count * a.recv.type->size, bytes = block * s.ranks;
    if (!is_small(s, Operation::alltoall, bytes)) return false;
    const uint64_t n = next_call(p, s);
    publish(p, s, n, Row{from.base, from.count, from.type}.run(0, s.ranks), bytes);
    wait_for_all(p, s, n);
    for (int32_t i = 0; i < s.ranks; i++)
        get(a.recv.at(i), static_cast<const char*>(s.data(n, i)) + s.me * block, block);
    *e = Err::ok;
    return true;
}

}  // namespace weft::coll
