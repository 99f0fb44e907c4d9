/* weft-assist: how much of a large message's transfer the sender takes on. The sender posts it, computes for a while without calling
 * MPI, and waits; the receiver receives at once. Where both sides copy, the receiver's time grows with the sender's absence, up to
 * what the receiver needs alone; it must not grow further. Sweeps of cut-offs and block sizes run it with other variables of the
 * library. Two ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"

enum { tag = 8, shares = 6 };
static const double share_of_transfer[shares] = {0, 0.25, 0.5, 1, 2, 4};

static void compute_for(double seconds)
{
    double until = now_s() + seconds;
    while (now_s() < until) {
    }
}

/* Microseconds that the receiver needs, mean of `turns`; the sender is away for so long each time. */
static double window(const World *w, void *buffer, size_t bytes, int64_t turns, double away_s)
{
    double took = 0;
    for (int64_t i = 0; i < turns; i++) {
        uint64_t stamp = (uint64_t)i * 3 + bytes;
        MPI_Request request;
        if (w->rank == 0) {
            rewrite(buffer, bytes, stamp);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Isend(buffer, (int)bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
            compute_for(away_s);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now_s();
            MPI_Recv(buffer, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            took += now_s() - start;
            verify(buffer, bytes, stamp, "assist");
        }
    }
    return 2 * mean_over(MPI_COMM_WORLD, took) / (double)turns * 1e6; /* of the one receiver */
}

static void measure_size(const World *w, size_t bytes, bool alloc_mem)
{
    static double samples[shares][max_samples], lines[max_samples + 1];
    void *buffer = NULL;
    if (!alloc_mem)
        buffer = new_buffer(bytes);
    else if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &buffer) != MPI_SUCCESS)
        fail("MPI_Alloc_mem of %zu bytes failed", bytes);
    double alone_us = 1e9; /* the transfer with a sender that waits; the least of several, as others may disturb one */
    for (int i = 0; i < 5; i++) {
        double us = window(w, buffer, bytes, 5, 0);
        alone_us = us < alone_us ? us : alone_us;
    }
    int64_t turns = agree(w, 1 + (int64_t)(w->opt.window_ms * 1e3 / (3 * alone_us)));
    lines[0] = line_ns(w);
    for (int rep = 0; rep < w->opt.reps; rep++) {
        for (int k = 0; k < shares; k++)
            samples[k][rep] = window(w, buffer, bytes, turns, share_of_transfer[k] * alone_us * 1e-6);
        lines[rep + 1] = line_ns(w);
    }
    for (int k = 0; k < shares; k++) {
        char name[64];
        snprintf(name, sizeof name, "sender away for %g transfers", share_of_transfer[k]);
        report(w, name, bytes, "us", samples[k], w->opt.reps, lines);
    }
    if (alloc_mem)
        MPI_Free_mem(buffer);
    else
        free(buffer);
}

int main(int argc, char **argv)
{
    static World w;
    bool alloc_mem = false;
    const Flag flags[] = {
        {"-m", flag_sizes, &w, "LO:HI: bytes of a message, doubling (65536:4194304)"},
        {"--alloc-mem", flag_set, &alloc_mem, "buffers from MPI_Alloc_mem instead of malloc"},
        {0}};
    w.opt.lo_bytes = 64 << 10;
    w.opt.hi_bytes = 4 << 20;
    w.opt.window_ms = 10;
    app_start(&w, &argc, &argv, "weft-assist: a receiver's time while the sender computes; two ranks", flags, 2);
    if (w.size != 2)
        fail("assist needs exactly 2 ranks");
    for (size_t bytes = w.opt.lo_bytes; bytes <= w.opt.hi_bytes; bytes *= 2)
        measure_size(&w, bytes, alloc_mem);
    app_end();
    return 0;
}
