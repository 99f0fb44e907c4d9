// Runs a command as if on a kernel before 4.16, `old_kernel COMMAND ...`: the calls that Weft uses and that later kernels
// brought do not exist.
#include "../refuse.h"

int main(int argc, char** argv) {
    // membarrier's GLOBAL_EXPEDITED came with 4.16, the others with 5.1, 5.3 and 5.16 (futex_waitv, which older headers do not name).
    const unsigned calls[] = {SYS_membarrier, SYS_pidfd_send_signal, SYS_pidfd_open, 449};
    return refuse(calls, 4, ENOSYS, argv);
}
