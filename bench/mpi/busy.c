/* What a job gets done in a given time, idle or beside others: the mean of everything that happened in a window of many
 * scheduler slices, where the other tests take the median of short windows. Every cell ends itself: rank 0 (or the sender of
 * a pair) looks at the clock and marks its last message, so that a library 10,000 times slower than another only does fewer
 * rounds. Nothing but the measured messages is sent meanwhile. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t last_bit = (uint64_t)1 << 63;  /* the last message of the window */
static const uint64_t flood_bit = (uint64_t)1 << 62; /* the last of a flood: the receiver answers */

Window begin(const World *w, double limit_s)
{
    meet(w);
    double start = now_s();
    return (Window){.start = start, .seen = start, .limit_s = limit_s, .stride = 1};
}

/* A look every hundredth of the window or so, and after every round where rounds are long. */
bool over(Window *t, int64_t done)
{
    if (done < t->next)
        return false;
    double now = now_s(), since = now - t->seen;
    if (since < t->limit_s / 100)
        t->stride *= 2;
    else if (since > t->limit_s / 25 && t->stride > 1)
        t->stride /= 2;
    t->seen = now;
    t->next = done + t->stride;
    return now - t->start >= t->limit_s;
}

/* One way, microseconds. Ranks 0 and 1, 2 and 3, ... at once; the answer of each pair is its even rank's. The first word is
 * the number of the turn and the mark of the last one. */
static double pingpong(const World *w, size_t bytes, double limit_s)
{
    int peer = w->rank ^ 1;
    uint64_t word = 0, answer, turn = 0;
    char *out = new_buffer(bytes), *in = new_buffer(bytes);
    Window t = begin(w, limit_s);
    while (!(word & last_bit)) {
        turn++;
        rewrite(out, bytes, turn);
        if (w->rank & 1) {
            MPI_Recv(in, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            memcpy(&word, in, 8);
            memcpy(out, &word, 8);
            MPI_Send(out, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        } else {
            word = turn | (over(&t, (int64_t)turn) ? last_bit : 0);
            memcpy(out, &word, 8);
            MPI_Send(out, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            memcpy(&answer, in, 8);
            if (answer != word)
                fail("ping-pong: the answer to turn %llu is of another", (unsigned long long)turn);
        }
    }
    double took = now_s() - t.start;
    verify(in + 8, bytes - 8, turn + 1, "ping-pong");
    free(out);
    free(in);
    return w->rank & 1 ? 0 : took / (double)turn / 2 * 1e6;
}

static int64_t send_floods(const World *w, Window *t, int peer)
{
    uint64_t word = 0;
    int64_t sent = 0;
    while (!(word & last_bit)) {
        word = (uint64_t)sent;
        sent++;
        word |= over(t, sent) ? last_bit : 0;
        word |= sent % w->opt.messages ? 0 : flood_bit;
        MPI_Send(&word, 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
        if (word & (last_bit | flood_bit))
            MPI_Recv(&word, 8, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return sent;
}

static void receive_floods(int peer)
{
    uint64_t word = 0;
    for (uint64_t expected = 0; !(word & last_bit); expected++) {
        MPI_Recv(&word, 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if ((word & ~(last_bit | flood_bit)) != expected)
            fail("flood: message %llu is another", (unsigned long long)expected);
        if (word & (last_bit | flood_bit))
            MPI_Send(&word, 8, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
    }
}

/* Milliseconds that opt.messages sends take, the last one's receive included; all pairs at once. A window holds many
 * floods, or a part of one. */
static double flood(const World *w, size_t bytes, double limit_s)
{
    (void)bytes; /* always 8 */
    Window t = begin(w, limit_s);
    if (w->rank & 1) {
        receive_floods(w->rank - 1);
        return 0;
    }
    int64_t sent = send_floods(w, &t, w->rank + 1);
    return (now_s() - t.start) / (double)sent * (double)w->opt.messages * 1e3;
}

/* Microseconds a call; each sum is the number of ranks, and in the first one's upper half is rank 0's word that this call is
 * the last. */
static double allreduce(const World *w, size_t bytes, double limit_s)
{
    const int64_t last = (int64_t)1 << 32;
    int64_t *mine = new_buffer(bytes), *sum = new_buffer(bytes), calls = 0;
    size_t count = bytes / 8;
    Window t = begin(w, limit_s);
    while (sum[0] < last) {
        calls++;
        for (size_t i = 0; i < count; i++)
            mine[i] = 1;
        mine[0] += w->rank == 0 && over(&t, calls) ? last : 0;
        MPI_Allreduce(mine, sum, (int)count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (sum[0] % last != w->size || sum[count - 1] % last != w->size)
            fail("allreduce: %lld instead of %d", (long long)(sum[0] % last), w->size);
    }
    double took = now_s() - t.start;
    free(mine);
    free(sum);
    return took / (double)calls * 1e6;
}

enum { to_left, to_right };

typedef struct Halo {
    char *out[2], *in[2]; /* in[d] came from the neighbour that sent it in direction d */
    int to[2], from[2];
    size_t bytes;
} Halo;

static Halo new_halo(const World *w, size_t bytes)
{
    int left = (w->rank + w->size - 1) % w->size, right = (w->rank + 1) % w->size;
    Halo h = {.bytes = bytes, .to = {left, right}, .from = {right, left}};
    for (int d = 0; d < 2; d++) {
        h.out[d] = new_buffer(h.bytes);
        h.in[d] = new_buffer(h.bytes);
    }
    return h;
}

static void end_halo(Halo *h)
{
    for (int d = 0; d < 2; d++) {
        free(h->out[d]);
        free(h->in[d]);
    }
}

static void exchange_nonblocking(Halo *h)
{
    MPI_Request r[4];
    for (int d = 0; d < 2; d++)
        MPI_Irecv(h->in[d], (int)h->bytes, MPI_BYTE, h->from[d], d, MPI_COMM_WORLD, &r[d]);
    for (int d = 0; d < 2; d++)
        MPI_Isend(h->out[d], (int)h->bytes, MPI_BYTE, h->to[d], d, MPI_COMM_WORLD, &r[2 + d]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void exchange_sendrecv(Halo *h)
{
    for (int d = 0; d < 2; d++)
        MPI_Sendrecv(h->out[d], (int)h->bytes, MPI_BYTE, h->to[d], d, h->in[d], (int)h->bytes, MPI_BYTE, h->from[d], d,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Microseconds a round: both halos filled and exchanged with both neighbours of a ring. The first word of each message is
 * the number of the last round, as far as its sender knows: rank 0 names it one lap ahead, which is time enough for all. */
static inline __attribute__((always_inline)) double rounds(const World *w, size_t bytes, double limit_s,
                                                            void (*exchange)(Halo *))
{
    Halo h = new_halo(w, bytes);
    uint64_t last = UINT64_MAX, round = 0;
    Window t = begin(w, limit_s);
    for (; round < last; round++) {
        if (w->rank == 0 && last == UINT64_MAX && over(&t, (int64_t)round))
            last = round + (uint64_t)w->size;
        for (int d = 0; d < 2; d++) {
            memcpy(h.out[d], &last, 8);
            rewrite(h.out[d] + 8, h.bytes - 8, round);
        }
        exchange(&h);
        for (int d = 0; d < 2; d++) {
            uint64_t told;
            memcpy(&told, h.in[d], 8);
            last = told < last ? told : last;
        }
    }
    double took = now_s() - t.start;
    for (int d = 0; d < 2; d++)
        verify(h.in[d] + 8, h.bytes - 8, round - 1, "halo");
    end_halo(&h);
    return took / (double)round * 1e6;
}

static double halo(const World *w, size_t bytes, double limit_s)
{
    return rounds(w, bytes, limit_s, exchange_nonblocking);
}

static double sendrecv(const World *w, size_t bytes, double limit_s)
{
    return rounds(w, bytes, limit_s, exchange_sendrecv);
}

void measure_cells(const World *w, const char *name, Cell *cell, size_t bytes, const char *unit, bool pairs)
{
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : bytes, hi = w->opt.hi_bytes ? w->opt.hi_bytes : bytes;
    if (!samples)
        fail("no memory for %d samples", w->opt.reps);
    if (pairs && w->size % 2)
        fail("%s needs an even number of ranks", name);
    if (lo < 8 || lo % 8)
        fail("%s needs sizes of whole 8-byte words", name);
    for (bytes = lo; bytes <= hi; bytes *= 2) {
        cell(w, bytes, w->opt.warm_ms * 1e-3);
        for (int i = 0; i < w->opt.reps; i++) {
            double mine = cell(w, bytes, w->opt.window_ms * 1e-3), all = mine;
            if (pairs) /* odd ranks add 0 */
                MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
            samples[i] = pairs ? all / (w->size / 2) : all;
        }
        report(w, name, bytes, unit, samples, w->opt.reps, NULL);
    }
    free(samples);
}

int run_pingpong(const World *w)
{
    measure_cells(w, "pingpong", pingpong, 8, "us", true);
    return 0;
}

int run_flood(const World *w)
{
    measure_cells(w, "flood", flood, 8, "ms", true);
    return 0;
}

int run_allreduce(const World *w)
{
    measure_cells(w, "allreduce", allreduce, 8, "us", false);
    return 0;
}

int run_halo(const World *w)
{
    measure_cells(w, "halo", halo, 65536, "us", false);
    return 0;
}

int run_sendrecv(const World *w)
{
    measure_cells(w, "sendrecv", sendrecv, 65536, "us", false);
    return 0;
}

int run_busy(const World *w)
{
    return run_pingpong(w) | run_flood(w) | run_allreduce(w) | run_halo(w) | run_sendrecv(w);
}
