/* A collector that takes messages of different lengths from any source, with any tag, and asks the status for everything. */
#include "ring.h"

int main(int argc, char **argv)
{
    int n = 100, i;
    begin(&argc, &argv);
    double *sums = calloc(n, sizeof *sums);
    if (rank == 0) {
        double *in = malloc(n * sizeof *in);
        for (int k = 1; k < size; k++) {
            MPI_Status status;
            int got;
            MPI_Recv(in, n, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_DOUBLE, &got);
            for (i = 0; i < got; i++)
                sums[i] += in[i] * status.MPI_TAG;
        }
        free(in);
    } else {
        double *out = malloc(n * sizeof *out);
        for (i = 0; i < n / rank; i++)
            out[i] = rank + i;
        MPI_Send(out, n / rank, MPI_DOUBLE, 0, rank, MPI_COMM_WORLD);
        free(out);
    }
    end(sums, n);
    free(sums);
    return 0;
}
