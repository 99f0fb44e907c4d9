// The addresses that stand for something else than memory: no data can be there. For api/ and the implementations of calls;
// constants of the ABI, no lock.
#pragma once
#include <mpi.h>

#include <cstdint>

#include "base/err.hpp"

namespace weft::obj {

static_assert(MPI_BOTTOM == nullptr);

// A null pointer (which MPI_BOTTOM is), MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC are 0, 1 and 2: one compare tells all.
WEFT_INLINE bool no_data_at(const void* buf) { return reinterpret_cast<uintptr_t>(buf) <= 2; }
// Of such an address.
inline const char* special_name(const void* buf) {
    return buf == nullptr ? "a null pointer" : buf == MPI_IN_PLACE ? "MPI_IN_PLACE" : "MPI_BUFFER_AUTOMATIC";
}

}  // namespace weft::obj
