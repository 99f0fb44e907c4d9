#include "heaps.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "heap/slices.hpp"
#include "report.hpp"

namespace weft_cmd {
namespace {

using weft::heap::Geometry;
using weft::heap::PartHead;

// A part of a rank's slice, as its owner has it.
struct Part {
    unsigned long long file;
    int job, rank, process;
    uint64_t bytes, taken, most, resident;
};

std::vector<int> processes() {
    std::vector<int> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored))
        if (int pid = atoi(entry.path().filename().c_str()); pid > 0) found.push_back(pid);
    std::sort(found.begin(), found.end());
    return found;
}

int number_in_environment(int pid, const std::string& name) {
    std::ifstream file(printf_string("/proc/%d/environ", pid), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const size_t at = ('\0' + text).find('\0' + name + '=');
    return at == std::string::npos ? -1 : atoi(text.c_str() + at + name.size() + 1);
}

int parent_of(int pid) {
    std::ifstream file(printf_string("/proc/%d/stat", pid));
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const size_t name_ends = text.rfind(')');
    return name_ends == std::string::npos ? 0 : atoi(text.c_str() + name_ends + 4);
}

// The job's file, open, as this rank has it: of `mpiexec --shared-heap`, or the segment behind which the slices lie.
int open_file(int pid, int* parts) {
    std::error_code ignored;
    int fd = -1;
    for (const auto& entry : std::filesystem::directory_iterator(printf_string("/proc/%d/fd", pid), ignored)) {
        const std::string link = std::filesystem::read_symlink(entry.path(), ignored).string();
        const bool of_malloc = link == "/memfd:weft-heap (deleted)";
        if (!of_malloc && link != "/memfd:weft (deleted)") continue;
        if (fd >= 0) close(fd);
        fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        *parts = of_malloc ? weft::heap::parts_of_malloc : 1;
        if (of_malloc) break;
    }
    return fd;
}

uint64_t resident(int fd, uint64_t begin, uint64_t end) {
    uint64_t bytes = 0;
    for (auto at = static_cast<off_t>(begin); (at = lseek(fd, at, SEEK_DATA)) >= 0 && static_cast<uint64_t>(at) < end;) {
        off_t hole = lseek(fd, at, SEEK_HOLE);
        if (hole < 0 || static_cast<uint64_t>(hole) > end) hole = static_cast<off_t>(end);
        bytes += static_cast<uint64_t>(hole - at);
        at = hole;
    }
    return bytes;
}

// What process `pid` allocates from, if it is a rank or starts one.
void add_parts(int pid, std::vector<Part>* all) {
    const int ranks = number_in_environment(pid, "WEFT_SIZE"), rank = number_in_environment(pid, "WEFT_RANK");
    if (ranks < 1 || rank < 0 || rank >= ranks) return;
    int parts = 1;
    const int fd = open_file(pid, &parts);
    struct stat s;
    const Geometry g = Geometry::of(ranks, parts);
    if (fd >= 0 && fstat(fd, &s) == 0 && static_cast<uint64_t>(s.st_size) >= g.mapped_bytes()) {
        const uint64_t slice = static_cast<uint64_t>(s.st_size) - g.mapped_bytes() + static_cast<uint64_t>(rank) * g.slice_bytes();
        for (int i = 0; i < parts; i++) {
            static PartHead head;
            const uint64_t at = slice + static_cast<uint64_t>(i) * g.part_bytes();
            const ssize_t n = pread(fd, static_cast<void*>(&head), sizeof head, static_cast<off_t>(at));
            if (n != static_cast<ssize_t>(sizeof head) || head.process != static_cast<uint32_t>(pid)) continue;
            all->push_back({s.st_ino, parent_of(pid), rank, pid, g.part_bytes(), head.taken, head.most_taken, resident(fd, at, at + g.part_bytes())});
        }
    }
    if (fd >= 0) close(fd);
}

}  // namespace

int print_heaps(bool json) {
    std::vector<Part> all;
    for (int pid : processes()) add_parts(pid, &all);
    std::stable_sort(all.begin(), all.end(), [](const Part& a, const Part& b) {
        return a.file != b.file ? a.file < b.file : a.rank < b.rank;
    });
    if (json) {
        std::vector<Section> sections;
        for (const Part& p : all) {
            sections.push_back({printf_string("process %d", p.process), {}});
            const std::pair<const char*, uint64_t> facts[] = {{"heap", p.file}, {"parent", uint64_t(p.job)}, {"rank", uint64_t(p.rank)},
                {"size", p.bytes}, {"in use", p.taken}, {"most in use", p.most}, {"resident", p.resident}};
            for (const auto& [key, value] : facts) sections.back().add_raw(key, printf_string("%llu", static_cast<unsigned long long>(value)));
        }
        print_json(sections);
        return 0;
    }
    if (all.empty()) {
        printf("no rank of a running job has a slice of a shared heap\n");
        return 0;
    }
    printf("%8s %6s %8s %12s %12s %12s %12s\n", "parent", "rank", "process", "size", "in use", "most in use", "resident");
    for (const Part& p : all)
        printf("%8d %6d %8d %12s %12s %12s %12s\n", p.job, p.rank, p.process, human_bytes(p.bytes).c_str(), human_bytes(p.taken).c_str(),
               human_bytes(p.most).c_str(), human_bytes(p.resident).c_str());
    return 0;
}

}  // namespace weft_cmd
