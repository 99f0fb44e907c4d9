// Which CPUs each rank gets, from the CPUs this process may use and hwloc's description of them.
#pragma once
#include <vector>

#include "plan.hpp"

namespace mpiexec {

int usable_cpus();  // how many CPUs can be busy at once, given the quota of the control groups; at least 1
// Fills Start::place and Start::cpus; leaves the latter empty where ranks are not bound.
void bind_ranks(const Plan& plan, std::vector<Start>* starts);

}  // namespace mpiexec
