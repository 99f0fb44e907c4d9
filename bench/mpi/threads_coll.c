/* An allreduce over all threads of all ranks, in the ways that a program has: the threads of a rank fold their vectors, then one of them
 * calls MPI_Allreduce; or each calls it for its part of the elements, on a communicator of its own; or each thread is an endpoint and
 * calls it for its whole vector, where the library has endpoints (weft.h). The first two leave one result for all threads of a rank,
 * endpoints one for each thread. Threads of a rank meet at a barrier of pthreads. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum Way { one_call, call_each, endpoints, ways };
static const char *const names[ways] = {"fold, one allreduce", "fold, an allreduce each", "endpoints"};

typedef struct Team {
    const World *w;
    enum Way way;
    int words, rounds;
    int64_t **in, *sum, **out; /* each thread's vector; all of them together; each thread's result, or one for all */
    MPI_Comm *comms;           /* one for each thread */
    pthread_barrier_t meeting; /* of the threads of this rank */
    double took_s;
} Team;

typedef struct Member {
    Team *team;
    int thread;
} Member;

static void meet_threads(Team *t) { pthread_barrier_wait(&t->meeting); }

static void fold(Team *t, int from, int to)
{
    memcpy(t->sum + from, t->in[0] + from, (size_t)(to - from) * 8);
    for (int thread = 1; thread < t->w->opt.threads; thread++)
        for (int i = from; i < to; i++)
            t->sum[i] += t->in[thread][i];
}

static void reduce(Team *t, int thread)
{
    int n = t->words, threads = t->w->opt.threads, from = (int)((int64_t)n * thread / threads), to = (int)((int64_t)n * (thread + 1) / threads);
    if (t->way == endpoints) {
        MPI_Allreduce(t->in[thread], t->out[thread], n, MPI_INT64_T, MPI_SUM, t->comms[thread]);
        return;
    }
    meet_threads(t); /* the vectors are written */
    fold(t, from, to);
    if (t->way == call_each) {
        MPI_Allreduce(t->sum + from, t->out[0] + from, to - from, MPI_INT64_T, MPI_SUM, t->comms[thread]);
    } else {
        meet_threads(t);
        if (thread == 0)
            MPI_Allreduce(t->sum, t->out[0], n, MPI_INT64_T, MPI_SUM, t->comms[0]);
    }
    meet_threads(t); /* the result is there */
}

static void check(const Team *t, int thread, int round)
{
    int64_t all = (int64_t)t->w->size * t->w->opt.threads, numbers = all * (all - 1) / 2;
    const int64_t *out = t->way == endpoints ? t->out[thread] : t->out[0];
    for (int i = 0; i < t->words; i += t->words > 1 ? t->words - 1 : 1)
        if (out[i] != numbers + all * (round + i))
            fail("%s: element %d of round %d is %lld, not %lld", names[t->way], i, round, (long long)out[i], (long long)(numbers + all * (round + i)));
}

static void *work(void *member)
{
    Team *t = ((Member *)member)->team;
    int thread = ((Member *)member)->thread, number = t->w->rank * t->w->opt.threads + thread;
    pin_thread(t->w, thread * t->w->size + t->w->rank);
    meet_threads(t);
    double start = now_s();
    for (int round = 0; round < t->rounds; round++) {
        for (int i = 0; i < t->words; i++)
            t->in[thread][i] = number + round + i;
        reduce(t, thread);
        check(t, thread, round);
    }
    if (thread == 0)
        t->took_s = now_s() - start;
    return NULL;
}

/* Seconds of so many rounds. */
static double together(Team *t, int rounds)
{
    Member members[max_threads];
    pthread_t threads[max_threads];
    t->rounds = rounds;
    meet(t->w);
    for (int i = 0; i < t->w->opt.threads; i++) {
        members[i] = (Member){.team = t, .thread = i};
        if (i > 0 && pthread_create(&threads[i], NULL, work, &members[i]) != 0)
            fail("cannot start thread %d", i);
    }
    work(&members[0]);
    for (int i = 1; i < t->w->opt.threads; i++)
        pthread_join(threads[i], NULL);
    return t->took_s;
}

static void measure(Team *t, size_t bytes)
{
    const World *w = t->w;
    double *samples = calloc((size_t)w->opt.reps, sizeof(double)), one = together(t, 50) / 50;
    if (!samples)
        fail("no memory for %d samples", w->opt.reps);
    int rounds = (int)agree(w, 1 + (int64_t)(w->opt.window_ms * 1e-3 / one));
    for (int i = 0; i < w->opt.reps; i++)
        samples[i] = together(t, rounds) / rounds * 1e6;
    report(w, names[t->way], bytes, "us", samples, w->opt.reps, NULL);
    free(samples);
}

static void open_vectors(Team *t, size_t bytes)
{
    int n = t->w->opt.threads;
    t->words = (int)(bytes / 8);
    t->in = calloc(2 * (size_t)n, sizeof *t->in);
    if (!t->in)
        fail("no memory for the vectors of %d threads", n);
    t->out = t->in + n;
    t->sum = new_buffer(bytes);
    for (int i = 0; i < n; i++) {
        t->in[i] = new_buffer(bytes);
        t->out[i] = new_buffer(bytes);
    }
}

static void close_vectors(Team *t)
{
    for (int i = 0; i < 2 * t->w->opt.threads; i++)
        free(t->in[i]);
    free(t->in);
    free(t->sum);
}

int run_thread_allreduce(const World *w)
{
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 64, hi = w->opt.hi_bytes ? w->opt.hi_bytes : lo;
    int n = w->opt.threads;
    if (lo < 8 || lo % 8)
        fail("%s needs whole 8-byte words", w->opt.test);
    if (n > 1 && w->opt.level && strcmp(w->opt.level, "single") == 0)
        fail("%d threads need --level multiple", n);
    for (enum Way way = one_call; way < (MPIX_Comm_create_endpoints ? ways : endpoints); way++) {
        MPI_Comm comms[max_threads];
        Team team = {.w = w, .way = way, .comms = comms};
        pthread_barrier_init(&team.meeting, NULL, (unsigned)n);
        if (way == endpoints)
            MPIX_Comm_create_endpoints(MPI_COMM_WORLD, n, MPI_INFO_NULL, comms);
        for (int i = 0; i < n && way != endpoints; i++)
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        for (size_t bytes = lo; bytes <= hi; bytes *= 2) {
            open_vectors(&team, bytes);
            measure(&team, bytes);
            close_vectors(&team);
        }
        for (int i = 0; i < n; i++)
            MPI_Comm_free(&comms[i]);
        pthread_barrier_destroy(&team.meeting);
    }
    return 0;
}
