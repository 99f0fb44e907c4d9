// weft: one command for what is not compiling and not launching.
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include "library.hpp"
#include "report.hpp"

namespace weft_cmd {
namespace {

// A script, named by its place in the sources: in an installation below libexec, in a build tree where the sources are.
std::string script(const std::string& name) {
    std::string installed = here() + "/" + WEFT_TO_LIBEXEC + "/weft/" + name;
    if (access(installed.c_str(), R_OK) == 0) return installed;
    std::string source = read_line((here() + "/../source-of-weft").c_str());
    std::string beside = source + "/" + name;
    return !source.empty() && access(beside.c_str(), R_OK) == 0 ? beside : "";
}

int run_script(const char* name, int argc, char** argv) {
    std::string path = script(name);
    if (path.empty()) {
        fprintf(stderr, "weft: %s is neither installed nor beside the sources\n", name);
        return 1;
    }
    setenv("WEFT_BENCH_ROOT", (here() + "/..").c_str(), 0);  // the tree this command belongs to is the one to measure
    setenv("WEFT_INCLUDE", (here() + "/../include").c_str(), 1);
    std::vector<char*> words;
    static char python[] = "python3", no_cache[] = "-B";  // an installation keeps only what was installed
    words.push_back(python);
    words.push_back(no_cache);
    words.push_back(path.data());
    for (int i = 1; i < argc; i++) words.push_back(argv[i]);
    words.push_back(nullptr);
    execvp(python, words.data());
    perror("weft: python3");
    return 127;
}

int usage(FILE* out, int status) {
    fprintf(out,
            "usage: weft COMMAND [options]\n"
            "  info [--api] [--json]   what this installation is; --api: every function and whether it is implemented;\n"
            "                          --cvars: every control variable, its value and where that comes from;\n"
            "                          --counters: what WEFT_COUNTERS=1 prints at MPI_Finalize;\n"
            "                          --heap: size, use and high-water mark of the running jobs' shared heaps, by rank\n"
            "  doctor [--json]         what this machine allows, and what Weft does where it does not\n"
            "  bench ...               measures Weft beside other MPI libraries (weft bench --help)\n"
            "  tune --heap             finds this machine's thresholds for messages in the shared heap and writes them to a file\n"
            "                          for WEFT_TUNED (weft tune --help)\n"
            "  tune --coll             measures the algorithms of collectives on this machine and writes a file for WEFT_COLL_TABLE\n"
            "  opi-rewrite ...         replaces sends and receives of a C source by ownership passing, where that is safe\n"
            "                          (weft opi-rewrite --help)\n"
            "  count ...               counts the instructions of the hot paths (weft count --help)\n"
            "  profile COMMAND ...     the share of time that a program spends in communication, by call (weft profile --help)\n"
            "  --version\n");
    return status;
}

int run(int argc, char** argv) {
    if (argc < 2) return usage(stderr, 2);
    const char* command = argv[1];
    if (!std::strcmp(command, "info")) return info(argc - 1, argv + 1);
    if (!std::strcmp(command, "doctor")) return doctor(argc - 1, argv + 1);
    if (!std::strcmp(command, "bench")) return run_script("bench/bench.py", argc - 1, argv + 1);
    if (!std::strcmp(command, "tune")) return run_script("bench/tune.py", argc - 1, argv + 1);
    if (!std::strcmp(command, "count")) return run_script("bench/count/weft_count.py", argc - 1, argv + 1);
    if (!std::strcmp(command, "opi-rewrite")) return run_script("cmd/opi-rewrite/opi_rewrite.py", argc - 1, argv + 1);
    if (!std::strcmp(command, "profile")) return run_script("bench/profile.py", argc - 1, argv + 1);
    if (!std::strcmp(command, "--version") || !std::strcmp(command, "version")) {
        printf("weft %s\n", WEFT_VERSION);
        return 0;
    }
    if (!std::strcmp(command, "--help") || !std::strcmp(command, "-h") || !std::strcmp(command, "help")) return usage(stdout, 0);
    fprintf(stderr, "weft: there is no command '%s'\n", command);
    return usage(stderr, 2);
}

}  // namespace
}  // namespace weft_cmd

int main(int argc, char** argv) {
    const int status = weft_cmd::run(argc, argv);
    const bool wrote = !ferror(stdout);
    if (fclose(stdout) == 0 && wrote) return status;
    perror("weft: cannot write to stdout");
    return 1;
}
