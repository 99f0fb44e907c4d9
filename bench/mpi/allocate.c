/* malloc and free of 16 to 1024 bytes at random, by one thread, by two at once, and freed by another thread than allocated: nanoseconds
 * for a pair of calls. Each block's first word is written. With `mpiexec --shared-heap` or without: which malloc is measured. */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { slots = 1024, batch = 256, batches = 64 };

typedef struct Worker {
    const World *w;
    int number;
    long rounds;
    pthread_barrier_t *start;
    double took;
} Worker;

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return *seed;
}

static uint64_t *new_block(uint64_t random)
{
    uint64_t *block = malloc(16 + random % 1009);
    if (!block)
        fail("no memory");
    *block = random;
    return block;
}

/* A random one of many live blocks makes way for a new one. */
static void churn(long rounds, uint64_t seed)
{
    static _Thread_local uint64_t *live[slots];
    for (long i = 0; i < rounds; i++) {
        uint64_t random = next(&seed);
        uint64_t **slot = &live[random >> 40 & (slots - 1)];
        free(*slot);
        *slot = new_block(random);
    }
    for (int i = 0; i < slots; i++) {
        free(live[i]);
        live[i] = NULL;
    }
}

static void *churn_in_a_thread(void *argument)
{
    Worker *me = argument;
    pin_thread(me->w, me->number);
    churn(me->rounds / 10, 99 + (uint64_t)me->number);
    pthread_barrier_wait(me->start);
    double start = now_s();
    churn(me->rounds, 7 + (uint64_t)me->number);
    me->took = now_s() - start;
    return NULL;
}

/* The longest of the threads' times, a pair. */
static double with_threads(const World *w, int threads, long rounds)
{
    pthread_t thread[2];
    Worker worker[2];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        worker[i] = (Worker){w, i, rounds, &start, 0};
        pthread_create(&thread[i], NULL, churn_in_a_thread, &worker[i]);
    }
    double longest = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        longest = worker[i].took > longest ? worker[i].took : longest;
    }
    pthread_barrier_destroy(&start);
    return longest / (double)rounds * 1e9;
}

/* Batches of blocks that go from one thread to another: as many as fit are under way. */
static struct {
    uint64_t *blocks[batches][batch];
    _Alignas(64) _Atomic long made;
    _Alignas(64) _Atomic long freed;
} hand_over;

static void *free_batches(void *argument)
{
    Worker *me = argument;
    pin_thread(me->w, me->number);
    for (long i = 0; i < me->rounds; i++) {
        while (atomic_load_explicit(&hand_over.made, memory_order_acquire) <= i)
            sched_yield();
        for (int k = 0; k < batch; k++)
            free(hand_over.blocks[i % batches][k]);
        atomic_store_explicit(&hand_over.freed, i + 1, memory_order_release);
    }
    return NULL;
}

static void *make_batches(void *argument)
{
    Worker *me = argument;
    uint64_t seed = 5;
    pin_thread(me->w, me->number);
    for (long i = 0; i < me->rounds; i++) {
        while (i - atomic_load_explicit(&hand_over.freed, memory_order_acquire) >= batches)
            sched_yield();
        for (int k = 0; k < batch; k++)
            hand_over.blocks[i % batches][k] = new_block(next(&seed));
        atomic_store_explicit(&hand_over.made, i + 1, memory_order_release);
    }
    return NULL;
}

static double freed_by_another(const World *w, long rounds)
{
    long count = rounds / batch;
    pthread_t maker, other;
    Worker making = {w, 0, count, NULL, 0}, freeing = {w, 1, count, NULL, 0};
    hand_over.made = hand_over.freed = 0;
    double start = now_s();
    pthread_create(&maker, NULL, make_batches, &making);
    pthread_create(&other, NULL, free_batches, &freeing);
    pthread_join(maker, NULL);
    pthread_join(other, NULL);
    return (now_s() - start) / (double)(count * batch) * 1e9;
}

int run_allocate(const World *w)
{
    enum { kinds = 3 };
    static const char *names[kinds] = {"by one thread", "by two threads", "freed by another thread"};
    const long rounds = w->opt.messages * 10;
    double *samples = calloc((size_t)w->opt.reps * kinds, sizeof(double));
    for (int i = -1; i < w->opt.reps; i++) {
        double took[kinds] = {with_threads(w, 1, rounds), with_threads(w, 2, rounds), freed_by_another(w, rounds)};
        for (int k = 0; i >= 0 && k < kinds; k++)
            samples[k * w->opt.reps + i] = took[k];
    }
    for (int k = 0; k < kinds; k++)
        report(w, names[k], 16, "ns", samples + k * w->opt.reps, w->opt.reps, NULL);
    free(samples);
    return 0;
}
