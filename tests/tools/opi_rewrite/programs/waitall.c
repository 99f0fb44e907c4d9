/* Both directions at once with non-blocking calls, completed by one MPI_Waitall. */
#include "ring.h"

int main(int argc, char **argv)
{
    int n = 3000, steps = argc > 1 ? atoi(argv[1]) : 6;
    begin(&argc, &argv);
    double *x = malloc(n * sizeof *x);
    for (int i = 0; i < n; i++)
        x[i] = i % 17 + rank;
    double *to_left, *to_right, *from_left, *from_right;
    to_left = (double *)malloc((size_t)n * sizeof(double));
    to_right = (double *)malloc((size_t)n * sizeof(double));
    from_left = (double *)malloc((size_t)n * sizeof(double));
    from_right = (double *)malloc((size_t)n * sizeof(double));
    MPI_Request requests[4];
    for (int step = 0; step < steps; step++) {
        MPI_Irecv(from_left, n, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(from_right, n, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < n; i++) {
            to_left[i] = x[i] * 2;
            to_right[i] = x[n - 1 - i];
        }
        MPI_Isend(to_right, n, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(to_left, n, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            x[i] = 0.25 * (from_left[i] + from_right[i]);
    }
    free(to_left);
    free(to_right);
    free(from_left);
    free(from_right);
    end(x, n);
    free(x);
    return 0;
}
