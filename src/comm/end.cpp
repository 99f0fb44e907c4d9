// What a duplicate inherits, splitting by what processes share, and the end of a communicator.
#include <cstring>

#include "boot/boot.hpp"
#include "coll/coll.hpp"
#include "comm/agree.hpp"
#include "obj/attr.hpp"
#include "obj/info.hpp"
#include "obj/status.hpp"
#include "p2p/combined.hpp"

namespace weft::comm {

Err inherit(Process& p, Comm& from, Comm& to, Info* info) {
    if (info != nullptr) WEFT_TRY(obj::info_dup(p, *info, &to.info));
    return obj::copy_attributes(p, from, to);
}

namespace {

// MPI_COMM_TYPE_* of the ABI.
enum SplitType : int { shared = 221, hw_unguided = 222, hw_guided = 223, resource_guided = 224 };

// The same for all processes of a node. Positive, as a color is.
int node_color(const Process& p) {
    uint32_t hash = 2166136261u;
    for (const char* c = p.job->host; *c != 0; c++) hash = (hash ^ static_cast<uint8_t>(*c)) * 16777619u;
    return static_cast<int>(hash & 0x7fffffff);
}

// A hint that this library knows no resource by puts the process in no communicator.
int guided_color(const Process& p, Info* info, bool process_sets) {
    char value[256];
    if (info == nullptr) return obj::undefined;
    if (obj::info_lookup(info, "mpi_hw_resource_type", value, sizeof value))
        return strcmp(value, "mpi_shared_memory") == 0 ? node_color(p) : obj::undefined;
    if (process_sets && obj::info_lookup(info, "mpi_pset_name", value, sizeof value)) {
        if (strcmp(value, "mpi://WORLD") == 0) return 0;
        if (strcmp(value, "mpi://SELF") == 0) return p.world_rank;
    }
    return obj::undefined;
}

}  // namespace

Err split_type(Process& p, Comm& c, int type, int key, Info* info, Comm** out) {
    int color = obj::undefined;
    switch (type) {
        case obj::undefined: break;
        case shared: color = node_color(p); break;
        case hw_guided: color = guided_color(p, info, false); break;
        case resource_guided: color = guided_color(p, info, true); break;
        // No level of the hardware below the node is known here, so there is no strict subset to give.
        case hw_unguided: break;
        default: return fail(Err::arg, "%d is not a split type", type);
    }
    return split(p, c, color, key, out);
}

Err free_comm(Process& p, Comm** c) {
    if (*c == &p.world || *c == &p.self) return fail(Err::comm, "a predefined communicator cannot be freed");
    WEFT_TRY(obj::delete_attributes(p, **c));
    p2p::close_buffer(p, p2p::BufferOwner(**c));
    obj::release(**c);
    *c = nullptr;
    return Err::ok;
}

// Waits until every member is here: all their messages on the communicator are then matched or under way, and what is
// under way keeps a reference of its own.
Err disconnect(Process& p, Comm** c) {
    if (*c == &p.world || *c == &p.self) return fail(Err::comm, "a predefined communicator cannot be disconnected");
    WEFT_TRY(coll::blocking(p, **c, coll::Barrier{}));
    return free_comm(p, c);
}

}  // namespace weft::comm
