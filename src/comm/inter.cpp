// Intercommunicators: made of two groups whose leaders can talk, of parts of another one, and merged into one group.
#include <cstring>

#include "base/scratch.hpp"
#include "comm/agree.hpp"
#include "obj/status.hpp"

namespace weft::comm {

using coll::Schedule;
using coll::Team;

namespace {

Err no_memory(int64_t entries) {
    return fail(Err::no_mem, "no memory to list %lld processes", static_cast<long long>(entries));
}

// The contexts of a new intercommunicator and of the communicator over its local group.
struct Ids {
    uint32_t context, local;
};

// Takes over no references: both groups are retained for the new objects.
Err make_inter(Process& p, Group& group, Group& remote, Ids ids, Comm* parent, Comm** out) {
    Comm *inter = nullptr, *local = nullptr;
    obj::retain(group);
    obj::retain(remote);
    if (Err e = obj::make_comm(p, &group, &remote, ids.context, parent, &inter); e != Err::ok) {
        obj::release(p, group);
        obj::release(p, remote);
        return e;
    }
    obj::retain(group);
    if (Err e = obj::make_comm(p, &group, nullptr, ids.local, parent, &local); e != Err::ok) {
        obj::release(p, group);
        obj::release(*inter);
        return e;
    }
    inter->local_comm = local;
    *out = inter;
    return Err::ok;
}

void give_back(Process& p, Ids ids) {
    if (ids.context != no_context) p.contexts.give(ids.context);
    if (ids.local != no_context) p.contexts.give(ids.local);
}

// A leader draws both; what it cannot get stays no_context, and everybody hears of it.
Ids draw(Process& p) {
    Ids ids{no_context, no_context};
    if (p.contexts.take(&ids.context) != Err::ok) ids.context = no_context;
    if (p.contexts.take(&ids.local) != Err::ok) ids.local = no_context;
    return ids;
}

// The group that decides is the one whose leader is lower: the other gives its own context back.
void settle(Process& p, bool decides, uint32_t theirs, Ids* ids) {
    if (decides) return;
    if (ids->context != no_context) p.contexts.give(ids->context);
    ids->context = theirs;
}

Err check(Ids ids) {
    if (ids.context != no_context && ids.local != no_context) return Err::ok;
    return fail(Err::no_mem, "a leading process of the new intercommunicator has no context id left");
}

}  // namespace

Err swap_now(Process& p, Comm& c, const Team& other, int32_t peer, int32_t tag, const void* own, int64_t own_bytes,
             void* theirs, int64_t their_bytes) {
    Schedule* s = nullptr;
    WEFT_TRY(coll::open_tagged(p, c, tag, false, &s));
    s->recv(other, peer, {theirs, their_bytes, &coll::byte_type()});
    s->send(other, peer, {const_cast<void*>(own), own_bytes, &coll::byte_type()});
    return coll::run(*s);
}

// ------------------------------------------------------------------------------------ two groups with leaders

namespace {

// What a leader tells the other, before the list of its group; and then its own group, with the outcome.
struct Introduction {
    int32_t error;      // the leader's, told to its group
    int32_t size;       // of the group described
    int32_t leader;     // world rank
    Ids ids;
    uint64_t seal;      // of what is created
};

// The leader's part: swaps introductions and lists with the other leader. `*list` is allocated here.
Err meet(Process& p, Comm& local, Comm& peer, int32_t remote_leader, int32_t tag, uint64_t seal, Introduction* outcome,
         int32_t** list) {
    if (remote_leader < 0 || remote_leader >= peer.remote_size)
        return fail(Err::rank, "remote leader %d is not in the peer communicator of %d", remote_leader, peer.remote_size);
    Ids ids = draw(p);
    Team across = coll::remote_team(peer);
    Introduction mine{0, local.size, p.world_rank, ids, seal}, theirs{};
    Err e = swap_now(p, peer, across, remote_leader, tag, &mine, sizeof mine, &theirs, sizeof theirs);
    if (e == Err::ok) e = check_seal(seal, theirs.seal);
    Scratch<int32_t> own(local.size);
    auto* other = static_cast<int32_t*>(malloc(static_cast<size_t>(theirs.size + 1) * sizeof(int32_t)));
    if (e == Err::ok && (!own || other == nullptr)) e = no_memory(theirs.size);
    if (e == Err::ok) {
        for (int32_t i = 0; i < local.size; i++) own[i] = local.group->at(i);
        e = swap_now(p, peer, across, remote_leader, tag, own.get(), local.size * 4, other, theirs.size * 4);
    }
    if (e != Err::ok) {
        give_back(p, ids);
        free(other);
        return e;
    }
    settle(p, mine.leader < theirs.leader, theirs.ids.context, &ids);
    *outcome = {0, theirs.size, theirs.leader, ids, seal};
    *list = other;
    return Err::ok;
}

bool overlap(const Group& a, const Group& b) {
    for (int32_t i = 0; i < a.size; i++)
        if (obj::rank_of(b, a.at(i)) != obj::undefined) return true;
    return false;
}

// What all of a local group do once its leader has met the other: `told` and `list` come from `root`.
Err join(Process& p, Comm& local, int32_t root, int32_t head_tag, int32_t list_tag, Introduction told, int32_t* list,
         Comm* parent, Comm** out) {
    Team team{&local, nullptr, local.rank, local.size};
    WEFT_TRY(bcast_now(p, local, team, root, head_tag, &told, sizeof told));
    if (told.error != 0) {
        if (local.rank == root) return static_cast<Err>(told.error);
        return fail(static_cast<Err>(told.error), "the local leader could not reach the other group");
    }
    Scratch<int32_t> ranks(told.size);
    if (!ranks) return no_memory(told.size);
    if (local.rank == root) memcpy(ranks.get(), list, static_cast<size_t>(told.size) * sizeof(int32_t));
    WEFT_TRY(bcast_now(p, local, team, root, list_tag, ranks.get(), told.size * 4));
    WEFT_TRY(check(told.ids));
    Group* remote = nullptr;
    WEFT_TRY(obj::make_group(p, ranks.get(), told.size, local.session, &remote));
    Err e = overlap(*remote, *local.group) ? fail(Err::comm, "the two groups have a process in common")
                                           : make_inter(p, *local.group, *remote, told.ids, parent, out);
    obj::release(p, *remote);
    return e;
}

}  // namespace

Err intercomm_create(Process& p, Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Comm** out) {
    return intercomm_create_sealed(p, local, local_leader, peer, remote_leader, tag, 0, out);
}

Err intercomm_create_sealed(Process& p, Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, uint64_t seal,
                            Comm** out) {
    WEFT_TRY(check_processes(local));
    if (local.is_inter()) return fail(Err::comm, "the local communicator is an intercommunicator");
    if (local_leader < 0 || local_leader >= local.size)
        return fail(Err::rank, "local leader %d is not in the local communicator of %d", local_leader, local.size);
    int32_t head_tag = take_tag(local), list_tag = take_tag(local);
    Introduction told{};
    int32_t* list = nullptr;
    if (local.rank == local_leader) {
        Err e = peer == nullptr ? fail(Err::comm, "the local leader gave no peer communicator")
                                : meet(p, local, *peer, remote_leader, creation_tag(tag), seal, &told, &list);
        told.error = static_cast<int32_t>(e);
    }
    Err e = join(p, local, local_leader, head_tag, list_tag, told, list, &local, out);
    free(list);
    return e;
}

// ------------------------------------------------------------------------------- parts of an intercommunicator

Err create_between(Process& p, Comm& c, Group& group, Group& remote, int32_t tag, Comm** out) {
    Scratch<int32_t> ranks(group.size);
    if (!ranks) return no_memory(group.size);
    for (int32_t i = 0; i < group.size; i++) ranks[i] = obj::rank_of(*c.group, group.at(i));
    Team near{c.local_comm, ranks.get(), group.rank, group.size}, across = coll::remote_team(c);
    Ids ids{no_context, no_context};
    if (group.rank == 0) {
        ids = draw(p);
        int32_t peer = obj::rank_of(*c.remote_group, remote.at(0));
        uint32_t mine = ids.context, theirs = no_context;
        WEFT_TRY(swap_now(p, c, across, peer, tag, &mine, sizeof mine, &theirs, sizeof theirs));
        settle(p, group.at(0) < remote.at(0), theirs, &ids);
    }
    WEFT_TRY(bcast_now(p, c, near, 0, tag, &ids, sizeof ids));
    WEFT_TRY(check(ids));
    return make_inter(p, group, remote, ids, &c, out);
}

// Every process of one side names the same group; the other side's is swapped by rank 0 of both sides, who need not
// be members themselves.
Err create_inter(Process& p, Comm& c, Group& group, int32_t tag, Comm** out) {
    int32_t list_tag = take_tag(c), agree_tag = take_tag(c);
    Team local = coll::local_team(c), across = coll::remote_team(c);
    int32_t size = group.size, remote_size = 0;
    if (c.rank == 0) WEFT_TRY(swap_now(p, c, across, 0, tag, &size, 4, &remote_size, 4));
    WEFT_TRY(bcast_now(p, c, local, 0, tag, &remote_size, 4));
    Scratch<int32_t> own(size), theirs(remote_size);
    if (!own || !theirs) return no_memory(size + remote_size);
    for (int32_t i = 0; i < size; i++) own[i] = group.at(i);
    if (c.rank == 0) WEFT_TRY(swap_now(p, c, across, 0, list_tag, own.get(), size * 4, theirs.get(), remote_size * 4));
    WEFT_TRY(bcast_now(p, c, local, 0, list_tag, theirs.get(), remote_size * 4));
    for (int32_t i = 0; i < size; i++)
        if (obj::rank_of(*c.group, own[i]) == obj::undefined)
            return fail(Err::group, "rank %d of the group is not in the communicator's local group", i);
    *out = nullptr;
    if (size == 0 || remote_size == 0 || group.rank == obj::undefined) return Err::ok;
    Group* remote = nullptr;
    WEFT_TRY(obj::make_group(p, theirs.get(), remote_size, c.session, &remote));
    Err e = create_between(p, c, group, *remote, agree_tag, out);
    obj::release(p, *remote);
    return e;
}

// ------------------------------------------------------------------------------------------------------- merge

Err intercomm_merge(Process& p, Comm& c, int high, Comm** out) {
    if (!c.is_inter()) return fail(Err::comm, "the communicator is not an intercommunicator");
    int32_t tag = take_tag(c);
    struct Side {
        int32_t high;
        uint32_t context;
    } mine{high != 0, no_context}, theirs{};
    if (c.rank == 0) {
        if (p.contexts.take(&mine.context) != Err::ok) mine.context = no_context;
        WEFT_TRY(swap_now(p, c, coll::remote_team(c), 0, tag, &mine, sizeof mine, &theirs, sizeof theirs));
    }
    // Rank 0's view holds for its whole side.
    Side sides[2] = {mine, theirs};
    WEFT_TRY(bcast_now(p, c, coll::local_team(c), 0, tag, sides, sizeof sides));
    bool first = sides[0].high != sides[1].high ? sides[0].high == 0 : leads(c);
    uint32_t context = first ? sides[0].context : sides[1].context;
    if (c.rank == 0 && !first && mine.context != no_context) p.contexts.give(mine.context);
    if (context == no_context) return fail(Err::no_mem, "no context id is left for the merged communicator");

    Group &low = first ? *c.group : *c.remote_group, &top = first ? *c.remote_group : *c.group;
    Scratch<int32_t> ranks(static_cast<int64_t>(low.size) + top.size);
    if (!ranks) return no_memory(low.size + top.size);
    for (int32_t i = 0; i < low.size; i++) ranks[i] = low.at(i);
    for (int32_t i = 0; i < top.size; i++) ranks[low.size + i] = top.at(i);
    Group* whole = nullptr;
    WEFT_TRY(obj::make_group(p, ranks.get(), low.size + top.size, c.session, &whole));
    Err e = obj::make_comm(p, whole, nullptr, context, &c, out);
    if (e != Err::ok) obj::release(p, *whole);
    return e;
}

}  // namespace weft::comm
