// Splitting by what processes share: a node, a part of its hardware, a process set.
#include <cstring>

#include "base/scratch.hpp"
#include "comm/agree.hpp"
#include "comm/locality.hpp"
#include "obj/info.hpp"
#include "obj/status.hpp"
#include "os/process.hpp"

namespace weft::comm {

namespace {

// MPI_COMM_TYPE_* of the ABI.
enum SplitType : int { shared = 221, hw_unguided = 222, hw_guided = 223, resource_guided = 224 };

constexpr char resource_key[] = "mpi_hw_resource_type", set_key[] = "mpi_pset_name", node_name[] = "mpi_shared_memory";

// 64 bits for what two processes have in common only if they mean the same: two in a billion processes may collide.
struct Hash {
    uint64_t value = 14695981039346656037u;
    void add(const void* data, size_t bytes) {
        auto* at = static_cast<const unsigned char*>(data);
        for (size_t i = 0; i < bytes; i++) value = (value ^ at[i]) * 1099511628211u;
    }
    int64_t color() const { return static_cast<int64_t>((value ^ value >> 29) & INT64_MAX); }
};

int64_t color_of(const NodeLocality& locality, int level) {
    if (locality.on_node.at[level] < 0) return obj::undefined;
    Hash h;
    h.add(&locality.node, sizeof locality.node);
    h.add(&level, sizeof level);
    h.add(&locality.on_node.at[level], sizeof locality.on_node.at[level]);
    return h.color();
}

// A process that is told of a resource unknown here, or of none, is in no communicator.
int64_t color_of_resource(const NodeLocality& mine, const char* name) {
    if (strcmp(name, node_name) == 0) return color_of(mine, boot::machine);
    for (int level = 0; level < boot::levels; level++)
        if (strcmp(name, boot::level_uris[level]) == 0) return color_of(mine, level);
    return obj::undefined;
}

int64_t color_of_set(const Process& p, const char* name) {
    Hash h;
    h.add(name, strlen(name));
    if (strcmp(name, "mpi://SELF") == 0) h.add(&p.world_rank, sizeof p.world_rank);
    else if (strcmp(name, "mpi://WORLD") != 0) return obj::undefined;
    return h.color();
}

Err guided_color(const Process& p, const NodeLocality& mine, Info* info, bool process_sets, int64_t* color) {
    char resource[256], set[256];
    bool by_resource = obj::info_lookup(info, resource_key, resource, sizeof resource);
    bool by_set = process_sets && obj::info_lookup(info, set_key, set, sizeof set);
    if (by_resource && by_set) return fail(Err::info, "the info names both a %s and a %s", resource_key, set_key);
    *color = by_resource ? color_of_resource(mine, resource) : by_set ? color_of_set(p, set) : int64_t{obj::undefined};
    return Err::ok;
}

// A process that takes no part in the split is not even on its node.
bool takes_part(const NodeLocality& locality) { return locality.on_node.at[boot::machine] >= 0; }

// The first level, from the top, that parts these processes: somebody is confined to one instance, and not all to the
// same. boot::levels if there is none.
int parting_level(const NodeLocality* all, int32_t n) {
    int32_t first = 0;
    while (first < n && !takes_part(all[first])) first++;
    for (int level = 0; level < boot::levels; level++) {
        bool confined = false, together = true;
        for (int32_t i = first; i < n; i++) {
            if (!takes_part(all[i])) continue;
            confined |= all[i].on_node.at[level] >= 0;
            together &= share(all[first], all[i], level);
        }
        if (confined && !together) return level;
    }
    return boot::levels;
}

}  // namespace

NodeLocality own_locality(const Process& p) {
    char text[256];
    os::node_identity(text, sizeof text);
    Hash h;
    h.add(text, strlen(text));
    return {h.value, boot::own_locality(p.job)};
}

Err gather_localities(Process& p, Comm& c, NodeLocality& mine, NodeLocality* all) {
    const type::Type& byte = coll::byte_type();
    return coll::blocking(p, c, coll::Allgather{{&mine, sizeof mine, &byte}, coll::Blocks({all, sizeof mine, &byte})});
}

// Only HW_UNGUIDED needs the locality of all, but a process that passes MPI_UNDEFINED cannot know what the others pass.
Err split_type(Process& p, Comm& c, int type, int key, Info* info, Comm** out) {
    WEFT_TRY(check_processes(c));
    int64_t color = obj::undefined;
    NodeLocality mine = own_locality(p);
    switch (type) {
        case obj::undefined: mine.on_node.at[boot::machine] = boot::Locality::absent; break;
        case shared: color = color_of(mine, boot::machine); break;
        case hw_guided: WEFT_TRY(guided_color(p, mine, info, false, &color)); break;
        case resource_guided: WEFT_TRY(guided_color(p, mine, info, true, &color)); break;
        case hw_unguided: break;
        default: return fail(Err::arg, "%d is not a split type", type);
    }
    int32_t n = c.size + (c.is_inter() ? c.remote_size : 0);
    Scratch<NodeLocality> localities(n);
    if (!localities) return fail(Err::no_mem, "no memory for the localities of %d processes", n);
    WEFT_TRY(gather_localities(p, c.is_inter() ? *c.local_comm : c, mine, localities.get()));
    if (c.is_inter()) WEFT_TRY(gather_localities(p, c, mine, localities.get() + c.size));
    int level = type == hw_unguided ? parting_level(localities.get(), n) : boot::levels;
    if (level < boot::levels) color = color_of(mine, level);
    Comm* part = nullptr;
    WEFT_TRY(split_by(p, c, color, key, &part));
    if (type == hw_unguided && part != nullptr && info != nullptr) {
        const char* name = level == boot::machine ? node_name : boot::level_uris[level];
        if (Err e = obj::info_put(*info, resource_key, name); e != Err::ok) {
            obj::release(*part);
            return e;
        }
    }
    *out = part;
    return Err::ok;
}

}  // namespace weft::comm
