// Which CPUs belong together, by the kernel's own description. boot/ and the floors above it may include this; no lock.
#pragma once
#include <cstdint>

namespace weft::os {

enum class Group { package, numa_node, l3_cache, core, thread };

inline constexpr int32_t in_several = -1, not_told = -2;
// The lowest CPU of the group that holds every CPU this process may use.
int32_t lowest_of(Group kind);

}  // namespace weft::os
