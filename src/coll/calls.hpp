// The collectives as the bindings call them. What follows the arguments says which form it is: nothing (blocking),
// a place for the request (nonblocking), or hints and a place for the request (persistent). No lock is held.
#pragma once
#include "coll/coll.hpp"

namespace weft::coll {

template <class A> Err call(Process& p, Comm& c, const A& a) { return blocking(p, c, a); }
template <class A> Err call(Process& p, Comm& c, const A& a, Request** out) { return nonblocking(p, c, a, out); }
template <class A> Err call(Process& p, Comm& c, const A& a, obj::Info* info, Request** out) {
    return persistent(p, c, a, info, out);
}

using obj::Ints;
using type::Type;

template <class... Form> Err barrier(Process& p, Comm& c, Form... f) { return call(p, c, Barrier{}, f...); }

template <class... Form> Err bcast(Process& p, Comm& c, Buffer b, int root, Form... f) {
    return call(p, c, Bcast{b, root}, f...);
}

template <class... Form> Err gather(Process& p, Comm& c, Buffer send, Buffer recv, int root, Form... f) {
    return call(p, c, Gather{send, Blocks(recv), root, true}, f...);
}

template <class... Form> Err gatherv(Process& p, Comm& c, Buffer send, void* recv, Ints counts, Ints displs, Type& t,
                                     int root, Form... f) {
    return call(p, c, Gather{send, Blocks(recv, counts, displs, &t), root, false}, f...);
}

template <class... Form> Err scatter(Process& p, Comm& c, Buffer send, Buffer recv, int root, Form... f) {
    return call(p, c, Scatter{Blocks(send), recv, root, true}, f...);
}

template <class... Form> Err scatterv(Process& p, Comm& c, void* send, Ints counts, Ints displs, Type& t, Buffer recv,
                                      int root, Form... f) {
    return call(p, c, Scatter{Blocks(send, counts, displs, &t), recv, root, false}, f...);
}

template <class... Form> Err allgather(Process& p, Comm& c, Buffer send, Buffer recv, Form... f) {
    return call(p, c, Allgather{send, Blocks(recv)}, f...);
}

template <class... Form> Err allgatherv(Process& p, Comm& c, Buffer send, void* recv, Ints counts, Ints displs, Type& t,
                                        Form... f) {
    return call(p, c, Allgather{send, Blocks(recv, counts, displs, &t)}, f...);
}

template <class... Form> Err alltoall(Process& p, Comm& c, Buffer send, Buffer recv, Form... f) {
    return call(p, c, Alltoall{Blocks(send), Blocks(recv)}, f...);
}

template <class... Form> Err alltoallv(Process& p, Comm& c, void* send, Ints scounts, Ints sdispls, Type& stype,
                                       void* recv, Ints rcounts, Ints rdispls, Type& rtype, Form... f) {
    return call(p, c, Alltoall{Blocks(send, scounts, sdispls, &stype), Blocks(recv, rcounts, rdispls, &rtype)}, f...);
}

// T: an array of handles, as the ABI declares it.
template <class T, class... Form> Err alltoallw(Process& p, Comm& c, void* send, Ints scounts, Ints sdispls, T stypes,
                                                void* recv, Ints rcounts, Ints rdispls, T rtypes, Form... f) {
    auto out = reinterpret_cast<const void* const*>(stypes), in = reinterpret_cast<const void* const*>(rtypes);
    return call(p, c, Alltoall{Blocks(send, scounts, sdispls, out), Blocks(recv, rcounts, rdispls, in)}, f...);
}

template <class... Form> Err reduce(Process& p, Comm& c, Buffer send, Buffer recv, const op::Op& op, int root, Form... f) {
    return call(p, c, Reduce{send.base, recv, &op, root}, f...);
}

template <class... Form> Err allreduce(Process& p, Comm& c, Buffer send, Buffer recv, const op::Op& op, Form... f) {
    return call(p, c, Allreduce{send.base, recv, &op}, f...);
}

template <class... Form> Err reduce_scatter(Process& p, Comm& c, void* send, void* recv, Ints counts, Type& t,
                                            const op::Op& op, Form... f) {
    return call(p, c, ReduceScatter{send, {recv, 0, &t}, counts, &op}, f...);
}

template <class... Form> Err reduce_scatter_block(Process& p, Comm& c, Buffer send, Buffer recv, const op::Op& op,
                                                  Form... f) {
    return call(p, c, ReduceScatter{send.base, recv, {}, &op}, f...);
}

template <class... Form> Err scan(Process& p, Comm& c, Buffer send, Buffer recv, const op::Op& op, Form... f) {
    return call(p, c, Scan{send.base, recv, &op, false}, f...);
}

template <class... Form> Err exscan(Process& p, Comm& c, Buffer send, Buffer recv, const op::Op& op, Form... f) {
    return call(p, c, Scan{send.base, recv, &op, true}, f...);
}

}  // namespace weft::coll
