/* Packed and unpacked with running counters, in buffers of which calloc cleared more than is sent; MPI_Sendrecv. */
#include "ring.h"

int main(int argc, char **argv)
{
    int n = 64, i, m;
    begin(&argc, &argv);
    double *x = calloc(3 * n, sizeof *x);
    for (i = 0; i < 3 * n; i++)
        x[i] = rank * 3 + i;
    double *out = calloc(10 * n, sizeof(double));
    double *in = calloc(10 * n, sizeof(double));
    for (int step = 0; step < 3; step++) {
        m = 0;
        for (i = 0; i < n; i++) {
            out[m++] = x[3 * i];
            if ((i + step) % 2)
                out[m++] = x[3 * i + 1];
        }
        MPI_Status status;
        MPI_Sendrecv(out, m, MPI_DOUBLE, right, 1, in, 10 * n, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &status);
        int got = 0;
        MPI_Get_count(&status, MPI_DOUBLE, &got);
        m = 0;
        for (i = 0; i < got; i++)
            x[3 * (i % n) + 2] += in[m++] * (status.MPI_SOURCE + 1);
    }
    if (out != NULL)
        free(out);
    free(in);
    end(x, 3 * n);
    free(x);
    return 0;
}
