// What the command line asks for: programs, ranks and settings; filled by options.cpp, read by everything else.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "boot/locality.hpp"

namespace mpiexec {

struct App {
    std::vector<std::string> argv;
    int ranks = 0;  // 0: not said
    std::string soft;
    std::string wdir;
    std::string path;  // searched before PATH
    std::string host, arch, file;
    std::vector<std::pair<std::string, std::string>> env;
};

enum class Bind { automatic, none, hwthread, core, numa, socket };

struct Plan {
    std::vector<App> apps;
    std::vector<std::pair<std::string, std::string>> genv;
    bool pass_environment = true;             // -genvnone: ranks start with an empty one
    std::vector<std::string> only_variables;  // -genvlist: these alone are passed
    std::string label;  // pattern that begins every line; empty: none
    bool timestamp = false, merge_stderr = false;
    bool verbose = false, dry_run = false, report_bindings = false, all_exit_codes = false;
    std::string out_pattern, err_pattern;
    bool shared_heap = false;
    std::string initial_errhandler, memory_kinds;
    int timeout_s = 0;
    Bind bind = Bind::automatic, map = Bind::automatic;
    int bind_count = 1;  // core:2 binds a rank to two of them
};

// One process to start.
struct Start {
    int rank = 0, app = 0;
    std::vector<int> cpus;  // empty: not bound
    weft::boot::Locality locality;
};

}  // namespace mpiexec
