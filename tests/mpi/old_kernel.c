// Runs a command as if on a kernel before 4.16, `old_kernel COMMAND ...`: the calls that Weft uses and that later kernels
// brought do not exist. Exit status 77 where the kernel has no seccomp filters.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MISSING(name) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (name), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

int main(int argc, char** argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MISSING(SYS_membarrier),          // GLOBAL_EXPEDITED: 4.16
        MISSING(SYS_pidfd_send_signal),   // 5.1
        MISSING(SYS_pidfd_open),          // 5.3
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (argc < 2) return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fprintf(stderr, "SKIPPED: no seccomp filters here, so no calls can be taken away\n");
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
