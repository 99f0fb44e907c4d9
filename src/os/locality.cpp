#include "os/locality.hpp"

#include <bit>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/process.hpp"

namespace weft::os {
namespace {

constexpr int most_cpus = cpu_words * 64;

// What a file says, such as "0-3,8\n"; empty where it is not there.
struct Text {
    char text[8192];

    explicit Text(const char* path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        int64_t n = fd < 0 ? 0 : read_some(fd, text, sizeof text - 1);
        close_fd(&fd);
        text[n > 0 ? n : 0] = 0;
    }

    // use(number) for each number of the list, until it says false.
    template <class Use> void each(Use use) const {
        for (const char* p = text; *p >= '0' && *p <= '9';) {
            char* end = nullptr;
            long from = strtol(p, &end, 10), to = *end == '-' ? strtol(end + 1, &end, 10) : from;
            for (long i = from; i <= to && i < most_cpus; i++)
                if (!use(static_cast<int>(i))) return;
            p = *end == ',' ? end + 1 : end;
        }
    }

    bool names(int wanted) const {
        bool found = false;
        each([&](int i) { return !(found = i == wanted); });
        return found;
    }
};

// The group of `cpu`, as a list of its CPUs.
Text group_of(Group kind, int cpu) {
    char path[96];
    const char* name = kind == Group::package    ? "topology/package_cpus_list"
                       : kind == Group::core     ? "topology/core_cpus_list"
                       : kind == Group::l3_cache ? "cache/index3/shared_cpu_list"
                                                 : nullptr;
    if (name != nullptr) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
        return Text(path);
    }
    int node = -1;
    Text("/sys/devices/system/node/online").each([&](int n) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", n);
        if (Text(path).names(cpu)) node = n;
        return node < 0;
    });
    return Text(node < 0 ? "" : path);
}

}  // namespace

int32_t lowest_of(Group kind) {
    uint64_t own[cpu_words];
    cpu_mask(own);
    int count = 0, first = -1;
    for (int word = 0; word < cpu_words; word++) {
        if (first < 0 && own[word] != 0) first = word * 64 + std::countr_zero(own[word]);
        count += std::popcount(own[word]);
    }
    if (first < 0) return not_told;
    if (kind == Group::thread) return count == 1 ? first : in_several;
    int lowest = not_told, inside = 0;
    group_of(kind, first).each([&](int cpu) {
        if (lowest < 0 || cpu < lowest) lowest = cpu;
        inside += own[cpu / 64] >> cpu % 64 & 1;
        return true;
    });
    return lowest < 0 || inside == count ? lowest : in_several;
}

}  // namespace weft::os
