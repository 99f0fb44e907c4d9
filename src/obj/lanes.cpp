#include "obj/lanes.hpp"

#include <cstdlib>

#include "heap/segment.hpp"

namespace weft::obj {

void open_lanes(Process& p, int count, char* wires, size_t stride, bool can_fence) {
    p.lane_count = static_cast<uint8_t>(count);
    p.lanes.wires = wires;
    p.lanes.stride = stride;
    p.lanes.can_fence = can_fence;
    p.lanes.at[0].store(p.lane, std::memory_order_relaxed);
    if (p.lane->shm.ranks > 1) p.lane->shm.tell_lanes(static_cast<uint32_t>(count));
}

void close_lanes(Process& p) {
    for (int i = 1; i < p.lane_count; ++i) {
        lane::Lane* const l = p.lanes.at[i].exchange(nullptr, std::memory_order_relaxed);
        if (l == nullptr) continue;
        l->close();
        l->owned.close();
    }
    p.lane_count = 1;
}

// As the root lane in all that does not change.
static Err open_lane(Process& p, lane::Lane& l, uint32_t number) {
    const lane::Lane& root = *p.lane;
    l.limits = root.limits;
    l.threads = root.threads;
    l.heap = root.heap;
    l.segment = root.segment;
    l.owned.open_like(root.owned);
    l.shm.sockets = root.sock;   // where a thread sleeps that waits for this lane and the root
    if (root.null != nullptr) WEFT_TRY(l.open_null());
    char* const wires = p.lanes.wires != nullptr ? p.lanes.wires + number * p.lanes.stride : nullptr;
    WEFT_TRY(l.open(p.peers, p.world_size, p.world_rank, wires, p.lanes.can_fence));
    if (l.shm.ranks > 1) l.shm.tell_sharing(root.shm.sharing_of(root.shm.me) == wire::shm::Sharing::heap);
    return Err::ok;
}

static Err make_lane(Process& p, uint32_t number) {
    SpinGuard guard(p.lanes.making);
    if (p.lanes.at[number].load(std::memory_order_relaxed) != nullptr) return Err::ok;
    lane::Lane* const l = lane::renew(p.lanes.kept[number], static_cast<uint16_t>(number));
    if (l == nullptr) return fail(Err::no_mem, "no memory for lane %u", number);
    p.lanes.kept[number] = l;
    if (const Err e = open_lane(p, *l, number); e != Err::ok) {
        l->close();
        return e;
    }
    p.lanes.at[number].store(l, std::memory_order_release);   // pairs with each_lane()
    return Err::ok;
}

Err set_lane(Process& p, Comm& c) {
    const uint32_t number = p.contexts.lane_of(c.context);
    c.lane = p.lane;
    if (number == 0) return Err::ok;
    if (p.lanes.at[number].load(std::memory_order_acquire) == nullptr) WEFT_TRY(make_lane(p, number));
    c.lane = p.lanes.at[number].load(std::memory_order_acquire);
    return Err::ok;
}

int lanes_of(Process& p, int32_t world_rank) {
    if (world_rank == p.world_rank || p.lane->null != nullptr) return p.lane_count;
    const lane::Peer& peer = p.peers[world_rank];
    return peer.wire == lane::Peer::shm ? static_cast<int>(p.lane->shm.lanes_of(peer.index)) : 1;
}

}  // namespace weft::obj
