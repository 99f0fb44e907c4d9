/* Exchanges that only sometimes may be fused: an index list that reaches into what is received (every third step), and a receiver that
   unpacks fewer elements than are packed (every second step). In the end the same array is both source and target, without a list. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 90, LISTED = 1, SHORTER = 2, SHIFTED = 3 };

int main(int argc, char **argv)
{
    int rank, size, list[N];
    double *x, *y, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Alloc_mem(2 * N * sizeof *x, MPI_INFO_NULL, &x);
    MPI_Alloc_mem(2 * N * sizeof *y, MPI_INFO_NULL, &y);
    for (int i = 0; i < 2 * N; i++)
        y[i] = x[i] = rank * 7 + i;
    double *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    for (int step = 0; step < 12; step++) {
        for (int i = 0; i < N; i++)
            list[i] = (i * 11 + step) % N + (step % 3 == 0 ? N / 2 : 0);
        for (int i = 0; i < N; i++)
            out[i] = x[list[i]] + 0.5;
        MPI_Sendrecv(out, N, MPI_DOUBLE, right, LISTED, in, N, MPI_DOUBLE, left, LISTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++)
            x[N + i] = in[i];
        const int few = step % 2 ? N : N / 3;
        for (int i = 0; i < N; i++)
            out[i] = x[i] * 0.75;
        MPI_Sendrecv(out, N, MPI_DOUBLE, left, SHORTER, in, N, MPI_DOUBLE, right, SHORTER, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: 'x\[i\] \* 0.75' is not one element */
        for (int i = 0; i < few; i++)
            y[i] += in[i];
        for (int i = 0; i < N; i++)
            out[i] = x[i];
        MPI_Sendrecv(out, N, MPI_DOUBLE, left, SHIFTED, in, N, MPI_DOUBLE, right, SHIFTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < few; i++)
            x[i + N - N / 3] += 0.25 * in[i] + y[i];
        for (int i = 0; i < 2 * N; i++)
            x[i] = 0.5 * x[i] + y[i % N] / 1024;
    }
    free(out);
    free(in);
    for (int i = 0; i < 2 * N; i++)
        sum += x[i] * (i + 1) + y[i];
    printf("rank %d: %.17g\n", rank, sum);
    MPI_Free_mem(x);
    MPI_Free_mem(y);
    MPI_Finalize();
    return 0;
}
