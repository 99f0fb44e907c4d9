#include "common/cgroups.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

namespace cgroups {
namespace {

struct Groups {
    bool version_2 = false;
    std::vector<std::string> folders;  // this process's group first, then those above it
};

bool contains(const std::string& list, const std::string& word) { return ("," + list + ",").find("," + word + ",") != std::string::npos; }

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// The path of this process's group within its hierarchy; false where it is in none. An empty controller is version 2.
bool own_path(const std::string& root, const std::string& controller, std::string* path) {
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // number:controllers:path
        size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers = line.substr(first + 1, second - first - 1);
        if (controller.empty() ? !controllers.empty() : !contains(controllers, controller)) continue;
        *path = line.substr(second + 1);
        return true;
    }
    return false;
}

// Where that hierarchy is mounted, and which of its groups is seen there as the root.
bool find_mount(const std::string& root, const std::string& controller, std::string* point, std::string* top) {
    std::ifstream mounts(root + "/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {  // id parent device top point options ... - type source options
        size_t dash = line.find(" - ");
        if (dash == std::string::npos) continue;
        std::istringstream left(line), right(line.substr(dash + 3));
        std::string id, parent, device, type, source, options;
        left >> id >> parent >> device >> *top >> *point;
        right >> type >> source >> options;
        if (controller.empty() ? type == "cgroup2" : type == "cgroup" && contains(options, controller)) return true;
    }
    return false;
}

Groups groups_of(const std::string& root, const std::string& controller) {
    Groups g;
    std::string path, point, top;
    if (!own_path(root, controller, &path) || !find_mount(root, controller, &point, &top)) {
        g.version_2 = true;
        if (!own_path(root, "", &path) || !find_mount(root, "", &point, &top)) return g;
    }
    // A bind mount shows a part of the tree; of a group outside of what is seen, only the top is known.
    bool below = top != "/" && path.compare(0, top.size(), top) == 0 && (path.size() == top.size() || path[top.size()] == '/');
    if (below) path.erase(0, top.size());
    else if (top != "/") path.clear();
    if (path.find("/..") != std::string::npos || path == "/") path.clear();
    for (;;) {
        g.folders.push_back(root + point + path);
        if (path.empty()) return g;
        path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
}

double quota_of(const std::string& folder, bool version_2) {
    double quota = 0, period = 0;
    if (version_2) {
        std::istringstream text(first_line(folder + "/cpu.max"));  // "max 100000", "150000 100000"
        if (!(text >> quota >> period)) return INFINITY;
    } else {
        quota = std::atof(first_line(folder + "/cpu.cfs_quota_us").c_str());
        period = std::atof(first_line(folder + "/cpu.cfs_period_us").c_str());
    }
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

}  // namespace

CpuQuota cpu_quota(const std::string& root) {
    CpuQuota least;
    Groups g = groups_of(root, "cpu");
    for (const std::string& folder : g.folders)
        if (double cpus = quota_of(folder, g.version_2); cpus < least.cpus) least = {cpus, folder};
    return least;
}

MemoryLimit memory_limit(const std::string& root) {
    MemoryLimit least;
    Groups g = groups_of(root, "memory");
    for (const std::string& folder : g.folders) {
        std::istringstream text(first_line(folder + (g.version_2 ? "/memory.max" : "/memory.limit_in_bytes")));
        uint64_t bytes;
        if (text >> bytes && bytes < least.bytes) least = {bytes, folder};
    }
    return least;
}

std::string cpuset(const std::string& root) {
    Groups g = groups_of(root, "cpuset");
    for (const std::string& folder : g.folders)
        for (const char* name : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"})
            if (std::string cpus = first_line(folder + name); !cpus.empty()) return cpus;
    return "";
}

}  // namespace cgroups
