/* A token that each rank takes, changes in place and gives on: one buffer travels around the ring. */
#include "ring.h"

int main(int argc, char **argv)
{
    int n = 500, i;
    begin(&argc, &argv);
    double last[1] = {0};
    int *token = malloc(n * sizeof(int));
    for (int lap = 0; lap < 3; lap++) {
        if (rank == 0) {
            for (i = 0; i < n; i++)
                token[i] = i + lap;
            MPI_Send(token, n, MPI_INT, right, 0, MPI_COMM_WORLD);
            MPI_Recv(token, n, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < n; i++)
                last[0] += token[i];
        } else {
            MPI_Recv(token, n, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < n; i++)
                token[i] += rank * i;
            last[0] += token[n - 1];
            MPI_Send(token, n, MPI_INT, right, 0, MPI_COMM_WORLD);
        }
    }
    free(token);
    return end(last, 1);
}
