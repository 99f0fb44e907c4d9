// A message that a matched probe has taken off the queue. From p2p/ upwards; guarded by the lane it came by.
#pragma once
#include "base/object.hpp"

namespace weft::lane { struct Unexpected; }
namespace weft::wire { struct Cell; }

namespace weft::obj {

struct Comm;

struct Message : Object {
    void* unused_;                 // the pools' link
    lane::Unexpected* unexpected;  // off its queue; where `kept` is null
    Comm* comm;                    // null: MPI_MESSAGE_NO_PROC
    const wire::Cell** kept;       // where its ring says the line is that it came in (Shm::keep); else null
};

}  // namespace weft::obj
