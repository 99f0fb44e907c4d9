#include "binding.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "common/cgroups.hpp"
#include "machine.hpp"
#include "text.hpp"

namespace mpiexec {
namespace {

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

double cpu_quota() {
    static const double cpus = cgroups::cpu_quota().cpus;
    return cpus;
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
        s.locality = machine.locality(s.cpus.empty() ? machine.cpus() : s.cpus);
    }
    if (plan.report_bindings || plan.dry_run) report(machine, *starts);
    if (!machine.real())
        for (Start& s : *starts) s.cpus.clear();
}

}  // namespace mpiexec
