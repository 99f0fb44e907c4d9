/* A line of ranks without ends: MPI_PROC_NULL at both, and a boundary value where nothing comes. */
#include "ring.h"

int main(int argc, char **argv)
{
    int n = 25;
    begin(&argc, &argv);
    int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    double *x = malloc(n * n * sizeof *x), *ghost = malloc(n * sizeof *ghost);
    for (int i = 0; i < n * n; i++)
        x[i] = rank + i;
    double *row = malloc(n * sizeof *row);
    double *in = malloc(n * sizeof *in);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < n; i++)
            row[i] = x[(n - 1) * n + i];
        MPI_Sendrecv(row, n, MPI_DOUBLE, up, 9, in, n, MPI_DOUBLE, down, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (down != MPI_PROC_NULL)
            for (int i = 0; i < n; i++)
                ghost[i] = in[i];
        else
            for (int i = 0; i < n; i++)
                ghost[i] = -1;
        for (int i = 0; i < n; i++)
            x[(n - 1) * n + i] = 0.5 * (x[i] + ghost[i]);
    }
    free(row);
    free(in);
    end(x, n * n);
    free(x);
    free(ghost);
    return 0;
}
