/* What looks like a simple exchange and is none. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define ASSIGN =
#define NEXT(k) (k)++
#define DOUBLED(k) ((k) = 2 * (k))

struct box {
    int n, m;
};

void other_type(float *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            ((float *)out)[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is accessed as another type */
    }
    free(out);
}

void member_changes(double *x, struct box b, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < b.n; i++)
            out[i] = x[i];
        b.n++;
        MPI_Send(out, b.n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 32 may change here */
    }
    free(out);
}

void struct_changes(double *x, struct box *b, struct box *c, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < b->n; i++)
            out[i] = x[i];
        *c = *(b + 1);
        MPI_Send(out, b->n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 44 may change here */
    }
    free(out);
}

void call_changes(double *x, struct box *b, int to, void (*f)(struct box *))
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < b->n; i++)
            out[i] = x[i];
        f(b);
        MPI_Send(out, b->n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 56 may change here */
    }
    free(out);
}

void message_changes(double *x, int *counts, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < counts[0]; i++)
            out[i] = x[i];
        MPI_Recv(counts, 1, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: it is a parameter */
        MPI_Send(out, counts[0], MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 68 may change here */
    }
    free(out);
}

void address_changes(double *x, int n, int to)
{
    double *out = malloc(100 * sizeof *out);
    int count = n, *place = &count;
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < count; i++)
            out[i] = x[i];
        *place = n + step;
        MPI_Send(out, count, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 81 may change here */
    }
    free(out);
}

void inner_bound_changes(double *x, int *lengths, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    for (int step = 0; step < 3; step++) {
        int m = 0;
        MPI_Recv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: how many elements are accessed depends on what is changed */
        for (int i = 0; i < n; i++) {
            m = lengths[i];
            for (int j = 0; j < m; j++)
                x[j] += in[i];
        }
    }
    free(in);
}

void waits_sometimes(double *x, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    MPI_Request request;
    MPI_Irecv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &request); /* stays: MPI_Wait is not in the same block as the receive */
    if (from > 0) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    x[0] = in[0];
    free(in);
}

void triangle(double *x, int n, int to)
{
    double *out = malloc(n * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < i; j++)
                out[i * n + j] = x[j];
        MPI_Send(out, n * n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: its index leaves elements out */
    }
    free(out);
}

void overlapping(double *x, int n, int m, int to)
{
    double *out = malloc(2 * n * m * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++)
                out[i * n + j] = x[j];
        MPI_Send(out, n * m, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: its index leaves elements out */
    }
    free(out);
}

void cancelled(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    MPI_Request request;
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Isend(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &request); /* stays: the function calls MPI_Cancel */
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(out);
}

static void add(double *out, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        out[i] += x[i];
}

static void some(double *out, const double *x, int n)
{
    if (n > 100)
        return;
    for (int i = 0; i < n; i++)
        out[i] = x[i];
}

static void fewer(double *out, const double *x, int n)
{
    n = n / 2;
    for (int i = 0; i < n; i++)
        out[i] = x[i];
}

static double *kept;
static void keep(double *out, const double *x, int n)
{
    kept = out;
    for (int i = 0; i < n; i++)
        out[i] = x[i];
}

void by_functions(double *x, int n, int to)
{
    double *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b), *c = calloc(n, sizeof *c), *d = calloc(n, sizeof *d);
    add(a, x, n);
    MPI_Send(a, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: add does not only write it */
    some(b, x, n);
    MPI_Send(b, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: some may return early */
    fewer(c, x, n);
    MPI_Send(c, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: how many elements fewer accesses does not follow */
    keep(d, x, n);
    MPI_Send(d, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 'kept' is made an alias of it */
}

void received_as_column(double *x, int n, int from, MPI_Datatype column)
{
    double *in = malloc(n * n * sizeof *in);
    MPI_Recv(in, 1, column, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: 'column' may be a derived datatype */
    for (int i = 0; i < n; i++)
        x[i] = in[i * n];
    free(in);
}

void in_expression(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    int err = ({
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the call is in a block that is an expression */
    });
    free(out);
    x[0] = err;
}

void assigned_by_macro(double *x, int n, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        n ASSIGN n + 1;
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line .* may change here */
    }
    free(out);
}

void counted_by_macro(double *x, int n, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        NEXT(n);
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line .* may change here */
    }
    free(out);
}

void count_has_effects(double *x, int n, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 2 * n; i++)
            out[i] = x[i];
        MPI_Send(out, DOUBLED(n), MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: '.*' has effects of its own */
    }
    free(out);
}

void pointers_size(double *x, int n, int to)
{
    double *out = malloc(n * sizeof(struct box *));
    for (int step = 0; step < 3; step++) {
        memcpy(out, x, n * sizeof(struct box *) / 2);
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 8 \* n bytes are sent, and .* are written */
    }
    free(out);
}

void elvis(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            x[i] > 0 ?: (out[i] = x[i]);
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: (it is within something that cannot be followed|a condition decides) */
    }
    free(out);
}

void volatile_count(double *x, volatile int *n, int to)
{
    double *out = malloc(100 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < *n; i++)
            out[i] = x[i];
        MPI_Send(out, *n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: .* is volatile */
    }
    free(out);
}
