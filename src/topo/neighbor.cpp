#include "topo/neighbor.hpp"

#include "obj/status.hpp"

namespace weft::topo {

namespace {

using coll::Schedule;
using coll::Team;

// Receives are posted in the order in which the messages were sent. Where both neighbours along a dimension are the
// same process (a ring of one or two), its message "down" is the one that arrives here "from above", so a grid's pairs
// are received in reverse.
template <class Send, class Recv> Err add_exchange(Schedule& s, Send out, Recv in) {
    Neighbours n;
    WEFT_TRY(neighbours(*s.comm, &n));
    Team t = coll::local_team(*s.comm);
    bool grid = n.topology->kind == Topology::cart;
    for (int32_t i = 0; i < n.sources; i++) {
        int32_t at = grid ? i ^ 1 : i, from = n.source(at);
        if (from != obj::proc_null) s.recv(t, from, in(at));
    }
    for (int32_t i = 0; i < n.destinations; i++) {
        int32_t to = n.destination(i);
        if (to != obj::proc_null) s.send(t, to, out(i));
    }
    return Err::ok;
}

}  // namespace

Err build(Schedule& s, const NeighborAllgather& a) {
    if (coll::in_place(a.send.base) || a.recv.in_place())
        return fail(Err::buffer, "MPI_IN_PLACE has no meaning in a neighbourhood");
    return add_exchange(s, [&](int32_t) { return a.send; }, [&](int32_t i) { return a.recv.at(i); });
}

Err build(Schedule& s, const NeighborAlltoall& a) {
    if (a.send.in_place() || a.recv.in_place())
        return fail(Err::buffer, "MPI_IN_PLACE has no meaning in a neighbourhood");
    return add_exchange(s, [&](int32_t i) { return a.send.at(i); }, [&](int32_t i) { return a.recv.at(i); });
}

}  // namespace weft::topo
