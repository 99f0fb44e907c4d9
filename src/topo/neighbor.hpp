// The neighbourhood collectives: builders for the engine of coll/. Included by the bindings' calls; no lock is held.
#pragma once
#include "coll/calls.hpp"
#include "topo/topo.hpp"

namespace weft::topo {

struct NeighborAllgather { type::Buffer send; coll::Blocks recv; };
struct NeighborAlltoall { coll::Blocks send, recv; };

// Found by argument-dependent lookup from coll::nonblocking and coll::persistent.
Err build(coll::Schedule&, const NeighborAllgather&);
Err build(coll::Schedule&, const NeighborAlltoall&);

// The blocking forms: the messages alone, without a schedule where neighbours are few.
Err exchange(Process&, Comm&, const NeighborAllgather&);
Err exchange(Process&, Comm&, const NeighborAlltoall&);
template <class A, class... Form> Err in_form(Process& p, Comm& c, const A& a, Form... f) {
    if constexpr (sizeof...(Form) == 0) return exchange(p, c, a);
    else return coll::call(p, c, a, f...);
}

// The calls, in three forms as in coll/calls.hpp.
using coll::Ints;
using type::Buffer;
using type::Type;

template <class... Form> Err neighbor_allgather(Process& p, Comm& c, Buffer send, Buffer recv, Form... f) {
    return in_form(p, c, NeighborAllgather{send, coll::Blocks(recv)}, f...);
}

template <class... Form> Err neighbor_allgatherv(Process& p, Comm& c, Buffer send, void* recv, Ints counts, Ints displs,
                                                 Type& t, Form... f) {
    return in_form(p, c, NeighborAllgather{send, coll::Blocks(recv, counts, displs, &t)}, f...);
}

template <class... Form> Err neighbor_alltoall(Process& p, Comm& c, Buffer send, Buffer recv, Form... f) {
    return in_form(p, c, NeighborAlltoall{coll::Blocks(send), coll::Blocks(recv)}, f...);
}

template <class... Form> Err neighbor_alltoallv(Process& p, Comm& c, void* send, Ints scounts, Ints sdispls, Type& stype,
                                                void* recv, Ints rcounts, Ints rdispls, Type& rtype, Form... f) {
    NeighborAlltoall a{coll::Blocks(send, scounts, sdispls, &stype), coll::Blocks(recv, rcounts, rdispls, &rtype)};
    return in_form(p, c, a, f...);
}

template <class T, class... Form> Err neighbor_alltoallw(Process& p, Comm& c, void* send, Ints scounts, Ints sdispls,
                                                         T stypes, void* recv, Ints rcounts, Ints rdispls, T rtypes,
                                                         Form... f) {
    auto out = reinterpret_cast<const void* const*>(stypes), in = reinterpret_cast<const void* const*>(rtypes);
    NeighborAlltoall a{coll::Blocks(send, scounts, sdispls, out), coll::Blocks(recv, rcounts, rdispls, in)};
    return in_form(p, c, a, f...);
}

}  // namespace weft::topo
