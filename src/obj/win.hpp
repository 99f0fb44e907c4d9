// Windows, as far as calls that move no data know them: group, name, error handler, attributes, hints. rma/ derives its own from this.
// Any floor from obj/ upwards may include it. Immutable while alive except name, attributes, error handler and hints, which are guarded
// as a communicator's are (obj/comm.hpp).
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"
#include "obj/attr.hpp"
#include "obj/errhandler.hpp"
#include "obj/info.hpp"

namespace weft::obj {

struct Win : Object {
    Comm* comm;              // its own: for its group, and for its messages
    Errhandler* errhandler;  // null: MPI_ERRORS_ARE_FATAL
    Attributes* attributes;
    Info* info;              // hints as given; null: none
    Win* next;               // link of the free list
    void* base;              // the caller's part: what the predefined attributes tell
    int64_t bytes;
    int32_t disp_unit;
    int32_t flavor, model;
    char name[MPI_MAX_OBJECT_NAME];
};

Owner owner(Win&);
Err delete_attributes(Process&, Win&);
HeldErrhandler errhandler_of(Process&, const Win&);
Err set_errhandler(Process&, Win&, Errhandler&);
// Keeps those of the hints in `info`, which may be null, that a window can have. Unknown ones are ignored.
Err keep_hints(Process&, Win&, Info* info);
// A new info with every hint a window can have: the user's value, or the standard's default.
Err tell_hints(Process&, const Win&, Info** out);

}  // namespace weft::obj
