// Gathering, scattering and allgathering over one team: what a level does, and how two levels do it.
#include "coll/coll.hpp"
#include "coll/levels.hpp"
#include "coll/tree.hpp"

namespace weft::coll {

namespace {

// What the members of a team bring or get, in packed bytes: member i's share is blocks first[i] .. first[i + 1] - 1, or
// block i where `first` is null.
struct Shares {
    const int32_t* first;
    int64_t block;
    int64_t at(int64_t i) const { return (first != nullptr ? first[i] : i) * block; }
};

// The packed bytes of a rotated tree's members, one after the other from the root on.
struct Rotated {
    const Shares& shares;
    const Tree& tree;
    int64_t at(int64_t v) const {
        if (v == tree.size) return shares.at(v);
        int32_t real = tree.real(v);
        return shares.at(real) - shares.at(tree.root) + (real < tree.root ? shares.at(tree.size) : 0);
    }
    int64_t bytes(int64_t from, int64_t to) const { return at(to) - at(from); }
};

// Between member `root`, which has member i's share at place(i), and the others. Its own is none of this function's business.
template <class Place>
void rooted_level(Schedule& s, Way way, const Team& t, int32_t root, const Shares& shares, Buffer own, Place place) {
    Flow flow{s, way};
    if (!tree_pays(s, way, t.size, shares.block)) {
        for (int32_t i = 0; t.rank == root && i < t.size; i++)
            if (i != root) flow.from_member(t, i, place(i));
        if (t.rank != root) flow.to_root(t, root, own);
        return;
    }
    Tree tree{t.rank, root, t.size};
    Rotated packed{shares, tree};
    int64_t v = tree.me(), reach = tree.reach(), end = tree.end(v, reach);
    bool leaf = end == v + 1;
    Buffer staged = leaf ? own : s.temp_bytes(packed.bytes(v, end));
    auto part = [&](int64_t from, int64_t to) {
        return bytes_at(static_cast<char*>(staged.base) + packed.bytes(v, from), packed.bytes(from, to));
    };
    flow.in_order([&] {
        for (int64_t mask = reach / 2; mask > 0; mask /= 2)   // a scatter serves the largest subtree first
            if (v + mask < t.size) flow.from_member(t, tree.real(v + mask), part(v + mask, tree.end(v + mask, mask)));
        if (v != 0 && !leaf) flow.copy(own, part(v, v + 1));
    }, [&] {
        if (v != 0) flow.to_root(t, tree.parent(), staged);
        for (int64_t i = 1; v == 0 && i < t.size; i++) flow.copy(part(i, i + 1), place(tree.real(i)));
    });
}

// Parts travel around the ring, one step at a time.
template <class Part> void add_ring(Schedule& s, const Team& t, Part part) {
    int32_t next = (t.rank + 1) % t.size, before = (t.rank - 1 + t.size) % t.size;
    for (int32_t i = 0; i + 1 < t.size; i++) {
        int32_t in = (t.rank - i - 1 + t.size) % t.size, out = (t.rank - i + t.size) % t.size;
        s.recv(t, before, part(in, in + 1));
        s.send(t, next, part(out, out + 1));
        s.fence();
    }
}

// A power of two of members: what one has is doubled in every round.
template <class Part> void add_doubling(Schedule& s, const Team& t, Part part) {
    for (int32_t width = 1; width < t.size; width *= 2) {
        int32_t mine = t.rank & ~(width - 1), theirs = mine ^ width;
        s.recv(t, t.rank ^ width, part(theirs, theirs + width));
        s.send(t, t.rank ^ width, part(mine, mine + width));
        s.fence();
    }
}

// Any number of members: what one has, its own first and then those of the members after it, is doubled in every round, and put in its
// place at the end. Equal parts.
template <class Part> void add_bruck(Schedule& s, const Team& t, Part part) {
    const int64_t block = part(t.rank, t.rank + 1).bytes();
    const Buffer row = s.temp_bytes(block * t.size);
    auto packed = [&](int64_t from, int64_t to) { return bytes_at(static_cast<char*>(row.base) + from * block, (to - from) * block); };
    s.copy(part(t.rank, t.rank + 1), packed(0, 1));
    for (int32_t have = 1; have < t.size; have *= 2) {
        const int32_t more = have < t.size - have ? have : t.size - have;
        s.recv(t, (t.rank + have) % t.size, packed(have, have + more));
        s.send(t, (t.rank - have + t.size) % t.size, packed(0, more));
        s.fence();
    }
    s.copy(packed(1, t.size - t.rank), part(t.rank + 1, t.size));
    s.copy(packed(t.size - t.rank, t.size), part(0, t.rank));
}

// How the parts of an allgather lie: each somewhere; those of neighbours one behind the other; and all as large.
enum class Lie : uint8_t { apart, in_a_row, equal_in_a_row };

// part(i, j): what members i .. j-1 bring, of which each has its own. In a row: j may be more than i + 1.
template <class Part> void allgather_level(Schedule& s, const Team& t, Lie lie, int64_t block, Part part) {
    if (lie == Lie::apart) return add_ring(s, t, part);
    Algorithms cannot = (t.size & (t.size - 1)) == 0 ? 0 : set_of(Algorithm::doubling);
    if (lie != Lie::equal_in_a_row) cannot |= set_of(Algorithm::bruck);
    switch (by_messages(s, Operation::allgather, t.size, block, cannot)) {
        case Algorithm::doubling: return add_doubling(s, t, part);
        case Algorithm::bruck: return add_bruck(s, t, part);
        default: return add_ring(s, t, part);
    }
}

}  // namespace

void add_rooted(Schedule& s, Way way, const Team& t, int32_t root, Buffer own, const Row& row) {
    int64_t block = t.rank == root ? row.run(0, 1).bytes() : own.bytes();
    Levels l;
    if (!tree_pays(s, way, t.size, block) || !in_levels(s, t, root, Order::of_ranks, &l))
        return rooted_level(s, way, t, root, {nullptr, block}, own, [&](int32_t i) { return row.run(i, i + 1); });
    if (!l.leads()) return rooted_level(s, way, l.node, l.head, {nullptr, block}, own, [](int32_t) { return Buffer{}; });
    const bool row_here = t.rank == root;
    const int32_t here = row_here ? l.first_here() : 0;
    Row staged{row_here ? nullptr : s.temp(block * l.node.size), block, &byte_type()};
    const Row& local = row_here ? row : staged;
    Flow flow{s, way};
    flow.in_order([&] {
        if (!row_here) flow.copy(own, local.run(0, 1));
        rooted_level(s, way, l.node, l.head, {nullptr, block}, {}, [&](int32_t i) { return local.run(here + i, here + i + 1); });
    }, [&] {
        rooted_level(s, way, l.leaders, l.root, {l.first, block}, staged.run(0, l.node.size),
                     [&](int32_t i) { return row.run(l.first[i], l.first[i + 1]); });
    });
}

namespace {

// Blocks of any sizes, packed into a row of bytes: what one node can tell another in one message.
struct Packed {
    char* base;
    int64_t* at;  // [n + 1]
    Buffer run(int64_t from, int64_t to) const { return bytes_at(base + at[from], at[to] - at[from]); }
};

Packed pack_room(Schedule& s, const Blocks& blocks, int32_t n) {
    Packed p{nullptr, static_cast<int64_t*>(s.temp((n + 1) * static_cast<int64_t>(sizeof(int64_t))))};
    if (p.at == nullptr) return p;
    p.at[0] = 0;
    for (int32_t i = 0; i < n; i++) p.at[i + 1] = p.at[i] + blocks.at(i).bytes();
    p.base = static_cast<char*>(s.temp(p.at[n]));
    return p;
}

// The nodes' members bring their blocks to the heads, these exchange them, and every head tells its node all.
template <class Run>
void add_allgather_in_levels(Schedule& s, const Levels& l, int64_t block, Buffer own, Run run) {
    int32_t here = l.first_here();
    rooted_level(s, Way::gather, l.node, l.head, {nullptr, block}, own, [&](int32_t i) { return run(here + i, here + i + 1); });
    s.fence();
    const int64_t bytes = block == never_a_tree ? 0 : block;   // blocks of any sizes: no limit is for them
    if (l.leads()) allgather_level(s, l.leaders, Lie::in_a_row, bytes, [&](int32_t i, int32_t j) { return run(l.first[i], l.first[j]); });
    add_bcast(s, l.node, l.head, run(0, l.first[l.leaders.size]));
}

}  // namespace

void add_allgather(Schedule& s, const Team& t, Buffer send, const Blocks& recv) {
    bool uniform = !recv.counts && recv.types == nullptr, place = in_place(send.base);
    Row row{recv.base, recv.count, recv.type};
    Levels l;
    if (!in_levels(s, t, 0, Order::of_ranks, &l)) {
        if (!place) s.copy(send, recv.at(t.rank));
        if (uniform) return allgather_level(s, t, Lie::equal_in_a_row, recv.at(t.rank).bytes(), [&](int32_t i, int32_t j) { return row.run(i, j); });
        return allgather_level(s, t, Lie::apart, 0, [&](int32_t i, int32_t) { return recv.at(i); });
    }
    Buffer own = place ? recv.at(t.rank) : send;
    if (uniform) {
        if (l.leads() && !place) s.copy(own, recv.at(t.rank));
        return add_allgather_in_levels(s, l, own.bytes(), own, [&](int32_t i, int32_t j) { return row.run(i, j); });
    }
    Packed packed = pack_room(s, recv, t.size);
    if (packed.at == nullptr) return;
    if (l.leads()) s.copy(own, packed.run(t.rank, t.rank + 1));
    // Blocks of all sizes: straight to the head.
    add_allgather_in_levels(s, l, never_a_tree, own, [&](int32_t i, int32_t j) { return packed.run(i, j); });
    for (int32_t i = 0; i < t.size; i++)
        if (!place || i != t.rank) s.copy(packed.run(i, i + 1), recv.at(i));
}

}  // namespace weft::coll
