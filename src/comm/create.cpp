// Communicators over one group: dup, split, create, create_group.
#include "comm/comm.hpp"

#include <cstring>

#include "base/scratch.hpp"
#include "coll/coll.hpp"
#include "comm/agree.hpp"
#include "obj/info.hpp"
#include "obj/lanes.hpp"
#include "obj/status.hpp"
#include "obj/topology.hpp"
#include "p2p/p2p.hpp"

namespace weft::comm {

using coll::Schedule;
using coll::Team;
using type::Buffer;

namespace {

Err no_memory(int64_t entries) {
    return fail(Err::no_mem, "no memory to list %lld processes", static_cast<long long>(entries));
}

}  // namespace

int32_t take_tag(Comm& c) {
    return static_cast<int32_t>(c.coll_sequence.fetch_add(1, std::memory_order_relaxed)) & coll::tag_mask;
}

Err bcast_now(Process& p, Comm& c, const Team& team, int32_t root, int32_t tag, void* data, int64_t bytes) {
    Schedule* s = nullptr;
    WEFT_TRY(coll::open_tagged(p, c, tag, false, &s));
    coll::add_bcast(*s, team, root, {data, bytes, &coll::byte_type()});
    return coll::run(*s);
}

Err check_seal(uint64_t seal, uint64_t theirs) {
    return seal == theirs ? Err::ok
                          : fail(Err::other, "two communicators are being created whose string tags are too alike");
}

namespace {

// Hints by which a communicator asks for a lane of its own, named as in MPICH's first version of such lanes.
bool asks_for_lane(Info* hints) {
    char value[8];
    return hints != nullptr && ((obj::info_lookup(hints, "mpi_assert_new_vci", value, sizeof value) && strcmp(value, "true") == 0) ||
                                (obj::info_lookup(hints, "mpi_num_vcis", value, sizeof value) && strcmp(value, "0") != 0));
}

}  // namespace

obj::LaneRange lanes_for(Process& p, const Group& members, bool asked) {
    if (p.lane_count == 1 || (p.lanes.by_hints && !asked)) return {};
    for (int32_t i = 0; i < members.size; i++) {
        int lanes = 0;
        p2p::progress_until(p, [&] { return (lanes = obj::lanes_of(p, members.at(i))) != 0; });
        if (lanes != p.lane_count) return {};
    }
    return {p.lanes.by_hints ? 1u : 0u, p.lane_count};
}

Err agree_context(Process& p, Comm& c, const Team& team, int32_t tag, uint32_t* context, uint64_t seal, const Group* members) {
    struct Offer {
        uint64_t seal;
        uint32_t id, unused;
    } offer{seal, no_context, 0};
    const obj::LaneRange lanes = team.rank == 0 && members != nullptr ? lanes_for(p, *members, false) : obj::LaneRange{};
    if (team.rank == 0 && p.contexts.take(&offer.id, lanes) != Err::ok) offer.id = no_context;
    if (Err e = bcast_now(p, c, team, 0, tag, &offer, sizeof offer); e != Err::ok) {
        if (team.rank == 0 && offer.id != no_context) p.contexts.give(offer.id);
        return e;
    }
    WEFT_TRY(check_seal(seal, offer.seal));
    if (offer.id == no_context)
        return fail(Err::no_mem, "the first process of the new communicator has no context id left");
    *context = offer.id;
    return Err::ok;
}

// ----------------------------------------------------------------------------------------------------- dup

namespace {

// The object of a duplicate, its contexts still to be agreed upon.
Err make_twin(Process& p, Comm& c, Info* info, Comm** out) {
    Comm *twin = nullptr, *local = nullptr;
    obj::retain(*c.group);
    if (c.is_inter()) obj::retain(*c.remote_group);
    if (Err e = obj::make_comm(p, c.group, c.remote_group, no_context, &c, &twin); e != Err::ok) {
        obj::release(p, *c.group);
        if (c.is_inter()) obj::release(p, *c.remote_group);
        return e;
    }
    if (c.is_inter()) {
        if (Err e = make_twin(p, *c.local_comm, nullptr, &local); e != Err::ok) {
            obj::release(*twin);
            return e;
        }
        twin->local_comm = local;
    }
    if (c.topology != nullptr && (twin->topology = obj::copy_topology(c.topology)) == nullptr) {
        obj::release(*twin);
        return fail(Err::no_mem, "no memory for the topology");
    }
    Err e = inherit(p, c, *twin, info);
    if (e != Err::ok) {
        obj::release(*twin);
        return e;
    }
    *out = twin;
    return Err::ok;
}

// Adds the agreement on the twin's contexts to a schedule on `c`. Its leaders have drawn theirs.
void add_agreement(Schedule& s, Comm& c, Comm& twin) {
    const type::Type& byte = coll::byte_type();
    Team local = coll::local_team(c), remote = coll::remote_team(c);
    Buffer context{&twin.context, sizeof twin.context, &byte};
    if (c.is_inter() && c.rank == 0) {
        if (leads(c)) {
            s.send(remote, 0, context);
        } else {
            s.recv(remote, 0, context);
        }
        s.fence();
    }
    coll::add_bcast(s, local, 0, context);
    if (c.is_inter()) coll::add_bcast(s, local, 0, {&twin.local_comm->context, sizeof twin.context, &byte});
}

// Intercommunicators are on the root lane. So are the duplicates of a call that does not wait: it may not wait for members that start
// late, and nobody knows when to make the lane.
Err draw_contexts(Process& p, Comm& c, Comm& twin, Info* info, bool waits) {
    if (c.rank != 0) return Err::ok;
    const obj::LaneRange lanes = waits && !c.is_inter() ? lanes_for(p, *c.group, asks_for_lane(info)) : obj::LaneRange{};
    if (!c.is_inter() || leads(c)) WEFT_TRY(p.contexts.take(&twin.context, lanes));
    if (c.is_inter()) WEFT_TRY(p.contexts.take(&twin.local_comm->context));
    return Err::ok;
}

Err duplicate(Process& p, Comm& c, Info* info, Comm** out, Request** request) {
    if (obj::has_endpoints(c)) return request != nullptr ? check_processes(c) : dup_endpoints(p, c, info, out);
    if (Several wanted; request == nullptr && !c.is_inter() && wants_several(info, &wanted)) return dup_several(p, c, info, wanted, out);
    Schedule* s = nullptr;
    Comm* twin = nullptr;
    WEFT_TRY(coll::open(p, c, request != nullptr ? coll::of_nonblocking : coll::of_sequence, request != nullptr, &s));
    Err e = make_twin(p, c, info, &twin);
    if (e != Err::ok) return coll::abandon(*s, e);
    e = draw_contexts(p, c, *twin, info, request == nullptr);
    if (e != Err::ok) {
        obj::release(*twin);
        return coll::abandon(*s, e);
    }
    add_agreement(*s, c, *twin);
    e = request != nullptr ? coll::start(*s, request) : coll::run(*s);
    if (e == Err::ok && request == nullptr) e = obj::set_lane(p, *twin);
    if (e != Err::ok) {
        obj::release(*twin);
        return e;
    }
    *out = twin;
    return Err::ok;
}

}  // namespace

Err dup(Process& p, Comm& c, Comm** out) { return duplicate(p, c, nullptr, out, nullptr); }
Err dup_with_info(Process& p, Comm& c, Info* info, Comm** out) { return duplicate(p, c, info, out, nullptr); }
Err idup(Process& p, Comm& c, Comm** out, Request** r) { return duplicate(p, c, nullptr, out, r); }
Err idup_with_info(Process& p, Comm& c, Info* info, Comm** out, Request** r) { return duplicate(p, c, info, out, r); }

// --------------------------------------------------------------------------------------------- from a group

Err create_over(Process& p, Comm& parent, Group& group, int32_t tag, Comm** out) {
    WEFT_TRY(check_processes(parent));
    if (group.rank == obj::undefined || group.size == 0) {
        *out = nullptr;
        return Err::ok;
    }
    Scratch<int32_t> ranks(group.size);
    if (!ranks) return no_memory(group.size);
    for (int32_t i = 0; i < group.size; i++) {
        ranks[i] = obj::rank_of(*parent.group, group.at(i));
        if (ranks[i] == obj::undefined) return fail(Err::group, "rank %d of the group is not in the communicator", i);
    }
    uint32_t context = 0;
    WEFT_TRY(agree_context(p, parent, {&parent, ranks.get(), group.rank, group.size}, tag, &context, 0, &group));
    obj::retain(group);
    Err e = obj::make_comm(p, &group, nullptr, context, &parent, out);
    if (e != Err::ok) obj::release(p, group);
    return e;
}

Err create(Process& p, Comm& c, Group& group, Comm** out) {
    int32_t tag = take_tag(c);
    return c.is_inter() ? create_inter(p, c, group, tag, out) : create_over(p, c, group, tag, out);
}

Err create_group(Process& p, Comm& c, Group& group, int tag, Comm** out) {
    WEFT_TRY(check_processes(c));
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator");
    if (group.size == 0) {
        *out = nullptr;
        return Err::ok;
    }
    if (group.rank == obj::undefined) return fail(Err::group, "the calling process is not in the group");
    return create_over(p, c, group, creation_tag(tag), out);
}

// --------------------------------------------------------------------------------------------------- split

namespace {

struct Choice {
    int64_t color;
    int32_t key;
};

// The members of `of` that chose `color`, by key and then by rank. A stable insertion by halves: n log n moves of ints.
Err chosen(Process& p, const Group& of, const Choice* choices, int64_t color, void* session, Group** out) {
    Scratch<int32_t> order(of.size), spare(of.size);
    if (!order || !spare) return no_memory(of.size);
    int32_t n = 0;
    for (int32_t i = 0; i < of.size; i++)
        if (choices[i].color == color) order[n++] = i;
    int32_t *from = order.get(), *to = spare.get();
    for (int32_t width = 1; width < n; width *= 2) {
        for (int32_t at = 0; at < n; at += 2 * width) {
            int32_t left = at, middle = at + width < n ? at + width : n, right = middle;
            int32_t end = at + 2 * width < n ? at + 2 * width : n;
            for (int32_t k = at; k < end; k++) {
                bool take_left = left < middle && (right == end || choices[from[left]].key <= choices[from[right]].key);
                to[k] = from[take_left ? left++ : right++];
            }
        }
        int32_t* swap = from;
        from = to;
        to = swap;
    }
    for (int32_t i = 0; i < n; i++) from[i] = of.at(from[i]);
    return obj::make_group(p, from, n, session, out);
}

Err allgather_choices(Process& p, Comm& c, const Team& team, int32_t tag, Choice* mine, Choice* all) {
    const type::Type& byte = coll::byte_type();
    Schedule* s = nullptr;
    WEFT_TRY(coll::open_tagged(p, c, tag, false, &s));
    coll::add_allgather(*s, team, {mine, sizeof(Choice), &byte}, coll::Blocks({all, sizeof(Choice), &byte}));
    return coll::run(*s);
}

Err split_inter(Process& p, Comm& c, Choice mine, Comm** out) {
    int32_t local_tag = take_tag(c), remote_tag = take_tag(c), agree_tag = take_tag(c);
    Scratch<Choice> near(c.size), far(c.remote_size);
    if (!near || !far) return no_memory(c.size + c.remote_size);
    WEFT_TRY(allgather_choices(p, c, coll::local_team(c), local_tag, &mine, near.get()));
    const type::Type& byte = coll::byte_type();
    Schedule* s = nullptr;
    WEFT_TRY(coll::open_tagged(p, c, remote_tag, false, &s));
    Err e = coll::build(*s, coll::Allgather{{&mine, sizeof mine, &byte},
                                            coll::Blocks({far.get(), sizeof(Choice), &byte})});
    if (e != Err::ok) return coll::abandon(*s, e);
    WEFT_TRY(coll::run(*s));
    *out = nullptr;
    if (mine.color == obj::undefined) return Err::ok;
    Group *group = nullptr, *remote = nullptr;
    WEFT_TRY(chosen(p, *c.group, near.get(), mine.color, c.session, &group));
    e = chosen(p, *c.remote_group, far.get(), mine.color, c.session, &remote);
    if (e == Err::ok && remote->size > 0) e = create_between(p, c, *group, *remote, agree_tag, out);
    obj::release(p, *group);
    if (remote != nullptr) obj::release(p, *remote);
    return e;
}

}  // namespace

Err split(Process& p, Comm& c, int color, int key, Comm** out) {
    if (color < 0 && color != obj::undefined) return fail(Err::arg, "color %d is negative", color);
    return split_by(p, c, color, key, out);
}

namespace {

// What still holds a reference: the handle, and operations that are not over after MPI_Comm_free.
Err check_fixed(const Process& p, const Comm& to) {
    if (!obj::is_fixed(p, to)) return fail(Err::comm, "the communicator to make is none of MPIX_COMM_1 to MPIX_COMM_4");
    if (to.refs.load(std::memory_order_acquire) == 0) return Err::ok;
    return fail(Err::comm, "MPIX_COMM_%d is in use", to.id - p.fixed[1].id + 1);
}

}  // namespace

static void fix(Process& p, Comm& made, Comm& to) {
    obj::move_comm(p, made, to);
    p2p::make_header(to);
}

Err dup_to_fixed(Process& p, Comm& c, Comm& to) {
    Comm* made = nullptr;
    WEFT_TRY(check_processes(c));   // several would become the same
    WEFT_TRY(check_fixed(p, to));
    WEFT_TRY(dup(p, c, &made));
    fix(p, *made, to);
    return Err::ok;
}

Err split_to_fixed(Process& p, Comm& c, int color, int key, Comm& to) {
    Comm* made = nullptr;
    WEFT_TRY(check_fixed(p, to));
    WEFT_TRY(split(p, c, color, key, &made));
    if (made != nullptr) fix(p, *made, to);
    return Err::ok;
}

Err split_by(Process& p, Comm& c, int64_t color, int key, Comm** out) {
    WEFT_TRY(check_processes(c));
    Choice mine{color, key};
    if (c.is_inter()) return split_inter(p, c, mine, out);
    int32_t gather_tag = take_tag(c), agree_tag = take_tag(c);
    Scratch<Choice> all(c.size);
    if (!all) return no_memory(c.size);
    WEFT_TRY(allgather_choices(p, c, coll::local_team(c), gather_tag, &mine, all.get()));
    *out = nullptr;
    if (color == obj::undefined) return Err::ok;
    Group* group = nullptr;
    WEFT_TRY(chosen(p, *c.group, all.get(), color, c.session, &group));
    Err e = create_over(p, c, *group, agree_tag, out);
    obj::release(p, *group);
    return e;
}

}  // namespace weft::comm
