/* Sends and receives that do not always happen, or that something interrupts. */
#include <mpi.h>
#include <setjmp.h>
#include <stdlib.h>

#define SEND(buffer, n, to) MPI_Send(buffer, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD)
#define CHECK(call) do { if ((call) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1); } while (0)
#define PUT(i, value) out[i] = value

static jmp_buf place;

void conditional(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    if (to != MPI_PROC_NULL)
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: a condition decides whether the call happens */
    free(out);
}

void conditional_block(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    if (to != MPI_PROC_NULL) {
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is used outside of the block of MPI_Send at line 28 */
    }
    free(out);
}

void in_condition(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    if (MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD) != MPI_SUCCESS) /* stays: a condition decides whether the call happens */
        MPI_Abort(MPI_COMM_WORLD, 1);
    free(out);
}

void leaves(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        if (x[step] < 0)
            break;
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: a loop may be left here */
    }
    free(out);
}

int returns(double *x, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    MPI_Recv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: the function may return here */
    if (x[0] < 0)
        return 1;
    for (int i = 0; i < n; i++)
        x[i] = in[i];
    free(in);
    return 0;
}

void jumps(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
again:
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the function jumps with goto */
    if (x[0]-- > 0)
        goto again;
    free(out);
}

void long_jumps(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    if (x[0] < 0)
        longjmp(place, 1);
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the function calls longjmp */
    free(out);
}

void by_macro(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    SEND(out, n, to); /* stays: the macro SEND produces the call */
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    CHECK(MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD)); /* stays: the macro CHECK produces the call */
    free(out);
}

void packed_by_macro(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        PUT(i, x[i]);
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the macro PUT uses it */
    free(out);
}

void compiled_either_way(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
#ifdef SYNCHRONOUS
    MPI_Ssend(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD);
#else
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: there is a '#ifdef' within the function */
#endif
    free(out);
}

void parallel(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
#pragma omp parallel for
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: there is a '#pragma' within the function */
    free(out);
}

void nested(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is sent or received in this block and in the one around it */
    while (x[0] > 0) {
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is sent or received in this block and in the one around it */
    }
    free(out);
}

void in_switch(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    switch (to) {
    case 0:
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the call is not a statement of its own */
        break;
    }
    free(out);
}
