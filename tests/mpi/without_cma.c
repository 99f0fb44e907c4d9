// Runs a command in which process_vm_readv, process_vm_writev and ptrace are refused, as in a container without ptrace
// rights: `without_cma COMMAND ...`.
#include "../refuse.h"

int main(int argc, char** argv) {
    const unsigned calls[] = {SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace};
    return refuse(calls, 3, EPERM, argv);
}
