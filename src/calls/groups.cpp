#include "calls/groups.hpp"

#include <cstring>

#include "base/scratch.hpp"
#include "obj/branches.hpp"
#include "obj/status.hpp"

namespace weft::calls {

using obj::proc_null;
using obj::undefined;

namespace {

Err no_memory(int64_t entries) {
    return fail(Err::no_mem, "no memory for a group of %lld processes", static_cast<long long>(entries));
}

int32_t highest(const Group& g) {
    if (g.ranks == nullptr) return g.first + g.size - 1;
    int32_t top = -1;
    for (int32_t i = 0; i < g.size; i++) top = g.ranks[i] > top ? g.ranks[i] : top;
    return top;
}

// position[w] = rank in g of world rank w, or -1; `entries` many.
void positions(const Group& g, int32_t* position, int32_t entries) {
    for (int32_t i = 0; i < entries; i++) position[i] = -1;
    for (int32_t i = 0; i < g.size; i++) position[g.at(i)] = i;
}

int32_t wider(const Group& a, const Group& b) {
    int32_t x = highest(a), y = highest(b);
    return (x > y ? x : y) + 1;
}

Err check_rank(const Group& g, int64_t rank) {
    if (rank >= 0 && rank < g.size) return Err::ok;
    return fail(Err::rank, "rank %lld is not in the group of %d", static_cast<long long>(rank), g.size);
}

// Marks which ranks of `g` the triplets name, in order[] (in the order named); each may be named once.
Err expand(const Group& g, int n, const int (*ranges)[3], int32_t* order, int32_t* count) {
    Scratch<int32_t> seen(g.size);
    if (!seen) return no_memory(g.size);
    memset(seen.get(), 0, static_cast<size_t>(g.size) * 4);
    *count = 0;
    if (n < 0) return fail(Err::arg, "the number of ranges, %d, is negative", n);
    for (int i = 0; i < n; i++) {
        int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        if (stride == 0) return fail(Err::arg, "the stride of range %d is zero", i);
        for (int64_t r = first; stride > 0 ? r <= last : r >= last; r += stride) {
            WEFT_TRY(check_rank(g, r));
            if (seen[r]++ != 0) return fail(Err::rank, "rank %lld is named twice", static_cast<long long>(r));
            order[(*count)++] = static_cast<int32_t>(r);
        }
    }
    return Err::ok;
}

// The members of `g` whose ranks are in order[0..count), or (`others`) all the rest in their own order.
Err pick(Process& p, const Group& g, const int32_t* order, int32_t count, bool others, Group** out) {
    Scratch<int32_t> members(g.size);
    Scratch<int32_t> named(g.size);
    if (!members || !named) return no_memory(g.size);
    int32_t kept = 0;
    if (others) {
        memset(named.get(), 0, static_cast<size_t>(g.size) * 4);
        for (int32_t i = 0; i < count; i++) named[order[i]] = 1;
        for (int32_t i = 0; i < g.size; i++)
            if (named[i] == 0) members[kept++] = g.at(i);
    } else {
        for (int32_t i = 0; i < count; i++) members[kept++] = g.at(order[i]);
    }
    return obj::make_group(p, members.get(), kept, g.session, out);
}

Err pick_listed(Process& p, const Group& g, int n, const int* ranks, bool others, Group** out) {
    if (n < 0) return fail(Err::arg, "the number of ranks, %d, is negative", n);
    if (n > g.size) return fail(Err::rank, "%d distinct ranks asked of a group of %d", n, g.size);
    Scratch<int32_t> seen(g.size);
    if (!seen) return no_memory(g.size);
    memset(seen.get(), 0, static_cast<size_t>(g.size) * 4);
    for (int i = 0; i < n; i++) {
        WEFT_TRY(check_rank(g, ranks[i]));
        if (seen[ranks[i]]++ != 0) return fail(Err::rank, "rank %d is named twice", ranks[i]);
    }
    return pick(p, g, ranks, n, others, out);
}

}  // namespace

Err group_size(Process&, Group& g, int* size) {
    *size = g.size;
    return Err::ok;
}

Err group_rank(Process&, Group& g, int* rank) {
    *rank = g.rank;
    return Err::ok;
}

Err group_translate_ranks(Process&, Group& g, int n, const int* ranks, Group& to, int* result) {
    if (n < 0) return fail(Err::arg, "the number of ranks, %d, is negative", n);
    for (int i = 0; i < n; i++)
        if (ranks[i] != proc_null) WEFT_TRY(check_rank(g, ranks[i]));
    if (n < 8 || to.ranks == nullptr) {
        for (int i = 0; i < n; i++) result[i] = ranks[i] == proc_null ? proc_null : obj::rank_of(to, g.at(ranks[i]));
        return Err::ok;
    }
    int32_t entries = wider(g, to);
    Scratch<int32_t> place(entries);
    if (!place) return no_memory(entries);
    positions(to, place.get(), entries);
    for (int i = 0; i < n; i++) {
        int32_t at = ranks[i] == proc_null ? proc_null : place[g.at(ranks[i])];
        result[i] = at == -1 ? undefined : at;
    }
    return Err::ok;
}

Err group_compare(Process&, Group& a, Group& b, int* result) {
    *result = obj::compare_groups(a, b);
    return Err::ok;
}

Err group_union(Process& p, Group& a, Group& b, Group** out) {
    int32_t entries = wider(a, b), kept = a.size;
    Scratch<int32_t> in_a(entries), members(static_cast<int64_t>(a.size) + b.size);
    if (!in_a || !members) return no_memory(entries);
    positions(a, in_a.get(), entries);
    for (int32_t i = 0; i < a.size; i++) members[i] = a.at(i);
    for (int32_t i = 0; i < b.size; i++)
        if (in_a[b.at(i)] < 0) members[kept++] = b.at(i);
    return obj::make_group(p, members.get(), kept, a.session != nullptr ? a.session : b.session, out);
}

// The members of `a` that are (`inside`) or are not in `b`.
static Err filter(Process& p, Group& a, Group& b, bool inside, Group** out) {
    int32_t entries = wider(a, b), kept = 0;
    Scratch<int32_t> in_b(entries), members(a.size);
    if (!in_b || !members) return no_memory(entries);
    positions(b, in_b.get(), entries);
    for (int32_t i = 0; i < a.size; i++)
        if ((in_b[a.at(i)] >= 0) == inside) members[kept++] = a.at(i);
    return obj::make_group(p, members.get(), kept, a.session, out);
}

Err group_intersection(Process& p, Group& a, Group& b, Group** out) { return filter(p, a, b, true, out); }
Err group_difference(Process& p, Group& a, Group& b, Group** out) { return filter(p, a, b, false, out); }

Err group_incl(Process& p, Group& g, int n, const int* ranks, Group** out) {
    return pick_listed(p, g, n, ranks, false, out);
}

Err group_excl(Process& p, Group& g, int n, const int* ranks, Group** out) {
    return pick_listed(p, g, n, ranks, true, out);
}

static Err pick_ranges(Process& p, const Group& g, int n, const int (*ranges)[3], bool others, Group** out) {
    Scratch<int32_t> order(g.size);
    int32_t count = 0;
    if (!order) return no_memory(g.size);
    WEFT_TRY(expand(g, n, ranges, order.get(), &count));
    return pick(p, g, order.get(), count, others, out);
}

Err group_range_incl(Process& p, Group& g, int n, const int (*ranges)[3], Group** out) {
    return pick_ranges(p, g, n, ranges, false, out);
}

Err group_range_excl(Process& p, Group& g, int n, const int (*ranges)[3], Group** out) {
    return pick_ranges(p, g, n, ranges, true, out);
}

Err group_free(Process& p, Group** g) {
    obj::release(p, **g);
    *g = nullptr;
    return Err::ok;
}

Err comm_group(Process&, Comm& c, Group** out) {
    if (obj::has_endpoints(c)) return fail(Err::unsupported, "a communicator of endpoints has no group: processes would be in it several times");
    obj::retain(*c.group);
    *out = c.group;
    return Err::ok;
}

Err comm_remote_group(Process&, Comm& c, Group** out) {
    if (!c.is_inter()) return fail(Err::comm, "the communicator is not an intercommunicator");
    obj::retain(*c.remote_group);
    *out = c.remote_group;
    return Err::ok;
}

}  // namespace weft::calls
