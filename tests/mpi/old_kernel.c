// Runs a command as if on a kernel before 4.16, `old_kernel COMMAND ...`: the calls that Weft uses and that later kernels
// brought do not exist.
#include "../refuse.h"

int main(int argc, char** argv) {
    // membarrier's GLOBAL_EXPEDITED came with 4.16, the other two with 5.1 and 5.3.
    const unsigned calls[] = {SYS_membarrier, SYS_pidfd_send_signal, SYS_pidfd_open};
    return refuse(calls, 3, ENOSYS, argv);
}
