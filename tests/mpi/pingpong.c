// Two ranks, back and forth, each size a few times; small enough to run under memcheck: `pingpong [ROUNDS]`.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    static const int sizes[] = {0, 1, 8, 40, 41, 64, 500, 4096, 8192, 8193, 20000, 65536, 65537, 200001, 1000000};
    const int rounds = argc > 1 ? atoi(argv[1]) : 20;
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        // Exactly as large as the message, so that memcheck sees a byte too many.
        char* buf = malloc((size_t)sizes[i]);
        if (rank == 0) fill(buf, (size_t)sizes[i], 1);
        for (int round = 0; round < rounds && rank < 2; round++) {
            if (rank == 0) {
                MPI_Send(buf, sizes[i], MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                memset(buf, 0, (size_t)sizes[i]);
                MPI_Recv(buf, sizes[i], MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(buf, sizes[i], MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(buf, sizes[i], MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        }
        if (rank == 0) CHECK(differs(buf, (size_t)sizes[i], 1) < 0, "%d bytes are wrong", sizes[i]);
        free(buf);
    }
    // Requests that are still listed, unexpected messages, duplicates: Finalize has things to free.
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Request requests[4];
    int values[4], peer = rank ^ 1;
    if (peer < size) {
        for (int i = 0; i < 4; i++) MPI_Irecv(&values[i], 1, MPI_INT, peer, i, dup, &requests[i]);
        for (int i = 3; i >= 0; i--) MPI_Send(&i, 1, MPI_INT, peer, i, dup);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Comm_free(&dup);
    return finish();
}
