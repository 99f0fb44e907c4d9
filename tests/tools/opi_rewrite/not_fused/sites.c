/* Exchanges that are not fused, each for one reason; ownership of their buffers is passed all the same. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMMUNICATOR = 1, LISTS, LOOP_VARIABLE, BOTH_COMPUTE, ROUNDED, RECEIVER_COMPUTES, MORE_BETWEEN, SAME, ARRAYS, ANY, SHAPES, MORE, FEWER, STATUS, ORDER };
#define N 12
#define M 4

static int rank, size, right, left;

static void who(double *x, MPI_Comm comm, int tag)
{
    double *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    for (int i = 0; i < N; i++)
        out[i] = x[i];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, COMMUNICATOR, in, N, MPI_DOUBLE, left, COMMUNICATOR, comm, MPI_STATUS_IGNORE); /* not fused: its communicator is 'comm' */
    for (int i = 0; i < N; i++)
        x[i] += in[i];
    free(out);
    free(in);
}

static void expressions(double *x, double *y, float *z, const int *list)
{
    double *out = malloc(2 * N * sizeof *out), *in = malloc(2 * N * sizeof *in);
    for (int i = 0; i < N; i++)
        out[i] = x[list[i]];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, LISTS, in, N, MPI_DOUBLE, left, LISTS, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: both sides use index lists */
    for (int i = 0; i < N; i++)
        y[list[i]] += in[i];
    for (int i = 0; i < N; i++)
        out[i] = x[list[i]] * 0.3;
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, BOTH_COMPUTE, in, N, MPI_DOUBLE, left, BOTH_COMPUTE, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: packing and unpacking both compute */
    for (int i = 0; i < N; i++)
        y[i] += in[i];
    for (int i = 0; i < N; i++)
        out[i] = x[list[i]];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, RECEIVER_COMPUTES, in, N, MPI_DOUBLE, left, RECEIVER_COMPUTES, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: the receiver computes with what it receives */
    for (int i = 0; i < N; i++)
        y[i] = 0.5 * in[i];
    for (int i = 0; i < N; i++)
        out[i] = x[i];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, ROUNDED, in, N, MPI_DOUBLE, left, ROUNDED, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: what is unpacked has another type */
    for (int i = 0; i < N; i++)
        z[i] = in[i];
    for (int i = 0; i < N; i++) {
        out[2 * i] = x[i];
        out[2 * i + 1] = y[i];
    }
    MPI_Sendrecv(out, 2 * N, MPI_DOUBLE, right, ARRAYS, in, 2 * N, MPI_DOUBLE, left, ARRAYS, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: several arrays of one rank are involved */
    for (int i = 0; i < N; i++) {
        x[i] = in[2 * i + 1];
        y[i] = in[2 * i];
    }
    for (int i = 0; i < N; i++)
        out[i] = x[i];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, SHAPES, in, N, MPI_DOUBLE, left, SHAPES, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: no packed element is seen to be the received one */
    for (int i = 0; i < N / 2; i++)
        y[i] += in[2 * i];
    for (int i = 0; i < N; i++) {
        out[i] = x[i];
        y[i] += 1;
    }
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, MORE, in, N, MPI_DOUBLE, left, MORE, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: the packing loop does more than fill the buffer */
    for (int i = 0; i < N; i++)
        x[i] = in[i];
    free(out);
    free(in);
}

static void fewer(double *x, double *y)
{
    double *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    for (int i = 0; i < N; i++)
        out[i] = x[i];
    MPI_Sendrecv(out, M, MPI_DOUBLE, right, FEWER, in, N, MPI_DOUBLE, left, FEWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: what is packed and what is sent are not seen */
    for (int i = 0; i < M; i++)
        y[i] += in[i];
    free(out);
    free(in);
}

static void statements(double *x, double *y, const int *list)
{
    int i;
    double *out = malloc(N * sizeof *out), *in = malloc(N * sizeof *in);
    for (i = 0; i < N; i++)
        out[i] = x[i];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, LOOP_VARIABLE, in, N, MPI_DOUBLE, left, LOOP_VARIABLE, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: 'i' lives on behind the loop */
    for (i = 0; i < N; i++)
        y[i] += in[i];
    for (int k = 0; k < N; k++)
        out[k] = x[k];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, MORE_BETWEEN, in, N, MPI_DOUBLE, left, MORE_BETWEEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: between packing and unpacking there is more */
    x[0] = 1;
    for (int k = 0; k < N; k++)
        y[k] += in[k];
    for (int k = 0; k < N; k++)
        out[k] = x[k];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, SAME, in, N, MPI_DOUBLE, left, SAME, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: this message could be one of the exchange */
    for (int k = 0; k < N; k++)
        y[k] += in[k];
    for (int k = 0; k < N; k++)
        out[k] = y[k];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, SAME, in, N, MPI_DOUBLE, left, SAME, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: this message could be one of the exchange */
    for (int k = 0; k < N; k++)
        x[k] += in[k];
    for (int k = 0; k < N; k++)
        out[k] = y[k];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, ANY, in, N, MPI_DOUBLE, MPI_ANY_SOURCE, ANY, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: it receives from any source */
    for (int k = 0; k < N; k++)
        x[k] += in[k];
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Status status;
    for (int k = 0; k < N; k++)
        out[k] = y[k];
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, STATUS, in, N, MPI_DOUBLE, left, STATUS, MPI_COMM_WORLD, &status); /* not fused: it receives from any source, or asks for the status */
    for (int k = 0; k < N; k++)
        x[k] += in[k];
    for (int k = 0; k < M; k++)
        for (int d = 0; d < 3; d++)
            out[3 * k + d] = y[list[3 * k + d]];
    MPI_Sendrecv(out, 3 * M, MPI_DOUBLE, right, ORDER, in, N, MPI_DOUBLE, left, ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* not fused: the two loops run in different orders */
    for (int d = 0; d < 3; d++)
        for (int k = 0; k < M; k++)
            x[3 * k + d] = in[3 * k + d];
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    int list[N];
    double *x, *y, sum = 0;
    float *z = calloc(N, sizeof *z);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    MPI_Alloc_mem(N * sizeof *x, MPI_INFO_NULL, &x);
    MPI_Alloc_mem(N * sizeof *y, MPI_INFO_NULL, &y);
    for (int i = 0; i < N; i++) {
        x[i] = rank + i;
        y[i] = rank - i;
        list[i] = (i * 5) % N;
    }
    for (int step = 0; step < 3; step++) {
        who(x, MPI_COMM_WORLD, step);
        MPI_Barrier(MPI_COMM_WORLD);
        expressions(x, y, z, list);
        fewer(x, y);
        MPI_Barrier(MPI_COMM_WORLD);
        statements(x, y, list);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < N; i++)
        sum += x[i] * (i + 1) + y[i] + z[i];
    printf("rank %d: %.17g\n", rank, sum);
    MPI_Free_mem(x);
    MPI_Free_mem(y);
    free(z);
    MPI_Finalize();
    return 0;
}
