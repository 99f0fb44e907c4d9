/* Messages whose size, type or mode does not fit. */
#include <mpi.h>
#include <stdlib.h>

extern int extent(int);

void too_many(double *x, int n, int to)
{
    double *out = malloc(2 * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            out[i] = x[i];
        MPI_Send(out, 2 * n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 16 \* n bytes are sent, and 8 \* n are written at line 11 */
    }
    free(out);
}

void too_few(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n - 1; i++)
            out[i] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: 8 \* n bytes are sent, and 8 \* n - 8 are written at line 22 */
    }
    free(out);
}

void count_changes(double *x, int n, int to)
{
    double *out = malloc(2 * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        int count = n;
        for (int i = 0; i < count; i++)
            out[i] = x[i];
        count = 2 * n;
        MPI_Send(out, count, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 37 may change here */
    }
    free(out);
}

void counts_elsewhere(double *x, int *counts, int to)
{
    double *out = malloc(1000 * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < counts[0]; i++)
            out[i] = x[i];
        counts[step]++;
        MPI_Send(out, counts[0], MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the number of elements sent at line 49 may change here */
    }
    free(out);
}

void counter_moved(double *x, int n, int to)
{
    double *out = malloc(2 * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        int m = 0;
        for (int i = 0; i < n; i++) {
            out[m++] = x[i];
            m++;
        }
        MPI_Send(out, m, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the counter 'm' is changed here as well */
    }
    free(out);
}

void counter_not_reset(double *x, int n, int to)
{
    int m = 0;
    double *out = malloc(3 * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            out[m++] = x[i];
        MPI_Send(out, m, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the counter 'm' is not seen to be 0 here */
    }
    free(out);
}

void stride(double *x, int n, int to)
{
    double *out = malloc(3 * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++) {
            out[3 * i] = x[i];
            out[3 * i + 2] = x[i];
        }
        MPI_Send(out, 3 * n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: the elements written in each pass are \[0, 2\] */
    }
    free(out);
}

void scattered(double *x, int *list, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n; i++)
            out[list[i]] = x[i];
        MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: its index leaves elements out */
    }
    free(out);
}

void derived(double *x, int n, int to)
{
    MPI_Datatype column;
    MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    double *out = malloc(n * n * sizeof *out);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < n * n; i++)
            out[i] = x[i];
        MPI_Send(out, 1, column, to, 0, MPI_COMM_WORLD); /* stays: 'column' may be a derived datatype */
    }
    free(out);
}

void synchronous(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Ssend(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: a give does not wait for its receiver */
    free(out);
}

void broadcast(double *x, int n, int to)
{
    double *out = malloc(n * sizeof *out);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
    MPI_Bcast(out, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Send(out, n, MPI_DOUBLE, to, 0, MPI_COMM_WORLD); /* stays: it is passed to MPI_Bcast */
    free(out);
}

void read_by_condition(double *x, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    for (int step = 0; step < 3; step++) {
        MPI_Recv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: a condition decides whether it happens */
        for (int i = 0; i < n; i++)
            if (i < extent(n))
                x[i] = in[i];
    }
    free(in);
}

void read_anywhere(double *x, int *list, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    for (int step = 0; step < 3; step++) {
        MPI_Recv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: the index .* is not linear in the loop's variable */
        for (int i = 0; i < n; i++)
            x[i] = in[list[i]];
    }
    free(in);
}

void read_later(double *x, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    for (int step = 0; step < 3; step++) {
        MPI_Recv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* stays: it is used outside of the block */
    }
    x[0] = in[0];
    free(in);
}

void unknown_request(double *x, int n, int from, MPI_Request *requests, int k)
{
    double *in = malloc(n * sizeof *in);
    MPI_Irecv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &requests[k]); /* stays: the request .* cannot be followed */
    MPI_Waitall(k + 1, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        x[i] = in[i];
    free(in);
}

void never_waits(int n, int from, MPI_Request *request)
{
    double *in = malloc(n * sizeof *in);
    MPI_Request mine;
    MPI_Irecv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &mine); /* stays: no MPI_Wait or MPI_Waitall */
    *request = mine;
    free(in);
}

void used_too_early(double *x, int n, int from)
{
    double *in = malloc(n * sizeof *in);
    MPI_Request request;
    MPI_Irecv(in, n, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &request); /* stays: it is used before the receive at line .* is complete */
    x[0] = in[0];
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(in);
}
