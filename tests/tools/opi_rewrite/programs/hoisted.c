/* One buffer for all steps, packed through an index list. Even ranks send first, so blocking calls end. */
#include "ring.h"

int main(int argc, char **argv)
{
    int n = 1000, step, i;
    begin(&argc, &argv);
    double *x = malloc(n * sizeof *x);
    int *list = malloc(n * sizeof *list);
    for (i = 0; i < n; i++) {
        x[i] = rank * 1000 + i;
        list[i] = (i * 7) % n;
    }
    double *out = malloc(n * sizeof *out), *in = malloc(n * sizeof *in);
    for (step = 0; step < 5; step++) {
        if (rank % 2 == 0) {
            for (i = 0; i < n; i++)
                out[i] = x[list[i]] + step;
            MPI_Send(out, n, MPI_DOUBLE, right, step, MPI_COMM_WORLD);
            MPI_Recv(in, n, MPI_DOUBLE, left, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < n; i++)
                x[i] += 0.5 * in[i];
        } else {
            MPI_Recv(in, n, MPI_DOUBLE, left, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (i = 0; i < n; i++)
                out[i] = x[list[i]] - step;
            for (i = 0; i < n; i++)
                x[i] += 0.25 * in[i];
            MPI_Send(out, n, MPI_DOUBLE, right, step, MPI_COMM_WORLD);
        }
    }
    free(out);
    free(in);
    end(x, n);
    free(x);
    free(list);
    return 0;
}
