#include "obj/process.hpp"

#include "lane/lane.hpp"

namespace weft::obj {

Route route_to(Process& p, int32_t world_rank) {
    const lane::Peer& to = p.peers[world_rank];
    if (world_rank == p.world_rank) return Route{Route::self, world_rank, to.index, -1};
    switch (to.wire) {
    case lane::Peer::shm: return Route{Route::shm, world_rank, to.index, p.lane->limits.inline_max};
    case lane::Peer::sock: return Route{Route::sock, world_rank, to.index, -1};
    case lane::Peer::null: break;
    }
    return Route{Route::null_wire, world_rank, to.index, p.lane->limits.inline_max};
}

constinit FirstProcess first_process;
#if WEFT_THREADS_PRESET
thread_local constinit Process* process = &first_process.p;
#endif

int32_t node_of(const Process& p, int32_t world_rank) { return p.peers[world_rank].node; }

void see_nodes(Process& p, int32_t ranks_each) {
    p.nodes = ranks_each > 0 ? (p.world_size - 1) / ranks_each + 1 : 1;
    for (int32_t r = 0; r < p.world_size; ++r) p.peers[r].node = ranks_each > 0 ? r / ranks_each : 0;
}

}  // namespace weft::obj
