#include "os/socket.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

namespace weft::os {

Sent send_now(int sock, const void* data, size_t bytes) {
    for (;;) {
        if (send(sock, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Sent::whole;
        if (errno == EINTR) continue;
        return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? Sent::later : Sent::over;
    }
}

// Linux looks for a message first and for the end of file then, so what is sent and closed between the two looks like an end: it is one
// when it is found again, as nothing is sent after it.
int64_t receive_now(int sock, void* data, size_t bytes) {
    for (bool ended = false;;) {
        const ssize_t n = recv(sock, data, bytes, MSG_DONTWAIT);
        if (n > 0) return n;
        if (n == 0) {
            if (ended) return -1;
            ended = true;
            continue;
        }
        // ECONNRESET is told once, before what can still be read.
        if (errno == EINTR || errno == ECONNRESET) continue;
        return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0 : -1;
    }
}

int64_t unread_bytes(int sock) {
    int n = 0;
    return ioctl(sock, SIOCOUTQ, &n) == 0 ? n : -1;
}

static int64_t buffer_of(int sock) {
    int n = 0;
    socklen_t size = sizeof n;
    return getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &n, &size) == 0 ? n : 0;
}

int64_t ask_for_buffer(int sock, int64_t least) {
    if (buffer_of(sock) >= least) return buffer_of(sock);
    const int half = static_cast<int>(least / 2);  // the kernel doubles what it is told
    (void)setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &half, sizeof half);  // refused: the size says so
    return buffer_of(sock);
}

int accept_now(int listener) {
    for (;;) {
        const int s = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (s >= 0 || (errno != EINTR && errno != ECONNABORTED)) return s;
    }
}

bool set_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool raise_descriptor_limit() {
    rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= r.rlim_max) return false;
    r.rlim_cur = r.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &r) == 0;
}

int make_watch() { return epoll_create1(EPOLL_CLOEXEC); }

bool watch(int watcher, int fd, News news, void* tag) {
    epoll_event e{};
    e.events = (news == News::readable ? EPOLLIN | EPOLLRDHUP : EPOLLOUT) | static_cast<uint32_t>(EPOLLET);
    e.data.ptr = tag;
    return epoll_ctl(watcher, EPOLL_CTL_ADD, fd, &e) == 0;
}

void unwatch(int watcher, int fd) { (void)epoll_ctl(watcher, EPOLL_CTL_DEL, fd, nullptr); }  // not there: as wanted

int take_news(int watcher, void** tags, int most) {
    constexpr int at_once = 64;
    epoll_event e[at_once];
    const int n = epoll_wait(watcher, e, most < at_once ? most : at_once, 0);
    for (int i = 0; i < n; ++i) tags[i] = e[i].data.ptr;
    return n > 0 ? n : 0;
}

bool has_news(int watcher) {
    pollfd p{watcher, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
}

int make_event() { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }
void ring_event(int event) { (void)eventfd_write(event, 1); }  // full: readable, as wanted
void clear_event(int event) {
    eventfd_t n;
    (void)eventfd_read(event, &n);
}

void wait_for_either(int a, int b, uint32_t timeout_us) {
    pollfd p[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    const timespec t{timeout_us / 1'000'000, static_cast<long>(timeout_us % 1'000'000) * 1000};
    (void)ppoll(p, 2, &t, nullptr);
}

}  // namespace weft::os
