// Communicators of several lanes (obj/branches.hpp): endpoints, and duplicates whose hints say that tags or ranks may choose the lane.
#include <cstdlib>
#include <cstring>

#include "base/scratch.hpp"
#include "coll/coll.hpp"
#include "comm/agree.hpp"
#include "obj/branches.hpp"
#include "obj/info.hpp"
#include "obj/topology.hpp"
#include "p2p/p2p.hpp"

namespace weft::comm {

using coll::Team;
using obj::BranchPlan;
using obj::ContextSet;

Err check_processes(const Comm& c) {
    if (!obj::has_endpoints(c)) return Err::ok;
    return fail(Err::unsupported, "a communicator of endpoints, of which processes have several, cannot be used for this");
}

namespace {

// All of them, or the first is `no_context`.
void draw_all(Process& p, obj::LaneRange lanes, ContextSet& s) {
    int32_t n = 0;
    while (n < s.count && p.contexts.take(&s.ids[n], lanes) == Err::ok) n++;
    s.drawn = n == s.count;
    if (s.drawn) return;
    while (n-- > 0) p.contexts.give(s.ids[n]);
    s.ids[0] = no_context;
}

// Context ids that a member draws and tells the others, under way.
struct Agreement {
    ContextSet* contexts;
    Request* request;
};

// Member `root` draws `count` context ids and tells the others. Does not wait for them.
Err begin_agreement(Process& p, Comm& c, int32_t root, int32_t tag, int32_t count, Agreement* out) {
    ContextSet* const s = obj::new_contexts(count);
    if (s == nullptr) return fail(Err::no_mem, "no memory for %d context ids", count);
    for (int32_t i = 0; i < count; i++) s->ids[i] = no_context;
    if (c.rank == root) draw_all(p, lanes_for(p, *c.group, true), *s);
    coll::Schedule* told = nullptr;
    Err e = coll::open_tagged(p, c, tag, true, &told);
    if (e == Err::ok) {
        coll::add_bcast(*told, coll::local_team(c), root, {s->ids, static_cast<int64_t>(sizeof *s->ids) * count, &coll::byte_type()});
        e = coll::start(*told, &out->request);
    }
    if (e == Err::ok) out->contexts = s;
    else obj::release(p, *s);
    return e;
}

// What was agreed upon: one reference, the caller's. None on failure.
Err end_agreement(Process& p, Agreement& a, ContextSet** out) {
    p2p::wait(p, *a.request);
    Err e = p2p::finish(p, *a.request, nullptr);
    if (e == Err::ok && a.contexts->ids[0] == no_context) e = fail(Err::no_mem, "a process has no %d context ids left", a.contexts->count);
    if (e == Err::ok) *out = a.contexts;
    else obj::release(p, *a.contexts);
    return e;
}

Err agree_contexts(Process& p, Comm& c, int32_t root, int32_t tag, int32_t count, ContextSet** out) {
    Agreement a{};
    WEFT_TRY(begin_agreement(p, c, root, tag, count, &a));
    return end_agreement(p, a, out);
}

Err gather_counts(Process& p, Comm& c, int32_t tag, int32_t* mine, int32_t* all) {
    const type::Type& byte = coll::byte_type();
    coll::Schedule* s = nullptr;
    WEFT_TRY(coll::open_tagged(p, c, tag, false, &s));
    coll::add_allgather(*s, coll::local_team(c), {mine, sizeof *mine, &byte}, coll::Blocks({all, sizeof *all, &byte}));
    return coll::run(*s);
}

// How the endpoints are spread over the processes of the parent.
struct Spread {
    int32_t total, most;   // most: of one process
    int32_t first;         // the first process that has any
    int32_t base;          // the rank of the caller's first one
};

Err spread_of(const Comm& c, const int32_t* counts, Spread* out) {
    Spread s{0, 0, -1, 0};
    int64_t total = 0;
    for (int32_t i = 0; i < c.size; i++) {
        if (i == c.rank) s.base = static_cast<int32_t>(total);
        total += counts[i];
        if (counts[i] > s.most) s.most = counts[i];
        if (counts[i] > 0 && s.first < 0) s.first = i;
        if (total > INT32_MAX) return fail(Err::arg, "more than %d endpoints", INT32_MAX);
    }
    s.total = static_cast<int32_t>(total);
    *out = s;
    return Err::ok;
}

Err make_endpoints(Process& p, Comm& c, const int32_t* counts, const Spread& s, ContextSet& contexts, Comm** out) {
    Scratch<int32_t> processes(s.total), of_rank(s.total);
    if (!processes || !of_rank) return fail(Err::no_mem, "no memory to list %d endpoints", s.total);
    for (int32_t i = 0, r = 0; i < c.size; i++)
        for (int32_t k = 0; k < counts[i]; k++, r++) {
            processes[r] = c.group->at(i);
            of_rank[r] = k;
        }
    Group* group = nullptr;
    WEFT_TRY(obj::make_group(p, processes.get(), s.total, c.session, &group));
    Err e = Err::ok;
    int32_t made = 0;
    for (; made < counts[c.rank] && e == Err::ok; made++)
        e = obj::make_front(p, *group, {&contexts, s.base + made, made, obj::By::endpoint, 0, 0, of_rank.get()}, &c, &out[made]);
    if (e != Err::ok)
        for (made--; made-- > 0;) obj::release(*out[made]);
    obj::release(p, *group);
    return e;
}

}  // namespace

Err create_endpoints(Process& p, Comm& c, int count, Comm** out) {
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator (argument 1, parent)");
    WEFT_TRY(check_processes(c));
    const int32_t gather_tag = take_tag(c), agree_tag = take_tag(c);
    Scratch<int32_t> counts(c.size);
    if (!counts) return fail(Err::no_mem, "no memory to list %d processes", c.size);
    int32_t mine = count;
    WEFT_TRY(gather_counts(p, c, gather_tag, &mine, counts.get()));
    Spread s{};
    WEFT_TRY(spread_of(c, counts.get(), &s));
    if (s.total == 0) return Err::ok;
    ContextSet* contexts = nullptr;
    WEFT_TRY(agree_contexts(p, c, s.first, agree_tag, s.most, &contexts));
    const Err e = count > 0 ? make_endpoints(p, c, counts.get(), s, *contexts, out) : Err::ok;
    obj::release(p, *contexts);
    return e;
}

namespace {

// A duplicate of `c` as `plan` says, whose contexts are drawn here.
Err dup_front(Process& p, Comm& c, Info* info, int32_t lanes, BranchPlan plan, Comm** out) {
    Comm* twin = nullptr;
    WEFT_TRY(agree_contexts(p, c, 0, take_tag(c), lanes, &plan.contexts));
    Err e = obj::make_front(p, *c.group, plan, &c, &twin);
    obj::release(p, *plan.contexts);
    if (e != Err::ok) return e;
    if (c.topology != nullptr && (twin->topology = obj::copy_topology(c.topology)) == nullptr) e = fail(Err::no_mem, "no memory for the topology");
    if (e == Err::ok) e = inherit(p, c, *twin, info);
    if (e == Err::ok) *out = twin;
    else obj::release(*twin);
    return e;
}

// Of a duplicate of an endpoint.
BranchPlan plan_of_twin(const Comm& c, ContextSet* contexts) {
    const obj::Branches& b = *c.branches;
    return {contexts, c.rank, b.own, obj::By::endpoint, 0, 0, b.of_rank};
}

bool promises(Info& hints, const char* key) {
    char value[8];
    return obj::info_lookup(&hints, key, value, sizeof value) && strcmp(value, "true") == 0;
}

// The value of a hint that is a number from 0 to `most`; -1 if it is none, or not there.
int32_t number_of(Info& hints, const char* key, int32_t most) {
    char value[16], *end = nullptr;
    if (!obj::info_lookup(&hints, key, value, sizeof value) || value[0] == 0) return -1;
    const long n = strtol(value, &end, 10);
    return *end == 0 && n >= 0 && n <= most ? static_cast<int32_t>(n) : -1;
}

}  // namespace

Err dup_endpoints(Process& p, Comm& c, Info* info, Comm** out) {
    return dup_front(p, c, info, c.branches->count, plan_of_twin(c, nullptr), out);
}

Err dup_endpoints_together(Process& p, Comm* const* endpoints, int32_t count, Comm** out) {
    Scratch<Agreement> all(count);
    if (!all) return fail(Err::no_mem, "no memory to list %d endpoints", count);
    Err e = Err::ok;
    int32_t begun = 0, made = 0;
    for (; begun < count && e == Err::ok; begun++) {
        Comm& c = *endpoints[begun];
        e = begin_agreement(p, c, 0, take_tag(c), c.branches->count, &all[begun]);
    }
    if (e != Err::ok) begun--;
    for (int32_t i = 0; i < begun; i++) {
        ContextSet* contexts = nullptr;
        const Comm& c = *endpoints[i];
        const Err agreed = end_agreement(p, all[i], &contexts);
        if (e == Err::ok) e = agreed;
        if (e == Err::ok) e = obj::make_front(p, *c.group, plan_of_twin(c, contexts), endpoints[i], &out[i]);
        made += e == Err::ok;
        if (agreed == Err::ok) obj::release(p, *contexts);
    }
    while (e != Err::ok && made-- > 0) obj::release(*out[made]);
    return e;
}

bool wants_several(Info* hints, Several* out) {
    if (hints == nullptr) return false;
    const int32_t lanes = number_of(*hints, "mpi_num_vcis", INT32_MAX);
    if (lanes < 2) return false;
    *out = {lanes < lane::most_lanes ? lanes : lane::most_lanes, obj::By::source, 0, 0};
    if (!promises(*hints, "mpi_assert_no_any_tag")) return promises(*hints, "mpi_assert_no_any_source");
    constexpr int32_t tag_bits = 31;
    const int32_t bits = number_of(*hints, "mpi_num_tag_bits_for_vci", tag_bits), app = number_of(*hints, "mpi_num_tag_bits_for_app", tag_bits);
    out->by = obj::By::tag;
    out->mask = INT32_MAX;
    if (bits < 1 || !promises(*hints, "mpi_assert_tag_based_parallelism")) return true;
    out->shift = static_cast<uint8_t>(app > 0 ? app : 0);
    out->mask = (1u << bits) - 1;
    return 2 * bits + out->shift <= tag_bits;
}

Err dup_several(Process& p, Comm& c, Info* info, const Several& s, Comm** out) {
    return dup_front(p, c, info, s.lanes, {nullptr, c.rank, s.by == obj::By::source ? c.rank % s.lanes : 0, s.by, s.shift, s.mask, nullptr}, out);
}

}  // namespace weft::comm
