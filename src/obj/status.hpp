// MPI_Status by its ABI shape (32 bytes), for the floors that know no mpi.h. Free to all above base/; no lock.
#pragma once
#include <cstdint>

namespace weft::obj {

// The user reads it as MPI_Status, also where link-time optimisation sees both sides.
struct [[gnu::may_alias]] Status {
    int32_t source, tag, error;
    int32_t cancelled;  // MPI_internal[0]
    int64_t bytes;      // MPI_internal[1..2]
    int64_t reserved_;
};
static_assert(sizeof(Status) == 32);

inline constexpr int any_source = -1, any_tag = -2, proc_null = -3, root_self = -4, undefined = -32766;

// What a null or inactive request, or a send, reports.
inline constexpr Status empty_status{any_source, any_tag, 0, 0, 0, 0};

}  // namespace weft::obj
