/* Filled and emptied by memcpy; message in bytes. */
#include "ring.h"

struct particle {
    double position[3], speed[3];
};

int main(int argc, char **argv)
{
    int n = 40;
    begin(&argc, &argv);
    struct particle *mine = malloc(n * sizeof *mine), *theirs = malloc(n * sizeof *theirs);
    double *x = (double *)mine;
    for (int i = 0; i < 6 * n; i++)
        x[i] = 10 * rank + i;
    struct particle *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in);
    for (int step = 0; step < 3; step++) {
        MPI_Request request;
        memcpy(out, mine, n * sizeof(*out));
        MPI_Isend(out, n * sizeof(*out), MPI_BYTE, right, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(in, n * (int)sizeof(*in), MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(theirs, in, n * sizeof(*in));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            mine[i].position[0] += theirs[i].speed[2];
    }
    free(in);
    free(out);
    end(x, 6 * n);
    free(mine);
    free(theirs);
    return 0;
}
