// Reductions without a root: allreduce, reduce_scatter, scan, exscan.
#include "coll/coll.hpp"
#include "coll/halving.hpp"
#include "coll/levels.hpp"
#include "coll/staged.hpp"

namespace weft::coll {

namespace {

Err no_place() { return fail(Err::buffer, "MPI_IN_PLACE cannot be a buffer here"); }

// Recursive doubling. Ranges of ranks are combined left to right, so it serves every operation, and all members compute
// the same bits. `data` holds the operand, then the result.
void add_doubling_allreduce(Schedule& s, const Team& t, Buffer data) {
    int32_t whole = 1;
    while (whole * 2 <= t.size) whole *= 2;
    int32_t extra = t.size - whole;  // the first 2*extra members fold in pairs, to leave a power of two
    Buffer other = s.temp_like(data.count, *data.type);
    void *partial = data.base, *spare = other.base;
    auto shaped = [&](void* base) { return Buffer{base, data.count, data.type}; };
    auto combine = [&](bool received_is_left) {
        if (received_is_left || s.op()->is(op::Op::commutative)) {
            s.reduce(spare, shaped(partial));
        } else {
            s.reduce(partial, shaped(spare));
            void* swap = partial;
            partial = spare;
            spare = swap;
        }
    };

    bool folded = t.rank < 2 * extra;
    if (folded && t.rank % 2 == 0) {
        s.send(t, t.rank + 1, data);
        s.fence();
        s.recv(t, t.rank + 1, data);
        s.fence();
        return;
    }
    if (folded) {
        s.recv(t, t.rank - 1, shaped(spare));
        s.fence();
        combine(true);
    }
    int32_t me = folded ? t.rank / 2 : t.rank - extra;
    for (int32_t mask = 1; mask < whole; mask *= 2) {
        int32_t peer = me ^ mask, real = peer < extra ? peer * 2 + 1 : peer + extra;
        s.recv(t, real, shaped(spare));
        s.send(t, real, shaped(partial));
        s.fence();
        combine(peer < me);
    }
    if (folded) s.send(t, t.rank - 1, shaped(partial));
    if (partial != data.base) s.copy(shaped(partial), data);
}

// Reduce-scatter around the ring, then allgather: each link carries the data about twice. Commutative operations on
// predefined types only: blocks are cut between elements, and each is combined in an order of its own.
void add_ring_allreduce(Schedule& s, const Team& t, Buffer data) {
    int32_t next = (t.rank + 1) % t.size, before = (t.rank - 1 + t.size) % t.size;
    auto block = [&](int64_t i) {
        i = (i % t.size + t.size) % t.size;
        int64_t from = data.count * i / t.size, to = data.count * (i + 1) / t.size;
        return Buffer{static_cast<char*>(data.base) + from * data.type->extent, to - from, data.type};
    };
    Buffer incoming = s.temp_like(data.count / t.size + 1, *data.type);
    for (int32_t i = 0; i + 1 < t.size; i++) {
        Buffer mine = block(t.rank - i - 1);
        s.recv(t, before, {incoming.base, mine.count, mine.type});
        s.send(t, next, block(t.rank - i));
        s.fence();
        s.reduce(incoming.base, mine);
    }
    s.fence();
    for (int32_t i = 0; i + 1 < t.size; i++) {
        s.recv(t, before, block(t.rank - i));
        s.send(t, next, block(t.rank + 1 - i));
        s.fence();
    }
}

// Rabenseifner's: each of a power of two of members reduces its share, and what a member has is doubled in every round after that.
void add_halving_allreduce(Schedule& s, const Team& t, Buffer data) {
    const Halves halves(t, data);
    halves.add_reduce_scatter(s);
    halves.add_allgather(s);
}

// To member 0 and back: the fewest messages.
void add_tree_allreduce(Schedule& s, const Team& t, Buffer data) {
    add_reduce(s, t, 0, data.base, data);
    s.fence();
    add_bcast(s, t, 0, data);
}

void add_flat_allreduce(Schedule& s, const Team& t, Buffer data) {
    if (t.size == 1) return;
    const Algorithms cannot = can_be_cut(s, t, data) ? 0 : set_of(Algorithm::halving, Algorithm::ring);
    switch (by_messages(s, Operation::allreduce, t.size, data.bytes(), cannot)) {
        case Algorithm::ring: return add_ring_allreduce(s, t, data);
        case Algorithm::halving: return add_halving_allreduce(s, t, data);
        case Algorithm::tree: return add_tree_allreduce(s, t, data);
        default: return add_doubling_allreduce(s, t, data);
    }
}

void add_allreduce(Schedule& s, const Team& t, Buffer data) {
    Levels l;
    if (!in_levels(s, t, 0, order_for(*s.op()), &l)) return add_flat_allreduce(s, t, data);
    add_reduce(s, l.node, l.head, data.base, data);
    if (l.leads()) add_flat_allreduce(s, l.leaders, data);
    add_bcast(s, l.node, l.head, data);
}

}  // namespace

Err build(Schedule& s, const Allreduce& a) {
    Comm& c = *s.comm;
    if (in_place(a.recv.base)) return no_place();
    WEFT_TRY(op::check(*a.op, *a.recv.type));
    s.use(*a.op);
    if (a.recv.count == 0) return Err::ok;
    if (!c.is_inter()) {
        if (add_staged_allreduce(s, in_place(a.send) ? a.recv.base : a.send, a.recv)) return Err::ok;
        if (!in_place(a.send)) s.copy({const_cast<void*>(a.send), a.recv.count, a.recv.type}, a.recv);
        add_allreduce(s, local_team(c), a.recv);
        return Err::ok;
    }
    // Between groups each gets the other's result: the leaders swap them.
    if (in_place(a.send)) return no_place();
    Team local = local_team(c), remote = remote_team(c);
    Buffer sum{nullptr, a.recv.count, a.recv.type};
    if (c.rank == 0) sum = s.temp_like(sum.count, *sum.type);
    add_reduce(s, local, 0, a.send, sum);
    if (c.rank == 0) {
        s.recv(remote, 0, a.recv);
        s.send(remote, 0, sum);
    }
    s.fence();
    add_bcast(s, local, 0, a.recv);
    return Err::ok;
}

namespace {

// Member 0 hands out the blocks of `whole`.
void add_parts_scatter(Schedule& s, const Team& t, const Parts& parts, const void* whole, Buffer mine) {
    if (t.rank != 0) {
        s.recv(t, 0, mine);
        return;
    }
    for (int32_t i = 1; i < t.size; i++) s.send(t, i, parts.at(whole, i));
    s.copy(parts.at(whole, 0), mine);
    s.fence();
}

// Everybody sends everybody the block it reduces. One block is in memory at a time.
void add_pairwise(Schedule& s, const Team& t, const Parts& parts, const void* own, Buffer result) {
    Buffer incoming = s.temp_like(result.count, *result.type);
    s.copy(parts.at(own, t.rank), result);
    for (int32_t i = 1; i < t.size; i++) {
        int32_t to = (t.rank + i) % t.size, from = (t.rank - i + t.size) % t.size;
        s.recv(t, from, incoming);
        s.send(t, to, parts.at(own, to));
        s.fence();
        s.reduce(incoming.base, result);
    }
}

}  // namespace

Err build(Schedule& s, const ReduceScatter& a) {
    Comm& c = *s.comm;
    if (in_place(a.recv.base)) return no_place();
    WEFT_TRY(op::check(*a.op, *a.recv.type));
    s.use(*a.op);
    Parts parts{a};
    Team local = local_team(c), remote = remote_team(c);
    Buffer mine{a.recv.base, parts.count(c.rank), a.recv.type};
    int64_t total = parts.first(c.size);
    if (total == 0) return Err::ok;
    if (!c.is_inter() && s.op()->is(op::Op::commutative)) {
        bool place = in_place(a.send);
        const void* own = place ? a.recv.base : a.send;
        Buffer result = place ? s.temp_like(mine.count, *mine.type) : mine;
        bool done = add_staged_reduce_scatter(s, parts, own, result);
        if (!done && by_messages(s, Operation::reduce_scatter, c.size, total * mine.type->size) == Algorithm::pairwise) {
            add_pairwise(s, local, parts, own, result);
            done = true;
        }
        s.fence();
        if (done && place) s.copy(result, mine);
        if (done) return Err::ok;
    }
    if (c.is_inter() && in_place(a.send)) return no_place();
    Buffer sum{nullptr, total, a.recv.type};
    if (c.rank == 0) sum = s.temp_like(total, *a.recv.type);
    add_reduce(s, local, 0, in_place(a.send) ? a.recv.base : a.send, sum);
    if (c.is_inter() && c.rank == 0) {
        Buffer theirs = s.temp_like(total, *a.recv.type);
        s.recv(remote, 0, theirs);
        s.send(remote, 0, sum);
        s.fence();
        sum = theirs;
    }
    s.fence();
    if (a.counts) {
        add_parts_scatter(s, local, parts, sum.base, mine);
    } else {
        Row blocks{sum.base, a.recv.count, a.recv.type};
        add_rooted(s, Way::scatter, local, 0, mine, blocks);
        if (c.rank == 0) s.copy(blocks.run(0, 1), mine);
    }
    return Err::ok;
}

namespace {

// After round k a member holds the result of the 2^k ranks that end with itself; for the exclusive form also of those
// before itself.
void add_doubling_scan(Schedule& s, const Team& t, bool exclusive, Buffer own, Buffer result) {
    Buffer partial = exclusive ? s.temp_like(result.count, *result.type) : result;
    if (own.base != partial.base) s.copy(own, partial);
    Buffer incoming = s.temp_like(result.count, *result.type);
    bool have_before = false;
    for (int64_t distance = 1; distance < t.size; distance *= 2) {
        bool from = t.rank - distance >= 0, to = t.rank + distance < t.size;
        if (from) s.recv(t, static_cast<int32_t>(t.rank - distance), incoming);
        if (to) s.send(t, static_cast<int32_t>(t.rank + distance), partial);
        s.fence();
        if (!from) continue;
        s.reduce(incoming.base, partial);
        if (!exclusive) continue;
        if (have_before) {
            s.reduce(incoming.base, result);
        } else {
            s.copy(incoming, result);
        }
        have_before = true;
    }
}

// Each waits for what those before it come to, and tells the next what they come to with itself.
void add_chain_scan(Schedule& s, const Team& t, bool exclusive, Buffer own, Buffer result) {
    const Buffer sum = exclusive ? s.temp_like(result.count, *result.type) : result;
    const Buffer before = exclusive ? result : s.temp_like(result.count, *result.type);
    if (own.base != sum.base) s.copy(own, sum);
    if (t.rank > 0) {
        s.recv(t, t.rank - 1, before);
        s.fence();
        s.reduce(before.base, sum);
    }
    if (t.rank + 1 < t.size) s.send(t, t.rank + 1, sum);
}

}  // namespace

Err build(Schedule& s, const Scan& a) {
    Comm& c = *s.comm;
    if (c.is_inter()) return fail(Err::comm, "a scan is not defined on an intercommunicator");
    if (in_place(a.recv.base)) return no_place();
    WEFT_TRY(op::check(*a.op, *a.recv.type));
    s.use(*a.op);
    if (a.recv.count == 0) return Err::ok;
    if (add_staged_scan(s, a.exclusive, in_place(a.send) ? a.recv.base : a.send, a.recv)) return Err::ok;
    Team t = local_team(c);
    const Buffer own{in_place(a.send) ? a.recv.base : const_cast<void*>(a.send), a.recv.count, a.recv.type};
    const Algorithm by = by_messages(s, Operation::scan, t.size, a.recv.bytes());
    if (by == Algorithm::chain) add_chain_scan(s, t, a.exclusive, own, a.recv);
    else add_doubling_scan(s, t, a.exclusive, own, a.recv);
    return Err::ok;
}

}  // namespace weft::coll
