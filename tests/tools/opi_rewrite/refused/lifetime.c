/* Buffers whose contents or addresses outlive the send. No function here may change; each call says why. */
#include <mpi.h>
#include <stdlib.h>

double *kept;
double *global_buffer;
void other(double *p);

void used_after(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is written here, and not sent in the same block */
    for (int i = 0; i < n; i++)
        out[i] = 2 * x[i];
    x[0] = out[n - 1];
    free(out);
}

void read_after(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is written here, and not sent in the same block */
    for (int i = 0; i < n; i++)
        x[i] += out[i];
    free(out);
}

void sent_twice(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is not written in the same block before it is sent */
    MPI_Send(out, n, MPI_DOUBLE, to + 1, 0, MPI_COMM_WORLD); /* stays: it is not written in the same block before it is sent */
    free(out);
}

void loop_carried(double *x, int n, int to)
{
    double *out = calloc(n, sizeof *out);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < n; i++)
            out[i] += x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is read before all that is sent is written */
    }
    free(out);
}

void partly_packed_again(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 10; step++) {
        for (int i = step; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: a loop does not begin at 0 */
    }
    free(out);
}

void packed_once(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    for (int step = 0; step < 10; step++) {
        MPI_Send(out, n, MPI_DOUBLE, to, step, MPI_COMM_WORLD); /* stays: it is used outside of the block */
    }
    free(out);
}

void cleared_once(double *x, int n, int to)
{
    double *out = calloc(n, sizeof *out);
    for (int i = 0; i < n; i++)
        if (x[i] > 0)
            out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: a condition decides whether it happens */
    free(out);
}

void skips(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < n; i++) {
            if (x[i] < 0)
                continue;
            out[i] = x[i];
        }
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the loop at line .* may be left or cut short here */
    }
    free(out);
}

void escapes_to_global(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    kept = out;
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 'kept' is made an alias of it */
}

void escapes_to_function(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    other(out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is passed to other, which may use or keep it */
    free(out);
}

double *escapes_to_caller(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is returned to the caller */
    return out;
}

void aliased(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out), *same = out;
    for (int i = 0; i < n; i++)
        same[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 'same' is made an alias of it */
    free(out);
}

void swapped(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out), *next = malloc(n * sizeof *next);
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 'hold' is made an alias of it */
        double *hold = out;
        out = next;
        next = hold;
    }
}

void address_taken(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out), **place = &out;
    for (int i = 0; i < n; i++)
        (*place)[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the address of the pointer is taken */
    free(out);
}

void static_pointer(double *x, int n, int to)
{
    static double *out;
    if (!out)
        out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: */
}

void global_pointer(double *x, int n, int to)
{
    for (int i = 0; i < n; i++)
        global_buffer[i] = x[i];
    MPI_Send(global_buffer, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is global */
}

void callers(double *out, double *x, int n, int to)
{
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is a parameter of callers: its caller owns it */
}

void stack(double *x, int n, int to)
{
    double out[100], many[n];
    for (int i = 0; i < 100; i++)
        out[i] = x[i];
    for (int i = 0; i < n; i++)
        many[i] = x[i];
    MPI_Send(out, 100, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is an array, not on the heap */
    MPI_Send(many, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is an array, not on the heap */
    double *out_again = out;
    out_again[0] = 1;
    MPI_Send(out_again, 1, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it begins as 'out', which is no part of a local buffer */
}
