/* The transpose of a two-dimensional FFT as an exchange with one rank after the other. The one-dimensional transforms are a stand-in.
   Both matrices lie in memory that the ranks of a node share. */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define TRANSPOSE 3

static int rank, size;

static void transpose(const double complex *a, double complex *b, int n, int rows)
{
    double complex *out = malloc((size_t)rows * rows * sizeof *out), *in = malloc((size_t)rows * rows * sizeof *in);
    for (int step = 0; step < size; step++) {
        const int to = (rank + step) % size, from = (rank + size - step) % size;
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < rows; x++)
                out[y * rows + x] = a[y * n + to * rows + x];
        MPI_Sendrecv(out, rows * rows, MPI_C_DOUBLE_COMPLEX, to, TRANSPOSE, in, rows * rows, MPI_C_DOUBLE_COMPLEX, from, TRANSPOSE,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < rows; x++)
                b[y * n + from * rows + x] = in[x * rows + y];
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rows = 16, n = rows * size;
    double complex *a, *b;
    MPI_Alloc_mem((size_t)rows * n * sizeof *a, MPI_INFO_NULL, &a);
    MPI_Alloc_mem((size_t)rows * n * sizeof *b, MPI_INFO_NULL, &b);
    for (int i = 0; i < rows * n; i++)
        a[i] = (rank * rows * n + i) % 97 + I * (i % 13);
    for (int round = 0; round < 3; round++) {
        transpose(a, b, n, rows);
        for (int i = 0; i < rows * n; i++)
            b[i] = b[i] * (1.0 + 0.5 * I) + i;
        transpose(b, a, n, rows);
    }
    for (int i = 0; i < rows * n; i++)
        sum += (creal(a[i]) - 2 * cimag(a[i])) * (i + 1);
    printf("rank %d: %.17g\n", rank, sum);
    MPI_Free_mem(a);
    MPI_Free_mem(b);
    MPI_Finalize();
    return 0;
}
