#include "probe.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "common/cgroups.hpp"
#include "os/shared_file.hpp"
#include "report.hpp"
#include "wire/shm/layout.hpp"

namespace weft_cmd {
namespace {

constexpr uint64_t heap_address = 0x2000'0000'0000;

std::string why(int error) { return std::strerror(error); }

// A child that does `body` and tells one byte; it lives until its parent has looked at it.
struct Child {
    pid_t pid = -1;
    int to = -1, from = -1;

    template <typename Body>
    explicit Child(Body body) {
        int down[2], up[2];
        if (pipe2(down, O_CLOEXEC) != 0) return;
        if (pipe2(up, O_CLOEXEC) != 0) {
            close(down[0]), close(down[1]);
            return;
        }
        pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(down[1]), close(up[0]);
            char result = body();
            if (write(up[1], &result, 1) != 1) _exit(1);
            char end;
            while (read(down[0], &end, 1) < 0 && errno == EINTR) {}
            _exit(0);
        }
        close(down[0]), close(up[1]);
        to = down[1], from = up[0];
    }
    Child(const Child&) = delete;
    // What the child told, or -1 when it did not within five seconds.
    int told() {
        pollfd p{from, POLLIN, 0};
        char result = 0;
        if (pid < 0 || poll(&p, 1, 5000) <= 0 || read(from, &result, 1) != 1) return -1;
        return static_cast<unsigned char>(result);
    }
    ~Child() {
        if (pid < 0) return;
        close(to), close(from);
        kill(pid, SIGKILL);
        while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
    }
};

// How many ranks find room for what they share.
int ranks_within(uint64_t bytes) {
    int ranks = 1;
    while (ranks < weft::wire::shm::max_ranks && weft::wire::shm::Layout{ranks + 1}.bytes() <= bytes) ranks++;
    return ranks;
}

Finding memfd() {
    weft::os::SharedFile file = weft::os::make_shared_file("weft-doctor");
    int fd = file.fd;
    if (fd < 0) {
        char text[200];
        describe_failure(file, text, sizeof text);
        return {"memfd", State::stepped_around, text, "ranks cannot share memory: messages go by sockets, several times as slow"};
    }
    if (file.bounded) {
        int ranks = ranks_within(weft::os::room(fd));
        close(fd);
        std::string found = "memfd_create: " + why(file.memfd_error);
        if (ranks < 2) return {"memfd", State::stepped_around, found + "; /dev/shm has no room either", "messages go by sockets, several times as slow"};
        return {"memfd", State::stepped_around, found,
                printf_string("a file in /dev/shm, which has room for jobs of up to %d ranks, larger ones use sockets; the heap is not shared", ranks)};
    }
    bool grows = ftruncate(fd, 1ll << 40) == 0;
    std::string limit = grows ? "" : why(errno);
    close(fd);
    if (!grows) return {"memfd", State::stepped_around, "cannot grow to 1 TiB: " + limit, "the heap is not shared; messages are"};
    return {"memfd", State::ok, "works, sparse files of 1 TiB included", ""};
}

Finding fixed_address() {
    const size_t bytes = 64ull << 30;
    int fd = static_cast<int>(syscall(SYS_memfd_create, "weft-doctor", MFD_CLOEXEC));
    void* wanted = reinterpret_cast<void*>(heap_address);
    void* p = MAP_FAILED;
    if (fd < 0) return {"fixed address", State::stepped_around, "not tried without a memfd", "runs without heap sharing; rings use offsets"};
    if ( ftruncate(fd, static_cast<off_t>(bytes)) == 0)
        p = mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd, 0);
    int error = errno;
    close(fd);
    if (p == wanted) {
        munmap(p, bytes);
        return {"fixed address", State::ok, printf_string("64 GiB at %#llx", static_cast<unsigned long long>(heap_address)), ""};
    }
    if (p != MAP_FAILED) munmap(p, bytes), error = EEXIST;
    return {"fixed address", State::stepped_around, "cannot map the common address: " + why(error), "runs without heap sharing; rings use offsets"};
}

char shared_word[64];

// One sibling reads from another: what two ranks of a job do.
Finding cma(bool invite) {
    Child target([=] {
        std::strcpy(shared_word, "warp");
        if (invite) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        return char{0};
    });
    if (target.told() < 0) return {"single copy", State::problem, "no child process can be made", "none"};
    pid_t pid = target.pid;
    Child reader([=] {
        char got[8] = {}, put[8] = "weft";
        iovec local{got, 5}, source{put, 5}, remote{shared_word, 5};
        if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != 5) return static_cast<char>(errno);
        if (std::strcmp(got, "warp") != 0) return static_cast<char>(EIO);
        if (process_vm_writev(pid, &source, 1, &remote, 1, 0) != 5) return static_cast<char>(errno);
        if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != 5) return static_cast<char>(errno);
        return static_cast<char>(std::strcmp(got, "weft") == 0 ? 0 : EIO);
    });
    int error = reader.told();
    if (error == 0) return {"single copy", State::ok, invite ? "process_vm_readv and writev between ranks, by invitation" : "process_vm_readv and writev between ranks", ""};
    return {"single copy", State::stepped_around, "process_vm_readv between ranks: " + why(error < 0 ? EIO : error),
            "large messages are copied twice, through shared memory, in a pipeline"};
}

Finding yama() {
    std::string scope = read_line("/proc/sys/kernel/yama/ptrace_scope");
    if (scope.empty()) return {"yama", State::ok, "not in this kernel", ""};
    if (scope == "0") return {"yama", State::ok, "ptrace_scope 0", ""};
    if (scope == "1") return {"yama", State::stepped_around, "ptrace_scope 1: only parents may attach", "ranks invite each other by PR_SET_PTRACER"};
    return {"yama", State::stepped_around, "ptrace_scope " + scope + ": nobody may attach", "large messages are copied twice"};
}

Finding membarrier() {
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    if (known < 0) return {"membarrier", State::stepped_around, "membarrier: " + why(errno), "waiting ranks poll and yield, and sleep only for short spells"};
    if (!(known & MEMBARRIER_CMD_GLOBAL_EXPEDITED) || syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0)
        return {"membarrier", State::stepped_around, "no expedited global barrier", "waiting ranks poll and yield, and sleep only for short spells"};
    return {"membarrier", State::ok, "expedited global barrier", ""};
}

Finding huge_pages() {
    auto chosen = [](const char* path) {
        std::string line = read_line(path);
        size_t open = line.find('['), shut = line.find(']');
        return open == std::string::npos || shut == std::string::npos ? line : line.substr(open + 1, shut - open - 1);
    };
    std::string anonymous = chosen("/sys/kernel/mm/transparent_hugepage/enabled"), shared = chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    std::string found = "transparent: " + (anonymous.empty() ? "unknown" : anonymous) + ", for shared memory: " + (shared.empty() ? "unknown" : shared);
    bool usable = shared == "always" || shared == "within_size" || shared == "advise";
    return {"huge pages", usable ? State::ok : State::stepped_around, found, usable ? "" : "small pages back the shared segment"};
}

Finding dev_shm() {
    struct statvfs s;
    const char* instead = "used only where memfd is denied";
    if (statvfs("/dev/shm", &s) != 0) return {"/dev/shm", State::stepped_around, "not mounted", instead};
    unsigned long long total = static_cast<unsigned long long>(s.f_blocks) * s.f_frsize;
    bool small = total < (256ull << 20);
    return {"/dev/shm", small ? State::stepped_around : State::ok, human_bytes(total), small ? instead : ""};
}

Finding processors() {
    cpu_set_t set;
    int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    std::string found = printf_string("%d of %ld processors", allowed, online);
    State state = State::ok;
    std::string instead;
    if (std::string set_of_group = cgroups::cpuset(); !set_of_group.empty()) found += ", cpuset " + set_of_group;
    cgroups::CpuQuota quota = cgroups::cpu_quota();
    if (quota.group.empty()) {
        found += ", no quota";
    } else {
        found += printf_string(", quota of %.3g by ", quota.cpus) + quota.group;
        if (quota.cpus < allowed) state = State::stepped_around, instead = "waiting ranks give their processor away instead of spinning";
    }
    return {"processors", state, found, instead};
}

Finding debugging() {
    Child target([] { return char{0}; });
    if (target.told() < 0) return {"ptrace", State::problem, "no child process can be made", "none"};
    if (ptrace(PTRACE_ATTACH, target.pid, nullptr, nullptr) != 0)
        return {"ptrace", State::stepped_around, "attach: " + why(errno), "debuggers cannot attach; messages do not need it"};
    int status;
    waitpid(target.pid, &status, 0);
    ptrace(PTRACE_DETACH, target.pid, nullptr, nullptr);
    return {"ptrace", State::ok, "a parent may attach to its child", ""};
}

Finding abstract_sockets() {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "weft-doctor-%d", static_cast<int>(getpid()));
    bool bound = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length))) == 0;
    int error = errno;
    if (fd >= 0) close(fd);
    if (bound) return {"local sockets", State::ok, "abstract names work", ""};
    return {"local sockets", State::stepped_around, "abstract names: " + why(error), "ranks meet by the inherited socket only"};
}

Finding seccomp() {
    std::ifstream file("/proc/self/status");
    std::string line, mode = "unknown";
    while (std::getline(file, line))
        if (line.rfind("Seccomp:", 0) == 0) mode = line.substr(line.find_last_not_of("0123456789") + 1);
    if (mode == "0") return {"seccomp", State::ok, "no filter", ""};
    if (mode == "2") return {"seccomp", State::ok, "a filter is active; the lines above say what it refuses", ""};
    return {"seccomp", State::ok, "mode " + mode, ""};
}

std::string limit_of(int resource, bool bytes) {
    rlimit r;
    if (getrlimit(static_cast<__rlimit_resource_t>(resource), &r) != 0) return "unknown";
    if (r.rlim_cur == RLIM_INFINITY) return "unlimited";
    return bytes ? human_bytes(r.rlim_cur) : printf_string("%llu", static_cast<unsigned long long>(r.rlim_cur));
}

Finding limits() {
    std::string found = "address space " + limit_of(RLIMIT_AS, true) + ", file size " + limit_of(RLIMIT_FSIZE, true) + ", locked memory " +
                        limit_of(RLIMIT_MEMLOCK, true) + ", open files " + limit_of(RLIMIT_NOFILE, false) + ", processes " + limit_of(RLIMIT_NPROC, false);
    rlimit space, file;
    getrlimit(RLIMIT_AS, &space);
    getrlimit(RLIMIT_FSIZE, &file);
    const rlim_t needed = 1ull << 40;
    if (space.rlim_cur < needed || file.rlim_cur < needed)
        return {"limits", State::stepped_around, found, "runs without heap sharing, which reserves 64 GiB of addresses a rank"};
    return {"limits", State::ok, found, ""};
}

Finding memory() {
    unsigned long long physical = static_cast<unsigned long long>(sysconf(_SC_PHYS_PAGES)) * static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
    std::string found = human_bytes(physical) + " in the machine, ";
    cgroups::MemoryLimit limit = cgroups::memory_limit();
    if (limit.bytes >= physical) found += "no cgroup limit";
    else found += "cgroup limit " + human_bytes(limit.bytes) + " by " + limit.group;
    return {"memory", State::ok, found, ""};
}

}  // namespace

Finding probe_single_copy() {
    Finding plain = cma(false);
    return plain.state == State::ok ? plain : cma(true);
}

std::vector<Finding> probe_machine() {
    return {memfd(),     fixed_address(), dev_shm(),   probe_single_copy(), yama(),    debugging(), seccomp(),
            membarrier(), huge_pages(),    processors(), memory(),            limits(), abstract_sockets()};
}

}  // namespace weft_cmd
