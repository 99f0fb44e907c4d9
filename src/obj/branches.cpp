#include "obj/branches.hpp"

#include <cstdlib>
#include <cstring>

#include "obj/group.hpp"
#include "obj/process.hpp"

namespace weft::obj {

ContextSet* new_contexts(int32_t count) {
    auto* s = static_cast<ContextSet*>(malloc(sizeof(ContextSet) + static_cast<size_t>(count) * sizeof(uint32_t)));
    if (s == nullptr) return nullptr;
    s->refs.store(1, std::memory_order_relaxed);
    s->count = count;
    s->drawn = false;
    return s;
}

void release(Process& p, ContextSet& s) {
    if (s.refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    for (int32_t i = 0; i < s.count && s.drawn; i++) p.contexts.give(s.ids[i]);
    free(&s);
}

namespace {

// One block: the branches, the front's routes, the numbers of the endpoints. Null when out of memory.
Branches* new_branches(const Comm& front, const BranchPlan& plan) {
    const size_t ranks = static_cast<size_t>(front.size), numbers = plan.of_rank != nullptr ? ranks : 0;
    const size_t own = (sizeof(Branches) + static_cast<size_t>(plan.contexts->count) * sizeof(Comm*) + alignof(Route) - 1) / alignof(Route) * alignof(Route);
    char* const block = static_cast<char*>(calloc(1, own + (ranks + route_sentinels) * sizeof(Route) + numbers * sizeof(int32_t)));
    if (block == nullptr) return nullptr;
    auto* const b = reinterpret_cast<Branches*>(block);
    b->by = plan.by;
    b->shift = plan.shift;
    b->mask = plan.mask;
    b->own = plan.own;
    b->count = plan.contexts->count;
    auto* const routes = reinterpret_cast<Route*>(block + own);
    memcpy(static_cast<void*>(routes), front.routes - route_sentinels, (ranks + route_sentinels) * sizeof(Route));
    b->routes = routes + route_sentinels;
    for (size_t i = 0; i < ranks; i++) {
        b->routes[i].way = Route::branch;
        b->routes[i].inline_max = -1;
    }
    if (plan.of_rank == nullptr) return b;
    auto* const of_rank = reinterpret_cast<int32_t*>(b->routes + ranks);
    memcpy(of_rank, plan.of_rank, numbers * sizeof(int32_t));
    b->of_rank = of_rank;
    return b;
}

// A communicator over the group with one of the contexts.
Err make_member(Process& p, Group& group, const BranchPlan& plan, int32_t number, Comm* parent, Comm** out) {
    retain(group);
    if (const Err e = make_comm(p, &group, nullptr, plan.contexts->ids[number], parent, out); e != Err::ok) {
        release(p, group);
        return e;
    }
    plan.contexts->refs.fetch_add(1, std::memory_order_relaxed);
    (*out)->context_set = plan.contexts;
    (*out)->rank = plan.rank;
    return Err::ok;
}

Err fill_front(Process& p, Group& group, const BranchPlan& plan, Comm& front) {
    Branches* const b = new_branches(front, plan);
    if (b == nullptr) return fail(Err::no_mem, "no memory for a communicator of %d lanes", plan.contexts->count);
    front.branches = b;
    front.routes = b->routes;
    front.direct_peers = 0;
    for (int32_t i = 0; i < b->count; i++) {
        WEFT_TRY(make_member(p, group, plan, i, &front, &b->at[i]));
        b->at[i]->front.store(&front, std::memory_order_relaxed);
    }
    return Err::ok;
}

}  // namespace

Err make_front(Process& p, Group& group, const BranchPlan& plan, Comm* parent, Comm** out) {
    Comm* front = nullptr;
    WEFT_TRY(make_member(p, group, plan, plan.own, parent, &front));
    if (const Err e = fill_front(p, group, plan, *front); e != Err::ok) {
        release(*front);
        return e;
    }
    *out = front;
    return Err::ok;
}

void close_branches(Branches& b) {
    for (int32_t i = 0; i < b.count && b.at[i] != nullptr; i++) {   // null: none, as there was no memory
        b.at[i]->front.store(nullptr, std::memory_order_relaxed);
        release(*b.at[i]);
    }
    free(&b);
}

}  // namespace weft::obj
