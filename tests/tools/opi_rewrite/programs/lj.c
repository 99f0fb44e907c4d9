/* The exchange of a Lennard-Jones code: positions forward and forces in reverse, six swaps with shifted images, index lists on one side and
   rows on the other. Lists are made once; the forces are a stand-in. */
#include "ring.h"

enum { SWAPS = 6, LOCAL = 400, SEND = 60 };

struct swap {
    int to, from, count, first;
    int list[SEND];
    double shift[3];
};

static void make_swaps(struct swap *swaps)
{
    int ghosts = LOCAL;
    for (int s = 0; s < SWAPS; s++) {
        swaps[s].to = s % 2 ? left : right;
        swaps[s].from = s % 2 ? right : left;
        swaps[s].count = SEND - 5 * s;
        swaps[s].first = ghosts;
        for (int i = 0; i < swaps[s].count; i++)
            swaps[s].list[i] = (i * 7 + s) % (s < 2 ? LOCAL : ghosts);
        for (int d = 0; d < 3; d++)
            swaps[s].shift[d] = s / 2 == d ? (s % 2 ? 1.5 : -1.5) : 0;
        ghosts += swaps[s].count;
    }
}

static void forward(double *x, struct swap *swaps)
{
    double *out = malloc(3 * SEND * sizeof(double));
    double *in = malloc(3 * SEND * sizeof(double));
    for (int s = 0; s < SWAPS; s++) {
        const int n = swaps[s].count, first = swaps[s].first;
        const int *list = swaps[s].list;
        for (int i = 0; i < n; i++) {
            out[3 * i] = x[3 * list[i]] + swaps[s].shift[0];
            out[3 * i + 1] = x[3 * list[i] + 1] + swaps[s].shift[1];
            out[3 * i + 2] = x[3 * list[i] + 2] + swaps[s].shift[2];
        }
        MPI_Sendrecv(out, 3 * n, MPI_DOUBLE, swaps[s].to, s, in, 3 * n, MPI_DOUBLE, swaps[s].from, s, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) {
            x[3 * (first + i)] = in[3 * i];
            x[3 * (first + i) + 1] = in[3 * i + 1];
            x[3 * (first + i) + 2] = in[3 * i + 2];
        }
    }
    free(out);
    free(in);
}

static void reverse(double *f, struct swap *swaps)
{
    double *out = malloc(3 * SEND * sizeof(double));
    double *in = malloc(3 * SEND * sizeof(double));
    for (int s = SWAPS - 1; s >= 0; s--) {
        MPI_Request requests[2];
        const int n = swaps[s].count, first = swaps[s].first;
        const int *list = swaps[s].list;
        MPI_Irecv(in, 3 * n, MPI_DOUBLE, swaps[s].to, s, MPI_COMM_WORLD, &requests[0]);
        for (int i = 0; i < 3 * n; i++)
            out[i] = f[3 * first + i];
        MPI_Isend(out, 3 * n, MPI_DOUBLE, swaps[s].from, s, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i++)
            for (int d = 0; d < 3; d++)
                f[3 * list[i] + d] += in[3 * i + d];
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    const int total = LOCAL + SWAPS * SEND;
    begin(&argc, &argv);
    double *x = malloc(3 * total * sizeof *x), *f = malloc(3 * total * sizeof *f);
    struct swap *swaps = malloc(SWAPS * sizeof *swaps);
    make_swaps(swaps);
    for (int i = 0; i < 3 * total; i++)
        x[i] = (i * 37 % 101) * 0.01 + rank;
    for (int step = 0; step < 10; step++) {
        forward(x, swaps);
        for (int i = 0; i < 3 * total; i++)
            f[i] = 0.001 * x[(i * 5) % (3 * LOCAL)] - 0.002 * x[i];
        reverse(f, swaps);
        for (int i = 0; i < 3 * LOCAL; i++)
            x[i] += f[i];
    }
    end(x, 3 * LOCAL);
    free(x);
    free(f);
    free(swaps);
    return 0;
}
