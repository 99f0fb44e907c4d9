/* Latency: half a round trip between ranks 0 and 1, timed over whole windows.
 * The variants do the same with persistent requests and with matched probes, in alternating windows of one process. */
#include "bench.h"

#include <stdlib.h>

typedef struct Pair {
    void *out, *in;
    size_t bytes;
    int peer;
    uint64_t sent, received; /* stamps, in step on both sides */
} Pair;

typedef struct Elapsed {
    double total_s, rewrite_s;
} Elapsed;

typedef void Exchange(void *context, const Pair *pair, bool send);

static void plain(void *context, const Pair *p, bool send)
{
    (void)context;
    if (send)
        MPI_Send(p->out, (int)p->bytes, MPI_BYTE, p->peer, 1, MPI_COMM_WORLD);
    else
        MPI_Recv(p->in, (int)p->bytes, MPI_BYTE, p->peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void persistent(void *context, const Pair *p, bool send)
{
    (void)p;
    MPI_Request *requests = context;
    MPI_Start(&requests[send]);
    MPI_Wait(&requests[send], MPI_STATUS_IGNORE);
}

static void matched(void *context, const Pair *p, bool send)
{
    (void)context;
    if (send) {
        MPI_Send(p->out, (int)p->bytes, MPI_BYTE, p->peer, 1, MPI_COMM_WORLD);
    } else {
        MPI_Message message;
        MPI_Mprobe(p->peer, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(p->in, (int)p->bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
}

/* A rewrite of a large buffer is timed by the side that does it, and taken off afterwards: a ping-pong is serial, so
 * what is left is the communication alone. */
static inline void refresh(const World *w, Pair *p, Elapsed *e)
{
    p->sent++;
    if (!w->opt.rewrite)
        return;
    if (p->bytes < rewrite_timed_below) {
        rewrite(p->out, p->bytes, p->sent);
    } else {
        double start = now_s();
        rewrite(p->out, p->bytes, p->sent);
        e->rewrite_s += now_s() - start;
    }
}

static inline __attribute__((always_inline)) Elapsed window(const World *w, Pair *p, int64_t turns, Exchange *exchange,
                                                            void *context)
{
    Elapsed e = {0, 0};
    meet(w);
    double start = now_s();
    for (int64_t i = 0; i < turns; i++) {
        if (w->rank == 0) {
            refresh(w, p, &e);
            exchange(context, p, true);
            exchange(context, p, false);
        } else {
            exchange(context, p, false);
            refresh(w, p, &e);
            exchange(context, p, true);
        }
    }
    e.total_s = now_s() - start;
    p->received += (uint64_t)turns;
    if (w->opt.rewrite)
        verify(p->in, p->bytes, p->received, "ping-pong");
    return e;
}

/* One direct call per kind, so that the exchange inlines and no indirect call is part of what is timed. */
static Elapsed window_of(const World *w, Pair *p, int64_t turns, int kind, void *context)
{
    if (kind == 1)
        return window(w, p, turns, persistent, context);
    if (kind == 2)
        return window(w, p, turns, matched, context);
    return window(w, p, turns, plain, context);
}

/* Microseconds one way. Both ranks call it; the answer is rank 0's. */
static double timed(const World *w, Pair *p, int64_t turns, int kind, void *context)
{
    Elapsed e = window_of(w, p, turns, kind, context);
    double other = 0;
    if (w->rank == 0)
        MPI_Recv(&other, 1, MPI_DOUBLE, 1, 96, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&e.rewrite_s, 1, MPI_DOUBLE, 0, 96, MPI_COMM_WORLD);
    return (e.total_s - e.rewrite_s - other) / (double)turns / 2 * 1e6;
}

static int64_t calibrate(const World *w, Pair *p, int kind, void *context)
{
    int64_t turns = 4;
    double total = 0;
    for (;;) {
        double start = now_s();
        timed(w, p, turns, kind, context);
        double took = now_s() - start;
        total += took;
        double wanted = w->opt.window_ms * 1e-3;
        int64_t next = (int64_t)(wanted / (took / (double)turns));
        if (next > 4 * turns && total < w->opt.warm_ms * 1e-3)
            next = 4 * turns;
        turns = agree(w, next < 4 ? 4 : next);
        if (agree(w, total >= w->opt.warm_ms * 1e-3))
            return turns;
    }
}

static Pair new_pair(const World *w, size_t bytes)
{
    return (Pair){.out = new_message_buffer(w, bytes), .in = new_message_buffer(w, bytes), .bytes = bytes,
                  .peer = 1 - w->rank};
}

static void end_pair(const World *w, Pair *p)
{
    free_message_buffer(w, p->out);
    free_message_buffer(w, p->in);
}

int run_latency(const World *w)
{
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 1, hi = w->opt.hi_bytes ? w->opt.hi_bytes : (size_t)4 << 20;
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    double *lines = calloc((size_t)w->opt.reps + 1, sizeof(double));
    for (size_t bytes = lo; bytes <= hi && w->rank < 2; bytes *= 2) {
        Pair p = new_pair(w, bytes);
        int64_t turns = calibrate(w, &p, 0, NULL);
        lines[0] = line_ns(w);
        for (int i = 0; i < w->opt.reps; i++) {
            samples[i] = timed(w, &p, turns, 0, NULL);
            lines[i + 1] = line_ns(w);
        }
        report(w, "latency", bytes, "us", samples, w->opt.reps, lines);
        end_pair(w, &p);
    }
    free(samples);
    free(lines);
    return 0;
}

/* The same ping-pong before the program's first collective and after three of them. */
int run_after(const World *w)
{
    static const char *const names[] = {"before", "after"};
    size_t bytes = w->opt.lo_bytes ? w->opt.lo_bytes : 8;
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    double *lines = calloc((size_t)w->opt.reps + 1, sizeof(double));
    Pair p = new_pair(w, bytes);
    int64_t turns = calibrate(w, &p, 0, NULL);
    for (int half = 0; half < 2; half++) {
        if (half)
            reach_normal_state(w);
        lines[0] = line_ns(w);
        for (int i = 0; i < w->opt.reps; i++) {
            samples[i] = timed(w, &p, turns, 0, NULL);
            lines[i + 1] = line_ns(w);
        }
        report(w, names[half], bytes, "us", samples, w->opt.reps, lines);
    }
    end_pair(w, &p);
    free(samples);
    free(lines);
    return 0;
}

int run_variants(const World *w)
{
    static const char *const names[] = {"plain", "persistent", "mprobe"};
    size_t bytes = w->opt.lo_bytes ? w->opt.lo_bytes : 8;
    int reps = w->opt.reps;
    double *samples = calloc((size_t)reps * 3, sizeof(double));
    Pair p = new_pair(w, bytes);
    MPI_Request requests[2];
    MPI_Recv_init(p.in, (int)bytes, MPI_BYTE, p.peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(p.out, (int)bytes, MPI_BYTE, p.peer, 1, MPI_COMM_WORLD, &requests[1]);
    int64_t turns[3];
    for (int kind = 0; kind < 3; kind++)
        turns[kind] = calibrate(w, &p, kind, requests);
    for (int i = 0; i < reps; i++)
        for (int kind = 0; kind < 3; kind++)
            samples[kind * reps + i] = timed(w, &p, turns[kind], kind, requests);
    for (int kind = 0; kind < 3; kind++)
        report(w, names[kind], bytes, "us", samples + kind * reps, reps, NULL);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    end_pair(w, &p);
    free(samples);
    return 0;
}
