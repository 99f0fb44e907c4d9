/* Runs a command in which memfd_create is refused, as some containers' seccomp filters do: `without_memfd COMMAND ...`. */
#include "../refuse.h"

int main(int argc, char** argv) {
    const unsigned calls[] = {SYS_memfd_create};
    return refuse(calls, 1, EPERM, argv);
}
