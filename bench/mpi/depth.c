/* Matching behind others: an 8 B ping-pong by MPI_Send and MPI_Recv, while 1, 100, 10^4 or 10^5 receives are posted before it at
 * both ranks, or as many messages lie there unreceived; all with tags of their own. Half a round trip for each depth. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { last_tag = 999, gathered_tag = 998, first_tag = 1000 };
static const int depths[] = {1, 100, 10000, 100000};

/* What lies ahead, and at the sender of unreceived messages their sends. */
typedef struct Ahead {
    int depth, peer;
    int64_t *out, *in;
    MPI_Request *sends, *receives;
} Ahead;

static Ahead new_ahead(const World *w, int depth)
{
    size_t n = (size_t)depth;
    Ahead a = {depth, 1 - w->rank, calloc(n, sizeof(int64_t)), calloc(n, sizeof(int64_t)), calloc(n, sizeof(MPI_Request)),
               calloc(n, sizeof(MPI_Request))};
    for (int i = 0; i < depth; i++)
        a.out[i] = i + 1;
    return a;
}

static void post(Ahead *a)
{
    for (int i = 0; i < a->depth; i++)
        MPI_Irecv(&a->in[i], 8, MPI_BYTE, a->peer, first_tag + i, MPI_COMM_WORLD, &a->receives[i]);
}

static void send(Ahead *a)
{
    for (int i = 0; i < a->depth; i++)
        MPI_Isend(&a->out[i], 8, MPI_BYTE, a->peer, first_tag + i, MPI_COMM_WORLD, &a->sends[i]);
}

/* What comes after them has been received, so all of them are here. */
static void gather(const Ahead *a)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, a->peer, gathered_tag, NULL, 0, MPI_BYTE, a->peer, gathered_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void end_ahead(Ahead *a)
{
    MPI_Waitall(a->depth, a->receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(a->depth, a->sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < a->depth; i++)
        if (a->in[i] != i + 1)
            fail("message %d of %d holds %ld", i, a->depth, (long)a->in[i]);
    free(a->out);
    free(a->in);
    free(a->sends);
    free(a->receives);
}

/* Microseconds one way. */
static double timed(const World *w, int64_t turns)
{
    int64_t out = 0, in = 0;
    int peer = 1 - w->rank;
    meet(w);
    double start = now_s();
    for (int64_t i = 0; i < turns; i++) {
        if (w->rank == 0) {
            out++;
            MPI_Send(&out, 8, MPI_BYTE, peer, last_tag, MPI_COMM_WORLD);
            MPI_Recv(&in, 8, MPI_BYTE, peer, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&in, 8, MPI_BYTE, peer, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            out = in;
            MPI_Send(&out, 8, MPI_BYTE, peer, last_tag, MPI_COMM_WORLD);
        }
    }
    double took = now_s() - start;
    if (in != turns)
        fail("the last of %ld messages holds %ld", (long)turns, (long)in);
    return took / (double)turns / 2 * 1e6;
}

static int64_t calibrate(const World *w)
{
    int64_t turns = 4;
    for (double total = 0;;) {
        double took = timed(w, turns) * 2e-6 * (double)turns;
        total += took;
        int64_t next = (int64_t)(w->opt.window_ms * 1e-3 / (took / (double)turns));
        turns = agree(w, next < 4 ? 4 : next > 4 * turns ? 4 * turns : next);
        if (agree(w, total >= w->opt.warm_ms * 1e-3))
            return turns;
    }
}

static void measure(const World *w, const char *kind, int depth)
{
    char name[64];
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    double *lines = calloc((size_t)w->opt.reps + 1, sizeof(double));
    int64_t turns = calibrate(w);
    lines[0] = line_ns(w);
    for (int i = 0; i < w->opt.reps; i++) {
        samples[i] = timed(w, turns);
        lines[i + 1] = line_ns(w);
    }
    snprintf(name, sizeof name, "%d %s", depth, kind);
    report(w, name, 8, "us", samples, w->opt.reps, lines);
    free(samples);
    free(lines);
}

int run_depth(const World *w)
{
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        Ahead a = new_ahead(w, depths[i]);
        post(&a);
        measure(w, "posted", depths[i]);
        send(&a);
        end_ahead(&a);
        a = new_ahead(w, depths[i]);
        send(&a);
        gather(&a);
        measure(w, "unexpected", depths[i]);
        post(&a);
        end_ahead(&a);
    }
    return 0;
}
