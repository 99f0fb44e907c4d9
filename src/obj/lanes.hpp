// A process's lanes: threads on communicators of different lanes meet on no lock, line or queue. Included by p2p/ and above, and by obj/.
//
// A communicator has one lane for life, the same number in every member, so that wildcards, probes and cancels search one queue. Its
// number is a part of the context id, drawn by the member that draws that. Invariant: a communicator is on another lane than the root
// only if every member shares memory with that one, has told that it has lanes (Mailbox::lanes), and has as many.
#pragma once
#include "lane/lane.hpp"
#include "obj/process.hpp"

namespace weft::obj {

// Begins the pool: the root lane is open, and is the only one until set_lane() needs others. Tells the other ranks of `count`.
void open_lanes(Process&, int count, char* wires, size_t stride, bool can_fence);
// Closes all but the root lane.
void close_lanes(Process&);
// Sets `c.lane` from its context, and makes that lane if it is the first communicator there. Err::no_mem.
Err set_lane(Process&, Comm& c);

// Lanes that the process of that world rank has told of; 0: it has not started yet; 1: none but the root lane, or it shares no memory.
int lanes_of(Process&, int32_t world_rank);

// Calls `f` with every lane that is made, the root lane first.
template <class F>
void each_lane(Process& p, F&& f) {
    for (int i = 0; i < p.lane_count; ++i)
        if (lane::Lane* l = p.lanes.at[i].load(std::memory_order_acquire); l != nullptr) f(*l);   // pairs with make_lane()
}
// Whether nothing waits to be sent or moved by any lane. Any thread.
inline bool has_left(Process& p) {
    bool left = true;
    each_lane(p, [&](lane::Lane& l) { left &= l.has_left(); });
    return left;
}

}  // namespace weft::obj
