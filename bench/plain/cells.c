/* How messages of 8 B to 4 KiB should lie in a ring from one process to another: the measurements behind
 * docs/experiments/012-cells.md. No MPI; two processes on two CPUs, shared memory.
 *   line+bulk  a cell of 64 B with 48 B of payload; more payload lies in a ring of 512 KiB (or 64, 16), the cell says where
 *   lines      a message spans consecutive lines: 48 B of payload in the first, 56 B in each other; each line has a turn word,
 *              and the words are written in order
 *   first last the same, but the first line is written after all others, and its reader looks at that word alone
 *   one word   the same, but only the first line has a word, which publishes all; the others hold 64 B
 *   pool       a cell as in line+bulk; more payload lies in a chunk of 4 KiB, the one that came back last
 *   packed     8 B only: a line is published again for each message until it is full (4 with a tag each, 6 of one tag); streams:
 *              but a message sent after one has come back gets a line to itself
 * claimed: the reader stores one byte to each line it has read. demoted: cldemote after writing, where the reader waits.
 * weft-bench-cells [-m LO:HI] [-r N] [-n MESSAGES] [-v TEXT] [--work N] [--cpus A,B] [--csv] [--corrupt]
 * First every layout carries checked messages at every size; then the layouts take turns. -v: only layouts whose name contains
 * TEXT. --work: N dependent multiplies for each message on each side. --corrupt spoils a byte, which the check must find. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cells.h"
#include "plain.h"

enum { window = 64, most_sizes = 16, most_variants = 32, most_samples = 400 };
enum { latency, rate, tests };

static const Variant all_variants[] = {
    {"line+bulk", line_bulk, cells, bulk_bytes, false, false, false},
    {"line+bulk, claimed", line_bulk, cells, bulk_bytes, true, false, false},
    {"line+bulk, demoted", line_bulk, cells, bulk_bytes, false, true, false},
    {"line+bulk, 64 KiB", line_bulk, cells, 64 << 10, false, false, false},
    {"line+bulk, 64 KiB, dem.", line_bulk, cells, 64 << 10, false, true, false},
    {"line+bulk, 16 KiB", line_bulk, cells, 16 << 10, false, false, false},
    {"line+bulk, 16 KiB, dem.", line_bulk, cells, 16 << 10, false, true, false},
    {"lines, 16", lines, 16, 0, false, false, false},
    {"lines, 64", lines, 64, 0, false, false, false},
    {"lines, 256", lines, 256, 0, false, false, false},
    {"lines, 1024", lines, 1024, 0, false, false, false},
    {"lines, 64, claimed", lines, 64, 0, true, false, false},
    {"lines, 256, claimed", lines, 256, 0, true, false, false},
    {"lines, 256, demoted", lines, 256, 0, false, true, false},
    {"first last, 256", first_last, 256, 0, false, false, false},
    {"first last, 256, claimed", first_last, 256, 0, true, false, false},
    {"first last, 256, demoted", first_last, 256, 0, false, true, false},
    {"one word, 256", one_word, 256, 0, false, false, false},
    {"one word, 256, claimed", one_word, 256, 0, true, false, false},
    {"one word, 256, demoted", one_word, 256, 0, false, true, false},
    {"pool of 64", pool, cells, 64, false, false, false},
    {"pool of 16", pool, cells, 16, false, false, false},
    {"pool of 16, claimed", pool, cells, 16, true, false, false},
    {"pool of 16, demoted", pool, cells, 16, false, true, false},
    {"packed, 4", packed, cells, 4, false, false, false},
    {"packed, 6", packed, cells, 6, false, false, false},
    {"packed, 4, streams", packed, cells, 4, false, false, true},
    {"packed, 6, streams", packed, cells, 6, false, false, true},
};

typedef struct Shared {
    _Alignas(128) _Atomic int64_t met[2];
    Ring rings[most_variants][2]; /* [variant][from] */
} Shared;

typedef struct Plan {
    uint32_t sizes[most_sizes];
    int size_count, reps, work, cpus[2];
    long messages;
    const char *only;
    bool csv, corrupt;
} Plan;

typedef struct Side {
    const Plan *plan;
    Shared *shared;
    int self;
    bool check;
    int64_t meetings;
    uint64_t worked;
    char buffer[2][most_bytes] __attribute__((aligned(64))); /* out, in */
} Side;

static void meet(Side *s)
{
    unsigned looks = 0;
    atomic_store_explicit(&s->shared->met[s->self], ++s->meetings, memory_order_release);
    while (atomic_load_explicit(&s->shared->met[1 - s->self], memory_order_acquire) < s->meetings)
        rest(&looks);
}

/* ---- messages */

static void stamp(char *to, uint32_t bytes, uint32_t message)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = (char)(message * 31 + i * 7 + (i >> 8) + 1);
}

static void verify(const char *in, uint32_t bytes, uint32_t expected, const End *e)
{
    static char right[most_bytes];
    if (bytes != expected)
        fail("a message has the wrong length", e->variant->name, expected);
    stamp(right, bytes, e->messages);
    if (memcmp(in, right, bytes) != 0)
        fail("a message has wrong contents", e->variant->name, bytes);
}

static void work(Side *s)
{
    uint64_t x = s->worked;
    for (int i = 0; i < s->plan->work; i++)
        x = x * 0x9e3779b97f4a7c15u + 1;
    __asm__ volatile("" : "+r"(x));
    s->worked = x;
}

INLINE void send(Side *s, End *e, uint32_t bytes, Layout layout)
{
    if (__builtin_expect(s->check, 0)) {
        stamp(s->buffer[0], bytes, e->messages);
        if (s->plan->corrupt && e->messages % 64 == 40)
            s->buffer[0][bytes - 1] ^= 1;
    }
    if (s->plan->work != 0)
        work(s);
    if (layout == line_bulk || layout == pool)
        send_cell(e, s->buffer[0], bytes, layout == pool);
    else if (layout == lines || layout == first_last)
        send_lines(e, s->buffer[0], bytes, layout == first_last);
    else if (layout == one_word)
        send_one_word(e, s->buffer[0], bytes);
    else
        send_packed(e, s->buffer[0]);
    e->messages++;
    e->awaited = false;
}

INLINE void receive(Side *s, End *e, End *out, uint32_t expected, Layout layout)
{
    uint32_t bytes;
    if (layout == line_bulk || layout == pool)
        bytes = receive_cell(e, s->buffer[1], layout == pool);
    else if (layout == lines || layout == first_last)
        bytes = receive_lines(e, s->buffer[1], layout == first_last);
    else if (layout == one_word)
        bytes = receive_one_word(e, s->buffer[1]);
    else
        bytes = receive_packed(e, s->buffer[1]);
    if (__builtin_expect(s->check, 0))
        verify(s->buffer[1], bytes, expected, e);
    if (s->plan->work != 0)
        work(s);
    e->messages++;
    out->awaited = true;
}

/* ---- the two tests */

/* Process 0 sends `ahead` messages and waits for one answer, of `answer` bytes; so on until `messages` are sent. Seconds. */
INLINE double exchange_by(Side *s, End *out, End *in, uint32_t bytes, uint32_t answer, long messages, long ahead, Layout layout)
{
    meet(s);
    double start = now_s();
    for (long sent = 0; sent < messages; sent += ahead) {
        if (s->self == 0) {
            for (long k = 0; k < ahead; k++)
                send(s, out, bytes, layout);
            receive(s, in, out, answer, layout);
        } else {
            for (long k = 0; k < ahead; k++)
                receive(s, in, out, bytes, layout);
            send(s, out, answer, layout);
        }
    }
    return now_s() - start;
}

static double exchange(Side *s, End *ends, uint32_t bytes, uint32_t answer, long messages, long ahead)
{
    End *out = &ends[0], *in = &ends[1];
    switch (out->variant->layout) { /* each case is compiled for its layout */
    case line_bulk: return exchange_by(s, out, in, bytes, answer, messages, ahead, line_bulk);
    case lines: return exchange_by(s, out, in, bytes, answer, messages, ahead, lines);
    case first_last: return exchange_by(s, out, in, bytes, answer, messages, ahead, first_last);
    case one_word: return exchange_by(s, out, in, bytes, answer, messages, ahead, one_word);
    case pool: return exchange_by(s, out, in, bytes, answer, messages, ahead, pool);
    default: return exchange_by(s, out, in, bytes, answer, messages, ahead, packed);
    }
}

static bool carries(const Variant *v, uint32_t bytes)
{
    return v->layout != packed || bytes == 8;
}

/* Messages for one lap of the ring's lines. */
static long lap(const Variant *v, uint32_t bytes)
{
    bool spans = v->layout == lines || v->layout == first_last || v->layout == one_word;
    uint32_t each = spans ? spanned(bytes) : 1;
    return (long)(v->lines / each + 1) * (v->layout == packed ? (long)v->chunks : 1);
}

/* Two laps of full windows, answered by as much and by 8 B, and some single messages; the contents of all are checked. */
static void check(Side *s, End *ends, uint32_t bytes)
{
    long windows = 2 * lap(ends->variant, bytes) / window + 1;
    s->check = true;
    exchange(s, ends, bytes, bytes, windows * window, window);
    exchange(s, ends, bytes, 8, windows * window, window);
    exchange(s, ends, bytes, bytes, 16, 1);
    s->check = false;
}

/* Puts the layout's memory into the state in which traffic of its own would have left it. */
static void warm(Side *s, End *ends, uint32_t bytes)
{
    const Variant *v = ends->variant;
    if (v->layout == line_bulk && bytes > inline_bytes) {
        memset(ends[0].ring->bulk, 1, v->chunks);
        meet(s);
        for (uint32_t at = 0; at < v->chunks; at += 64)
            (void)*(volatile char *)(ends[1].ring->bulk + at);
        if (v->claim)
            claim(ends[1].ring->bulk, v->chunks);
    }
    exchange(s, ends, bytes, bytes, (lap(v, bytes) + window) / window * window, window);
    exchange(s, ends, bytes, bytes, 16, 1);
}

/* Nanoseconds one way, or million messages per second. */
static double measure(Side *s, End *ends, uint32_t bytes, int test)
{
    long n = s->plan->messages, windows = (n + window - 1) / window;
    warm(s, ends, bytes);
    if (test == latency)
        return exchange(s, ends, bytes, bytes, n, 1) / (double)n / 2 * 1e9;
    return (double)(windows * window) / exchange(s, ends, bytes, 8, windows * window, window) * 1e-6;
}

/* ---- output */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double samples[tests][most_variants][most_sizes][most_samples];
static const char *const test_names[] = {"latency", "rate"}, *const units[] = {"ns one way", "M messages/s"};

static void print_csv(const Plan *p, const Variant *const *chosen, int count)
{
    printf("test,variant,bytes,unit,median,low_quartile,high_quartile,least,most,samples\n");
    for (int t = 0; t < tests; t++)
        for (int v = 0; v < count; v++)
            for (int b = 0; b < p->size_count; b++) {
                const double *x = samples[t][v][b];
                if (carries(chosen[v], p->sizes[b]))
                    printf("%s,\"%s\",%u,%s,%.4g,%.4g,%.4g,%.4g,%.4g,%d\n", test_names[t], chosen[v]->name, p->sizes[b],
                           units[t], x[p->reps / 2], x[p->reps / 4], x[p->reps * 3 / 4], x[0], x[p->reps - 1], p->reps);
            }
}

/* Medians; the spread is the middle half of the samples, in percent of the median, in the middle of all sizes. */
static void print_tables(const Plan *p, const Variant *const *chosen, int count)
{
    for (int t = 0; t < tests; t++) {
        printf("%s%s, %s; medians of %d\n%-24s", t > 0 ? "\n" : "", test_names[t], units[t], p->reps, "bytes");
        for (int b = 0; b < p->size_count; b++)
            printf(" %7u", p->sizes[b]);
        printf("   spread\n");
        for (int v = 0; v < count; v++) {
            double spreads[most_sizes];
            int n = 0;
            printf("%-24s", chosen[v]->name);
            for (int b = 0; b < p->size_count; b++) {
                const double *x = samples[t][v][b], median = x[p->reps / 2];
                if (!carries(chosen[v], p->sizes[b])) {
                    printf(" %7s", "");
                    continue;
                }
                printf(" %7.4g", median);
                spreads[n++] = (x[p->reps * 3 / 4] - x[p->reps / 4]) / median * 100;
            }
            qsort(spreads, (size_t)n, sizeof(double), by_value);
            printf("   %4.0f %%\n", n > 0 ? spreads[n / 2] : 0);
        }
    }
}

/* ---- running */

static int choose(const Plan *p, const Variant **chosen)
{
    int count = 0;
    for (size_t i = 0; i < sizeof all_variants / sizeof *all_variants; i++) {
        bool carries_one = false;
        for (int b = 0; b < p->size_count; b++)
            carries_one |= carries(&all_variants[i], p->sizes[b]);
        if (carries_one && (!p->only || strstr(all_variants[i].name, p->only)))
            chosen[count++] = &all_variants[i];
    }
    return count;
}

/* ends: out, in. */
static void open_ends(End *ends, const Variant *v, Ring rings[2], int self)
{
    for (int k = 0; k < 2; k++) {
        End *e = &ends[k];
        *e = (End){.ring = &rings[k == 0 ? self : 1 - self], .variant = v, .shift = (uint32_t)__builtin_ctz(v->lines)};
        e->bulk_quarter = v->layout == line_bulk ? v->chunks / 4 : bulk_bytes;
        e->quarter = v->layout == pool ? v->chunks / 4 : v->lines / 4;
        if (v->layout == pool)
            for (uint32_t chunk = v->chunks; chunk-- > 0;)
                e->free[e->free_count++] = (uint8_t)chunk;
    }
}

static void act(const Plan *p, Shared *shared, int self)
{
    static Side s;
    static End ends[most_variants][2];
    const Variant *chosen[most_variants];
    int count = choose(p, chosen);
    s = (Side){.plan = p, .shared = shared, .self = self};
    for (int v = 0; v < count; v++)
        open_ends(ends[v], chosen[v], shared->rings[v], self);
    for (int b = 0; b < p->size_count; b++)
        for (int v = 0; v < count; v++)
            if (carries(chosen[v], p->sizes[b]))
                check(&s, ends[v], p->sizes[b]);
    for (int i = 0; i < p->reps; i++)
        for (int b = 0; b < p->size_count; b++)
            for (int v = 0; v < count; v++)
                for (int t = 0; t < tests; t++)
                    if (carries(chosen[v], p->sizes[b]))
                        samples[t][v][b][i] = measure(&s, ends[v], p->sizes[b], t);
    if (self != 0)
        return;
    for (int t = 0; t < tests; t++)
        for (int v = 0; v < count; v++)
            for (int b = 0; b < p->size_count; b++)
                qsort(samples[t][v][b], (size_t)p->reps, sizeof(double), by_value);
    (p->csv ? print_csv : print_tables)(p, chosen, count);
    fflush(stdout);
}

static void first_cpus(int *cpus)
{
    cpu_set_t set;
    int found = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET((size_t)cpu, &set))
            cpus[found++] = cpu;
    if (found == 1)
        cpus[1] = cpus[0];
}

static bool parse(Plan *p, int argc, char **argv)
{
    uint32_t lo = 8, hi = most_bytes;
    *p = (Plan){.reps = 31, .messages = 500};
    first_cpus(p->cpus);
    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;
        if (strcmp(argv[i], "--csv") == 0)
            p->csv = true;
        else if (strcmp(argv[i], "--corrupt") == 0)
            p->corrupt = true;
        else if (value && strcmp(argv[i], "-m") == 0 && sscanf(argv[i + 1], "%u:%u", &lo, &hi) == 2)
            i++;
        else if (value && strcmp(argv[i], "-r") == 0)
            p->reps = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "-n") == 0)
            p->messages = atol(argv[++i]);
        else if (value && strcmp(argv[i], "-v") == 0)
            p->only = argv[++i];
        else if (value && strcmp(argv[i], "--work") == 0)
            p->work = atoi(argv[++i]);
        else if (value && strcmp(argv[i], "--cpus") == 0 && sscanf(argv[i + 1], "%d,%d", &p->cpus[0], &p->cpus[1]) == 2)
            i++;
        else
            return false;
    }
    if (lo < 8 || hi > most_bytes)
        return false;
    for (uint32_t bytes = lo; bytes <= hi; bytes *= 2)
        p->sizes[p->size_count++] = bytes;
    const Variant *chosen[most_variants];
    return p->reps >= 1 && p->reps <= most_samples && p->messages >= 1 && p->work >= 0 && choose(p, chosen) > 0;
}

/* Process 0 does not wait for a process 1 that has failed. The other way round, the parent's death ends process 1. */
static void child_ended(int signal_number)
{
    int status;
    (void)signal_number;
    if (waitpid(-1, &status, WNOHANG) > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        _exit(1);
}

int main(int argc, char **argv)
{
    static Plan plan;
    if (!parse(&plan, argc, argv)) {
        fprintf(stderr, "usage: weft-bench-cells [-m LO:HI] [-r N] [-n MESSAGES] [-v TEXT] [--work N] [--cpus A,B] [--csv] "
                        "[--corrupt]\n");
        return 2;
    }
    if (plan.cpus[0] == plan.cpus[1])
        patience = 16;
    Shared *shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED) {
        perror("weft-bench-cells: mmap");
        return 1;
    }
    signal(SIGCHLD, child_ended);
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        perror("weft-bench-cells: fork");
        return 1;
    }
    int self = child == 0;
    if (self == 1) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    pin("weft-bench-cells", plan.cpus[self]);
    act(&plan, shared, self);
    if (self == 1)
        _exit(0);
    int status = 0;
    while (wait(&status) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
