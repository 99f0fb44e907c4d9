/* Threads that talk at once: thread i of an even rank with thread i of the next one, on a communicator of its own or one that
 * several threads share, each pair with tags of its own. One thread is the rank itself, so that single-threaded processes do
 * the same work. Every pair ends itself: its sender looks at the clock and marks its last message. */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t last_bit = (uint64_t)1 << 63;

typedef struct Worker {
    const World *w;
    int thread, peer, tag;
    MPI_Comm comm;
    MPI_Win win;
    char *part; /* of this rank, in the window */
    size_t bytes;
    double limit_s;
    atomic_bool *go;
    double result; /* at even ranks */
} Worker;

typedef double Work(const Worker *);

static Window begin_now(double limit_s)
{
    double start = now_s();
    return (Window){.start = start, .seen = start, .limit_s = limit_s, .stride = 1};
}

static void compute(double us)
{
    for (double end = now_s() + us * 1e-6; us > 0 && now_s() < end;) {
    }
}

/* The first word of a message: its number among those of this pair, and the mark. */
static bool send_window(const Worker *t, char **buffers, MPI_Request *requests, int64_t windows, bool last)
{
    int n = t->w->opt.window, answer;
    for (int i = 0; i < n; i++) {
        uint64_t word = (uint64_t)(windows * n + i) | (last ? last_bit : 0);
        rewrite(buffers[i] + 8, t->bytes - 8, word);
        memcpy(buffers[i], &word, 8);
        MPI_Isend(buffers[i], (int)t->bytes, MPI_BYTE, t->peer, t->tag, t->comm, &requests[i]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(&answer, 1, MPI_INT, t->peer, t->tag + 1, t->comm, MPI_STATUS_IGNORE);
    return last;
}

static bool receive_window(const Worker *t, char **buffers, MPI_Request *requests, int64_t windows)
{
    int n = t->w->opt.window, answer = 0;
    uint64_t word = 0;
    for (int i = 0; i < n; i++)
        MPI_Irecv(buffers[i], (int)t->bytes, MPI_BYTE, t->peer, t->tag, t->comm, &requests[i]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) {
        memcpy(&word, buffers[i], 8);
        if ((word & ~last_bit) != (uint64_t)(windows * n + i))
            fail("thread %d: message %lld is another", t->thread, (long long)(windows * n + i));
        verify(buffers[i] + 8, t->bytes - 8, word, "thread-rate");
    }
    compute(t->w->opt.busy_us);
    MPI_Send(&answer, 1, MPI_INT, t->peer, t->tag + 1, t->comm);
    return word & last_bit;
}

/* Million messages per second of this pair. */
static double rate(const Worker *t)
{
    int n = t->w->opt.window;
    char **buffers = calloc((size_t)n, sizeof *buffers);
    MPI_Request *requests = calloc((size_t)n, sizeof *requests);
    if (!buffers || !requests)
        fail("no memory for a window of %d messages", n);
    for (int i = 0; i < n; i++)
        buffers[i] = new_buffer(t->bytes);
    int64_t windows = 0;
    Window time = begin_now(t->limit_s);
    for (bool last = false; !last; windows++)
        last = t->w->rank & 1 ? receive_window(t, buffers, requests, windows)
                              : send_window(t, buffers, requests, windows, over(&time, windows + 1));
    double took = now_s() - time.start;
    for (int i = 0; i < n; i++)
        free(buffers[i]);
    free(buffers);
    free(requests);
    return (double)(windows * n) / took * 1e-6;
}

/* Microseconds one way of this pair. */
static double latency(const Worker *t)
{
    char *out = new_buffer(t->bytes), *in = new_buffer(t->bytes);
    int64_t turns = 0;
    uint64_t word = 0, answer;
    Window time = begin_now(t->limit_s);
    while (!(word & last_bit)) {
        turns++;
        rewrite(out + 8, t->bytes - 8, (uint64_t)turns);
        if (t->w->rank & 1) {
            MPI_Recv(in, (int)t->bytes, MPI_BYTE, t->peer, t->tag, t->comm, MPI_STATUS_IGNORE);
            memcpy(&word, in, 8);
            memcpy(out, &word, 8);
            MPI_Send(out, (int)t->bytes, MPI_BYTE, t->peer, t->tag, t->comm);
        } else {
            word = (uint64_t)turns | (over(&time, turns) ? last_bit : 0);
            memcpy(out, &word, 8);
            MPI_Send(out, (int)t->bytes, MPI_BYTE, t->peer, t->tag, t->comm);
            MPI_Recv(in, (int)t->bytes, MPI_BYTE, t->peer, t->tag, t->comm, MPI_STATUS_IGNORE);
            memcpy(&answer, in, 8);
            if (answer != word)
                fail("thread %d: the answer to turn %lld is of another", t->thread, (long long)turns);
        }
    }
    double took = now_s() - time.start;
    verify(in + 8, t->bytes - 8, (uint64_t)turns, "thread-latency");
    free(out);
    free(in);
    return took / (double)turns / 2 * 1e6;
}

/* Bytes that a thread's puts go to, in every part of a window. */
static size_t region(const World *w, size_t bytes) { return ((size_t)w->opt.window * bytes + 63) / 64 * 64; }

/* Million puts per second: each of a window has a place of its own, and a flush ends them. The last number tells the target the end. */
static double put_windows(const Worker *t)
{
    int n = t->w->opt.window;
    size_t first = (size_t)t->thread * region(t->w, t->bytes);
    char *buffer = new_buffer((size_t)n * t->bytes);
    int64_t windows = 0;
    Window time = begin_now(t->limit_s);
    do {
        for (int i = 0; i < n; i++) {
            uint64_t word = (uint64_t)(windows * n + i);
            char *at = buffer + (size_t)i * t->bytes;
            rewrite(at + 8, t->bytes - 8, word);
            memcpy(at, &word, 8);
            MPI_Put(at, (int)t->bytes, MPI_BYTE, t->peer, (MPI_Aint)(first + (size_t)i * t->bytes), (int)t->bytes, MPI_BYTE, t->win);
        }
        MPI_Win_flush(t->peer, t->win);
    } while (!over(&time, ++windows));
    double took = now_s() - time.start;
    MPI_Send(&windows, 1, MPI_INT64_T, t->peer, t->tag, t->comm);
    free(buffer);
    return (double)(windows * n) / took * 1e-6;
}

/* Waits in MPI, or computes and looks into it now and then. */
static void be_target(const Worker *t)
{
    int n = t->w->opt.window, there = 0;
    int64_t windows;
    while (t->w->opt.busy_us > 0 && !there) {
        compute(t->w->opt.busy_us);
        MPI_Iprobe(t->peer, t->tag, t->comm, &there, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&windows, 1, MPI_INT64_T, t->peer, t->tag, t->comm, MPI_STATUS_IGNORE);
    MPI_Win_sync(t->win);
    for (int i = 0; i < n; i++) {
        uint64_t word, last = (uint64_t)((windows - 1) * n + i);
        const char *at = t->part + (size_t)t->thread * region(t->w, t->bytes) + (size_t)i * t->bytes;
        memcpy(&word, at, 8);
        if (word != last)
            fail("thread %d: put %lld is not there", t->thread, (long long)last);
        verify(at + 8, t->bytes - 8, last, "thread-put");
    }
}

static double put_rate(const Worker *t)
{
    if (!(t->w->rank & 1))
        return put_windows(t);
    be_target(t);
    return 0;
}

/* Threads of a pair are numbered like ranks of as many single-threaded processes: 2 i and 2 i + 1 talk with each other. */
static void work(Worker *t, Work *what)
{
    const World *w = t->w;
    pin_thread(w, (w->rank / 2 * w->opt.threads + t->thread) * 2 + (w->rank & 1));
    while (!atomic_load_explicit(t->go, memory_order_acquire))
        sched_yield();
    t->result = what(t);
}

static void *work_rate(void *worker) { return work(worker, rate), NULL; }
static void *work_latency(void *worker) { return work(worker, latency), NULL; }
static void *work_put(void *worker) { return work(worker, put_rate), NULL; }

/* What `share` threads have together: a communicator, and a window by it where the test is about windows. */
typedef struct Shared {
    MPI_Comm comm;
    MPI_Win win;
    char *part;
} Shared;

/* One window of all pairs; results[i] is that of this rank's i-th thread. */
static void together(const World *w, void *body(void *), const Shared *shared, size_t bytes, double limit_s, double *results)
{
    static Worker workers[max_threads];
    pthread_t threads[max_threads];
    atomic_bool go = false;
    for (int i = 0; i < w->opt.threads; i++) {
        const Shared *own = &shared[i / w->opt.share];
        workers[i] = (Worker){.w = w, .thread = i, .peer = w->rank ^ 1, .tag = 2 * i, .comm = own->comm, .win = own->win,
                              .part = own->part, .bytes = bytes, .limit_s = limit_s, .go = &go};
        if (i > 0 && pthread_create(&threads[i], NULL, body, &workers[i]) != 0)
            fail("cannot start thread %d", i);
    }
    meet(w);
    atomic_store_explicit(&go, true, memory_order_release);
    body(&workers[0]);
    for (int i = 1; i < w->opt.threads; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < w->opt.threads; i++)
        results[i] = workers[i].result;
}

/* Hints that libraries are known to have for channels: Weft's and MPICH's, and the number that Intel MPI's thread-split model wants. */
static MPI_Info hints_of(const World *w, int number)
{
    char text[16];
    MPI_Info info = MPI_INFO_NULL;
    if (!w->opt.hints)
        return info;
    snprintf(text, sizeof text, "%d", number);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_new_vci", "true");
    MPI_Info_set(info, "mpi_assert_no_any_source", "true");
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "thread_id", text);
    return info;
}

/* A window by each communicator, with hints for as many channels as threads use it. Its locks last as long as itself. */
static void add_window(const World *w, Shared *s, MPI_Info hints, size_t bytes)
{
    char text[16];
    if (w->opt.hints) {
        snprintf(text, sizeof text, "%d", w->opt.share);
        MPI_Info_set(hints, "mpi_num_vcis", text);
        MPI_Info_set(hints, "accumulate_ordering", "none");
    }
    MPI_Win_allocate((MPI_Aint)((size_t)w->opt.threads * region(w, bytes)), 1, hints, s->comm, &s->part, &s->win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, s->win);
}

/* Duplicates of MPI_COMM_WORLD, one for `share` threads each; `window_bytes`, if not 0, of the largest put to a window. */
static Shared *new_shared(const World *w, size_t window_bytes)
{
    int count = (w->opt.threads + w->opt.share - 1) / w->opt.share;
    Shared *all = calloc((size_t)count, sizeof *all);
    for (int i = 0; i < count; i++) {
        MPI_Info hints = hints_of(w, i);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &all[i].comm);
        if (window_bytes > 0)
            add_window(w, &all[i], hints, window_bytes);
        if (hints != MPI_INFO_NULL)
            MPI_Info_free(&hints);
    }
    return all;
}

static void free_shared(const World *w, Shared *all, bool windows)
{
    for (int i = 0; i * w->opt.share < w->opt.threads; i++) {
        if (windows) {
            MPI_Win_unlock_all(all[i].win);
            MPI_Win_free(&all[i].win);
        }
        MPI_Comm_free(&all[i].comm);
    }
    free(all);
}

/* All pairs' results at rank 0: `sum` and `least` and `most` of them. */
typedef struct Spread {
    double sum, least, most;
} Spread;

static Spread gather(const World *w, double *mine)
{
    int n = w->opt.threads;
    Spread s = {0, mine[0], mine[0]};
    if (w->rank != 0 && !(w->rank & 1))
        MPI_Send(mine, n, MPI_DOUBLE, 0, 95, MPI_COMM_WORLD);
    for (int rank = 0; rank < w->size && w->rank == 0; rank += 2) {
        if (rank > 0)
            MPI_Recv(mine, n, MPI_DOUBLE, rank, 95, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < n; i++) {
            s.sum += mine[i];
            s.least = mine[i] < s.least ? mine[i] : s.least;
            s.most = mine[i] > s.most ? mine[i] : s.most;
        }
    }
    return s;
}

static void measure(const World *w, void *body(void *), const Shared *shared, size_t bytes, bool is_rate)
{
    int reps = w->opt.reps, pairs = w->size / 2 * w->opt.threads;
    double *totals = calloc(2 * (size_t)reps, sizeof(double)), *slowest = totals + reps, results[max_threads];
    if (!totals)
        fail("no memory for %d samples", reps);
    together(w, body, shared, bytes, w->opt.warm_ms * 1e-3, results);
    for (int i = 0; i < reps; i++) {
        together(w, body, shared, bytes, w->opt.window_ms * 1e-3, results);
        Spread s = gather(w, results);
        totals[i] = is_rate ? s.sum : s.sum / pairs;
        slowest[i] = is_rate ? s.least / (s.sum / pairs) : s.sum / pairs / s.most;
    }
    report(w, is_rate ? "rate of all" : "mean latency", bytes, is_rate ? "M/s" : "us", totals, reps, NULL);
    report(w, "slowest by mean", bytes, "ratio", slowest, reps, NULL);
    free(totals);
}

static int run(const World *w, void *body(void *), bool is_rate)
{
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 8, hi = w->opt.hi_bytes ? w->opt.hi_bytes : lo;
    if (w->size % 2 || lo < 8)
        fail("%s needs an even number of ranks and at least 8 bytes", w->opt.test);
    if (w->opt.threads > 1 && w->opt.level && strcmp(w->opt.level, "single") == 0)
        fail("%d threads need --level multiple", w->opt.threads);
    bool puts = body == work_put;
    Shared *shared = new_shared(w, puts ? hi : 0);
    for (size_t bytes = lo; bytes <= hi; bytes *= 2)
        measure(w, body, shared, bytes, is_rate);
    free_shared(w, shared, puts);
    return 0;
}

int run_thread_rate(const World *w) { return run(w, work_rate, true); }
int run_thread_latency(const World *w) { return run(w, work_latency, false); }
int run_thread_put(const World *w) { return run(w, work_put, true); }

/* What is timed lies in main(), before and after. */
int run_startup(const World *w)
{
    meet(w);
    return 0;
}

void report_startup(const World *w, double finalize_ms)
{
    report(w, "init", 0, "ms", &w->init_ms, 1, NULL);
    report(w, "finalize", 0, "ms", &finalize_ms, 1, NULL);
}
