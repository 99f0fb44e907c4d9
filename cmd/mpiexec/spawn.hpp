// Starts one process: its process group, CPUs, directory, descriptors, environment; dies with mpiexec.
#pragma once
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace mpiexec {

// What mpiexec changed for itself and its children must get back.
struct Inherited {
    sigset_t mask;
    rlimit files;
};

struct Spawn {
    const std::vector<std::string>* argv;
    const std::vector<std::string>* env;  // NAME=value
    std::string search;                   // directories for a bare program name, ':' between them
    std::string wdir;
    std::vector<int> cpus;
    int in = 0, out = 1, err = 2;  // what becomes 0, 1, 2
    bool own_group = true;         // of processes; else the caller's
    bool own_session = true;       // with own_group, and without a terminal
    std::vector<int> pass;         // stay open under their own numbers
    const Inherited* inherited;
};

// The pid; or -1 with what failed and errno.
pid_t spawn(const Spawn& s, std::string* what, int* error);

}  // namespace mpiexec
