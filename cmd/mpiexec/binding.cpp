#include "binding.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "machine.hpp"
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

// Where the next rank goes: targets dealt out in the order of `map` (socket: one on each socket in turn).
std::vector<size_t> dealing_order(const Machine& machine, const std::vector<std::vector<int>>& targets, Bind map) {
    std::vector<std::vector<int>> groups = machine.units(map);
    std::map<int, size_t> group_of;
    for (size_t g = 0; g < groups.size(); g++)
        for (int cpu : groups[g]) group_of[cpu] = g;
    std::vector<std::vector<size_t>> waiting(groups.size());
    for (size_t t = 0; t < targets.size(); t++) waiting[group_of[targets[t][0]]].push_back(t);
    std::vector<size_t> order;
    for (size_t round = 0; order.size() < targets.size(); round++)
        for (const auto& queue : waiting)
            if (round < queue.size()) order.push_back(queue[round]);
    return order;
}

void equal_shares(const Machine& machine, std::vector<Start>* starts) {
    const std::vector<int>& cpus = machine.cpus();
    size_t n = starts->size();
    if (n < 2 || n > cpus.size()) return;
    if (machine.real() && double(n) > cpu_quota()) return;  // not that many run at once
    size_t each = cpus.size() / n;
    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < each; i++) (*starts)[r].cpus.push_back(cpus[r * each + i]);
}

void deal_out(const Machine& machine, const Plan& plan, std::vector<Start>* starts) {
    std::vector<std::vector<int>> targets = machine.units(plan.bind == Bind::automatic ? plan.map : plan.bind);
    std::vector<size_t> order = dealing_order(machine, targets, plan.map == Bind::automatic ? Bind::hwthread : plan.map);
    size_t count = size_t(plan.bind_count);
    for (size_t r = 0; r < starts->size(); r++)
        for (size_t i = 0; i < std::min(count, targets.size()); i++) {
            const std::vector<int>& target = targets[order[(r * count + i) % targets.size()]];
            (*starts)[r].cpus.insert((*starts)[r].cpus.end(), target.begin(), target.end());
        }
}

void report(const Machine& machine, const std::vector<Start>& starts) {
    const char* bound = machine.real() ? "bound to" : "placed, but not bound, on";
    for (const Start& s : starts) {
        std::vector<int> cpus = s.cpus.empty() ? machine.cpus() : s.cpus;
        std::sort(cpus.begin(), cpus.end());
        say("rank %d: %s CPU%s %s", s.rank, s.cpus.empty() ? "not bound, may use" : bound, cpus.size() == 1 ? "" : "s",
            format_cpu_list(cpus).c_str());
    }
}

}  // namespace

int usable_cpus() {
    double n = double(allowed_cpus().size());
    return std::max(1, int(std::min(n, std::floor(cpu_quota()))));
}

void bind_ranks(const Plan& plan, std::vector<Start>* starts) {
    Machine machine;
    if (plan.bind == Bind::automatic && plan.map == Bind::automatic) equal_shares(machine, starts);
    else if (plan.bind != Bind::none) deal_out(machine, plan, starts);
    for (Start& s : *starts) {
        std::sort(s.cpus.begin(), s.cpus.end());
        s.place = machine.place(s.cpus.empty() ? machine.cpus() : s.cpus);
    }
    if (plan.report_bindings || plan.dry_run) report(machine, *starts);
    if (!machine.real())
        for (Start& s : *starts) s.cpus.clear();
}

}  // namespace mpiexec
