// What the library that replaces malloc (cmd/malloc) tells this one: `mpiexec --shared-heap` loads it before all others.
// Included by heap/ and by that library. No lock.
#pragma once
#include "heap/slices.hpp"

namespace weft::heap {

// "<descriptor>:<inode>:<ranks>:<rank>" of the job's heap. The inode unmasks a reused number.
inline constexpr char env_heap[] = "WEFT_HEAP";
// What it exports: own_slices, if malloc allocates from them. The name changes with the structure, and with what is mapped.
using SlicesOfMalloc = Slices*();
inline constexpr char slices_of_malloc[] = "weft_slices_of_malloc_2";

struct Replaced {
    Slices* slices;    // null: malloc returns private memory
    bool job_shares;   // mpiexec has made a heap for this job
};
Replaced replaced_malloc();

}  // namespace weft::heap
