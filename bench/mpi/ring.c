/* A token goes round all ranks: what a hop costs when there are more ranks than cores and each must step aside. */
#include "bench.h"

#include <stdlib.h>

static double lap(const World *w, long rounds)
{
    int left = (w->rank + w->size - 1) % w->size, right = (w->rank + 1) % w->size;
    int64_t token = 0;
    meet(w);
    double start = now_s();
    for (long i = 0; i < rounds; i++) {
        if (w->rank == 0)
            MPI_Send(&token, 1, MPI_INT64_T, right, 5, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_INT64_T, left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token++;
        if (w->rank != 0)
            MPI_Send(&token, 1, MPI_INT64_T, right, 5, MPI_COMM_WORLD);
    }
    double took = now_s() - start;
    if (w->rank == 0 && token != rounds * w->size)
        fail("the token counted %lld hops, not %lld", (long long)token, (long long)rounds * w->size);
    return took;
}

int run_ring(const World *w)
{
    long rounds = w->opt.hops / w->size;
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    if (w->size < 2 || rounds < 1)
        fail("the ring needs two ranks and at least one round");
    lap(w, rounds / 10 + 1);
    for (int i = 0; i < w->opt.reps; i++)
        samples[i] = lap(w, rounds) / ((double)rounds * w->size) * 1e6;
    report(w, "ring", 8, "us/hop", samples, w->opt.reps, NULL);
    free(samples);
    return 0;
}
