// The machine, as hwloc describes it: its packages, NUMA nodes, cores, and which of their CPUs may be dealt out.
#pragma once
#include <hwloc.h>

#include <vector>

#include "boot/locality.hpp"
#include "plan.hpp"

namespace mpiexec {

std::vector<int> allowed_cpus();  // of this process, by its cpuset and affinity

class Machine {
public:
    Machine();
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    // False when a user describes another machine (HWLOC_SYNTHETIC, HWLOC_XMLFILE): ranks get localities there, but nobody
    // can be bound to its CPUs.
    bool real() const { return real_; }
    // What may be dealt out, neighbours side by side.
    const std::vector<int>& cpus() const { return cpus_; }
    // The same, by the units of one kind.
    std::vector<std::vector<int>> units(Bind kind) const;
    // Where a process is that runs on these CPUs.
    weft::boot::Locality locality(const std::vector<int>& cpus) const;

private:
    std::vector<hwloc_obj_t> objects(hwloc_obj_type_t type) const;
    std::vector<int> dealt(hwloc_const_bitmap_t cpuset) const;

    hwloc_topology_t topology_ = nullptr;
    bool real_ = true;
    std::vector<int> cpus_;
};

}  // namespace mpiexec
