// A session: a user's own beginning and end of MPI, beside the World Model's. Any floor from obj/ upwards may include it.
// Its error handler is guarded by Process::pool_lock; all else is immutable.
#pragma once
#include "base/err.hpp"
#include "base/object.hpp"
#include "obj/errhandler.hpp"

namespace weft::obj {

struct Session : Object {
    Errhandler* errhandler;  // never null while alive
    Session* next;           // link of the free list
};

}  // namespace weft::obj
