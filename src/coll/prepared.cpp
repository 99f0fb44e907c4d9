// Persistent collectives of a few bytes, over an area of lines of their own: what a call needs is found out by the init call, and each start
// is the next call there. No schedule.
//
// A start publishes the member's line, if it has something to say, and never waits. All that is left is the member's own: to look for the
// words that it awaits, and to take what they bring. So it needs no progress that others would wait for, and only who holds the request
// touches it. Invariant: a start of call n finds that nobody reads the member's line of call n - depth. Whoever awaits the lines of all
// knows by those of call n - 1. Who publishes without hearing from its readers completes call n - 1 only when their marks say that they are
// done with call n - depth; a collective may wait for others that way, as they have to start call n - 1, too, and finish those before.
#include <cstdlib>
#include <new>

#include "coll/lines.hpp"
#include "p2p/p2p.hpp"

namespace weft::coll {

namespace {

enum class Then : uint8_t { nothing, combine, copy };

// One member's part.
struct Plan {
    Operation operation;
    Buffer from, to;             // what is published, and where the result goes
    bool publishes;
    bool hears;                  // awaits lines of other members; else marks of those that read its own
    bool marks;                  // tells by its mark what it is done with, as some await that
    int32_t first, end;          // members that it awaits
    Then then;                   // with what it heard
    const op::Op* op = nullptr;
    op::Kernel kernel = nullptr;
};

struct Prepared {
    Process* process;
    Share* share;
    Plan plan;
    int64_t bytes;
    const void* packed;          // what is published, if it is dense: of the plan's `from`; else null
    Line* lines;                 // of the area
    Line* row;                   // those of the call that was started last
    bool counted;                // among those that may sleep
};

Prepared& prepared_of(Request& r) { return *static_cast<Prepared*>(r.ext); }

// What this member awaits in the call that it has started.
WEFT_INLINE Watch awaited_by(const Prepared& c) {
    const Plan& plan = c.plan;
    const Share& s = *c.share;
    if (WEFT_LIKELY(plan.hears)) return {reinterpret_cast<const char*>(c.row), s.call, plan.first, plan.end, s.me};
    if (s.call < Layout::depth) return {};
    return {s.base + s.layout.marks(), Share::mark_done(s.call + 1 - Layout::depth), plan.first, plan.end, s.me};
}

Err start(Request& r) {
    Prepared& c = prepared_of(r);
    Share& s = *c.share;
    const uint64_t n = next_call(*c.process, s);
    r.state.store(Request::pending, std::memory_order_relaxed);
    c.row = c.lines + static_cast<int32_t>(n % Layout::depth) * s.ranks;
    Line& l = c.row[s.me];
    if (WEFT_LIKELY(c.packed != nullptr)) copy_small(l.data, c.packed, static_cast<size_t>(c.bytes));
    else if (c.plan.publishes) type::pack(c.plan.from, 0, c.bytes, l.data);
    else return Err::ok;
    l.bytes = c.bytes;
    s.publish(*c.process, l.call, n);
    return Err::ok;
}

WEFT_INLINE Err combine(const Prepared& c) {
    if (compares_sizes) WEFT_TRY(compare(*c.share, c.share->call, 0, c.share->ranks, c.bytes));
    return Fold{*c.plan.op, c.plan.kernel}.combine(c.plan.to, c.bytes, c.row->data, line_bytes, c.share->ranks);
}

// What a broadcast's root has sent.
Err take(const Plan& plan, const Line& l) {
    const int64_t bytes = plan.to.bytes(), sent = l.bytes;
    get(plan.to, l.data, sent < bytes ? sent : bytes);
    if (WEFT_LIKELY(sent <= bytes)) return Err::ok;
    return fail(Err::truncate, "the root sends %lld bytes, and there is room for %lld", static_cast<long long>(sent), static_cast<long long>(bytes));
}

// All that it awaits is there.
WEFT_INLINE void complete(Prepared& c, Request& r) {
    const Plan& plan = c.plan;
    Share& s = *c.share;
    Err e = Err::ok;
    if (plan.then == Then::combine) e = combine(c);
    else if (plan.then == Then::copy) e = take(plan, c.row[plan.first]);
    if (plan.marks) s.set_mark(*c.process, Share::mark_done(s.call));
    r.error = static_cast<uint8_t>(e);
    r.state.store(Request::complete, std::memory_order_release);
}

bool poll(Request& r) {
    if (r.done()) return true;
    Prepared& c = prepared_of(r);
    Watch awaited = awaited_by(c);
    if (!c.share->look(awaited, c.counted)) return false;
    complete(c, r);
    return true;
}

void wait(Request& r) {
    Prepared& c = prepared_of(r);
    c.share->wait(*c.process, awaited_by(c));
    c.share->uncount(c.counted);
    complete(c, r);
}

// Other members may still await what this one has published, and find it: the memory stays until the last of them leaves.
void free_prepared(Request& r) {
    Prepared& c = prepared_of(r);
    c.share->uncount(c.counted);
    close_own_area(*c.process, c.share);
    type::release(*c.plan.from.type);
    type::release(*c.plan.to.type);
    if (c.plan.op != nullptr) op::release(*c.plan.op);
    free(&c);
}

constexpr obj::RequestOps prepared_ops{"persistent collective", start, poll, nullptr, nullptr, free_prepared, true, wait};

Err no_memory(Process& p, Share* share) {
    close_own_area(p, share);
    return fail(Err::no_mem, "no memory for a persistent collective");
}

// False: nothing has been done, and the call is for a schedule.
bool prepare(Process& p, Comm& comm, const Plan& plan, int64_t bytes, Request** out, Err* e) {
    Share* share = open_own_lines(p, comm, plan.operation, bytes);
    if (share == nullptr) return false;
    *e = Err::no_mem;
    auto* c = static_cast<Prepared*>(malloc(sizeof(Prepared)));
    Request* r = c != nullptr ? p2p::make_special(p, &comm, &prepared_ops, c) : nullptr;
    if (r == nullptr) {
        free(c);
        *e = no_memory(p, share);
        return true;
    }
    const Buffer& from = plan.from;
    const bool at_once = plan.publishes && from.dense();
    new (c) Prepared{&p, share, plan, from.bytes(), at_once ? (from.bytes() != 0 ? from.data() : "") : nullptr, &share->line(0, 0), nullptr, false};
    type::retain(*plan.from.type);
    type::retain(*plan.to.type);
    if (plan.op != nullptr) op::retain(*plan.op);
    r->flags |= Request::persistent;
    r->state.store(Request::inactive, std::memory_order_release);
    *out = r;
    *e = Err::ok;
    return true;
}

bool is_member(const Comm& c, int32_t root) { return root >= 0 && root < c.size; }

}  // namespace

bool try_prepared(Process& p, Comm& c, const Barrier&, Request** out, Err* e) {
    const Buffer none = bytes_at(nullptr, 0);
    return prepare(p, c, {Operation::barrier, none, none, true, true, false, 0, c.size, Then::nothing}, 1, out, e);
}

bool try_prepared(Process& p, Comm& c, const Bcast& a, Request** out, Err* e) {
    if (!is_member(c, a.root) || in_place(a.buf.base)) return false;
    Plan plan{Operation::bcast, a.buf, a.buf, true, false, false, 0, c.size, Then::nothing};
    if (a.root != c.rank) plan = {Operation::bcast, a.buf, a.buf, false, true, true, a.root, a.root + 1, Then::copy};
    return prepare(p, c, plan, a.buf.bytes(), out, e);
}

bool try_prepared(Process& p, Comm& c, const Reduce& a, Request** out, Err* e) {
    const bool root = a.root == c.rank;
    if (!is_member(c, a.root) || (in_place(a.send) && !root) || (root && in_place(a.recv.base))) return false;
    Fold fold{*a.op};
    if (!fold.fits(a.recv)) return false;
    const Buffer own = operand(a.send, a.recv);
    Plan plan{Operation::reduce, own, own, true, false, false, a.root, a.root + 1, Then::nothing};
    if (root) plan = {Operation::reduce, own, a.recv, true, true, true, 0, c.size, Then::combine, a.op, fold.kernel};
    return prepare(p, c, plan, a.recv.bytes(), out, e);
}

bool try_prepared(Process& p, Comm& c, const Allreduce& a, Request** out, Err* e) {
    Fold fold{*a.op};
    if (in_place(a.recv.base) || !fold.fits(a.recv)) return false;
    const Plan plan{Operation::allreduce, operand(a.send, a.recv), a.recv, true, true, false, 0, c.size, Then::combine, a.op, fold.kernel};
    return prepare(p, c, plan, a.recv.bytes(), out, e);
}

}  // namespace weft::coll
