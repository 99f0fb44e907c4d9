// What several collectives are made of: blocks, and barrier, broadcast and reduction over one team.
#include "coll/coll.hpp"

#include "coll/halving.hpp"
#include "coll/handles.hpp"
#include "coll/levels.hpp"
#include "coll/tree.hpp"

namespace weft::coll {

Algorithm by_messages(const Schedule& s, Operation o, int32_t members, int64_t bytes, Algorithms but) {
    const Algorithms among = algorithms_of(o) & ~set_of(Algorithm::lines, Algorithm::stages) & ~but;
    return choose(table_of(*s.process), o, members, s.share() != nullptr ? s.share()->cpus : Cpus::unknown, bytes, among);
}

bool tree_pays(const Schedule& s, Way way, int32_t members, int64_t bytes) {
    if (bytes == never_a_tree) return false;
    const bool gathers = way == Way::gather;
    return by_messages(s, gathers ? Operation::gather : Operation::scatter, members, gathers ? bytes : bytes * members) == Algorithm::binomial;
}

static Buffer nothing() { return bytes_at(nullptr, 0); }

Buffer Blocks::at(int64_t i) const {
    const type::Type* t = types != nullptr ? &type_of_handle(types[i]) : type;
    int64_t n = counts ? counts[i] : count;
    if (t->kind != Kind::type) return nothing();   // a null handle: the count is 0
    int64_t offset = types != nullptr ? displs[i] : (displs ? displs[i] : i * count) * t->extent;
    return {static_cast<char*>(base) + offset, n, t};
}

namespace {

// Dissemination: after round k everybody has heard, directly or not, from the 2^k - 1 members before it.
void add_dissemination(Schedule& s, const Team& t) {
    for (int64_t distance = 1; distance < t.size; distance *= 2) {
        if (distance > 1) s.fence();
        s.recv(t, static_cast<int32_t>((t.rank - distance + t.size) % t.size), nothing());
        s.send(t, static_cast<int32_t>((t.rank + distance) % t.size), nothing());
    }
}

// Everybody has come to member 0, which lets all go: fewer messages, one after the other.
void add_flat_barrier(Schedule& s, const Team& t) {
    if (by_messages(s, Operation::barrier, t.size, 1) != Algorithm::tree) return add_dissemination(s, t);
    add_rooted(s, Way::gather, t, 0, nothing(), {nullptr, 0, &byte_type()});
    s.fence();
    add_bcast(s, t, 0, nothing());
}

}  // namespace

// Everybody has come to the node's head; the heads meet; each lets its node go.
void add_barrier(Schedule& s, const Team& t) {
    Levels l;
    if (!in_levels(s, t, 0, Order::any, &l)) return add_flat_barrier(s, t);
    add_rooted(s, Way::gather, l.node, l.head, nothing(), {nullptr, 0, &byte_type()});
    s.fence();
    if (l.leads()) add_flat_barrier(s, l.leaders);
    s.fence();
    add_bcast(s, l.node, l.head, nothing());
}

namespace {

void add_linear_bcast(Schedule& s, const Team& t, int32_t root, Buffer b) {
    if (t.rank != root) {
        s.recv(t, root, b);
        return s.fence();
    }
    for (int32_t i = 1; i < t.size; i++) s.send(t, (root + i) % t.size, b);
}

// As the binomial one, with up to three subtrees of each size: less deep, and more messages of one member.
void add_knomial_bcast(Schedule& s, const Team& t, int32_t root, Buffer b) {
    constexpr int64_t radix = 4;
    const Tree tree{t.rank, root, t.size};
    const int64_t v = tree.me();
    int64_t reach = 1;
    while (reach < t.size && v % (reach * radix) == 0) reach *= radix;
    if (v != 0) {
        s.recv(t, tree.real(v - v % (reach * radix)), b);
        s.fence();
    }
    for (int64_t step = reach / radix; step > 0; step /= radix)
        for (int64_t child = v + step; child < v + radix * step && child < t.size; child += step) s.send(t, tree.real(child), b);
}

// Binomial: log2(size) messages deep, and the whole buffer in each.
void add_tree_bcast(Schedule& s, const Team& t, int32_t root, Buffer b) {
    Tree tree{t.rank, root, t.size};
    int64_t v = tree.me(), reach = tree.reach();
    if (v != 0) {
        s.recv(t, tree.parent(), b);
        s.fence();
    }
    for (int64_t mask = reach / 2; mask > 0; mask /= 2)
        if (v + mask < t.size) s.send(t, tree.real(v + mask), b);
}

// Scatter down the tree, then a ring: every link carries the buffer about twice, whatever the size of the team. Counted in
// packed bytes, since a type may differ from process to process as long as its signature is the same.
void add_ring_bcast(Schedule& s, const Team& t, int32_t root, Buffer b) {
    Tree tree{t.rank, root, t.size};
    int64_t bytes = b.bytes(), v = tree.me(), reach = tree.reach();
    bool dense = b.dense();
    Buffer flat = dense ? bytes_at(b.data(), bytes) : s.temp_bytes(bytes);
    auto piece = [&](int64_t first, int64_t last) {  // the bytes of virtual members [first, last)
        int64_t from = bytes * first / t.size, to = bytes * last / t.size;
        return bytes_at(static_cast<char*>(flat.base) + from, to - from);
    };
    if (v == 0 && !dense) s.copy(b, flat);
    if (v != 0) {
        s.recv(t, tree.parent(), piece(v, tree.end(v, reach)));
        s.fence();
    }
    for (int64_t mask = reach / 2; mask > 0; mask /= 2)
        if (v + mask < t.size) s.send(t, tree.real(v + mask), piece(v + mask, tree.end(v + mask, mask)));
    s.fence();
    for (int64_t i = 0; i + 1 < t.size; i++) {
        int64_t out = (v - i + t.size) % t.size, in = (v - i - 1 + t.size) % t.size;
        s.recv(t, tree.real(v - 1 + t.size), piece(in, in + 1));
        s.send(t, tree.real(v + 1), piece(out, out + 1));
        s.fence();
    }
    if (v != 0 && !dense) s.copy(flat, b);
}

void add_flat_bcast(Schedule& s, const Team& t, int32_t root, Buffer b) {
    switch (by_messages(s, Operation::bcast, t.size, b.bytes())) {
        case Algorithm::ring: return add_ring_bcast(s, t, root, b);
        case Algorithm::linear: return add_linear_bcast(s, t, root, b);
        case Algorithm::knomial: return add_knomial_bcast(s, t, root, b);
        default: return add_tree_bcast(s, t, root, b);
    }
}

}  // namespace

void add_bcast(Schedule& s, const Team& t, int32_t root, Buffer b) {
    Levels l;
    if (!in_levels(s, t, root, Order::any, &l)) return add_flat_bcast(s, t, root, b);
    if (l.leads()) add_flat_bcast(s, l.leaders, l.root, b);
    add_flat_bcast(s, l.node, l.head, b);
}

namespace {

// A binomial tree in which every member combines its own range of ranks with the next one to the right, so the order is
// kept. An operation that is not commutative is reduced to member 0, since a rotated tree would start in the middle.
void add_tree_reduce(Schedule& s, const Team& t, int32_t root, const void* own, Buffer result) {
    bool rotate = s.op()->is(op::Op::commutative);
    Tree tree{t.rank, rotate ? root : 0, t.size};
    int64_t v = tree.me();
    int receives = 0;
    for (int64_t mask = 1; mask < tree.reach() && v + mask < t.size; mask *= 2) receives++;

    // The partial result wanders between two buffers; the last step ends in slot[0].
    bool final_here = v == 0 && t.rank == root;
    Buffer slot[2];
    slot[0] = final_here ? result : receives > 0 ? s.temp_like(result.count, *result.type) : Buffer{};
    slot[1] = receives > 1 ? s.temp_like(result.count, *result.type) : Buffer{};
    const void* partial = own;
    if (own == slot[0].base && receives % 2 == 1) {
        Buffer saved = s.temp_like(result.count, *result.type);
        s.copy(result, saved);
        partial = saved.base;
    }
    int64_t mask = 1;
    for (int i = 1; i <= receives; i++, mask *= 2) {
        Buffer into = slot[(receives - i) % 2];
        s.recv(t, tree.real(v + mask), into);
        s.fence();
        s.reduce(partial, into);
        partial = into.base;
    }
    Buffer out{const_cast<void*>(partial), result.count, result.type};
    if (v != 0) {
        s.send(t, tree.parent(), out);
        s.fence();
    } else if (!final_here) {
        s.send(t, root, out);
        s.fence();
    } else if (partial != result.base) {
        s.copy(out, result);
    }
    if (t.rank == root && !final_here) {
        s.recv(t, 0, result);
        s.fence();
    }
}

// Each of a power of two of members reduces its share, and tells it to the root.
void add_halving_reduce(Schedule& s, const Team& t, int32_t root, const void* own, Buffer result) {
    const Buffer data = t.rank == root ? result : s.temp_like(result.count, *result.type);
    if (own != data.base) s.copy({const_cast<void*>(own), result.count, result.type}, data);
    const Halves halves(t, data);
    halves.add_reduce_scatter(s);
    if (t.rank != root) {
        if (halves.takes_part()) s.send(t, root, halves.share(halves.me, halves.me + 1));
        return;
    }
    for (int32_t i = 0; i < halves.whole; i++)
        if (i != halves.me) s.recv(t, halves.real(i), halves.share(i, i + 1));
    s.fence();
}

void add_flat_reduce(Schedule& s, const Team& t, int32_t root, const void* own, Buffer result) {
    const Algorithms cannot = can_be_cut(s, t, result) ? 0 : set_of(Algorithm::halving);
    if (by_messages(s, Operation::reduce, t.size, result.bytes(), cannot) == Algorithm::halving) return add_halving_reduce(s, t, root, own, result);
    add_tree_reduce(s, t, root, own, result);
}

}  // namespace

void add_reduce(Schedule& s, const Team& t, int32_t root, const void* own, Buffer result) {
    Levels l;
    if (!in_levels(s, t, root, order_for(*s.op()), &l)) return add_flat_reduce(s, t, root, own, result);
    Buffer partial{nullptr, result.count, result.type};
    if (l.leads()) partial = s.temp_like(result.count, *result.type);
    add_flat_reduce(s, l.node, l.head, own, partial);
    if (l.leads()) add_flat_reduce(s, l.leaders, l.root, partial.base, result);
}

}  // namespace weft::coll
