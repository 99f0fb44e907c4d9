// A message that a matched probe has taken off the queue. From p2p/ upwards; guarded by the lane it came by.
#pragma once
#include "base/object.hpp"

namespace weft::lane { struct Unexpected; }

namespace weft::obj {

struct Comm;

struct Message : Object {
    void* unused_;                 // the pools' link
    lane::Unexpected* unexpected;  // off its queue
    Comm* comm;                    // null: MPI_MESSAGE_NO_PROC
};

}  // namespace weft::obj
