/* The transpose of a two-dimensional FFT: each rank packs a block for each other, exchanges, and unpacks it transposed. The one-dimensional
   transforms are a stand-in. Blocks for all ranks lie in one buffer, of which each is sent as a part. */
#include <complex.h>
#include "ring.h"

static void transpose(const double complex *a, double complex *b, int n, int rows)
{
    double complex *all = malloc((size_t)n * rows * sizeof *all);
    double complex *in = malloc((size_t)rows * rows * sizeof *in);
    MPI_Request *requests = malloc(size * sizeof *requests);
    for (int to = 0; to < size; to++) {
        double complex *out = all + (size_t)to * rows * rows;
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < rows; x++)
                out[y * rows + x] = a[y * n + to * rows + x];
        MPI_Isend(out, rows * rows, MPI_C_DOUBLE_COMPLEX, to, 3, MPI_COMM_WORLD, &requests[to]);
    }
    for (int from = 0; from < size; from++) {
        MPI_Recv(in, 2 * rows * rows, MPI_DOUBLE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < rows; x++)
                b[y * n + from * rows + x] = in[x * rows + y];
    }
    MPI_Waitall(size, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(all);
    free(in);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int rows = 16, n = rows * size;
    double complex *a = malloc((size_t)rows * n * sizeof *a), *b = malloc((size_t)rows * n * sizeof *b);
    for (int i = 0; i < rows * n; i++)
        a[i] = (rank * rows * n + i) % 97 + I * (i % 13);
    for (int round = 0; round < 3; round++) {
        transpose(a, b, n, rows);
        for (int i = 0; i < rows * n; i++)
            b[i] = b[i] * (1.0 + 0.5 * I) + i;
        transpose(b, a, n, rows);
    }
    end((double *)a, 2 * rows * n);
    free(a);
    free(b);
    return 0;
}
