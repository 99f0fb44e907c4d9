/* A few numbers in single elements, set one by one, and one number through '*'. */
#include "ring.h"

int main(int argc, char **argv)
{
    double x[3] = {0};
    begin(&argc, &argv);
    double *out = malloc(3 * sizeof *out), *in = malloc(3 * sizeof *in);
    int *flag = malloc(sizeof *flag), *told = malloc(sizeof(int));
    for (int step = 0; step < 3; step++) {
        out[1] = rank;
        out[0] = step;
        out[2] = x[2] + 1;
        MPI_Sendrecv(out, 3, MPI_DOUBLE, right, 0, in, 3, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        x[0] += in[0];
        if (in[1] > 0)
            x[1] += in[1];
        x[2] += in[2];
        *flag = rank + step;
        MPI_Sendrecv(flag, 1, MPI_INT, left, 1, told, 1, MPI_INT, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        x[0] += *told;
    }
    free(out);
    free(in);
    free(flag);
    free(told);
    return end(x, 3);
}
