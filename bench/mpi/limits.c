/* What the machine allows, measured in the same two processes as the library and at the same time: a bare cache-line
 * ping-pong alternates with MPI's in windows of a few milliseconds, so that clock changes and neighbours hit both. */
#include "bench.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct Line {
    _Alignas(128) _Atomic uint64_t value; /* two lines apart: neighbours are fetched in pairs */
} Line;

typedef struct Lines {
    Line there, back, one;
} Lines;

static const uint64_t last_bit = (uint64_t)1 << 63; /* rank 0's way to say that this exchange ends the window */
enum { batch = 64 };                                /* turns between looks at the clock */

static uint64_t await(_Atomic uint64_t *line, uint64_t turn)
{
    uint64_t seen;
    do
        seen = atomic_load_explicit(line, memory_order_acquire);
    while ((seen & ~last_bit) != turn);
    return seen;
}

typedef struct Turn {
    Lines *lines;
    uint64_t raw, single; /* turns so far; in step on both sides */
} Turn;

enum { two_lines, one_line, by_mpi, kinds };

/* One exchange seen from rank 0, and from rank 1, which returns whether it was the last. */
static void lead(Turn *t, int kind, bool last)
{
    uint64_t mark = last ? last_bit : 0, reply;
    if (kind == two_lines) {
        t->raw++;
        atomic_store_explicit(&t->lines->there.value, t->raw | mark, memory_order_release);
        await(&t->lines->back.value, t->raw);
    } else if (kind == one_line) {
        t->single += 2;
        atomic_store_explicit(&t->lines->one.value, (t->single - 1) | mark, memory_order_release);
        await(&t->lines->one.value, t->single);
    } else {
        MPI_Send(&mark, 8, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
        MPI_Recv(&reply, 8, MPI_BYTE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static bool follow(Turn *t, int kind)
{
    uint64_t seen;
    if (kind == two_lines) {
        t->raw++;
        seen = await(&t->lines->there.value, t->raw);
        atomic_store_explicit(&t->lines->back.value, t->raw, memory_order_release);
    } else if (kind == one_line) {
        t->single += 2;
        seen = await(&t->lines->one.value, t->single - 1);
        atomic_store_explicit(&t->lines->one.value, t->single, memory_order_release);
    } else {
        MPI_Recv(&seen, 8, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&seen, 8, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    }
    return (seen & last_bit) != 0;
}

/* Nanoseconds one way; constant kind at each call site, so that the exchange is specialised. */
static inline __attribute__((always_inline)) double window(const World *w, Turn *t, int kind)
{
    if (w->rank == 1) {
        while (!follow(t, kind)) {
        }
        return 0;
    }
    double start = now_s(), until = start + w->opt.window_ms * 1e-3, end = start;
    int64_t turns = 0;
    while (end < until) {
        for (int i = 0; i < batch; i++)
            lead(t, kind, false);
        turns += batch;
        end = now_s();
    }
    lead(t, kind, true);
    return (end - start) / (double)turns / 2 * 1e9;
}

double line_ns(const World *w)
{
    enum { warm = 32, turns = 256 };
    static Turn t;
    double start = 0;
    if (!w->opt.pin || w->opt.cpu_count < 2 || w->size != 2)
        return 0;
    if (!t.lines)
        t.lines = share_page(w, 4096);
    meet(w);
    for (int i = 0; i < warm + turns; i++) {
        if (i == warm)
            start = now_s();
        if (w->rank == 0)
            lead(&t, two_lines, false);
        else
            follow(&t, two_lines);
    }
    return (now_s() - start) / turns / 2 * 1e9;
}

int run_limits(const World *w)
{
    int pairs = w->opt.pairs;
    double *samples = calloc((size_t)pairs * (kinds + 1), sizeof(double));
    Turn t = {.lines = share_page(w, 4096)};
    if (!samples)
        fail("no memory for %d samples", pairs);
    for (int i = -2; i < pairs; i++) { /* two rounds to warm up */
        int at = i < 0 ? 0 : i;
        samples[two_lines * pairs + at] = window(w, &t, two_lines);
        samples[by_mpi * pairs + at] = window(w, &t, by_mpi);
        samples[one_line * pairs + at] = window(w, &t, one_line);
        samples[kinds * pairs + at] = samples[by_mpi * pairs + at] / samples[two_lines * pairs + at];
    }
    report(w, "two lines", 8, "ns", samples + two_lines * pairs, pairs, NULL);
    report(w, "one line", 8, "ns", samples + one_line * pairs, pairs, NULL);
    report(w, "mpi", 8, "ns", samples + by_mpi * pairs, pairs, NULL);
    report(w, "mpi / two lines", 8, "ratio", samples + kinds * pairs, pairs, NULL);
    free(samples);
    return 0;
}

/* memcpy on rank 0 alone, buffers warm: the rate no copy through one core can beat. */
int run_copies(const World *w)
{
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 4096, hi = w->opt.hi_bytes ? w->opt.hi_bytes : (size_t)4 << 20;
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    for (size_t bytes = lo; bytes <= hi && w->rank == 0; bytes *= 2) {
        char *from = new_buffer(bytes), *to = new_buffer(bytes);
        for (int i = -1; i < w->opt.reps; i++) {
            double start = now_s(), until = start + w->opt.window_ms * 1e-3, end = start;
            int64_t copies = 0;
            while (end < until) {
                for (int k = 0; k < 8; k++) {
                    memcpy(to, from, bytes);
                    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
                }
                copies += 8;
                end = now_s();
            }
            samples[i < 0 ? 0 : i] = (double)copies * (double)bytes * 1e-9 / (end - start);
        }
        report(w, "memcpy", bytes, "GB/s", samples, w->opt.reps, NULL);
        free(from);
        free(to);
    }
    free(samples);
    meet(w);
    return 0;
}
