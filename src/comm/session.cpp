#include "comm/session.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/scratch.hpp"
#include "boot/boot.hpp"
#include "comm/agree.hpp"
#include "comm/world.hpp"
#include "obj/info.hpp"
#include "obj/lanes.hpp"
#include "obj/status.hpp"
#include "p2p/combined.hpp"
#include "p2p/p2p.hpp"

namespace weft::comm {

using coll::Team;

// The communicator of all processes that is nobody's handle: over it those meet who have none in common.
struct Directory {
    Comm universe;
    Session* free_sessions;
};

namespace {

const char* const sets[] = {"mpi://WORLD", "mpi://SELF"};
const char* const level_names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                   "MPI_THREAD_MULTIPLE"};

// Which of `sets` that is, or an error. Names that begin with mpi:// have no case: letters compare without it in any locale.
Err find_set(const char* name, int* which) {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    for (*which = 0; *which < 2; ++*which) {
        const char *a = name, *b = sets[*which];
        while (*a != 0 && lower(*a) == lower(*b)) a++, b++;
        if (*a == 0 && *b == 0) return Err::ok;
    }
    return fail(Err::arg, "there is no process set \"%.100s\"", name);
}

Err directory(Process& p, Directory** out) {
    SpinGuard guard(p.pool_lock);
    if (p.directory == nullptr) p.directory = static_cast<Directory*>(calloc(1, sizeof(Directory)));
    *out = p.directory;
    return p.directory != nullptr ? Err::ok : fail(Err::no_mem, "no memory for the list of process sets");
}

// The universe is made by the first who needs it; the kind of the object says whether it is there.
Err universe(Process& p, Comm** out) {
    Directory* d = nullptr;
    WEFT_TRY(directory(p, &d));
    Group* all = nullptr;
    WEFT_TRY(obj::make_run(p, 0, p.world_size, nullptr, &all));
    Comm fresh{};
    Err e = obj::init_comm(p, fresh, all, nullptr, p.contexts.reserved(0, obj::Contexts::of_universe), nullptr);
    if (e != Err::ok) {
        obj::release(p, *all);
        return e;
    }
    bool used = false;
    {
        SpinGuard guard(p.pool_lock);
        if (d->universe.kind != Kind::comm) {
            used = true;
            Comm& u = d->universe;
            u.context = fresh.context;
            u.rank = fresh.rank;
            u.size = fresh.size;
            u.remote_size = fresh.remote_size;
            u.routes = fresh.routes;
            u.counted = fresh.counted;
            u.lane = fresh.lane;
            u.group = fresh.group;
            u.refs.store(1, std::memory_order_relaxed);
            u.kind = Kind::comm;
        }
    }
    if (!used) obj::close_comm(p, fresh);
    *out = &d->universe;
    return Err::ok;
}

// What a string tag is to others: messages meet by the tag, and the seal in them tells apart whom the tag does not.
struct Mark {
    int32_t tag;     // as a user's
    uint64_t seal;
};

Mark mark_of(const char* stringtag, uint64_t salt) {
    uint64_t hash = 14695981039346656037u ^ salt;
    for (const char* c = stringtag; *c != 0; c++) hash = (hash ^ static_cast<uint8_t>(*c)) * 1099511628211u;
    return {static_cast<int32_t>((hash ^ hash >> 32) & INT32_MAX), hash};
}

Err own_handler(Process& p, Comm& c, Errhandler& h) { return obj::set_errhandler(p, c, h); }

}  // namespace

// ------------------------------------------------------------------------------------------- beginning and end

Err session_init(Process& p, Info* info, Errhandler& handler, Session** out) {
    char wanted[32] = "";
    int level = 3;
    if (info != nullptr && obj::info_lookup(info, "thread_level", wanted, sizeof wanted))
        for (int i = 0; i < 4; i++)
            if (strcmp(wanted, level_names[i]) == 0) level = i;
    if (WEFT_SINGLE) level = 0;
    bool alone = p.phase.load(std::memory_order_acquire) != obj::Phase::active;
    WEFT_TRY(begin_use(p, level));
    // Without MPI_Init the World Model's communicators are not there.
    if (alone && p.world_phase != obj::Phase::active) {
        Kind absent = p.world_phase == obj::Phase::finalized ? Kind::finalized : Kind::not_initialised;
        p.world.kind = p.self.kind = absent;
    }
    Directory* d = nullptr;
    WEFT_TRY(directory(p, &d));
    Session* s = nullptr;
    {
        SpinGuard guard(p.pool_lock);
        if ((s = d->free_sessions) != nullptr) d->free_sessions = s->next;
    }
    if (s == nullptr) s = static_cast<Session*>(calloc(1, sizeof(Session)));
    if (s == nullptr) {
        end_use(p);
        return fail(Err::no_mem, "no memory for a session");
    }
    obj::retain(handler);
    s->errhandler = &handler;
    s->id = 0;
    s->kind = Kind::session;
    *out = s;
    return Err::ok;
}

// The engine stays, for whoever begins next: stopping it would need the other processes, who may never come.
Err session_finalize(Process& p, Session** session) {
    Session& s = **session;
    p2p::close_buffer(p, p2p::BufferOwner(s));
    p2p::progress_until(p, [&] { return obj::has_left(p); });
    s.kind = Kind::dead;
    obj::release(p, *s.errhandler);
    {
        SpinGuard guard(p.pool_lock);
        s.next = p.directory->free_sessions;
        p.directory->free_sessions = &s;
    }
    if (end_use(p)) boot::finalized(p.job);
    *session = nullptr;
    return Err::ok;
}

void close_directory(Process& p) {
    Directory* d = p.directory;
    if (d == nullptr || d->universe.kind != Kind::comm) return;
    obj::close_comm(p, d->universe);
}

// ----------------------------------------------------------------------------------------------- what it tells

Err session_get_info(Process& p, Session&, Info** out) {
    Info* info = nullptr;
    WEFT_TRY(obj::make_info(p, &info));
    // The engine's level serves every session, whatever it asked for.
    Err e = obj::info_put(*info, "thread_level", level_names[p.threads ? 3 : static_cast<int>(p.level)]);
    if (e == Err::ok) e = obj::info_put(*info, "mpi_memory_alloc_kinds", "mpi,system");
    if (e != Err::ok) {
        obj::free_info(p, *info);
        return e;
    }
    *out = info;
    return Err::ok;
}

Err session_get_num_psets(Process&, Session&, Info*, int* n) {
    *n = 2;
    return Err::ok;
}

Err session_get_nth_pset(Process&, Session&, Info*, int n, int* length, char* name) {
    if (n < 0 || n > 1) return fail(Err::arg, "there is no process set %d; there are 2", n);
    int room = *length;
    if (room > 0 && name == nullptr) return fail(Err::arg, "a null pointer for a name of up to %d characters", room);
    *length = static_cast<int>(strlen(sets[n])) + 1;
    if (room > 0) snprintf(name, static_cast<size_t>(room), "%s", sets[n]);
    return Err::ok;
}

Err session_get_pset_info(Process& p, Session&, const char* name, Info** out) {
    int which;
    WEFT_TRY(find_set(name, &which));
    char size[16];
    snprintf(size, sizeof size, "%d", which == 1 ? 1 : p.world_size);
    Info* info = nullptr;
    WEFT_TRY(obj::make_info(p, &info));
    if (Err e = obj::info_put(*info, "mpi_size", size); e != Err::ok) {
        obj::free_info(p, *info);
        return e;
    }
    *out = info;
    return Err::ok;
}

Err group_from_session_pset(Process& p, Session& s, const char* name, Group** out) {
    int which;
    WEFT_TRY(find_set(name, &which));
    return which == 0 ? obj::make_run(p, 0, p.world_size, &s, out) : obj::make_run(p, p.world_rank, 1, &s, out);
}

// ------------------------------------------------------------------------------------ communicators from groups

Err create_from_group(Process& p, Group& group, const char* stringtag, Info* info, Errhandler& h, Comm** out) {
    *out = nullptr;
    if (group.size == 0) return Err::ok;
    if (group.rank == obj::undefined) return fail(Err::group, "the calling process is not in the group");
    Comm* all = nullptr;
    WEFT_TRY(universe(p, &all));
    Scratch<int32_t> ranks(group.size);
    if (!ranks) return fail(Err::no_mem, "no memory to list %d processes", group.size);
    for (int32_t i = 0; i < group.size; i++) ranks[i] = group.at(i);
    uint32_t context = 0;
    Mark mark = mark_of(stringtag, 0);
    WEFT_TRY(agree_context(p, *all, {all, ranks.get(), group.rank, group.size}, creation_tag(mark.tag), &context, mark.seal, &group));
    Comm* made = nullptr;
    obj::retain(group);
    Err e = obj::make_comm(p, &group, nullptr, context, nullptr, &made);
    if (e != Err::ok) {
        obj::release(p, group);
        return e;
    }
    if (info != nullptr) e = obj::copy_info(p, *info, &made->info);
    if (e == Err::ok) e = own_handler(p, *made, h);
    if (e != Err::ok) {
        obj::release(*made);
        return e;
    }
    *out = made;
    return Err::ok;
}

Err intercomm_create_from_groups(Process& p, Group& local, int local_leader, Group& remote, int remote_leader,
                                 const char* stringtag, Info* info, Errhandler& h, Comm** out) {
    *out = nullptr;
    if (local.size == 0) return Err::ok;
    if (local_leader < 0 || local_leader >= local.size)
        return fail(Err::rank, "local leader %d is not in the local group of %d", local_leader, local.size);
    Comm *side = nullptr, *all = nullptr;
    WEFT_TRY(universe(p, &all));
    WEFT_TRY(create_from_group(p, local, stringtag, info, h, &side));
    int peer = -1;
    if (side->rank == local_leader && remote_leader >= 0 && remote_leader < remote.size) peer = remote.at(remote_leader);
    Mark mark = mark_of(stringtag, 1);
    Err e = intercomm_create_sealed(p, *side, local_leader, all, peer, mark.tag, mark.seal, out);
    obj::release(*side);
    return e;
}

}  // namespace weft::comm
