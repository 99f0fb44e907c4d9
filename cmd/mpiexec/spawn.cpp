#include "spawn.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace mpiexec {
namespace {

bool is_program(const std::string& path) {
    struct stat s;
    return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string find_program(const Spawn& s) {
    const std::string& name = s.argv->front();
    if (name.find('/') != std::string::npos) return name;
    for (size_t at = 0; at <= s.search.size();) {
        size_t end = std::min(s.search.find(':', at), s.search.size());
        std::string dir = s.search.substr(at, end - at);
        std::string path = (dir.empty() ? "." : dir) + "/" + name;
        // A relative entry means relative to the rank's directory, where the child will be.
        std::string seen = path[0] == '/' || s.wdir.empty() ? path : s.wdir + "/" + path;
        if (is_program(seen)) return path;
        at = end + 1;
    }
    return name;  // exec tries the rank's directory, as users of other launchers expect, or says that it is not there
}

// What the error number does not say of a program that cannot be run.
std::string why_not(const Spawn& s, const std::string& path) {
    std::string seen = path[0] == '/' || s.wdir.empty() ? path : s.wdir + "/" + path;
    struct stat st;
    if (stat(seen.c_str(), &st) != 0) return path.find('/') == std::string::npos ? " (it is neither in PATH nor in the directory)" : "";
    if (S_ISDIR(st.st_mode)) return " (a directory)";
    return access(seen.c_str(), X_OK) == 0 ? " (or what its first line asks for)" : " (it is not executable)";
}

// Written by the child in the memory it shares with mpiexec until exec.
struct Failure {
    volatile int error = 0;
    const char* volatile step = nullptr;
};

struct Prepared {
    const char* path;
    char* const* argv;
    char* const* shell_argv;  // for a script without #!
    char* const* env;
    const char* wdir;
    const cpu_set_t* cpus;
    size_t cpu_bytes;
    pid_t parent;
};

// Moves `from` to `to`; the copy is not close-on-exec.
bool place(int from, int to) {
    if (from == to) return fcntl(to, F_SETFD, 0) == 0;
    return dup2(from, to) == to;
}

// Runs between vfork and exec: system calls only.
[[noreturn]] void child(const Spawn& s, const Prepared& p, Failure* failure) {
    auto fail = [&](const char* step) {
        failure->error = errno;
        failure->step = step;
        _exit(127);
    };
    if (s.own_group) {
        // A session of its own where that is possible: the kernel shares CPUs fairly among sessions first (sched_autogroup). Ranks in
        // one session have one share for all of them: a third of a CPU beside one other program on it, not half.
        if (s.own_session) setsid();
        // To a terminal this is a background group: what it does there shall fail, or succeed, but not stop it for ever.
        else setpgid(0, 0);
        signal(SIGTTIN, SIG_IGN);
        signal(SIGTTOU, SIG_IGN);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p.parent) _exit(127);
    if (p.cpus) sched_setaffinity(0, p.cpu_bytes, p.cpus);  // a lost CPU is no reason not to run
    if (!place(s.in, 0) || !place(s.out, 1) || !place(s.err, 2)) fail("cannot connect stdin, stdout and stderr");
    for (int fd : s.pass) fcntl(fd, F_SETFD, 0);
    if (p.wdir && chdir(p.wdir) != 0) fail("cannot enter the directory");
    setrlimit(RLIMIT_NOFILE, &s.inherited->files);
    sigprocmask(SIG_SETMASK, &s.inherited->mask, nullptr);
    execve(p.path, p.argv, p.env);
    if (errno == ENOEXEC) execve("/bin/sh", p.shell_argv, p.env);
    fail("cannot run");
    __builtin_unreachable();
}

// Apart from spawn, so that no variable of ours lives in a register across vfork.
[[gnu::noinline]] pid_t start(const Spawn& s, const Prepared& p, Failure* failure) {
    pid_t pid = vfork();
    if (pid == 0) child(s, p, failure);
    return pid;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> p;
    for (const std::string& s : strings) p.push_back(const_cast<char*>(s.c_str()));
    p.push_back(nullptr);
    return p;
}

}  // namespace

pid_t spawn(const Spawn& s, std::string* what, int* error) {
    std::string path = find_program(s);
    std::vector<char*> argv = pointers(*s.argv), env = pointers(*s.env), shell_argv = argv;
    shell_argv[0] = const_cast<char*>(path.c_str());
    static char shell[] = "sh";
    shell_argv.insert(shell_argv.begin(), shell);

    int highest = 0;
    for (int cpu : s.cpus) highest = std::max(highest, cpu);
    cpu_set_t* set = s.cpus.empty() ? nullptr : CPU_ALLOC(size_t(highest) + 1);
    size_t cpu_bytes = CPU_ALLOC_SIZE(size_t(highest) + 1);
    if (set) {
        CPU_ZERO_S(cpu_bytes, set);
        for (int cpu : s.cpus) CPU_SET_S(size_t(cpu), cpu_bytes, set);
    }
    Prepared p{path.c_str(), argv.data(), shell_argv.data(), env.data(), s.wdir.empty() ? nullptr : s.wdir.c_str(),
               set, cpu_bytes, getpid()};
    Failure failure;
    pid_t pid = start(s, p, &failure);
    int fork_error = errno;
    if (set) CPU_FREE(set);
    if (pid > 0 && !failure.step) return pid;
    if (pid < 0) {
        *what = "cannot start a process for " + path;
        *error = fork_error;
        return -1;
    }
    *error = failure.error;
    *what = std::string(failure.step) + " " + (strcmp(failure.step, "cannot run") == 0 ? path + why_not(s, path) : s.wdir);
    return -1;  // the child has left by _exit; the caller reaps it with all others
}

}  // namespace mpiexec
