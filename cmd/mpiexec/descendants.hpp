// Processes below others, by what /proc says of parents. Included by mpiexec alone.
#pragma once
#include <sys/types.h>

#include <vector>

namespace mpiexec {

// All processes that `ancestor` and its descendants started and that have not ended; not those in `but`, and not what is below
// those. Orphans count as mpiexec's own, since it is their reaper.
std::vector<pid_t> descendants(pid_t ancestor, const std::vector<pid_t>& but = {});
// What a program had started before it became mpiexec by exec.
std::vector<pid_t> own_children();

}  // namespace mpiexec
