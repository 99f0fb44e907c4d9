// Small blocking collectives over the lines and slots of a communicator's area: who has something to say publishes it, who needs it
// waits for it. No schedule, no message. Two calls with eight bytes each cost a rank as many transfers of lines as members.
#include "coll/lines.hpp"

namespace weft::coll {

namespace {

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

bool is_small(const Share& s, Operation o, int64_t bytes) { return s.lines(o, bytes); }

}  // namespace

bool try_lines(Process& p, Share& s, const Barrier&, Err* e) {
    if (!s.has_lines(Operation::barrier)) return false;
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
    if (a.recv.in_place() || a.recv.types != nullptr || !is_small(s, Operation::allgather, largest(a.recv, s.ranks))) return false;
    const uint64_t n = next_call(p, s);
    const Buffer own = a.recv.at(s.me);
    publish(p, s, n, in_place(a.send.base) ? own : a.send, own.bytes());
    wait_for_all(p, s, n);
    *e = Err::ok;
    for (int32_t i = 0; i < s.ranks && *e == Err::ok; i++) {
        const Buffer to = a.recv.at(i);
        *e = compare(s, n, i, i + 1, to.bytes());
        if (*e == Err::ok && (i != s.me || !in_place(a.send.base))) get(to, s.data(n, i), to.bytes());
    }
    return true;
}

namespace {

// Blocks whose sizes only the two at their ends know, so these two decide: what fits into the receiver's share of the sender's slot lies
// there, and what does not is a message.
int64_t room_for_each(const Share& s) { return Layout::slot_bytes / s.ranks / line_bytes * line_bytes; }
char* block_for(const Share& s, uint64_t n, int32_t writer, int32_t reader) { return s.slot(n, writer) + reader * room_for_each(s); }

// Publishes all blocks that are small enough; whether there are others.
bool publish_blocks(Process& p, Share& s, uint64_t n, const Blocks& from) {
    Line& l = own_line(p, s, n);
    bool others = false;
    l.bytes = Layout::slot_bytes;
    for (int32_t i = 0; i < s.ranks; i++) {
        const Buffer b = from.at(i);
        if (b.bytes() > room_for_each(s)) others = true;
        else put(block_for(s, n, s.me, i), b, b.bytes());
    }
    s.publish(p, l.call, n);
    return others;
}

// The blocks that did not fit, if this member has any. Their tags have the number of a schedule, which all members count therefore.
template <class Add> Err send_others(Process& p, Comm& c, bool any, Add add) {
    const int32_t tag = next_tag(c, of_sequence);
    if (!any) return Err::ok;
    Schedule* s = nullptr;
    WEFT_TRY(open_tagged(p, c, tag, false, &s));
    add(*s);
    return run(*s);
}

// A gather's or scatter's blocks of more than `room`, between the root, which has `all`, and who has `own`.
Err send_others(Process& p, const Share& s, Way way, int32_t root, const Buffer& own, const Blocks& all, int64_t room, bool any) {
    return send_others(p, *s.comm, any, [&](Schedule& rest) {
        const Team team = local_team(*s.comm);
        Flow flow{rest, way};
        if (s.me != root) return flow.to_root(team, root, own);
        for (int32_t i = 0; i < s.ranks; i++)
            if (i != root && all.at(i).bytes() > room) flow.from_member(team, i, all.at(i));
    });
}

// Whether a gather or scatter is for lines, as far as all members know its sizes: equal blocks, or of any sizes. `bytes` of the former.
bool are_for_lines(const Share& s, Operation o, bool equal, int64_t bytes) { return equal ? is_small(s, o, bytes) : s.has_lines(o); }

}  // namespace

bool try_lines(Process& p, Share& s, const Gather& a, Err* e) {
    const bool root = a.root == s.me, place = in_place(a.send.base);
    if (a.root < 0 || a.root >= s.ranks || (root ? a.recv.in_place() : place)) return false;
    if (!are_for_lines(s, Operation::gather, a.equal, root ? a.recv.at(0).bytes() : a.send.bytes())) return false;
    const uint64_t n = next_marked_call(p, s);
    bool others = false;
    *e = Err::ok;
    if (!root) {
        others = a.send.bytes() > Layout::slot_bytes;
        publish(p, s, n, a.send, others ? 0 : a.send.bytes());
    } else {
        if (!place) copy_now(a.send, a.recv.at(s.me));
        s.wait(p, s.lines_of(n));
        for (int32_t i = 0; i < s.ranks && *e == Err::ok; i++) {
            const Buffer to = a.recv.at(i);
            if (i == s.me) continue;
            if (to.bytes() > Layout::slot_bytes) others = true;
            else if ((*e = compare(s, n, i, i + 1, to.bytes())) == Err::ok) get(to, s.data(n, i), to.bytes());
        }
    }
    s.set_mark(p, Share::mark_done(n));
    if (!a.equal && *e == Err::ok) *e = send_others(p, s, Way::gather, a.root, a.send, a.recv, Layout::slot_bytes, others);
    return true;
}

bool try_lines(Process& p, Share& s, const Scatter& a, Err* e) {
    const bool root = a.root == s.me, place = in_place(a.recv.base);
    if (a.root < 0 || a.root >= s.ranks || (root ? a.send.in_place() : place)) return false;
    const int64_t block = root ? a.send.at(0).bytes() : a.recv.bytes(), bytes = block * s.ranks;
    if (!are_for_lines(s, Operation::scatter, a.equal, bytes)) return false;
    const uint64_t n = next_marked_call(p, s);
    bool others = !root && !a.equal && block > room_for_each(s);
    *e = Err::ok;
    if (root) {
        if (a.equal) publish(p, s, n, Row{a.send.base, a.send.count, a.send.type}.run(0, s.ranks), bytes);
        else others = publish_blocks(p, s, n, a.send);
        if (!place) copy_now(a.send.at(s.me), a.recv);
    } else if (!others) {
        s.wait(p, s.line_of(n, a.root));
        const void* mine = a.equal ? static_cast<const char*>(s.data(n, a.root)) + s.me * block : block_for(s, n, a.root, s.me);
        if (a.equal) *e = compare(s, n, a.root, a.root + 1, bytes);
        if (*e == Err::ok) get(a.recv, mine, block);
    }
    s.set_mark(p, Share::mark_done(n));
    if (!a.equal) *e = send_others(p, s, Way::scatter, a.root, a.recv, a.send, room_for_each(s), others);
    return true;
}

bool try_lines(Process& p, Share& s, const ReduceScatter& a, Err* e) {
    const Parts parts{a};
    const Buffer all = operand(a.send, {a.recv.base, parts.first(s.ranks), a.recv.type});
    const Buffer mine{a.recv.base, parts.count(s.me), a.recv.type};
    Fold fold{*a.op};
    if (in_place(a.recv.base) || !fold.can(s, Operation::reduce_scatter, all)) return false;
    const uint64_t n = next_call(p, s);
    publish(p, s, n, all, all.bytes());
    wait_for_all(p, s, n);
    *e = mine.count == 0 ? Err::ok : fold.into(mine, s, n, s.ranks, parts.first(s.me) * mine.type->size, all.bytes());
    return true;
}

bool try_lines(Process& p, Share& s, const Scan& a, Err* e) {
    const int32_t end = a.exclusive ? s.me : s.me + 1;
    Fold fold{*a.op};
    if (in_place(a.recv.base) || !fold.can(s, Operation::scan, a.recv)) return false;
    const uint64_t n = next_marked_call(p, s);
    publish(p, s, n, operand(a.send, a.recv), a.recv.bytes());
    s.wait(p, s.lines_before(n, end));
    *e = end == 0 ? Err::ok : fold.into(a.recv, s, n, end, 0, a.recv.bytes());
    s.set_mark(p, Share::mark_done(n));
    return true;
}

namespace {

bool alltoall_of_any_sizes(Process& p, Share& s, const Alltoall& a, Err* e) {
    if (!s.has_lines(Operation::alltoall)) return false;
    const uint64_t n = next_call(p, s);
    bool others = publish_blocks(p, s, n, a.send.in_place() ? a.recv : a.send);
    wait_for_all(p, s, n);
    for (int32_t i = 0; i < s.ranks; i++) {
        const Buffer to = a.recv.at(i);
        if (to.bytes() > room_for_each(s)) others = true;
        else get(to, block_for(s, n, i, s.me), to.bytes());
    }
    *e = send_others(p, *s.comm, others, [&](Schedule& rest) { add_alltoall(rest, local_team(*s.comm), a, room_for_each(s) + 1); });
    return true;
}

}  // namespace

bool try_lines(Process& p, Share& s, const Alltoall& a, Err* e) {
    if (a.recv.in_place()) return false;
    if (!is_row(a.recv)) return alltoall_of_any_sizes(p, s, a, e);
    const Blocks& from = a.send.in_place() ? a.recv : a.send;
    const int64_t block = a.recv.count * a.recv.type->size, bytes = block * s.ranks;
    if (!is_small(s, Operation::alltoall, bytes)) return false;
    const uint64_t n = next_call(p, s);
    publish(p, s, n, Row{from.base, from.count, from.type}.run(0, s.ranks), bytes);
    wait_for_all(p, s, n);
    *e = compare(s, n, 0, s.ranks, bytes);
    for (int32_t i = 0; i < s.ranks && *e == Err::ok; i++)
        get(a.recv.at(i), static_cast<const char*>(s.data(n, i)) + s.me * block, block);
    return true;
}

}  // namespace weft::coll
