/* Memory: what each rank holds, shared pages counted by share (PSS), after a short and a long message to everyone. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

static double pss_mb(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    if (kib < 0)
        fail("cannot read Pss from /proc/self/smaps_rollup");
    return (double)kib * 1024 / 1e6;
}

static void exchange(const World *w, void *out, void *in, int bytes)
{
    for (int distance = 1; distance < w->size; distance++) {
        int to = (w->rank + distance) % w->size, from = (w->rank + w->size - distance) % w->size;
        rewrite(out, (size_t)bytes, (uint64_t)w->rank);
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 6, in, bytes, MPI_BYTE, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify(in, (size_t)bytes, (uint64_t)from, "exchange");
    }
}

int run_footprint(const World *w)
{
    enum { short_bytes = 8, long_bytes = 65536 };
    double *samples = calloc((size_t)w->size, sizeof(double));
    void *out = new_buffer(long_bytes), *in = new_buffer(long_bytes);
    exchange(w, out, in, short_bytes);
    exchange(w, out, in, long_bytes);
    meet(w);
    samples[0] = pss_mb(); /* everyone reads while everyone is alive: pages are shared by all of them */
    meet(w);
    for (int peer = 1; peer < w->size && w->rank == 0; peer++)
        MPI_Recv(&samples[peer], 1, MPI_DOUBLE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (w->rank != 0)
        MPI_Send(&samples[0], 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
    report(w, "pss per rank", 0, "MB", samples, w->size, NULL);
    free(samples);
    free(out);
    free(in);
    return 0;
}
