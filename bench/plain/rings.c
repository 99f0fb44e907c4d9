/* What a ring of cache lines costs, in the shapes it could have had: the measurements behind docs/experiments/001-rings.md.
 * No MPI; two processes on two CPUs, shared memory.
 *   answer  a line goes there and back, with software of some length between receipt and answer: in one line for both
 *           directions, or in a line for each
 *   ring    the same through whole rings: one per pair of processes, or one per receiver with a fetch-and-add for the slot
 *   fill    one or two processes put messages into rings nobody reads meanwhile: what a send costs its sender; then the
 *           receiver empties them
 *   find    a receiver looks for a message among many empty rings: a look at each, or at a word of bells
 * weft-bench-rings [answer|ring|fill|find] [-r N] [-n MESSAGES] [--cpus A,B] [--pause] prints JSON lines like weft-bench.
 * The variants of a test take turns, and a sample is a fraction of a millisecond: noise hits all of them, and few samples.
 * --pause waits with the processor's pause instruction between two looks. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain.h"

enum { slots = 1024, most_samples = 1000, most_variants = 8, most_rings = 256 };
enum { ring_stride = 68 * 4096 }; /* as far apart as rings with their bulk part are */

typedef struct Line {
    _Alignas(64) _Atomic uint64_t word; /* 1 + the message's number; published last */
    uint64_t payload[7];
} Line;

typedef struct Ring {
    _Alignas(128) _Atomic uint64_t tail;     /* next slot; used where several write */
    _Alignas(128) _Atomic uint64_t consumed; /* told by the reader now and then */
    _Alignas(128) Line lines[slots];
} Ring;

typedef struct Shared {
    _Alignas(128) Line one, there, back;
    _Alignas(128) _Atomic int64_t met[2];
    _Alignas(128) Ring pair[2][2]; /* [to][from] */
    Ring many[2];                  /* [to] */
    _Alignas(128) _Atomic uint64_t doorbells[most_rings / 64];
} Shared;

typedef struct Plan {
    const char *test;
    int reps, cpus[2];
    long messages;
    bool pause;
} Plan;

typedef struct Side {
    const Plan *plan;
    Shared *shared;
    char *far; /* most_rings lines, ring_stride apart */
    int self;
    int64_t meetings;
    uint64_t turn;           /* of the bare lines; in step on both sides */
    uint64_t sent[2][2]; /* [kind][to]: next slot of a ring with one writer */
    uint64_t seen[2][2]; /* what its reader had consumed when last looked at */
} Side;

typedef struct Variant {
    char name[64];
    double (*run)(Side *s, int a, int b); /* nanoseconds per message; rank 0's counts */
    int a, b;
} Variant;

/* Both processes are here. Yields, since other work may share the CPUs. */
static void meet(Side *s)
{
    Shared *h = s->shared;
    atomic_store_explicit(&h->met[s->self], ++s->meetings, memory_order_release);
    while (atomic_load_explicit(&h->met[1 - s->self], memory_order_acquire) < s->meetings)
        sched_yield();
}

static uint64_t work(uint64_t x, int multiplies)
{
    for (int i = 0; i < multiplies; i++)
        x = x * 0x9e3779b97f4a7c15u + 1;
    __asm__ volatile("" : "+r"(x));
    return x;
}

static inline void await(const Plan *p, const _Atomic uint64_t *word, uint64_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        if (p->pause)
            __builtin_ia32_pause();
}

/* ---- answer: `lines` is 1 or 2. In one line, odd turns go there and even ones come back. */
static double answer(Side *s, int lines, int multiplies)
{
    Shared *h = s->shared;
    Line *out = lines == 1 ? &h->one : s->self == 0 ? &h->there : &h->back;
    Line *in = lines == 1 ? &h->one : s->self == 0 ? &h->back : &h->there;
    uint64_t x = 1;
    meet(s);
    double start = now_s();
    for (long i = 0; i < s->plan->messages; i++) {
        uint64_t there = ++s->turn, back = ++s->turn;
        if (s->self == 1)
            await(s->plan, &in->word, there);
        x = work(x + in->payload[0], multiplies);
        out->payload[0] = x;
        atomic_store_explicit(&out->word, s->self == 0 ? there : back, memory_order_release);
        if (s->self == 0)
            await(s->plan, &in->word, back);
    }
    return (now_s() - start) / (double)s->plan->messages / 2 * 1e9;
}

/* ---- rings. kind 0: one per pair; kind 1: one per receiver. */
static inline Ring *ring_of(Shared *h, int kind, int to, int from)
{
    return kind == 0 ? &h->pair[to][from] : &h->many[to];
}

static inline void put(Side *s, int kind, Ring *r, int to, uint64_t value)
{
    uint64_t at = kind == 0 ? s->sent[kind][to]++ : atomic_fetch_add_explicit(&r->tail, 1, memory_order_relaxed);
    while (__builtin_expect(at - s->seen[kind][to] >= slots, 0)) {
        s->seen[kind][to] = atomic_load_explicit(&r->consumed, memory_order_acquire);
        if (at - s->seen[kind][to] >= slots)
            sched_yield();
    }
    Line *line = &r->lines[at % slots];
    line->payload[0] = value;
    atomic_store_explicit(&line->word, at + 1, memory_order_release);
}

static inline uint64_t get(const Plan *p, Ring *r, uint64_t at)
{
    Line *line = &r->lines[at % slots];
    await(p, &line->word, at + 1);
    uint64_t value = line->payload[0];
    if ((at + 1) % (slots / 4) == 0)
        atomic_store_explicit(&r->consumed, at + 1, memory_order_release);
    return value;
}

/* The reader's place in each ring it reads; kept apart from Side, as a process reads at most two. */
static uint64_t head[2][2];

static double ring(Side *s, int kind, int multiplies)
{
    Shared *h = s->shared;
    int peer = 1 - s->self;
    Ring *out = ring_of(h, kind, peer, s->self), *in = ring_of(h, kind, s->self, peer);
    uint64_t x = 1;
    meet(s);
    double start = now_s();
    for (long i = 0; i < s->plan->messages; i++) {
        if (s->self == 1)
            x += get(s->plan, in, head[kind][peer]++);
        x = work(x, multiplies);
        put(s, kind, out, peer, x);
        if (s->self == 0)
            x += get(s->plan, in, head[kind][peer]++);
    }
    return (now_s() - start) / (double)s->plan->messages / 2 * 1e9;
}

/* ---- fill: both processes may send to process 0, which reads only when all is there. Reports rank 0's cost per message
 * as sender (part 0) or as receiver (part 1). */
static double fill(Side *s, int kind, int senders_and_part)
{
    Shared *h = s->shared;
    int senders = senders_and_part & 3, part = senders_and_part >> 2;
    long rounds = s->plan->messages / slots + 1, each = slots / 2;
    double filling = 0, emptying = 0;
    for (long round = 0; round < rounds; round++) {
        meet(s);
        double start = now_s();
        /* With one sender it is process 1, so that the lines come from the other core, as with two. */
        if (s->self == 1 || senders == 2)
            for (long i = 0; i < each; i++)
                put(s, kind, ring_of(h, kind, 0, s->self), 0, (uint64_t)i);
        filling += now_s() - start;
        meet(s);
        if (s->self == 0) {
            start = now_s();
            for (int from = 2 - senders; from < 2; from++)
                for (long i = 0; i < each; i++)
                    get(s->plan, ring_of(h, kind, 0, from), kind == 0 ? head[0][from]++ : head[1][1]++);
            emptying += now_s() - start;
            for (int from = 0; from < 2; from++) {
                Ring *r = ring_of(h, kind, 0, from);
                atomic_store_explicit(&r->consumed, kind == 0 ? head[0][from] : head[1][1], memory_order_release);
            }
        }
    }
    /* The sender's time is that of process 1: it tells by the line that is not used here. */
    if (s->self == 1)
        h->back.payload[6] = (uint64_t)(filling / (double)(rounds * each) * 1e12);
    meet(s);
    double sent_ns = (double)h->back.payload[6] * 1e-3;
    return part == 0 ? sent_ns : emptying / (double)(rounds * each * senders) * 1e9;
}

/* ---- find: one round over `rings` rings that hold nothing, by a look at each or by the doorbells. Process 1 stays away. */
static double find(Side *s, int rings, int by_bells)
{
    uint64_t found = 0;
    long rounds = s->plan->messages / 8 + 1;
    meet(s);
    double start = now_s();
    for (long round = 0; round < rounds && s->self == 0; round++) {
        if (by_bells) {
            for (int w = 0; w * 64 < rings; w++)
                found += atomic_load_explicit(&s->shared->doorbells[w], memory_order_relaxed) != 0;
        } else {
            for (int i = 0; i < rings; i++) {
                Line *line = (Line *)(s->far + (size_t)i * ring_stride);
                found += atomic_load_explicit(&line->word, memory_order_relaxed) != 0;
            }
        }
    }
    double took = now_s() - start;
    if (found != 0)
        fprintf(stderr, "weft-bench-rings: an empty ring held a message\n");
    meet(s);
    return took / (double)rounds * 1e9;
}

static int list_variants(const char *test, Variant *v)
{
    int n = 0;
    if (strcmp(test, "answer") == 0)
        for (int multiplies = 0; multiplies <= 60; multiplies += 20)
            for (int lines = 1; lines <= 2; lines++) {
                v[n] = (Variant){"", answer, lines, multiplies};
                snprintf(v[n++].name, sizeof v->name, "%s, %d multiplies", lines == 1 ? "one line" : "two lines", multiplies);
            }
    if (strcmp(test, "ring") == 0)
        for (int multiplies = 0; multiplies <= 20; multiplies += 20)
            for (int kind = 0; kind < 2; kind++) {
                v[n] = (Variant){"", ring, kind, multiplies};
                snprintf(v[n++].name, sizeof v->name, "%s, %d multiplies", kind == 0 ? "ring per pair" : "ring per receiver",
                         multiplies);
            }
    if (strcmp(test, "fill") == 0)
        for (int part = 0; part < 2; part++)
            for (int senders = 1; senders <= 2; senders++)
                for (int kind = 0; kind < 2; kind++) {
                    v[n] = (Variant){"", fill, kind, senders | part << 2};
                    snprintf(v[n++].name, sizeof v->name, "%s, %d sender%s, %s", kind == 0 ? "ring per pair" : "ring per receiver",
                             senders, senders == 1 ? "" : "s", part == 0 ? "put" : "get");
                }
    if (strcmp(test, "find") == 0)
        for (int rings = 1; rings <= most_rings; rings *= rings == 1 ? 16 : 4) {
            v[n] = (Variant){"", find, rings, 0};
            snprintf(v[n++].name, sizeof v->name, "look at %d", rings);
            v[n] = (Variant){"", find, rings, 1};
            snprintf(v[n++].name, sizeof v->name, "bells of %d", rings);
        }
    return n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void act(const Plan *p, Shared *shared, char *far, int self)
{
    static double samples[most_variants][most_samples];
    static const char *const tests[] = {"answer", "ring", "fill", "find"};
    Side s = {.plan = p, .shared = shared, .far = far, .self = self};
    for (int t = 0; t < 4; t++) {
        Variant v[most_variants];
        int n = list_variants(tests[t], v);
        if (p->test && strcmp(p->test, tests[t]) != 0)
            continue;
        for (int i = -1; i < p->reps; i++) /* one to warm up */
            for (int k = 0; k < n; k++)
                samples[k][i < 0 ? 0 : i] = v[k].run(&s, v[k].a, v[k].b);
        for (int k = 0; k < n && self == 0; k++) {
            printf("{\"test\":\"%s\",\"variant\":\"%s\",\"unit\":\"ns\",\"samples\":[", tests[t], v[k].name);
            for (int i = 0; i < p->reps; i++)
                printf("%s%.4g", i ? "," : "", samples[k][i]);
            qsort(samples[k], (size_t)p->reps, sizeof(double), compare);
            printf("],\"median\":%.4g,\"least\":%.4g}\n", samples[k][p->reps / 2], samples[k][0]);
        }
    }
    fflush(stdout);
}

static bool parse(Plan *p, int argc, char **argv)
{
    *p = (Plan){.reps = 101, .cpus = {0, 1}, .messages = 500};
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (argv[i][0] != '-' && !p->test)
            p->test = argv[i];
        else if (strcmp(argv[i], "--pause") == 0)
            p->pause = true;
        else if (value && strcmp(argv[i], "-r") == 0)
            p->reps = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "-n") == 0)
            p->messages = atol(argv[++i]);
        else if (value && strcmp(argv[i], "--cpus") == 0 && sscanf(argv[i + 1], "%d,%d", &p->cpus[0], &p->cpus[1]) == 2)
            i++;
        else
            return false;
    }
    Variant v[most_variants];
    return p->reps >= 1 && p->reps <= most_samples && p->messages >= 1 && (!p->test || list_variants(p->test, v) > 0);
}

int main(int argc, char **argv)
{
    Plan plan;
    if (!parse(&plan, argc, argv)) {
        fprintf(stderr, "usage: weft-bench-rings [answer|ring|fill|find] [-r N] [-n MESSAGES] [--cpus A,B] [--pause]\n");
        return 2;
    }
    size_t bytes = sizeof(Shared) + (size_t)most_rings * ring_stride + 4096;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("weft-bench-rings: mmap");
        return 1;
    }
    char *far = memory + (sizeof(Shared) + 4095) / 4096 * 4096;
    for (int i = 0; i < most_rings; i++)
        *(volatile char *)(far + (size_t)i * ring_stride) = 0; /* mapped before it is timed */
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        perror("weft-bench-rings: fork");
        return 1;
    }
    int self = child == 0;
    if (self == 1) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    pin("weft-bench-rings", plan.cpus[self]);
    act(&plan, (Shared *)memory, far, self);
    if (self == 1)
        _exit(0);
    int status = 0;
    while (wait(&status) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
