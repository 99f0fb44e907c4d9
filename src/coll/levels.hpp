// A communicator in two levels: which of its members share a node, and who speaks for each node. Included by coll/ alone.
// Found out once per communicator, by whichever thread needs it first, and immutable from then on; no lock is held.
#pragma once
#include "coll/schedule.hpp"
#include "obj/process.hpp"
#include "op/op.hpp"

namespace weft::coll {

// A team as one of its members sees it.
struct Levels {
    Team node;             // the members on the caller's node
    int32_t head;          // the one of them that speaks for it: the root where it is here, else the first
    Team leaders;          // the heads of all nodes; the caller's rank in it is its node's, whether it leads or not
    int32_t root;          // the root's node
    const int32_t* first;  // node i holds the ranks first[i] .. first[i + 1] - 1 (Order::of_ranks only)
    bool leads() const { return node.rank == head; }
    int32_t first_here() const { return first[leaders.rank]; }
};

// of_ranks: only where every node holds consecutive ranks, so that going through the nodes one by one keeps their order.
enum class Order : uint8_t { any, of_ranks };

bool find_levels(Schedule&, const Team&, int32_t root, Order, Levels* out);

inline Order order_for(const op::Op& op) { return op.is(op::Op::commutative) ? Order::any : Order::of_ranks; }

// False where one level is all there is: one node, one member on each, a team that is part of a communicator, or an
// order that the nodes do not keep. All members get the same answer.
inline bool in_levels(Schedule& s, const Team& t, int32_t root, Order order, Levels* out) {
    return WEFT_UNLIKELY(s.process->nodes > 1) && find_levels(s, t, root, order, out);
}

}  // namespace weft::coll
