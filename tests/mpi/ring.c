// A token goes round many ranks, more than there are processors: `ring [HOPS]`.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    const int hops = argc > 1 ? atoi(argv[1]) : 10000;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    // Hop h is made by rank h mod size.
    int token = 0;
    for (int h = rank; h < hops; h += size) {
        if (h > 0) MPI_Recv(&token, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(token == h, "the token says %d at hop %d", token, h);
        token++;
        if (h + 1 < hops) MPI_Send(&token, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return finish();
}
