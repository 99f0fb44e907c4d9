/* A buffer for each message, allocated, filled under conditions, sent and freed within the loop: nothing is left from before. */
#include "ring.h"

int main(int argc, char **argv)
{
    enum { N = 200 };
    double x[N];
    begin(&argc, &argv);
    for (int i = 0; i < N; i++)
        x[i] = rank + i * 0.25;
    for (int step = 0; step < 4; step++) {
        MPI_Request request;
        double *in = malloc(N * sizeof(double));
        MPI_Irecv(in, N, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, &request);
        int n = N / 2 + step;
        double *out = malloc(n * sizeof(double));
        if (out == NULL) {
            fprintf(stderr, "no memory\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        for (int i = 0; i < n; i++) {
            if (x[i] > 10)
                out[i] = x[i];
            else
                out[i] = -x[i];
        }
        MPI_Send(out, n, MPI_DOUBLE, right, 7, MPI_COMM_WORLD);
        free(out);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++)
            x[i] = 0.5 * (x[i] + in[i]);
        free(in);
    }
    return end(x, N);
}
