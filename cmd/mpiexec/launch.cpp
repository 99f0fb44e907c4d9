// Starting: the socket that ranks say hello to, their environment and streams, and the processes themselves.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include "debugger.hpp"
#include "heap/replaced.hpp"
#include "job.hpp"
#include "text.hpp"

extern char** environ;

namespace mpiexec {
namespace {

std::string random_hex(size_t digits) {
    unsigned char bytes[64];
    size_t n = digits / 2;
    while (getrandom(bytes, n, 0) < 0 && errno == EINTR) {}
    std::string text;
    char two[3];
    for (size_t i = 0; i < n; i++) {
        snprintf(two, sizeof two, "%02x", bytes[i]);
        text += two;
    }
    return text;
}

void set_variable(std::vector<std::string>* env, const std::string& name, const std::string& value) {
    std::string head = name + "=";
    for (std::string& e : *env)
        if (e.compare(0, head.size(), head) == 0) {
            e = head + value;
            return;
        }
    env->push_back(head + value);
}

std::string variable(const std::vector<std::string>& env, const std::string& name) {
    std::string head = name + "=";
    for (const std::string& e : env)
        if (e.compare(0, head.size(), head) == 0) return e.substr(head.size());
    return "";
}

// What was asked for, for MPI_INFO_ENV (boot/protocol.hpp).
std::string launch_info(const Plan& plan, const App& app) {
    std::string arguments, text;
    for (size_t i = 1; i < app.argv.size(); i++) arguments += (i > 1 ? " " : "") + app.argv[i];
    size_t used = 0;
    for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::string>>{
             {"command", app.argv[0]}, {"argv", arguments}, {"maxprocs", std::to_string(app.ranks)}, {"soft", app.soft},
             {"mpi_initial_errhandler", plan.initial_errhandler}, {"mpi_memory_alloc_kinds", plan.memory_kinds},
             {"host", host_name()}, {"arch", app.arch}, {"wdir", app.wdir}, {"file", app.file}}) {
        size_t bytes = strlen(key) + value.size() + 2;
        if (value.empty() || used + bytes > size_t(weft::boot::info_bytes)) continue;
        used += bytes;
        text += std::string(text.empty() ? "" : "&") + key + "=";
        for (unsigned char c : value) {
            char code[4] = {char(c), 0};
            if (c < ' ' || strchr("%&=", c)) snprintf(code, sizeof code, "%%%02x", c);
            text += code;
        }
    }
    return text;
}

// Descriptors 0, 1 and 2 of a rank are placed by dup2, so none of ours may be among them.
int above_standard(int fd) {
    if (fd < 0 || fd > 2) return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return higher;
}

std::string fill_pattern(const std::string& pattern, const Rank& r) {
    std::string name;
    for (size_t i = 0; i < pattern.size(); i++) {
        if (pattern[i] != '%' || i + 1 == pattern.size()) {
            name += pattern[i];
            continue;
        }
        switch (pattern[++i]) {
            case 'r': name += std::to_string(r.start.rank); break;
            case 'a': name += std::to_string(r.start.app); break;
            case 'h': name += host_name(); break;
            case 'p': name += std::to_string(getpid()); break;
            case '%': name += '%'; break;
        }
    }
    return name;
}

}  // namespace

bool Job::open_door() {
    cookie_ = random_hex(weft::boot::cookie_bytes - 1);
    address_ = "weft-" + random_hex(24);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launch_) != 0) return false;
    struct stat s;
    if (fstat(launch_[1], &s) != 0) return false;
    launch_inode_ = s.st_ino;

    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path + 1, address_.data(), address_.size());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return listener_ >= 0 &&
           bind(listener_, reinterpret_cast<sockaddr*>(&a), socklen_t(offsetof(sockaddr_un, sun_path) + 1 + address_.size())) == 0 &&
           listen(listener_, 4096) == 0;
}

// The file behind the ranks' slices; they size and map it (cmd/malloc). Where none can be made, malloc is as it is.
bool Job::make_heap() {
    std::error_code error;
    const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
    malloc_library_ = here / WEFT_TO_LIB / "libweft_malloc.so";
    for (const std::filesystem::path& place : {here / WEFT_TO_LIB, here / "../lib"})
        if (std::filesystem::exists(place / "libweft_malloc.so", error)) malloc_library_ = (place / "libweft_malloc.so").lexically_normal();
    if (access(malloc_library_.c_str(), R_OK) != 0) {
        say("--shared-heap: there is no %s; this build of Weft has none", malloc_library_.c_str());
        return false;
    }
    weft::os::SharedFile file = weft::os::make_shared_file("weft-heap");
    struct stat s;
    if (file.fd < 0 || file.bounded || fstat(file.fd, &s) != 0) {
        if (file.fd >= 0) close(file.fd);
        say("--shared-heap: memfd_create is denied (%s); malloc stays as it is", strerror(file.memfd_error));
        return true;
    }
    heap_ = above_standard(file.fd);
    heap_inode_ = s.st_ino;
    return true;
}

std::vector<std::string> Job::environment(const Rank& r) const {
    std::vector<std::string> env;
    for (char** e = environ; plan_.pass_environment && *e; e++) {
        const char* eq = strchr(*e, '=');
        if (!eq) continue;
        std::string name(*e, size_t(eq - *e));
        bool chosen = plan_.only_variables.empty() ||
                      std::find(plan_.only_variables.begin(), plan_.only_variables.end(), name) != plan_.only_variables.end();
        if (chosen) env.push_back(*e);
    }
    for (const auto& [name, value] : plan_.genv) set_variable(&env, name, value);
    for (const auto& [name, value] : plan_.apps[size_t(r.start.app)].env) set_variable(&env, name, value);
    using namespace weft::boot;
    set_variable(&env, env_fd, std::to_string(launch_[1]) + ":" + std::to_string(launch_inode_));
    set_variable(&env, env_addr, address_);
    set_variable(&env, env_cookie, cookie_);
    set_variable(&env, env_rank, std::to_string(r.start.rank));
    set_variable(&env, env_size, std::to_string(ranks_.size()));
    set_variable(&env, env_info, launch_info(plan_, plan_.apps[size_t(r.start.app)]));
    // Of a job that started this one, say.
    std::erase_if(env, [](const std::string& e) { return e.rfind(std::string(weft::heap::env_heap) + "=", 0) == 0; });
    if (heap_ >= 0) {
        set_variable(&env, weft::heap::env_heap, std::to_string(heap_) + ":" + std::to_string(heap_inode_) + ":" +
                     std::to_string(ranks_.size()) + ":" + std::to_string(r.start.rank));
        // Behind what the user loads, a tool that replaces malloc itself for instance.
        std::string others = variable(env, "LD_PRELOAD");
        set_variable(&env, "LD_PRELOAD", (others.empty() ? "" : others + ":") + malloc_library_);
    }
    return env;
}

// Opens a file for the output of one or several ranks: what is written goes to its end, and its old contents go once.
int Job::open_output(const char* name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    struct stat s;
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && outputs_.insert({s.st_dev, s.st_ino}).second && ftruncate(fd, 0) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// Decides what the rank's 0, 1 and 2 are. On failure says so.
bool Job::connect_streams(Rank& r, Spawn* s, std::vector<int>* close_after) {
    auto opened = [&](const char* name, bool output) {
        int fd = above_standard(output ? open_output(name) : open(name, O_RDONLY | O_CLOEXEC));
        if (fd < 0) say("cannot open %s for rank %d: %s (errno %d)", name, r.start.rank, strerror(errno), errno);
        else close_after->push_back(fd);
        return fd;
    };
    if (r.start.rank != 0) s->in = opened("/dev/null", false);
    else s->in = 0;
    if (s->in < 0) return false;

    auto stream = [&](const std::string& pattern, Sink* sink, std::unique_ptr<LineReader>* reader, int* end) {
        if (!pattern.empty()) {
            std::filesystem::path file = fill_pattern(pattern, r);
            std::error_code ignored;  // what cannot be made cannot be opened either, and that is said
            if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
            *end = opened(file.c_str(), true);
            return *end >= 0;
        }
        if (plan_.label.empty() && !plan_.timestamp) return true;
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            say("cannot make a pipe for rank %d: %s (errno %d)", r.start.rank, strerror(errno), errno);
            return false;
        }
        *reader = std::make_unique<LineReader>(ends[0], sink, fill_pattern(plan_.label, r), plan_.timestamp);
        *end = ends[1];
        close_after->push_back(ends[1]);
        return true;
    };
    if (!stream(plan_.out_pattern, &out_, &r.out, &s->out)) return false;
    if (plan_.merge_stderr) {
        s->err = s->out;
        return true;
    }
    return stream(plan_.err_pattern, &err_, &r.err, &s->err);
}

bool Job::start_rank(Rank& r) {
    const App& app = plan_.apps[size_t(r.start.app)];
    std::vector<std::string> env = environment(r);
    std::vector<int> close_after;
    Spawn s{};
    s.argv = &app.argv;
    s.env = &env;
    s.search = app.path.empty() ? variable(env, "PATH") : app.path + ":" + variable(env, "PATH");
    s.wdir = app.wdir;
    s.cpus = r.start.cpus;
    s.in = 0, s.out = 1, s.err = 2;
    s.pass = {launch_[1]};
    if (heap_ >= 0) s.pass.push_back(heap_);
    s.inherited = &inherited_;
    s.own_group = !(r.in_our_group = r.start.rank == 0 && has_terminal_);
    // At a terminal, ranks may open it. Ranks that share CPUs yield to each other, which works within a session only.
    s.own_session = r.own_session = !has_terminal_ && int(ranks_.size()) <= cpus_;
    bool ok = connect_streams(r, &s, &close_after);
    if (ok) {
        std::string what;
        int error = 0;
        r.pid = spawn(s, &what, &error);
        if (r.pid < 0) {
            ok = false;
            say("rank %d: %s on %s: %s (errno %d)", r.start.rank, what.c_str(), host_name().c_str(), strerror(error), error);
            end_job(error == ENOENT ? 127 : 126);
        }
    } else {
        end_job(1);
    }
    for (int fd : close_after) close(fd);
    return ok;
}

bool Job::start_all() {
    for (Rank& r : ranks_)
        if (!start_rank(r)) return false;
    std::vector<DebuggedProcess> processes;
    for (const Rank& r : ranks_) processes.push_back({r.pid, plan_.apps[size_t(r.start.app)].argv[0]});
    tell_debugger(processes);
    // Rank 0 has its own copy of a pipe or file on our stdin; ours would keep the writer from seeing it close.
    if (!has_terminal_) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null > 0) dup2(null, 0), close(null);
    }
    return true;
}

}  // namespace mpiexec
