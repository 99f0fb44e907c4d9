/* Runs a command to which the kernel refuses some system calls, as a container's seccomp filter does. What its programs
   share: each names the calls and the error. */
#ifndef WEFT_TESTS_REFUSE_H
#define WEFT_TESTS_REFUSE_H
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Runs argv[1] and its arguments; each of the `n` calls (at most 8) fails there with `error`. The exit status is the command's, or 77
   where the kernel has no such filters. */
static inline int refuse(const unsigned* calls, int n, int error, char** argv) {
    struct sock_filter filter[2 + 2 * 8];
    int length = 0;
    if (n > 8 || argv[0] == NULL || argv[1] == NULL) return 2;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < n; i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fprintf(stderr, "SKIPPED: no seccomp filters here, so %s cannot refuse system calls\n", argv[0]);
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
#endif
