// A program to be killed: every rank announces itself, then all exchange messages of all sizes for ever, mixed with
// collectives. `crash MODE`: mix | block (sits in a receive) | compute (never calls MPI) | lock (rank 0 holds what the others want) | finalize (ends slowly, over and over)
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void mix(int rank, int size) {
    enum { most = 2000000 };
    char* out = malloc(most);
    char* in = malloc(most);
    static const int sizes[] = {0, 8, 40, 100, 5000, 70000, 1000000, most};
    memset(out, rank, most);
    for (unsigned i = 0;; i++) {
        const int bytes = sizes[i % 8];
        MPI_Request requests[2];
        MPI_Irecv(in, bytes, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (i % 50 == 0) {
            int one = 1, sum;
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
    }
}

// Rank 0 locks its part of a window and computes; the others wait for the lock.
static void want_lock(int rank) {
    int* base;
    MPI_Win win;
    MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    for (;;) pause();
}

int main(int argc, char** argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char line[64];
    int length = snprintf(line, sizeof line, "rank %d pid %d\n", rank, (int)getpid());
    if (write(1, line, (size_t)length) != length) return 3;
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "block")) {
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (argc > 1 && !strcmp(argv[1], "compute")) {
        for (;;) pause();
    } else if (argc > 1 && !strcmp(argv[1], "lock")) {
        want_lock(rank);
    } else {
        mix(rank, size);
    }
    return 0;
}
