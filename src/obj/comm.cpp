#include "obj/comm.hpp"

#include <cstdlib>
#include <cstring>

#include "obj/branches.hpp"
#include "obj/errhandler.hpp"
#include "obj/group.hpp"
#include "obj/info.hpp"
#include "obj/lanes.hpp"
#include "obj/process.hpp"
#include "obj/status.hpp"
#include "os/memory.hpp"

namespace weft::obj {

namespace {

constexpr Route bad_route{Route::bad, -1, -1, -1};
constexpr Route null_route{Route::nobody, -1, -1, -1};

// The routes to the members of `to`, which keeps them for all communicators of that group.
Err make_routes(Process& p, Group& to, Route** out) {
    if ((*out = to.routes.load(std::memory_order_acquire)) != nullptr) return Err::ok;  // pairs with the exchange below
    auto* block = static_cast<Route*>(malloc(static_cast<size_t>(to.size + route_sentinels) * sizeof(Route)));
    if (block == nullptr) return fail(Err::no_mem, "no memory for the routes to %d processes", to.size);
    block[0] = null_route;
    block[1] = block[2] = bad_route;
    for (int32_t i = 0; i < to.size; i++) block[route_sentinels + i] = route_to(p, to.at(i));
    *out = block + route_sentinels;
    // Release: pairs with the load above. Another thread may have made them meanwhile.
    Route* others = nullptr;
    if (to.routes.compare_exchange_strong(others, *out, std::memory_order_acq_rel)) return Err::ok;
    free(block);
    *out = others;
    return Err::ok;
}

// The caller holds pool_lock, here and below.
CommSlab* add_slab(CommSlabs& slabs) {
    auto* s = static_cast<CommSlab*>(calloc(1, sizeof(CommSlab)));
    void* memory = nullptr;
    if (s == nullptr || posix_memalign(&memory, os::page_bytes, CommSlab::bytes) != 0) {
        free(s);
        return nullptr;
    }
    s->comms = static_cast<Comm*>(memory);
    s->next = slabs.all;
    slabs.all = slabs.open = s;
    return s;
}

Comm* take_place(CommSlabs& slabs) {
    CommSlab* s = slabs.open != nullptr ? slabs.open : add_slab(slabs);
    if (s == nullptr) return nullptr;
    Comm* c = s->free;
    if (c != nullptr) {
        s->free = c->local_comm;
    } else {
        c = &s->comms[s->fresh++];
        memset(static_cast<void*>(c), 0, sizeof *c);
        c->slab = s;
    }
    if (++s->used == CommSlab::places) slabs.open = s->next_open;
    return c;
}

void give_place(CommSlabs& slabs, Comm& c) {
    CommSlab& s = *c.slab;
    c.local_comm = s.free;
    s.free = &c;
    if (s.used-- == CommSlab::places) {
        s.next_open = slabs.open;
        slabs.open = &s;
    }
    if (s.used != 0 || slabs.idle == &s) return;
    if (slabs.idle == nullptr || slabs.idle->used != 0) {
        slabs.idle = &s;
        return;
    }
    s.free = nullptr;
    s.fresh = 0;
    os::drop_private(s.comms, CommSlab::bytes);
}

void retire(Process& p, Comm& c) {
    SpinGuard guard(p.pool_lock);
    give_place(p.comm_slabs, c);
}

}  // namespace

Err init_comm(Process& p, Comm& c, Group* group, Group* remote, uint32_t context, Comm* parent) {
    Route* routes = nullptr;
    WEFT_TRY(make_routes(p, remote != nullptr ? *remote : *group, &routes));
    c.context = context;
    WEFT_TRY(set_lane(p, c));
    c.rank = group->rank;
    c.size = group->size;
    c.remote_size = remote != nullptr ? remote->size : group->size;
    c.peer_limit = static_cast<uint32_t>(c.remote_size + route_sentinels);
    c.routes = routes;
    c.errhandler = parent != nullptr ? inherit_errhandler(p, *parent) : nullptr;
    c.group = group;
    c.remote_group = remote;
    c.attributes = nullptr;
    c.info = nullptr;
    c.topology = nullptr;
    c.coll = nullptr;
    c.local_comm = nullptr;
    c.branches = nullptr;
    c.context_set = nullptr;
    c.front.store(nullptr, std::memory_order_relaxed);
    c.direct_peers = static_cast<uint32_t>(c.remote_size);
    c.requestless.store(nullptr, std::memory_order_relaxed);
    c.coll_sequence.store(0, std::memory_order_relaxed);
    c.nonblocking_sequence.store(0, std::memory_order_relaxed);
    c.session = parent != nullptr ? parent->session : group->session;
    c.name[0] = 0;
    c.refs.store(1, std::memory_order_relaxed);
    c.id = 0;
    c.counted = 1;
    c.kind = Kind::comm;
    return Err::ok;
}

Err make_comm(Process& p, Group* group, Group* remote, uint32_t context, Comm* parent, Comm** out) {
    Comm* c = nullptr;
    {
        SpinGuard guard(p.pool_lock);
        c = take_place(p.comm_slabs);
    }
    if (c == nullptr) return fail(Err::no_mem, "no memory for a communicator");
    if (Err e = init_comm(p, *c, group, remote, context, parent); e != Err::ok) {
        retire(p, *c);
        return e;
    }
    *out = c;
    return Err::ok;
}

void close_comm(Process& p, Comm& c) {
    c.kind = Kind::dead;
    if (c.coll != nullptr) c.coll->close(p, c, c.coll);
    c.coll = nullptr;
    if (c.local_comm != nullptr) release(*c.local_comm);
    if (c.branches != nullptr) close_branches(*c.branches);
    release(p, *c.group);
    if (c.remote_group != nullptr) release(p, *c.remote_group);
    if (c.errhandler != nullptr) release(p, *c.errhandler);
    if (c.info != nullptr) free_info(p, *c.info);
    free(c.topology);
    c.errhandler = nullptr;
    c.routes = nullptr;
    c.group = c.remote_group = nullptr;
    c.topology = nullptr;
    c.local_comm = nullptr;
    if (c.context_set != nullptr) release(p, *c.context_set);
    else p.contexts.give(c.context);
    c.branches = nullptr;
    c.context_set = nullptr;
}

void release(Comm& c) {
    if (c.refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Process& p = *process;
    close_comm(p, c);
    if (&c == &p.world || &c == &p.self || is_fixed(p, c)) return;
    retire(p, c);
}

void move_comm(Process& p, Comm& from, Comm& to) {
    const int32_t id = to.id;
    Comm* const next = to.all_next;
    memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof to);
    to.id = id;
    to.all_next = next;
    from.kind = Kind::dead;
    retire(p, from);
}

}  // namespace weft::obj
