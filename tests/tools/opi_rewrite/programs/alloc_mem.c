/* MPI_Alloc_mem, a failed allocation that stops the program, an assignment of the result, a nest of loops. */
#include "ring.h"

int main(int argc, char **argv)
{
    int rows = 12, columns = 9, err;
    double *out, *in = NULL;
    begin(&argc, &argv);
    double *x = malloc(rows * columns * sizeof *x);
    for (int i = 0; i < rows * columns; i++)
        x[i] = i * (rank + 1);
    MPI_Alloc_mem(rows * columns * sizeof(double), MPI_INFO_NULL, &out);
    if (!out)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Alloc_mem(rows * columns * sizeof(double), MPI_INFO_NULL, &in);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                out[j * rows + i] = x[i * columns + j];
        MPI_Request request;
        err = MPI_Isend(out, columns * rows, MPI_DOUBLE, right, 5, MPI_COMM_WORLD, &request);
        if (err != MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, err);
        err = MPI_Recv(in, rows * columns, MPI_DOUBLE, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                x[i * columns + j] += in[i * columns + j];
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Free_mem(out);
    MPI_Free_mem(in);
    end(x, rows * columns);
    free(x);
    return 0;
}
