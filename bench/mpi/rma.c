/* One-sided communication of two ranks: what rank 0 does to a window of rank 1 made by MPI_Win_allocate, inside one MPI_Win_lock_all, while
 * rank 1 waits in MPI; and the same by bare loads and stores to memory that both share, in the same process and the same turn. As rma-malloc
 * the same, with fewer sizes, for a window made by MPI_Win_create on memory of malloc. A fetch or a swap
 * is over when its result is there (MPI_Win_flush_local), a put, a get or an accumulate when it is done at its target (MPI_Win_flush). */
#include "bench.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { put, get, fetch, swap, accumulate, passive, bare_store, bare_fetch, bare_swap, bare_copy, bare_load, kinds };

static const char *const names[kinds] = {"put and flush", "get and flush", "fetch and op", "compare and swap", "accumulate and flush",
                                         "lock, put, unlock", "bare store", "bare fetch", "bare swap", "bare copy", "bare load"};

typedef struct Rma {
    const World *w;
    MPI_Win win;
    char *mine, *shared; /* a buffer of this rank; memory that both ranks share, beside the library */
} Rma;

static inline __attribute__((always_inline)) void operate(Rma *r, int kind, size_t bytes, uint64_t turn)
{
    int n = (int)bytes;
    uint64_t old, add = 1;
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)r->shared;
    switch (kind) {
    case put:
        MPI_Put(r->mine, n, MPI_BYTE, 1, 0, n, MPI_BYTE, r->win);
        MPI_Win_flush(1, r->win);
        break;
    case get:
        MPI_Get(r->mine, n, MPI_BYTE, 1, 0, n, MPI_BYTE, r->win);
        MPI_Win_flush(1, r->win);
        break;
    case fetch:
        MPI_Fetch_and_op(&add, &old, MPI_UINT64_T, 1, 0, MPI_SUM, r->win);
        MPI_Win_flush_local(1, r->win);
        break;
    case swap:
        MPI_Compare_and_swap(&turn, &add, &old, MPI_UINT64_T, 1, 0, r->win);
        MPI_Win_flush_local(1, r->win);
        break;
    case accumulate:
        MPI_Accumulate(r->mine, n / 8, MPI_DOUBLE, 1, 0, n / 8, MPI_DOUBLE, MPI_SUM, r->win);
        MPI_Win_flush(1, r->win);
        break;
    case passive:
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, r->win);
        MPI_Put(r->mine, n, MPI_BYTE, 1, 0, n, MPI_BYTE, r->win);
        MPI_Win_unlock(1, r->win);
        break;
    case bare_store: /* and a locked instruction, as a flush needs one */
        atomic_store_explicit(word, turn, memory_order_relaxed);
        atomic_fetch_add_explicit((_Atomic uint64_t *)(void *)r->mine, 1, memory_order_seq_cst);
        break;
    case bare_fetch: atomic_fetch_add(word, 1); break;
    case bare_swap: atomic_compare_exchange_strong(word, &turn, add); break;
    case bare_copy:
        memcpy(r->shared, r->mine, bytes);
        __asm__ volatile("" : : "r"(r->shared), "r"(r->mine) : "memory");
        break;
    case bare_load:
        memcpy(r->mine, r->shared, bytes);
        __asm__ volatile("" : : "r"(r->shared), "r"(r->mine) : "memory");
        break;
    }
}

/* Nanoseconds for one, over a window of time. */
static inline __attribute__((always_inline)) double loop(Rma *r, int kind, size_t bytes, double limit_s)
{
    int64_t batch = bytes < 65536 ? 32 : 1, done = 0;
    double start = now_s(), until = start + limit_s, end = start;
    while (end < until) {
        for (int64_t i = 0; i < batch; i++)
            operate(r, kind, bytes, (uint64_t)(done + i));
        done += batch;
        end = now_s();
    }
    return (end - start) / (double)done * 1e9;
}

/* One call for each kind, so that what is timed holds no choice. */
static double timed(Rma *r, int kind, size_t bytes, double limit_s)
{
    switch (kind) {
    case put: return loop(r, put, bytes, limit_s);
    case get: return loop(r, get, bytes, limit_s);
    case fetch: return loop(r, fetch, bytes, limit_s);
    case swap: return loop(r, swap, bytes, limit_s);
    case accumulate: return loop(r, accumulate, bytes, limit_s);
    case passive: return loop(r, passive, bytes, limit_s);
    case bare_store: return loop(r, bare_store, bytes, limit_s);
    case bare_fetch: return loop(r, bare_fetch, bytes, limit_s);
    case bare_swap: return loop(r, bare_swap, bytes, limit_s);
    case bare_load: return loop(r, bare_load, bytes, limit_s);
    default: return loop(r, bare_copy, bytes, limit_s);
    }
}

/* Some kinds of one size, in turn, and by how much each takes longer than the last, a bare one. */
static void compare(Rma *r, const int *kind, int count, size_t bytes)
{
    const World *w = r->w;
    int reps = w->opt.reps;
    double *samples = calloc((size_t)(reps * (2 * count - 1)), sizeof(double)), *lines = calloc((size_t)reps + 1, sizeof(double));
    for (int i = -1; i < reps; i++) { /* one round to warm up */
        int at = i < 0 ? 0 : i;
        lines[at] = line_ns(w);
        for (int k = 0; k < count && w->rank == 0; k++)
            samples[k * reps + at] = timed(r, kind[k], bytes, w->opt.window_ms * 1e-3);
        for (int k = 0; k < count - 1; k++)
            samples[(count + k) * reps + at] = samples[k * reps + at] - samples[(count - 1) * reps + at];
        meet(w); /* where rank 1 has waited */
        lines[at + 1] = line_ns(w);
    }
    for (int k = 0; k < count; k++)
        report(w, names[kind[k]], bytes, "ns", samples + k * reps, reps, lines);
    for (int k = 0; k < count - 1; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s over bare", names[kind[k]]);
        report(w, name, bytes, "ns", samples + (count + k) * reps, reps, lines);
    }
    free(samples);
    free(lines);
}

/* Both ranks on one word of rank 1: millions of operations per second, of both. */
static double together(Rma *r, int kind)
{
    const World *w = r->w;
    double other = 0;
    meet(w);
    double mine = 1e3 / timed(r, kind, 8, w->opt.window_ms * 1e-3);
    if (w->rank == 0)
        MPI_Recv(&other, 1, MPI_DOUBLE, 1, 95, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&mine, 1, MPI_DOUBLE, 0, 95, MPI_COMM_WORLD);
    return mine + other;
}

static void contend(Rma *r)
{
    static const int kind[] = {fetch, bare_fetch};
    const World *w = r->w;
    int reps = w->opt.reps;
    double *samples = calloc((size_t)reps * 2, sizeof(double)), *lines = calloc((size_t)reps + 1, sizeof(double));
    lines[0] = line_ns(w);
    for (int i = 0; i < reps; i++) {
        for (int k = 0; k < 2; k++)
            samples[k * reps + i] = together(r, kind[k]);
        lines[i + 1] = line_ns(w);
    }
    report(w, "fetch and op by both", 8, "M/s", samples, reps, lines);
    report(w, "bare fetch by both", 8, "M/s", samples + reps, reps, lines);
    free(samples);
    free(lines);
}

/* Lock, put, unlock while rank 1 waits in MPI, and while it computes. The end of its computing is said by a flag in shared memory; after a
 * second it ends by itself, in case the library needs its help. */
static void be_passive(Rma *r)
{
    const World *w = r->w;
    int reps = w->opt.reps;
    double *samples = calloc((size_t)reps * 2, sizeof(double)), *lines = calloc((size_t)reps + 1, sizeof(double));
    _Atomic uint64_t *flag = (_Atomic uint64_t *)(void *)(r->shared + 4096);
    lines[0] = line_ns(w);
    for (int i = 0; i < 2 * reps; i++) {
        bool computes = i % 2;
        meet(w);
        if (w->rank == 0) {
            samples[computes * reps + i / 2] = timed(r, passive, 8, w->opt.window_ms * 1e-3);
            atomic_store(flag, (uint64_t)i + 1);
        }
        for (double until = now_s() + 1; computes && w->rank == 1 && atomic_load(flag) != (uint64_t)i + 1 && now_s() < until;)
            for (volatile int k = 0; k < 100; k++) {
            }
        meet(w);
        if (computes)
            lines[i / 2 + 1] = line_ns(w);
    }
    report(w, "lock, put, unlock", 8, "ns", samples, reps, lines);
    report(w, "lock, put, unlock beside computing", 8, "ns", samples + reps, reps, lines);
    free(samples);
    free(lines);
}

static void measure(const World *w, bool created)
{
    static const int stores[] = {put, bare_store}, fetches[] = {fetch, bare_fetch}, swaps[] = {swap, bare_swap},
                     copies[] = {put, bare_copy}, loads[] = {get, bare_load}, sums[] = {accumulate};
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 8, hi = w->opt.hi_bytes ? w->opt.hi_bytes : (size_t)1 << 20;
    size_t room = hi < 65536 ? 65536 : hi;
    Rma r = {.w = w, .mine = new_buffer(room), .shared = share_page(w, room)};
    char *base = created ? new_buffer(room) : NULL;
    if (created)
        MPI_Win_create(base, (MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &r.win);
    else
        MPI_Win_allocate((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &r.win);
    memset(base, 0, room);
    memset(r.mine, 0, room); /* numbers for the sums */
    be_passive(&r);
    MPI_Win_lock_all(0, r.win);
    compare(&r, stores, 2, 8);
    compare(&r, fetches, 2, 8);
    compare(&r, swaps, 2, 8);
    if (!created)
        contend(&r);
    for (size_t bytes = lo > 16 ? lo : 16; bytes <= hi; bytes *= created ? 8 : 2)
        compare(&r, copies, 2, bytes), compare(&r, loads, 2, bytes);
    compare(&r, sums, 1, 65536);
    MPI_Win_unlock_all(r.win);
    MPI_Win_free(&r.win);
    if (created)
        free(base);
    free(r.mine);
}

int run_rma(const World *w)
{
    measure(w, false);
    return 0;
}

int run_rma_malloc(const World *w)
{
    measure(w, true);
    return 0;
}
