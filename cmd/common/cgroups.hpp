// What the control groups of this process allow it, version 1 and 2: the least of its own group and of all above it that can
// be seen. In a container these are often those of the container. Included by the commands.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>

namespace cgroups {

// Files are looked for below `root`: a test's tree, or "" for the machine.

struct CpuQuota {
    double cpus = INFINITY;  // CPUs' worth of time
    std::string group;       // the folder of the group that says so
};
CpuQuota cpu_quota(const std::string& root = "");

struct MemoryLimit {
    uint64_t bytes = UINT64_MAX;
    std::string group;
};
MemoryLimit memory_limit(const std::string& root = "");

// The CPUs in the kernel's notation ("0-3,8"), less what groups above take away; empty where no group says.
std::string cpuset(const std::string& root = "");

}  // namespace cgroups
