/* Hybrid MPI's design (hmpi.h) between bare processes: what Weft's mapped copy and its rings are compared with. No MPI.
 *   latency  microseconds one way, each size by each way: `hmpi` as its thresholds have it, `single` copied by the receiver alone, and
 *            `memcpy`, one core's; whether the implementation deserves the name: 64 KiB take at most one memcpy and two 8 B messages
 *   rate     messages of 8 B a second in all, from each of -n ranks to all others, by the inbox with the lock and by rings
 *   kill     -n ranks exchange messages and one is killed at a random time; of -r trials, those after which every other rank went on
 * weft-bench-hmpi TEST [-m LO:HI] [-n RANKS] [-r N] [--rewrite] [--cpus A,B] prints a JSON line for each measurement. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hmpi.h"
#include "plain.h"

enum { most_samples = 1000, most_bytes = 16 << 20 };

typedef struct Plan {
    const char *test;
    size_t lo, hi;
    int ranks, reps, cpu_count, cpus[most_ranks];
    bool rewrite;
} Plan;

typedef struct Shared {
    _Alignas(64) _Atomic int met;
    _Alignas(64) _Atomic bool stop;
    double samples[most_samples];
    Rank ranks[most_ranks];
    _Alignas(4096) char buffers[2][2][most_bytes];
} Shared;

typedef void Body(const Plan *plan, Self *self, Shared *shared);

static void fail(const char *what)
{
    fprintf(stderr, "weft-bench-hmpi: %s\n", what);
    exit(1);
}

/* All ranks, pinned in turn; each runs the body and ends. */
static void start(const Plan *plan, Shared *shared, int count, bool rings, bool alone, Body *body, pid_t *pids)
{
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            fail("fork");
        if (pids[i] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin("weft-bench-hmpi", plan->cpus[i % plan->cpu_count]);
        Self self = {.ranks = shared->ranks, .me = i, .count = count, .rings = rings, .alone = alone, .yields = count > plan->cpu_count};
        body(plan, &self, shared);
        _exit(0);
    }
}

static void finish(const pid_t *pids, int count)
{
    for (int i = 0; i < count; i++) {
        int status;
        if (waitpid(pids[i], &status, 0) < 0 || status != 0)
            fail("a rank did not end well");
    }
}

/* Memory that is all zero, at one address in all ranks. */
static Shared *share(void)
{
    Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED)
        fail("no shared memory");
    return shared;
}

static void print(const char *test, size_t bytes, const char *unit, const double *samples, int count)
{
    printf("{\"test\":\"%s\",\"bytes\":%zu,\"unit\":\"%s\",\"samples\":[", test, bytes, unit);
    for (int i = 0; i < count; i++)
        printf("%s%.5g", i ? "," : "", samples[i]);
    printf("]}\n");
    fflush(stdout);
}

static double middle(const double *samples, int count)
{
    double sorted[most_samples];
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > samples[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = samples[i];
    }
    return sorted[count / 2];
}

/* ---- latency */

static size_t latency_bytes;

static void refill(char *buffer, size_t bytes, uint64_t stamp)
{
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        const uint64_t word = stamp + at;
        memcpy(buffer + at, &word, 8);
    }
}

static void check(const char *buffer, size_t bytes, uint64_t stamp)
{
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        uint64_t word;
        memcpy(&word, buffer + at, 8);
        if (word != stamp + at)
            fail("a message is wrong");
    }
}

/* Seconds of so many turns without those of rewriting; both ranks call it. Each turn's stamp is its number, from rank 0 twice that. */
static double turns(const Plan *plan, Self *s, Shared *shared, size_t bytes, long count)
{
    char *out = shared->buffers[s->me][0], *in = shared->buffers[s->me][1];
    const int other = 1 - s->me;
    double rewriting = 0;
    const double began = now_s();
    for (long i = 0; i < count; i++) {
        if (s->me == 1)
            receive(s, other, 1, in);
        if (plan->rewrite || i == 0) {
            const double from = now_s();
            refill(out, bytes, (uint64_t)(2 * i + s->me));
            rewriting += now_s() - from;
        }
        send_message(s, other, 1, out, bytes);
        if (s->me == 0)
            receive(s, other, 1, in);
    }
    const double took = now_s() - began - rewriting;
    check(in, bytes, (uint64_t)(2 * (plan->rewrite ? count - 1 : 0) + other));
    double theirs = rewriting; /* the other's rewriting lies in this rank's waiting */
    char text[sizeof theirs];
    memcpy(text, &rewriting, sizeof text);
    send_message(s, other, 2, text, sizeof text);
    receive(s, other, 2, text);
    memcpy(&theirs, text, sizeof theirs);
    return took - theirs;
}

static void ping_pong(const Plan *plan, Self *s, Shared *shared)
{
    const size_t bytes = latency_bytes;
    const long count = bytes < 4096 ? 20000 : bytes < (1 << 20) ? 2000 : 50;
    turns(plan, s, shared, bytes, count);
    for (int i = 0; i < plan->reps; i++) {
        const double us = turns(plan, s, shared, bytes, count) / (double)count / 2 * 1e6;
        if (s->me == 0)
            shared->samples[i] = us;
    }
}

static double measure_latency(const Plan *plan, const char *name, size_t bytes, bool alone)
{
    Shared *shared = share();
    pid_t pids[2];
    latency_bytes = bytes;
    start(plan, shared, 2, false, alone, ping_pong, pids);
    finish(pids, 2);
    print(name, bytes, "us", shared->samples, plan->reps);
    const double us = middle(shared->samples, plan->reps);
    munmap(shared, sizeof *shared);
    return us;
}

/* One core, source and target in its cache as far as they fit. */
static double measure_memcpy(const Plan *plan, size_t bytes)
{
    Shared *shared = share();
    double samples[most_samples];
    pin("weft-bench-hmpi", plan->cpus[0]);
    char *from = shared->buffers[0][0], *to = shared->buffers[0][1];
    refill(from, bytes, 7);
    const long count = bytes < (1 << 20) ? 2000 : 50;
    for (int i = -1; i < plan->reps; i++) {
        const double began = now_s();
        for (long k = 0; k < count; k++) {
            memcpy(to, from, bytes);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        if (i >= 0)
            samples[i] = (now_s() - began) / (double)count * 1e6;
    }
    print("memcpy", bytes, "us", samples, plan->reps);
    munmap(shared, sizeof *shared);
    return middle(samples, plan->reps);
}

static int latency(const Plan *plan)
{
    const double small = measure_latency(plan, "hmpi", 8, false);
    for (size_t bytes = plan->lo; bytes <= plan->hi; bytes *= 2) {
        const double both = measure_latency(plan, "hmpi", bytes, false), copy = measure_memcpy(plan, bytes);
        measure_latency(plan, "single", bytes, true);
        if (bytes == 64 << 10)
            fprintf(stderr, "64 KiB: %.2f us; one memcpy and two 8 B messages: %.2f us\n", both, copy + 2 * small);
    }
    return 0;
}

/* ---- rate and kill */

/* Sends to the others in turn as long as they take messages, and receives whatever comes. */
static void exchange(const Plan *plan, Self *s, Shared *shared)
{
    (void)plan;
    char data[8] = {0};
    Rank *mine = &s->ranks[s->me];
    atomic_fetch_add(&shared->met, 1);
    while (atomic_load(&shared->met) < s->count)
        sched_yield();
    for (int to = s->me; !atomic_load_explicit(&shared->stop, memory_order_relaxed);) {
        to = (to + 1) % s->count;
        Message *m = to == s->me ? NULL : free_message(s, to);
        if (m)
            post(s, m, to, 1, data, sizeof data);
        drain(s);
        for (Message *got; (got = match(s, -1, -1));) {
            receive_into(s, got, data);
            atomic_store_explicit(&mine->done, atomic_load_explicit(&mine->done, memory_order_relaxed) + 1, memory_order_relaxed);
        }
        if (!m)
            rest(s);
    }
}

static uint64_t received(const Shared *shared, int rank) { return atomic_load_explicit(&shared->ranks[rank].done, memory_order_relaxed); }

static void measure_rate(const Plan *plan, bool rings)
{
    Shared *shared = share();
    pid_t pids[most_ranks];
    double samples[most_samples];
    start(plan, shared, plan->ranks, rings, false, exchange, pids);
    for (int i = -1; i < plan->reps; i++) {
        uint64_t before = 0, after = 0;
        for (int k = 0; k < plan->ranks; k++)
            before += received(shared, k);
        const double began = now_s();
        usleep(200000);
        for (int k = 0; k < plan->ranks; k++)
            after += received(shared, k);
        if (i >= 0)
            samples[i] = (double)(after - before) / (now_s() - began) * 1e-6;
    }
    for (int k = 0; k < plan->ranks; k++) {
        kill(pids[k], SIGKILL);
        waitpid(pids[k], NULL, 0);
    }
    print(rings ? "rate by rings" : "rate by the lock", 8, "M/s", samples, plan->reps);
    munmap(shared, sizeof *shared);
}

/* Whether each rank but one receives something within two seconds. */
static bool all_go_on(const Shared *shared, int count, int dead)
{
    uint64_t before[most_ranks];
    for (int k = 0; k < count; k++)
        before[k] = received(shared, k);
    for (double until = now_s() + 2; now_s() < until; usleep(5000)) {
        int moving = 0;
        for (int k = 0; k < count; k++)
            moving += k != dead && received(shared, k) > before[k] + messages_each * 2;
        if (moving == count - 1)
            return true;
    }
    return false;
}

static void measure_kills(const Plan *plan, bool rings)
{
    double survived = 0;
    for (int i = 0; i < plan->reps; i++) {
        Shared *shared = share();
        pid_t pids[most_ranks];
        const int victim = rand() % plan->ranks;
        start(plan, shared, plan->ranks, rings, false, exchange, pids);
        while (atomic_load(&shared->met) < plan->ranks)
            usleep(1000);
        usleep(20000 + (useconds_t)(rand() % 20000));
        kill(pids[victim], SIGKILL);
        waitpid(pids[victim], NULL, 0);
        usleep(20000); /* what the dead rank had sent has arrived */
        survived += all_go_on(shared, plan->ranks, victim);
        for (int k = 0; k < plan->ranks; k++)
            if (k != victim) {
                kill(pids[k], SIGKILL);
                waitpid(pids[k], NULL, 0);
            }
        munmap(shared, sizeof *shared);
    }
    const double share_of_all = survived / plan->reps;
    print(rings ? "trials survived by rings" : "trials survived by the lock", 8, "", &share_of_all, 1);
}

/* ---- */

static void read_cpus(Plan *plan, const char *text)
{
    plan->cpu_count = 0;
    for (const char *p = text; plan->cpu_count < most_ranks;) {
        char *end;
        plan->cpus[plan->cpu_count++] = (int)strtol(p, &end, 10);
        if (*end != ',')
            return;
        p = end + 1;
    }
}

static Plan read_plan(int argc, char **argv)
{
    Plan plan = {.test = argc > 1 ? argv[1] : "", .lo = 4 << 10, .hi = 4 << 20, .ranks = 8, .reps = 5, .cpu_count = 2, .cpus = {0, 1}};
    for (int i = 2; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--rewrite")) {
            plan.rewrite = true;
            continue;
        }
        if (!strcmp(argv[i], "-m") && sscanf(next, "%zu:%zu", &plan.lo, &plan.hi) < 2)
            plan.hi = plan.lo;
        else if (!strcmp(argv[i], "-n"))
            plan.ranks = atoi(next);
        else if (!strcmp(argv[i], "-r"))
            plan.reps = atoi(next);
        else if (!strcmp(argv[i], "--cpus"))
            read_cpus(&plan, next);
        else if (strcmp(argv[i], "-m"))
            fail("unknown option; see the head of hmpi.c");
        i++;
    }
    if (plan.lo < 8 || plan.hi > most_bytes || plan.ranks < 2 || plan.ranks > most_ranks || plan.reps < 1 || plan.reps > most_samples)
        fail("sizes are 8 to 16777216, ranks 2 to 64, repetitions 1 to 1000");
    return plan;
}

int main(int argc, char **argv)
{
    const Plan plan = read_plan(argc, argv);
    if (!strcmp(plan.test, "latency"))
        return latency(&plan);
    void (*const by_inbox)(const Plan *, bool) = !strcmp(plan.test, "rate") ? measure_rate : !strcmp(plan.test, "kill") ? measure_kills : NULL;
    if (!by_inbox)
        fail("the tests are latency, rate and kill");
    by_inbox(&plan, false);
    by_inbox(&plan, true);
    return 0;
}
