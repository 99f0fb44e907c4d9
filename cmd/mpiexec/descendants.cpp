#include "descendants.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace mpiexec {
namespace {

struct Process {
    pid_t pid, parent;
};

// All that have not ended.
std::vector<Process> processes() {
    std::vector<Process> all;
    DIR* proc = opendir("/proc");
    while (dirent* entry = proc ? readdir(proc) : nullptr) {
        pid_t pid = pid_t(atoi(entry->d_name));
        if (pid <= 0) continue;
        std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
        std::string line;
        std::getline(in, line);
        size_t name_end = line.rfind(')');
        if (name_end == std::string::npos || line.size() < name_end + 5) continue;
        char state = line[name_end + 2];
        if (state != 'Z' && state != 'X') all.push_back({pid, pid_t(atoi(line.c_str() + name_end + 4))});
    }
    if (proc) closedir(proc);
    return all;
}

}  // namespace

std::vector<pid_t> descendants(pid_t ancestor, const std::vector<pid_t>& but) {
    std::vector<Process> all = processes();
    std::vector<pid_t> found{ancestor};
    for (size_t i = 0; i < found.size(); i++)
        for (const Process& p : all)
            if (p.parent == found[i] && std::find(but.begin(), but.end(), p.pid) == but.end()) found.push_back(p.pid);
    found.erase(found.begin());
    return found;
}

std::vector<pid_t> own_children() {
    std::string self = std::to_string(getpid());
    std::ifstream in("/proc/self/task/" + self + "/children");
    if (!in) return descendants(getpid());
    std::vector<pid_t> found;
    for (pid_t pid; in >> pid;) found.push_back(pid);
    return found;
}

}  // namespace mpiexec
