#include "os/process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/clock.hpp"

namespace weft::os {

bool socket_pair(int fds[2]) { return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0; }

static bool abstract_address(const char* name, sockaddr_un* a, socklen_t* bytes) {
    *a = sockaddr_un{};
    a->sun_family = AF_UNIX;
    size_t n = strlen(name);
    if (n + 1 > sizeof a->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(a->sun_path + 1, name, n);
    *bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + n);
    return true;
}

int connect_abstract(const char* name, bool wait) {
    sockaddr_un a;
    socklen_t bytes;
    if (!abstract_address(name, &a, &bytes)) return -1;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
    if (s < 0) return -1;
    if (connect(s, reinterpret_cast<sockaddr*>(&a), bytes) != 0) {
        int e = errno;
        close(s);
        errno = e;
        return -1;
    }
    return s;
}

int64_t peer_user(int sock) {
    ucred c;
    socklen_t n = sizeof c;
    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 ? int64_t{c.uid} : -1;
}

bool peer_is_same_user(int sock) { return peer_user(sock) == int64_t{user_id()}; }

uint32_t user_id() { return geteuid(); }

uint64_t socket_inode(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode) ? uint64_t(s.st_ino) : 0;
}

void close_fd(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

void set_close_on_exec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

// The parent of a process; 0 at the top, and where /proc does not say.
static int parent_of(int pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int64_t n = read_file(path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    const char* after_name = strrchr(text, ')');  // then: blank, state, blank, parent
    return after_name != nullptr && strlen(after_name) > 4 ? atoi(after_name + 4) : 0;
}

static bool is_socket_of(int pid, int fd) {
    char path[64], what[16];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    return readlink(path, what, sizeof what) > 7 && memcmp(what, "socket:", 7) == 0;
}

static bool closes_on_exec(int pid, int fd) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, fd);
    const int64_t n = read_file(path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    const char* flags = strstr(text, "flags:");
    return flags != nullptr && (strtol(flags + 6, nullptr, 8) & O_CLOEXEC) != 0;
}

int ancestor_that_keeps(int fd) {
    for (int pid = parent_of(getpid()), up = 0; pid > 1 && up < 64; pid = parent_of(pid), ++up)
        if (is_socket_of(pid, fd)) return closes_on_exec(pid, fd) ? pid : 0;
    return 0;
}

int listen_abstract(const char* name) {
    sockaddr_un a;
    socklen_t bytes;
    if (!abstract_address(name, &a, &bytes)) return -1;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s >= 0 && (bind(s, reinterpret_cast<sockaddr*>(&a), bytes) != 0 || listen(s, 4096) != 0)) close_fd(&s);
    return s;
}

int make_wake_socket(const char* name) {
    sockaddr_un a;
    socklen_t bytes;
    if (!abstract_address(name, &a, &bytes)) return -1;
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s >= 0 && bind(s, reinterpret_cast<sockaddr*>(&a), bytes) != 0) close_fd(&s);
    return s;
}

void wake_at(int own, const char* name) {
    sockaddr_un a;
    socklen_t bytes;
    if (!abstract_address(name, &a, &bytes)) return;
    (void)sendto(own, nullptr, 0, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&a), bytes);   // its queue is full: readable, as wanted
}

void clear_wakes(int own) {
    while (recv(own, nullptr, 0, 0) >= 0) {}
}

int accept_one(int listener) {
    int s;
    do s = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    while (s < 0 && (errno == EINTR || errno == ECONNABORTED));
    return s;
}

int64_t read_some(int fd, void* data, size_t bytes) {
    ssize_t r;
    do r = read(fd, data, bytes);
    while (r < 0 && errno == EINTR);
    return r;
}

int64_t read_file(const char* path, void* data, size_t bytes) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int64_t done = 0, n = 0;
    while (static_cast<size_t>(done) < bytes && (n = read_some(fd, static_cast<char*>(data) + done, bytes - static_cast<size_t>(done))) > 0) done += n;
    const int error = errno;
    close(fd);
    errno = error;
    return n < 0 ? -1 : done;
}

bool make_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) == 0) return true;
    ends[0] = ends[1] = -1;
    return false;
}

bool write_all(int fd, const void* data, size_t bytes) {
    const char* p = static_cast<const char*>(data);
    while (bytes) {
        ssize_t r = send(fd, p, bytes, MSG_NOSIGNAL);
        if (r < 0 && errno == EINTR) continue;
        if (r <= 0) return false;
        p += r;
        bytes -= size_t(r);
    }
    return true;
}

bool wait_readable(int fd, int64_t timeout_ms) {
    const uint64_t end_ns = now_ns() + static_cast<uint64_t>(timeout_ms) * 1'000'000;
    for (;;) {
        pollfd p{fd, POLLIN, 0};
        const int64_t left_ms = timeout_ms < 0 ? -1 : (static_cast<int64_t>(end_ns - now_ns()) + 999'999) / 1'000'000;
        const int n = poll(&p, 1, timeout_ms < 0 ? -1 : left_ms < 0 ? 0 : static_cast<int>(left_ms < 1'000'000 ? left_ms : 1'000'000));
        if (n != 0 && !(n < 0 && errno == EINTR)) return n > 0;
        if (timeout_ms >= 0 && left_ms <= 0) return false;
    }
}

bool die_with(int pipe_read_end) {
    // Order matters: owner and signal first, then O_ASYNC; then look once, for the end that closed before all this.
    if (fcntl(pipe_read_end, F_SETOWN, getpid()) != 0) return false;
    if (fcntl(pipe_read_end, F_SETSIG, SIGKILL) != 0) return false;
    int flags = fcntl(pipe_read_end, F_GETFL);
    if (flags < 0 || fcntl(pipe_read_end, F_SETFL, flags | O_ASYNC) != 0) return false;
    pollfd p{pipe_read_end, POLLIN, 0};
    if (poll(&p, 1, 0) == 1) kill(getpid(), SIGKILL);
    return true;
}

bool is_alive(int pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

uint64_t process_space() {
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? static_cast<uint64_t>(st.st_ino) : 0;
}

void exit_now(int code) { _exit(code); }

void say(const char* format, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof line - 1, format, ap);
    va_end(ap);
    if (n < 0) return;
    if (n > int(sizeof line) - 2) n = int(sizeof line) - 2;
    line[n++] = '\n';
    // stderr may be gone; there is nobody left to tell then.
    if (write(2, line, size_t(n)) < 0) return;
}

// Calls use(set, bytes) with this process's CPUs. The kernel refuses sets smaller than its own, so grow until it fits.
template <class Use>
static bool with_cpus(Use use) {
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t* set = CPU_ALLOC(size_t(cpus));
        if (!set) return false;
        size_t bytes = CPU_ALLOC_SIZE(size_t(cpus));
        bool ok = sched_getaffinity(0, bytes, set) == 0;
        int error = errno;
        if (ok) use(set, bytes);
        CPU_FREE(set);
        if (ok || error != EINVAL) return ok;
    }
    return false;
}

int cpus_allowed() {
    int n = 0;
    with_cpus([&](cpu_set_t* set, size_t bytes) { n = CPU_COUNT_S(bytes, set); });
    return n > 0 ? n : 1;
}

void cpu_mask(uint64_t out[cpu_words]) {
    memset(out, 0, cpu_words * sizeof *out);
    with_cpus([&](cpu_set_t* set, size_t bytes) {
        for (size_t c = 0; c < size_t(cpu_words) * 64 && c < bytes * 8; c++)
            if (CPU_ISSET_S(c, bytes, set)) out[c / 64] |= uint64_t(1) << c % 64;
    });
}

void node_identity(char* out, size_t bytes) {
    char boot[37] = "?";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, boot, sizeof boot - 1);
        boot[n > 0 ? n : 0] = 0;
        close(fd);
    }
    struct stat net;
    unsigned long space = stat("/proc/self/ns/net", &net) == 0 ? net.st_ino : 0;
    snprintf(out, bytes, "%s/%lu/%u", boot, space, unsigned(geteuid()));
}

void ask_for_slices(uint64_t ns) {
    struct {  // sched_attr(2); glibc 2.36 has no name for it
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes{};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != SCHED_OTHER) return;
    attributes.runtime = ns;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

bool random_bytes(void* out, size_t bytes) {
    ssize_t r;
    do r = getrandom(out, bytes, 0);
    while (r < 0 && errno == EINTR);
    return r == ssize_t(bytes);
}

void host_name(char* out, size_t bytes) {
    if (gethostname(out, bytes) != 0) snprintf(out, bytes, "localhost");
    out[bytes - 1] = 0;
}

void program_name(char* out, size_t bytes) { snprintf(out, bytes, "%s", program_invocation_short_name); }

}  // namespace weft::os
