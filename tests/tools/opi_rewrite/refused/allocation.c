/* Buffers whose allocation or release cannot be moved. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

void freed_twice(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is freed at several places .lines 13 and 15. */
    if (n > 10)
        free(out);
    else
        free(out);
}

void reallocated(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 4; step++) {
        out = realloc(out, (n + step) * sizeof *out);
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is reallocated */
    }
    free(out);
}

void allocated_twice(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    if (n > 100) {
        out = malloc(2 * n * sizeof *out);
    }
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is allocated at several places */
    free(out);
}

int failure_handled(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    if (!out)
        return 1;
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: a failed allocation is handled in a way that cannot be moved */
    free(out);
    return 0;
}

void size_with_effects(double *x, int n, int to)
{
    double *out = malloc(n++ * sizeof *out);
    for (int i = 0; i < n - 1; i++)
        out[i] = x[i];
    MPI_Send(out, n - 1, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 'n\+\+ \* sizeof \*out' has effects of its own */
    free(out);
}

void with_info(double *x, int n, int to, MPI_Info info)
{
    double *out;
    MPI_Alloc_mem(n * sizeof *out, info, &out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: MPI_Alloc_mem gets an info */
    MPI_Free_mem(out);
}

void interior(double *x, int n, int to)
{
    double *out = malloc(2 * n * sizeof *out);
    for (int i = 0; i < 2 * n; i++)
        out[i] = x[i];
    MPI_Send(out + n, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);  /* stays: it is an address within something */
    MPI_Send(&out[n], n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);  /* stays: it is an address within something */
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);      /* stays: 'out \+ n' points into it */
    free(out);
}

void moving(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        *out++ = x[i];
    out -= n;
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the pointer is moved */
    free(out);
}

void part_and_whole(double *x, int n, int to)
{
    double *all = malloc(4 * n * sizeof *all);
    for (int p = 0; p < 4; p++) {
        double *out = all + p * n;
        for (int i = 0; i < n; i++)
            out[i] = x[i] + p;
        MPI_Send(out, n, MPI_DOUBLE, to + p, 0, MPI_COMM_WORLD); /* stays: 'all', of which it is a part, is also used as a whole */
    }
    x[0] = all[3];
    free(all);
}

void part_with_gaps(double *x, int n, int to)
{
    double *all = malloc(4 * n * sizeof *all);
    memset(all, 0, 4 * n * sizeof *all);
    for (int p = 0; p < 4; p++) {
        double *out = all + p * n;
        for (int i = 0; i < n / 2; i++)
            out[i] = x[i] + p;
        MPI_Send(out, n, MPI_DOUBLE, to + p, 0, MPI_COMM_WORLD); /* stays: 8 \* n bytes are sent, and 8 \* \(n / 2\) are written */
    }
    free(all);
}

struct holder {
    double *buffer;
};

void member(struct holder *holder, double *x, int n, int to)
{
    holder->buffer = malloc(n * sizeof(double));
    for (int i = 0; i < n; i++)
        holder->buffer[i] = x[i];
    MPI_Send(holder->buffer, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is .*, not a local pointer */
    free(holder->buffer);
}
