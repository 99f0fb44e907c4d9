/* Packing and unpacking are functions of the same source. */
#include "ring.h"

static void pack(double *buffer, const double *x, const int *list, int count, double shift)
{
    int m = 0;
    for (int i = 0; i < count; i++) {
        buffer[m++] = x[3 * list[i]] + shift;
        buffer[m++] = x[3 * list[i] + 1];
        buffer[m++] = x[3 * list[i] + 2];
    }
}

static void unpack(const double *buffer, double *x, int first, int count)
{
    for (int i = 0; i < count; i++)
        for (int d = 0; d < 3; d++)
            x[3 * (first + i) + d] = buffer[3 * i + d];
}

int main(int argc, char **argv)
{
    int n = 50, ghosts = 20;
    begin(&argc, &argv);
    double *x = malloc(3 * (n + ghosts) * sizeof *x);
    int *list = malloc(ghosts * sizeof *list);
    for (int i = 0; i < 3 * (n + ghosts); i++)
        x[i] = rank - i;
    for (int i = 0; i < ghosts; i++)
        list[i] = 2 * i;
    double *out = malloc(3 * ghosts * sizeof *out);
    double *in = malloc(3 * ghosts * sizeof *in);
    for (int step = 0; step < 3; step++) {
        MPI_Request request;
        pack(out, x, list, ghosts, 0.5 * step);
        MPI_Isend(out, 3 * ghosts, MPI_DOUBLE, right, step, MPI_COMM_WORLD, &request);
        MPI_Recv(in, 3 * ghosts, MPI_DOUBLE, left, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        unpack(in, x, n, ghosts);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 3 * ghosts; i++)
            x[i] += x[3 * n + i];
    }
    free(out);
    free(in);
    end(x, 3 * (n + ghosts));
    free(x);
    free(list);
    return 0;
}
