#include "binding.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "text.hpp"

namespace mpiexec {
namespace {

std::string contents(const std::string& path) {
    char text[4096];
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return "";
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0 ? std::string(text, size_t(n)) : "";
}

int number_in(const std::string& path, int otherwise) {
    std::string text = contents(path);
    return text.empty() ? otherwise : atoi(text.c_str());
}

// "0-3,8" as numbers.
std::vector<int> parse_cpu_list(const std::string& text) {
    std::vector<int> cpus;
    const char* p = text.c_str();
    while (*p >= '0' && *p <= '9') {
        char* end;
        long from = strtol(p, &end, 10), to = from;
        if (*end == '-') to = strtol(end + 1, &end, 10);
        for (long c = from; c <= to && c < 1 << 20; c++) cpus.push_back(int(c));
        p = *end == ',' ? end + 1 : end;
    }
    return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
    std::string text;
    for (size_t i = 0; i < cpus.size();) {
        size_t j = i;
        while (j + 1 < cpus.size() && cpus[j + 1] == cpus[j] + 1) j++;
        text += (text.empty() ? "" : ",") + std::to_string(cpus[i]) + (j > i ? "-" + std::to_string(cpus[j]) : "");
        i = j + 1;
    }
    return text;
}

// The quota of one control group, in CPUs' worth of time, or infinity. Version 2 has one file for it, version 1 two.
double quota_of(const std::string& dir, bool version_2) {
    long quota = -1, period = 0;
    if (version_2) {
        if (sscanf(contents(dir + "/cpu.max").c_str(), "%ld %ld", &quota, &period) != 2) return INFINITY;
    } else {
        quota = number_in(dir + "/cpu.cfs_quota_us", -1);
        period = number_in(dir + "/cpu.cfs_period_us", 0);
    }
    return quota > 0 && period > 0 ? double(quota) / double(period) : INFINITY;
}

// The least that this process's control groups and those above them grant. In a container its own group is the root it
// sees, while /proc may still name the path outside; a path that is not there grants everything.
double cpu_quota() {
    double least = INFINITY;
    std::istringstream groups(contents("/proc/self/cgroup"));
    for (std::string line; std::getline(groups, line);) {
        size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",", path = line.substr(second + 1);
        bool version_2 = controllers == ",,";
        if (!version_2 && controllers.find(",cpu,") == std::string::npos) continue;
        std::string mount = version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
        for (;;) {
            if (path == "/") path.clear();
            least = std::min(least, quota_of(mount + path, version_2));
            if (path.empty()) break;
            path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
        }
    }
    return least;
}

struct Cpu {
    int id, package, numa, core;
};

std::map<int, int> numa_of_cpu() {
    std::map<int, int> node_of;
    for (int node : parse_cpu_list(contents("/sys/devices/system/node/online")))
        for (int cpu : parse_cpu_list(contents("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist")))
            node_of[cpu] = node;
    return node_of;
}

// The allowed CPUs, neighbours side by side: package, NUMA node, core, thread.
std::vector<Cpu> describe(const std::vector<int>& allowed) {
    std::map<int, int> numa = numa_of_cpu();
    std::vector<Cpu> cpus;
    for (int id : allowed) {
        std::string dir = "/sys/devices/system/cpu/cpu" + std::to_string(id) + "/topology/";
        cpus.push_back({id, number_in(dir + "physical_package_id", 0), numa.count(id) ? numa[id] : 0,
                        number_in(dir + "core_id", id)});
    }
    std::stable_sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) {
        return std::array{a.package, a.numa, a.core, a.id} < std::array{b.package, b.numa, b.core, b.id};
    });
    return cpus;
}

std::vector<std::vector<int>> units(const std::vector<Cpu>& cpus, Bind kind) {
    std::vector<std::vector<int>> found;
    std::map<std::array<int, 3>, size_t> index;
    for (const Cpu& c : cpus) {
        std::array<int, 3> key{};
        switch (kind) {
            case Bind::socket: key = {c.package, 0, 0}; break;
            case Bind::numa: key = {c.numa, 0, 0}; break;
            case Bind::core: key = {c.package, c.numa, c.core}; break;
            default: key = {c.id, 0, 0};
        }
        auto [it, fresh] = index.try_emplace(key, found.size());
        if (fresh) found.emplace_back();
        found[it->second].push_back(c.id);
    }
    return found;
}

// Where the next rank goes: units dealt out in the order of `map` (socket: one on each socket in turn).
std::vector<size_t> dealing_order(const std::vector<Cpu>& cpus, const std::vector<std::vector<int>>& targets, Bind map) {
    std::vector<size_t> order;
    std::vector<std::vector<int>> groups = units(cpus, map);
    std::map<int, size_t> group_of;
    for (size_t g = 0; g < groups.size(); g++)
        for (int cpu : groups[g]) group_of[cpu] = g;
    std::vector<std::vector<size_t>> waiting(groups.size());
    for (size_t t = 0; t < targets.size(); t++) waiting[group_of[targets[t][0]]].push_back(t);
    for (size_t round = 0; order.size() < targets.size(); round++)
        for (const auto& queue : waiting)
            if (round < queue.size()) order.push_back(queue[round]);
    return order;
}

void equal_shares(const std::vector<int>& allowed, std::vector<Start>* starts) {
    size_t n = starts->size();
    if (n < 2 || n > allowed.size()) return;
    if (double(n) > cpu_quota()) return;  // not that many run at once
    std::vector<Cpu> cpus = describe(allowed);
    size_t each = cpus.size() / n;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < each; i++) (*starts)[r].cpus.push_back(cpus[r * each + i].id);
}

}  // namespace

std::vector<int> allowed_cpus() {
    std::vector<int> cpus;
    for (size_t most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t* set = CPU_ALLOC(most);
        size_t bytes = CPU_ALLOC_SIZE(most);
        bool ok = sched_getaffinity(0, bytes, set) == 0;
        int error = errno;
        for (size_t c = 0; ok && c < most; c++)
            if (CPU_ISSET_S(c, bytes, set)) cpus.push_back(int(c));
        CPU_FREE(set);
        if (ok || error != EINVAL) break;
    }
    if (cpus.empty()) cpus.push_back(0);
    return cpus;
}

int usable_cpus() {
    double n = double(allowed_cpus().size());
    return std::max(1, int(std::min(n, std::floor(cpu_quota()))));
}

void bind_ranks(const Plan& plan, std::vector<Start>* starts) {
    std::vector<int> allowed = allowed_cpus();
    if (plan.bind == Bind::automatic && plan.map == Bind::automatic) {
        equal_shares(allowed, starts);
    } else if (plan.bind != Bind::none) {
        std::vector<Cpu> cpus = describe(allowed);
        Bind kind = plan.bind == Bind::automatic ? plan.map : plan.bind;
        std::vector<std::vector<int>> targets = units(cpus, kind);
        std::vector<size_t> order = dealing_order(cpus, targets, plan.map == Bind::automatic ? Bind::hwthread : plan.map);
        size_t count = size_t(plan.bind_count);
        for (size_t r = 0; r < starts->size(); r++)
            for (size_t i = 0; i < std::min(count, targets.size()); i++) {
                const std::vector<int>& target = targets[order[(r * count + i) % targets.size()]];
                (*starts)[r].cpus.insert((*starts)[r].cpus.end(), target.begin(), target.end());
            }
    }
    for (Start& s : *starts) std::sort(s.cpus.begin(), s.cpus.end());
    if (!plan.report_bindings && !plan.dry_run) return;
    for (const Start& s : *starts)
        say("rank %d: %s CPU%s %s", s.rank, s.cpus.empty() ? "not bound, may use" : "bound to",
            (s.cpus.empty() ? allowed : s.cpus).size() == 1 ? "" : "s", format_cpu_list(s.cpus.empty() ? allowed : s.cpus).c_str());
}

}  // namespace mpiexec
