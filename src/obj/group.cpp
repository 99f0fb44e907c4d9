#include "obj/group.hpp"

#include <cstdlib>
#include <cstring>

#include "obj/comm.hpp"
#include "obj/process.hpp"
#include "obj/status.hpp"

namespace weft::obj {

constinit Group group_empty{{Kind::group, 0, number::group_empty}, 0, undefined, 0, nullptr, 1, {nullptr}, nullptr, nullptr};

namespace {

Err no_memory(int64_t entries) {
    return fail(Err::no_mem, "no memory for a group of %lld processes", static_cast<long long>(entries));
}

Group* take_object(Process& p) {
    {
        SpinGuard guard(p.pool_lock);
        if (Group* g = p.free_groups) {
            p.free_groups = g->next;
            return g;
        }
    }
    return static_cast<Group*>(calloc(1, sizeof(Group)));
}

}  // namespace

void release(Process& p, Group& g) {
    if (&g == &group_empty || g.refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    free(g.ranks);
    if (Route* routes = g.routes.exchange(nullptr, std::memory_order_relaxed)) free(routes - route_sentinels);
    g.ranks = nullptr;
    g.kind = Kind::dead;
    SpinGuard guard(p.pool_lock);
    g.next = p.free_groups;
    p.free_groups = &g;
}

Err make_run(Process& p, int32_t first, int32_t size, void* session, Group** out) {
    if (size == 0) {
        *out = &group_empty;
        return Err::ok;
    }
    Group* g = take_object(p);
    if (g == nullptr) return no_memory(size);
    g->kind = Kind::group;
    g->id = 0;
    g->size = size;
    g->first = first;
    g->ranks = nullptr;
    g->session = session;
    g->refs.store(1, std::memory_order_relaxed);
    g->rank = rank_of(*g, p.world_rank);
    *out = g;
    return Err::ok;
}

Err make_group(Process& p, const int32_t* ranks, int32_t size, void* session, Group** out) {
    bool run = true;
    for (int32_t i = 1; i < size && run; i++) run = ranks[i] == ranks[0] + i;
    if (run) return make_run(p, size > 0 ? ranks[0] : 0, size, session, out);
    auto* copy = static_cast<int32_t*>(malloc(static_cast<size_t>(size) * sizeof(int32_t)));
    if (copy == nullptr) return no_memory(size);
    memcpy(copy, ranks, static_cast<size_t>(size) * sizeof(int32_t));
    Group* g = nullptr;
    if (Err e = make_run(p, 0, size, session, &g); e != Err::ok) {
        free(copy);
        return e;
    }
    g->ranks = copy;
    g->rank = rank_of(*g, p.world_rank);
    *out = g;
    return Err::ok;
}

int32_t rank_of(const Group& g, int32_t world_rank) {
    if (g.ranks == nullptr) {
        int32_t i = world_rank - g.first;
        return i >= 0 && i < g.size ? i : undefined;
    }
    for (int32_t i = 0; i < g.size; i++)
        if (g.ranks[i] == world_rank) return i;
    return undefined;
}

Compare compare_groups(const Group& a, const Group& b) {
    if (a.size != b.size) return unequal;
    bool same = true;
    for (int32_t i = 0; i < a.size && same; i++) same = a.at(i) == b.at(i);
    if (same) return ident;
    for (int32_t i = 0; i < a.size; i++)
        if (rank_of(b, a.at(i)) == undefined) return unequal;
    return similar;
}

}  // namespace weft::obj
