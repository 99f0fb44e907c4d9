// Which CPUs each rank gets, from the CPUs this process may use and the kernel's description of them.
#pragma once
#include <vector>

#include "plan.hpp"

namespace mpiexec {

std::vector<int> allowed_cpus();
int usable_cpus();  // how many of them can be busy at once, given the quota of the control groups; at least 1
// Fills Start::cpus; leaves them empty where ranks are not bound.
void bind_ranks(const Plan& plan, std::vector<Start>* starts);

}  // namespace mpiexec
