// Barrier and the collectives with a root: broadcast, gather, scatter, reduce.
#include "coll/coll.hpp"

#include "coll/staged.hpp"
#include "obj/status.hpp"

namespace weft::coll {

namespace {

using obj::proc_null;
using obj::root_self;

Err check_root(const Comm& c, int32_t root) {
    if (root >= 0 && root < c.remote_size) return Err::ok;
    if (c.is_inter() && (root == root_self || root == proc_null)) return Err::ok;
    return fail(Err::root, "root %d is not a rank of a communicator of %d", root, c.remote_size);
}

Err no_place(const char* what) { return fail(Err::buffer, "MPI_IN_PLACE cannot be the %s here", what); }

}  // namespace

Err build(Schedule& s, const Barrier&) {
    Comm& c = *s.comm;
    if (add_staged_barrier(s)) return Err::ok;
    Team local = local_team(c), remote = remote_team(c);
    add_barrier(s, local);
    if (!c.is_inter()) return Err::ok;
    // Between groups: the leaders tell each other that their own group is there, then let it go.
    s.fence();
    if (c.rank == 0) {
        Buffer empty{nullptr, 0, &byte_type()};
        s.recv(remote, 0, empty);
        s.send(remote, 0, empty);
        s.fence();
    }
    add_barrier(s, local);
    return Err::ok;
}

Err build(Schedule& s, const Bcast& a) {
    Comm& c = *s.comm;
    WEFT_TRY(check_root(c, a.root));
    if (a.root == proc_null) return Err::ok;
    if (in_place(a.buf.base)) return no_place("buffer");
    Team local = local_team(c), remote = remote_team(c);
    if (!c.is_inter()) {
        if (!add_staged_bcast(s, a.root, a.buf)) add_bcast(s, local, a.root, a.buf);
    } else if (a.root == root_self) {
        s.send(remote, 0, a.buf);
    } else {
        if (c.rank == 0) s.recv(remote, a.root, a.buf);
        s.fence();
        add_bcast(s, local, 0, a.buf);
    }
    return Err::ok;
}

namespace {

// Gather, and scatter as its mirror image: `own` is what a member brings or gets, `all` what the root gets or gives out.
Err build_rooted(Schedule& s, Way way, Buffer own, const Blocks& all, int32_t root, bool equal) {
    Comm& c = *s.comm;
    const char *root_side = way == Way::gather ? "receive buffer" : "send buffer", *own_side = way == Way::gather ? "send buffer" : "receive buffer";
    WEFT_TRY(check_root(c, root));
    if (root == proc_null) return Err::ok;
    const bool has_all = c.is_inter() ? root == root_self : root == c.rank;
    if (!has_all && in_place(own.base)) return no_place(own_side);
    if (has_all && all.in_place()) return no_place(root_side);
    if (equal && !c.is_inter() && (way == Way::gather ? add_staged_gather(s, root, own, all) : add_staged_scatter(s, root, all, own))) return Err::ok;
    Team local = local_team(c), remote = remote_team(c);
    Row row{all.base, all.count, all.type};
    Flow flow{s, way};
    // Between groups: one group's leader gathers its blocks and tells the root all of them, or the other way round.
    const int32_t members = has_all ? c.remote_size : c.size;
    const int64_t block = has_all ? row.run(0, 1).bytes() : own.bytes();
    if (equal && c.is_inter() && tree_pays(s, way, members, block)) {
        if (has_all) {
            flow.from_member(remote, 0, row.run(0, members));
            return Err::ok;
        }
        Row staged{c.rank == 0 ? s.temp(block * members) : nullptr, block, &byte_type()};
        flow.in_order([&] {
            if (c.rank == 0) flow.copy(own, staged.run(0, 1));
            add_rooted(s, way, local, 0, own, staged);
        }, [&] {
            if (c.rank == 0) flow.to_root(remote, root, staged.run(0, members));
        });
        return Err::ok;
    }
    if (has_all && !c.is_inter() && !in_place(own.base)) flow.copy(own, all.at(c.rank));
    if (equal && !c.is_inter()) {
        add_rooted(s, way, local, root, own, row);
    } else if (has_all) {
        for (int32_t i = 0; i < c.remote_size; i++)
            if (c.is_inter() || i != c.rank) flow.from_member(remote, i, all.at(i));
    } else {
        flow.to_root(remote, root, own);
    }
    return Err::ok;
}

}  // namespace

Err build(Schedule& s, const Gather& a) { return build_rooted(s, Way::gather, a.send, a.recv, a.root, a.equal); }
Err build(Schedule& s, const Scatter& a) { return build_rooted(s, Way::scatter, a.recv, a.send, a.root, a.equal); }

Err build(Schedule& s, const Reduce& a) {
    Comm& c = *s.comm;
    WEFT_TRY(check_root(c, a.root));
    if (a.root == proc_null) return Err::ok;
    WEFT_TRY(op::check(*a.op, *a.recv.type));
    s.use(*a.op);
    Team local = local_team(c), remote = remote_team(c);
    Buffer shape{nullptr, a.recv.count, a.recv.type};
    if (a.recv.count == 0) return Err::ok;
    if (!c.is_inter()) {
        bool root = a.root == c.rank;
        if (in_place(a.send) && !root) return no_place("send buffer");
        if (root && in_place(a.recv.base)) return no_place("receive buffer");
        const void* own = in_place(a.send) ? a.recv.base : a.send;
        const Buffer result = root ? a.recv : shape;
        if (!add_staged_reduce(s, a.root, own, result)) add_reduce(s, local, a.root, own, result);
    } else if (a.root == root_self) {
        if (in_place(a.recv.base)) return no_place("receive buffer");
        s.recv(remote, 0, a.recv);
    } else {
        if (in_place(a.send)) return no_place("send buffer");
        Buffer sum = c.rank == 0 ? s.temp_like(shape.count, *shape.type) : shape;
        add_reduce(s, local, 0, a.send, sum);
        if (c.rank == 0) s.send(remote, a.root, sum);
    }
    return Err::ok;
}

}  // namespace weft::coll
