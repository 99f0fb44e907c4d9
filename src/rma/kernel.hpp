// Puts and gets that the kernel copies between two processes of a node (cross-memory attach), for windows on memory that they do not
// share. The target does nothing. Used by rma/ alone; no lock.
#pragma once
#include "rma/window.hpp"

namespace weft::rma {

enum class Way : uint8_t { put, get };

// Copies between the dense memory at `here` and `there`, in the address space of the process `target`. `*done` stays false where the
// kernel does not copy between these two, or cannot copy such elements: then messages have to; what was copied already does no harm.
// Err::other where there is no memory, or none that may be read or written.
Err copy_by_kernel(Process&, Window&, Way, char* here, Buffer there, int target, bool* done);

}  // namespace weft::rma
