// The head of every MPI object: its kind, so that one compare tells a good handle from a bad, null or dead one,
// its lane, and its integer id. Any floor may include this; it holds no lock.
#pragma once
#include <cstdint>

namespace weft {

enum class Kind : uint16_t {
    dead = 0,         // freed; the memory stays mapped, so a stale handle is an error and not a crash
    bad_handle,       // what every unassigned predefined slot holds
    null_handle,      // MPI_COMM_NULL and its like
    not_initialised,  // what predefined communicators are before MPI_Init
    finalized,        // ... and after MPI_Finalize
    forked,           // ... and in a forked child
    comm, group, type, op, request, info, errhandler, win, file, session, message,
};

struct Object {
    Kind kind;
    uint16_t lane;  // that a request or matched message belongs to; 0 in other objects
    int32_t id;  // MPI_*_toint; 0 until first asked for (user objects), the ABI's number (predefined ones)
};

}  // namespace weft
