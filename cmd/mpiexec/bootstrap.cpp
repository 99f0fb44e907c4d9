// Bootstrap: ranks say hello, by the inherited socket or by name, and get the job; later they say finalized or abort.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "binding.hpp"
#include "job.hpp"
#include "os/message.hpp"
#include "text.hpp"
#include "wire/shm/layout.hpp"

namespace mpiexec {
namespace {

using namespace weft::boot;

// Without waiting.
ssize_t receive(int sock, void* data, size_t bytes, int* fd) {
    return weft::os::receive_message(sock, data, bytes, fd, fd != nullptr ? 1 : 0, false);
}

bool send(int sock, const void* data, size_t bytes, const int* fds, int n_fds) {
    return weft::os::send_message(sock, data, bytes, fds, n_fds, false);
}

// The caller of connect, or the maker of a socketpair; pid 0 when it lives in a pid namespace we cannot see.
bool same_user(int sock, pid_t* pid) {
    ucred c;
    socklen_t n = sizeof c;
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &c, &n) != 0 || c.uid != geteuid()) return false;
    *pid = c.pid;
    return true;
}

// Closes the socket of a process that may not join, and tells it why.
void deny(int sock, Say why) {
    Denied no{protocol_magic, why, geteuid()};
    send(sock, &no, sizeof no, nullptr, 0);
    close(sock);
}

bool is_hello(const Hello& h, ssize_t bytes) {
    return bytes == ssize_t(sizeof h) && h.magic == protocol_magic && h.say == Say::hello;
}

}  // namespace

void Job::hear_launch_socket() {
    for (;;) {
        Hello h;
        int link;
        ssize_t n = receive(launch_[0], &h, sizeof h, &link);
        if (n < 0) return;
        if (!is_hello(h, n) || link < 0) {
            if (link >= 0) close(link);
            if (n == 0) return;
            continue;
        }
        welcome(h, link);
    }
}

void Job::hear_listener() {
    for (;;) {
        int s = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (s < 0) return;
        pid_t pid;
        if (!same_user(s, &pid)) deny(s, Say::other_user);
        else if (strangers_.size() < 1024) strangers_.push_back(s);
        else close(s);
    }
}

void Job::hear_stranger(int fd) {
    std::erase(strangers_, fd);
    Hello h;
    ssize_t n = receive(fd, &h, sizeof h, nullptr);
    if (is_hello(h, n)) welcome(h, fd);
    else close(fd);
}

void Job::welcome(const Hello& h, int link) {
    pid_t pid = 0;
    bool known = h.rank >= 0 && h.rank < int(ranks_.size()) && memcmp(h.cookie, cookie_.c_str(), cookie_bytes) == 0;
    if (!known) return deny(link, Say::other_job);
    if (!same_user(link, &pid)) return deny(link, Say::other_user);
    Rank& r = ranks_[size_t(h.rank)];
    // The same process may finalise and start again (sessions); any other one is a rank's child. That it has finalised may wait
    // to be read still, by another socket.
    if (r.attached && r.link >= 0 && pid == r.mpi_pid && !r.finalized) hear_rank(r, true);
    bool again = r.attached && r.finalized && pid > 0 && pid == r.mpi_pid;
    if (r.attached && !again) {
        Finalized no{protocol_magic, Say::refused};
        send(link, &no, sizeof no, nullptr, 0);
        close(link);
        return;
    }
    if (r.link >= 0) close(r.link);
    r.link = link;
    r.mpi_pid = pid;
    r.attached = true;
    r.finalized = false;
    if (pid > 0 && pid != r.pid && r.pidfd < 0) r.pidfd = int(syscall(SYS_pidfd_open, pid, 0));
    std::string why;
    if (!send_job(r, &why)) fail(r, 1, "cannot join the job: " + why);
    r.attaches++;
    release_segments();
    if (!ending_) judge_wordless();
}

// A segment that every rank has: only they keep it from now on, so that its memory goes when they do.
void Job::release_segments() {
    int least = INT_MAX;
    for (const Rank& r : ranks_) least = std::min(least, r.attaches);
    for (size_t g = 0; g < segments_.size() && int(g) < least; g++) {
        if (segments_[g].fd >= 0) close(segments_[g].fd);
        segments_[g].fd = -1;
    }
}

bool Job::send_job(Rank& r, std::string* why) {
    Welcome w{};
    w.magic = protocol_magic;
    w.say = Say::welcome;
    w.rank = w.node_rank = r.start.rank;
    w.size = w.node_size = int32_t(ranks_.size());
    w.appnum = r.start.app;
    w.universe_size = std::max(int(ranks_.size()), usable_cpus());
    w.app_size = plan_.apps[size_t(r.start.app)].ranks;
    w.cpus = cpus_;
    w.generation = r.attaches;
    w.job_id = job_id_;
    if (!key_of(r.attaches, w.key)) {
        *why = "no random numbers";
        return false;
    }
    int fds[3];
    size_t n = 0;
    auto carry = [&](Carries what, int fd) {
        fds[n++] = fd;
        w.carries |= what;
    };
    if (ranks_.size() > 1) {
        const weft::os::SharedFile& file = segment_of(r.attaches);
        w.bounded = file.bounded;
        if (file.fd >= 0) carry(segment, file.fd);
    }
    if (localities() >= 0) carry(Carries::localities, localities_);
    // A pipe per rank: the owner that the kernel kills belongs to the pipe, not to the process. A process that attaches again
    // keeps its lifeline: closing our end of it would kill the process.
    int ends[2] = {-1, -1};
    if (r.lifeline < 0 && pipe2(ends, O_CLOEXEC) == 0) {
        r.lifeline = ends[1];
        carry(lifeline, ends[0]);
    }
    bool sent = r.lifeline >= 0 && send(r.link, &w, sizeof w, fds, int(n));
    // It has died since it asked: how it ended is told by whoever reaps it.
    if (!sent && r.lifeline >= 0 && errno == EPIPE) sent = true;
    if (!sent) *why = std::string(strerror(errno)) + " (errno " + std::to_string(errno) + ")";
    if (ends[0] >= 0) close(ends[0]);
    return sent;
}

// The node's segment: empty, made when the first rank asks; a rank that attaches again finds a fresh one. Its descriptor is -1
// where none can be made, or /dev/shm has no room for all ranks: then they use sockets.
const weft::os::SharedFile& Job::segment_of(int generation) {
    while (int(segments_.size()) <= generation) {
        weft::os::SharedFile file = weft::os::make_shared_file("weft");
        if (file.bounded && !weft::os::allocate(file.fd, weft::wire::shm::Layout{int(ranks_.size())}.bytes())) {
            close(file.fd);
            file.fd = -1;
        }
        segments_.push_back(file);
    }
    return segments_[size_t(generation)];
}

// Made when the first rank asks; ranks that attach again must not meet the sockets of their first time.
bool Job::key_of(int generation, unsigned char out[weft::boot::key_bytes]) {
    while (int(keys_.size()) <= generation) {
        std::array<unsigned char, weft::boot::key_bytes> key;
        ssize_t n;
        do n = getrandom(key.data(), key.size(), 0);
        while (n < 0 && errno == EINTR);
        if (n != ssize_t(key.size())) return false;
        keys_.push_back(key);
    }
    std::copy(keys_[size_t(generation)].begin(), keys_[size_t(generation)].end(), out);
    return true;
}

// Made when the first rank asks; -1 where that cannot be: then ranks do without.
int Job::localities() {
    if (placed_) return localities_;
    placed_ = true;
    std::vector<Locality> localities;
    for (const Rank& r : ranks_) localities.push_back(r.start.locality);
    size_t bytes = localities.size() * sizeof(Locality);
    localities_ = weft::os::make_shared_file("weft-localities").fd;
    if (localities_ >= 0 && write(localities_, localities.data(), bytes) != ssize_t(bytes)) {
        close(localities_);
        localities_ = -1;
    }
    return localities_;
}

// Everything that a rank has said; or only as far as that it has finalised, since its end is not news where it attaches again.
void Job::hear_rank(Rank& r, bool until_finalized) {
    union {
        Finalized head;
        Abort abort;
        Answer answer;
    } m;
    for (;;) {
        ssize_t n = receive(r.link, &m, sizeof m, nullptr);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            close(r.link);
            r.link = -1;
            // Without a pid to watch, the socket is all there is.
            if (r.pidfd < 0 && r.mpi_pid != r.pid) mpi_process_ended(r);
            return;
        }
        if (size_t(n) < sizeof m.head || m.head.magic != protocol_magic) continue;
        if (m.head.say == Say::finalized) r.finalized = true;
        if (r.finalized && until_finalized) return;
        if (m.head.say == Say::answer && n == ssize_t(sizeof m.answer)) {
            m.answer.text[sizeof m.answer.text - 1] = 0;
            hear_answer(r, m.answer.text);
        }
        if (m.head.say == Say::abort && n == ssize_t(sizeof m.abort)) {
            m.abort.text[sizeof m.abort.text - 1] = 0;
            r.aborted = true;
            int status = m.abort.code & 255;
            std::string text = m.abort.text[0] ? std::string(": ") + m.abort.text : "";
            suspect(r, status || !m.abort.code ? status : 1,
                    (m.abort.by_error ? "was ended by an MPI error, code " : "called MPI_Abort with code ") +
                    std::to_string(m.abort.code) + text);
        }
    }
}

}  // namespace mpiexec
