// Where in the machine a process runs: which package, which core. mpiexec writes these, boot/ hands them on; the floors
// above may include this. Plain data; no lock.
#pragma once
#include <cstdint>

namespace weft::boot {

struct Job;

enum Level : uint8_t { machine, package, numa_node, l3_cache, core, hardware_thread };
inline constexpr int levels = 6;

// hwloc's names of them, behind the scheme that says so.
inline constexpr const char* level_uris[levels] = {"hwloc://Machine", "hwloc://Package", "hwloc://NUMANode",
                                                   "hwloc://L3Cache", "hwloc://Core",    "hwloc://PU"};

// For each level the instance this process is confined to, named by its lowest CPU: so all processes of a node mean the
// same by a number, however each of them learned it.
struct Locality {
    static constexpr int32_t spread = -1;  // not confined to one
    static constexpr int32_t absent = -2;  // the machine has none, or nobody knows
    int32_t at[levels] = {0, absent, absent, absent, absent, absent};
};

// Are both confined to the same instance?
inline bool share(const Locality& a, const Locality& b, int level) { return a.at[level] >= 0 && a.at[level] == b.at[level]; }

// The number of the machine that a rank of the world is on. A job has one machine so far, whoever tells.
int32_t node_of(const Job*, int rank);
// The caller's: as mpiexec told it. Under another launcher, and alone, as the kernel has it at this moment.
Locality own_locality(const Job*);

}  // namespace weft::boot
