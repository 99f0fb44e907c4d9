// Dekker's litmus test through two windows: each of two ranks puts to one, completes that, and reads the other. A flush keeps the put before
// the read, so at least one of them sees the other's put.
// usage: rma_dekker ROUNDS
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 20000;
    MPI_Win win[2];
    for (int i = 0; i < 2; i++) {
        int* base;
        OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win[i]));
        *base = 0;
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++) OK(MPI_Win_lock_all(0, win[i]));
    // Both words are rank 0's. Numbers grow, so that nothing has to be reset.
    for (int i = 1; i <= rounds; i++) {
        int seen = -1, theirs;
        if (rank < 2) {
            OK(MPI_Put(&i, 1, MPI_INT, 0, 0, 1, MPI_INT, win[rank]));
            OK(MPI_Win_flush(0, win[rank]));
            OK(MPI_Get(&seen, 1, MPI_INT, 0, 0, 1, MPI_INT, win[1 - rank]));
            OK(MPI_Win_flush(0, win[1 - rank]));
        }
        if (rank < 2) {
            OK(MPI_Sendrecv(&seen, 1, MPI_INT, 1 - rank, 0, &theirs, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(seen == i || theirs == i, "round %d: the ranks saw %d and %d of each other", i, seen, theirs);
        }
    }
    for (int i = 0; i < 2; i++) {
        OK(MPI_Win_unlock_all(win[i]));
        OK(MPI_Win_free(&win[i]));
    }
    return finish();
}
