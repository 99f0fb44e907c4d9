#include "calls/comms.hpp"

#include <mpi.h>

#include <cstring>

#include "obj/branches.hpp"
#include "obj/group.hpp"
#include "obj/registry.hpp"
#include "obj/status.hpp"

namespace weft::calls {

static_assert(sizeof(Comm::name) == MPI_MAX_OBJECT_NAME);

Err comm_remote_size(Process&, Comm& c, int* size) {
    if (!c.is_inter()) return fail(Err::comm, "the communicator is no intercommunicator (argument 1, comm)");
    *size = c.remote_size;
    return Err::ok;
}

Err comm_node_rank(Process& p, Comm& c, int rank, int* node_rank) {
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator (argument 1, comm)");
    int found = obj::undefined;
    const int32_t here = obj::node_of(p, p.world_rank);
    if (rank != obj::proc_null && obj::node_of(p, c.group->at(rank)) == here) {
        found = 0;
        for (int32_t i = 0; i < rank; i++) found += obj::node_of(p, c.group->at(i)) == here;
    }
    *node_rank = found;
    return Err::ok;
}

Err comm_compare(Process&, Comm& a, Comm& b, int* result) {
    if (&a == &b) {
        *result = MPI_IDENT;
        return Err::ok;
    }
    int r = MPI_UNEQUAL;
    if (a.is_inter() == b.is_inter()) {
        r = obj::compare_groups(*a.group, *b.group);
        if (a.is_inter()) {
            int remote = obj::compare_groups(*a.remote_group, *b.remote_group);
            if (remote > r) r = remote;   // MPI_IDENT < MPI_CONGRUENT < MPI_SIMILAR < MPI_UNEQUAL
        }
        if (r == MPI_IDENT) r = MPI_CONGRUENT;   // the same processes, another context
    }
    *result = r;
    return Err::ok;
}

Err comm_set_name(Process& p, Comm& c, const char* name) {
    SpinGuard guard(obj::registry(p).lock);
    const auto give = [name](Comm& to) {
        strncpy(to.name, name, sizeof to.name - 1);
        to.name[sizeof to.name - 1] = 0;
    };
    give(c);
    for (int32_t i = 0; c.branches != nullptr && i < c.branches->count; i++) give(*c.branches->at[i]);   // for reports
    return Err::ok;
}

Err comm_get_name(Process& p, Comm& c, char* name, int* length) {
    SpinGuard guard(obj::registry(p).lock);
    const char* text = c.kind == Kind::comm ? c.name : "MPI_COMM_NULL";
    *length = static_cast<int>(strlen(text));
    memcpy(name, text, static_cast<size_t>(*length) + 1);
    return Err::ok;
}

Err comm_get_parent(Process&, Comm** parent) {
    *parent = nullptr;
    return Err::ok;
}

}  // namespace weft::calls
