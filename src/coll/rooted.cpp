// Barrier and the collectives with a root: broadcast, gather, scatter, reduce.
#include "coll/coll.hpp"

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
        add_bcast(s, local, a.root, a.buf);
    } else if (a.root == root_self) {
        s.send(remote, 0, a.buf);
    } else {
        if (c.rank == 0) s.recv(remote, a.root, a.buf);
        s.fence();
        add_bcast(s, local, 0, a.buf);
    }
    return Err::ok;
}

Err build(Schedule& s, const Gather& a) {
    Comm& c = *s.comm;
    WEFT_TRY(check_root(c, a.root));
    if (a.root == proc_null) return Err::ok;
    bool collects = c.is_inter() ? a.root == root_self : a.root == c.rank;
    if (!collects && in_place(a.send.base)) return no_place("send buffer");
    if (collects && a.recv.in_place()) return no_place("receive buffer");
    Team local = local_team(c), remote = remote_team(c);
    Row row{a.recv.base, a.recv.count, a.recv.type};
    // Between groups: one group gathers at its leader, who tells the root all of it.
    int32_t senders = collects ? c.remote_size : c.size;
    int64_t block = collects ? row.run(0, 1).bytes() : a.send.bytes();
    if (a.equal && c.is_inter() && tree_pays(senders, block)) {
        if (collects) {
            s.recv(remote, 0, row.run(0, senders));
            return Err::ok;
        }
        Row staged{c.rank == 0 ? s.temp(block * senders) : nullptr, block, &byte_type()};
        if (c.rank == 0) s.copy(a.send, staged.run(0, 1));
        add_gather(s, local, 0, a.send, staged);
        s.fence();
        if (c.rank == 0) s.send(remote, a.root, staged.run(0, senders));
        return Err::ok;
    }
    if (collects && !c.is_inter() && !in_place(a.send.base)) s.copy(a.send, a.recv.at(c.rank));
    if (a.equal && !c.is_inter()) {
        add_gather(s, local, a.root, a.send, row);
    } else if (collects) {
        for (int32_t i = 0; i < c.remote_size; i++)
            if (c.is_inter() || i != c.rank) s.recv(remote, i, a.recv.at(i));
    } else {
        s.send(remote, a.root, a.send);
    }
    return Err::ok;
}

Err build(Schedule& s, const Scatter& a) {
    Comm& c = *s.comm;
    WEFT_TRY(check_root(c, a.root));
    if (a.root == proc_null) return Err::ok;
    bool distributes = c.is_inter() ? a.root == root_self : a.root == c.rank;
    if (!distributes && in_place(a.recv.base)) return no_place("receive buffer");
    if (distributes && a.send.in_place()) return no_place("send buffer");
    Team local = local_team(c), remote = remote_team(c);
    Row row{a.send.base, a.send.count, a.send.type};
    int32_t receivers = distributes ? c.remote_size : c.size;
    int64_t block = distributes ? row.run(0, 1).bytes() : a.recv.bytes();
    if (a.equal && c.is_inter() && tree_pays(receivers, block)) {
        if (distributes) {
            s.send(remote, 0, row.run(0, receivers));
            return Err::ok;
        }
        Row staged{c.rank == 0 ? s.temp(block * receivers) : nullptr, block, &byte_type()};
        if (c.rank == 0) s.recv(remote, a.root, staged.run(0, receivers));
        s.fence();
        add_scatter(s, local, 0, staged, a.recv);
        if (c.rank == 0) s.copy(staged.run(0, 1), a.recv);
        return Err::ok;
    }
    if (distributes && !c.is_inter() && !in_place(a.recv.base)) s.copy(a.send.at(c.rank), a.recv);
    if (a.equal && !c.is_inter()) {
        add_scatter(s, local, a.root, row, a.recv);
    } else if (distributes) {
        for (int32_t i = 0; i < c.remote_size; i++)
            if (c.is_inter() || i != c.rank) s.send(remote, i, a.send.at(i));
    } else {
        s.recv(remote, a.root, a.recv);
    }
    return Err::ok;
}

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
        add_reduce(s, local, a.root, in_place(a.send) ? a.recv.base : a.send, root ? a.recv : shape);
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
