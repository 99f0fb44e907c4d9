#include "os/message.hpp"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::os {

static constexpr int max_fds = 4;

bool send_message(int sock, const void* data, size_t bytes, const int* fds, int n_fds, bool wait) {
    if (n_fds > max_fds) return false;
    iovec v{const_cast<void*>(data), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(max_fds * sizeof(int))] = {};
    msghdr m{};
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    if (n_fds > 0) {
        m.msg_control = control;
        m.msg_controllen = CMSG_SPACE(size_t(n_fds) * sizeof(int));
        cmsghdr* c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(size_t(n_fds) * sizeof(int));
        memcpy(CMSG_DATA(c), fds, size_t(n_fds) * sizeof(int));
    }
    ssize_t r;
    do r = sendmsg(sock, &m, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (r < 0 && errno == EINTR);
    return r == ssize_t(bytes);
}

int64_t receive_message(int sock, void* data, size_t bytes, int* fds, int n_fds, bool wait) {
    for (int i = 0; i < n_fds; i++) fds[i] = -1;
    iovec v{data, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(max_fds * sizeof(int))];
    msghdr m{};
    m.msg_iov = &v;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const int flags = MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT);
    ssize_t r;
    do r = recvmsg(sock, &m, flags);
    while (r < 0 && errno == EINTR);
    if (r == 0) {   // an end of file is one when it is found again: see receive_now()
        m.msg_controllen = sizeof control;
        r = recvmsg(sock, &m, flags);
    }
    if (r < 0) return -1;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int n = int((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + size_t(i) * sizeof(int), sizeof fd);
            if (i < n_fds && fds[i] < 0) fds[i] = fd;
            else close(fd);
        }
    }
    return r;
}

int64_t peek_message(int sock, void* data, size_t bytes) { return recv(sock, data, bytes, MSG_PEEK | MSG_DONTWAIT); }

}  // namespace weft::os
