// A rank that waits for long sleeps: it takes no CPU time to speak of, and wakes up now and then only, by whatever wires its messages may
// come. Counted are its voluntary context switches and its CPU time, so what else the machine does makes no difference.
#include <sys/resource.h>

#include "check.h"

static long switches(const struct rusage* u) { return u->ru_nvcsw; }
static double cpu_s(const struct rusage* u) {
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) + 1e-6 * (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

// A sleep lasts 50 ms at most (docs/ARCHITECTURE.md, Waiting), so 2 s are 40.
static void wait_for(int source) {
    struct rusage before, after;
    int value;
    getrusage(RUSAGE_THREAD, &before);
    MPI_Recv(&value, 1, MPI_INT, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    getrusage(RUSAGE_THREAD, &after);
    CHECK(value == 7, "%d, not 7", value);
    CHECK(switches(&after) - switches(&before) < 200, "woken %ld times in 2 s", switches(&after) - switches(&before));
    CHECK(cpu_s(&after) - cpu_s(&before) < 0.5, "took %.3f s of CPU time in 2 s", cpu_s(&after) - cpu_s(&before));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    // The last rank and the first send: with WEFT_WIRE=mixed to some by shared memory, and to the others by socket.
    for (int sender = 0; sender < size; sender += size - 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank != sender) {
            wait_for(sender);
            continue;
        }
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
        const int value = 7;
        for (int to = 0; to < size; to++)
            if (to != rank) MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
    }
    return finish();
}
