/* How fast one buffer can get from one process to another on this machine, by every way there is: the limits that the
 * protocol for large messages is chosen by. The sender rewrites the whole buffer before each transfer, the receiver
 * reuses its own; only the transfer is timed. No MPI.
 * weft-bench-transfer [-m LO:HI] [-r N] [--cpus A,B] prints one line per way and size. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plain.h"

enum { depth = 8, largest = 16 << 20, most_samples = 1000 };

typedef struct Shared {
    _Alignas(128) _Atomic int64_t arrived[2];
    _Alignas(128) _Atomic int64_t filled; /* chunks the sender has put into the pipeline, ever */
    _Alignas(128) _Atomic int64_t drained;
    void *out, *in; /* addresses in the sender and in the receiver */
    pid_t pids[2];
    double times[most_samples];
    _Alignas(4096) char chunks[(depth << 20) + 64];
    _Alignas(4096) char window[largest];
    _Alignas(4096) char target[largest];
} Shared;

typedef struct Side {
    Shared *shared;
    int self;
    int64_t step, chunk; /* counts since the start; in step on both sides */
    char *buffer, *allocated;
    size_t slot;
    bool take;
} Side;

typedef struct Way {
    const char *name;
    void (*move)(Side *s, size_t bytes, size_t chunk);
    size_t chunk;
    bool in_window; /* the sender's buffer lies in shared memory */
    bool in_target; /* the receiver's too */
    size_t skew;    /* where in a cache line private buffers begin, */
    size_t slot;    /* and where chunks in shared memory do */
    bool take;      /* the receiver stores to each line it has read */
} Way;

static void await(_Atomic int64_t *counter, int64_t value)
{
    while (atomic_load_explicit(counter, memory_order_acquire) < value) {
    }
}

static void meet(Side *s)
{
    s->step++;
    atomic_store_explicit(&s->shared->arrived[s->self], s->step, memory_order_release);
    await(&s->shared->arrived[1 - s->self], s->step);
}

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        kill(0, SIGTERM);
        exit(1);
    }
}

static void vm(Side *s, bool read, size_t from, size_t bytes)
{
    void *there = s->self == 0 ? s->shared->in : s->shared->out;
    struct iovec local = {s->buffer + from, bytes}, remote = {(char *)there + from, bytes};
    pid_t peer = s->shared->pids[1 - s->self];
    ssize_t done = read ? process_vm_readv(peer, &local, 1, &remote, 1, 0)
                        : process_vm_writev(peer, &local, 1, &remote, 1, 0);
    must(done == (ssize_t)bytes, read ? "process_vm_readv" : "process_vm_writev");
}

static void vm_read(Side *s, size_t bytes, size_t chunk)
{
    (void)chunk;
    if (s->self == 1)
        vm(s, true, 0, bytes);
}

static void vm_write(Side *s, size_t bytes, size_t chunk)
{
    (void)chunk;
    if (s->self == 0)
        vm(s, false, 0, bytes);
}

static void vm_both(Side *s, size_t bytes, size_t chunk)
{
    (void)chunk;
    size_t half = bytes / 2 & ~(size_t)63;
    if (s->self == 1)
        vm(s, true, 0, half);
    else
        vm(s, false, half, bytes - half);
}

static void mapped(Side *s, size_t bytes, size_t chunk)
{
    (void)chunk;
    if (s->self == 1)
        memcpy(s->buffer, s->shared->window, bytes);
}

static void mapped_halves(Side *s, size_t bytes, size_t chunk)
{
    (void)chunk;
    size_t half = bytes / 2 & ~(size_t)63, from = s->self == 0 ? half : 0;
    memcpy(s->shared->target + from, s->shared->window + from, s->self == 0 ? bytes - half : half);
}

typedef struct Bytes {
    char byte[64];
} Bytes;

/* Whole lines, and one store to each that has been read: from then on it is in this core's cache alone. */
static void copy_and_take(char *to, char *from, size_t bytes)
{
    size_t at = 0;
    for (; at + sizeof(Bytes) <= bytes; at += sizeof(Bytes)) {
        Bytes line;
        memcpy(&line, from + at, sizeof line);
        *(volatile char *)(from + at) = 0;
        memcpy(to + at, &line, sizeof line);
    }
    memcpy(to + at, from + at, bytes - at);
}

static void pipeline(Side *s, size_t bytes, size_t chunk)
{
    for (size_t from = 0; from < bytes; from += chunk, s->chunk++) {
        size_t part = bytes - from < chunk ? bytes - from : chunk;
        char *slot = s->shared->chunks + (size_t)(s->chunk % depth) * chunk + s->slot;
        if (s->self == 0) {
            await(&s->shared->drained, s->chunk - depth + 1);
            memcpy(slot, s->buffer + from, part);
            atomic_store_explicit(&s->shared->filled, s->chunk + 1, memory_order_release);
        } else {
            await(&s->shared->filled, s->chunk + 1);
            if (s->take)
                copy_and_take(s->buffer + from, slot, part);
            else
                memcpy(s->buffer + from, slot, part);
            atomic_store_explicit(&s->shared->drained, s->chunk + 1, memory_order_release);
        }
    }
}

static const Way ways[] = {
    {.name = "receiver reads (vm)", .move = vm_read},
    {.name = "sender writes (vm)", .move = vm_write},
    {.name = "each copies half (vm)", .move = vm_both},
    {.name = "one copy, mapped", .move = mapped, .in_window = true},
    {.name = "each copies half, mapped", .move = mapped_halves, .in_window = true, .in_target = true},
    {.name = "two copies, 4 KiB", .move = pipeline, .chunk = 4 << 10},
    {.name = "two copies, 8 KiB", .move = pipeline, .chunk = 8 << 10},
    {.name = "two copies, 16 KiB", .move = pipeline, .chunk = 16 << 10},
    {.name = "  16 B into a line", .move = pipeline, .chunk = 16 << 10, .skew = 16},
    {.name = "  and so the chunks", .move = pipeline, .chunk = 16 << 10, .skew = 16, .slot = 16},
    {.name = "  taken", .move = pipeline, .chunk = 16 << 10, .take = true},
    {.name = "two copies, 32 KiB", .move = pipeline, .chunk = 32 << 10},
    {.name = "  16 B into a line", .move = pipeline, .chunk = 32 << 10, .skew = 16},
    {.name = "  and so the chunks", .move = pipeline, .chunk = 32 << 10, .skew = 16, .slot = 16},
    {.name = "two copies, 64 KiB", .move = pipeline, .chunk = 64 << 10},
    {.name = "two copies, 128 KiB", .move = pipeline, .chunk = 128 << 10},
};

static void fill(char *to, size_t bytes, uint64_t stamp)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = stamp + i;
        memcpy(to + i, &word, 8);
    }
}

static void check(const char *in, size_t bytes, uint64_t stamp, const char *way)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = stamp + i;
        if (memcmp(in + i, &word, 8) != 0) {
            fprintf(stderr, "weft-bench-transfer: %s: byte %zu is wrong\n", way, i);
            kill(0, SIGTERM);
            exit(1);
        }
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The receiver's clock starts when both are ready and stops when it holds everything and the sender knows. */
static void measure(Side *s, const Way *way, size_t bytes, int reps)
{
    s->buffer = s->allocated + way->skew;
    s->slot = way->slot;
    s->take = way->take;
    for (int i = -2; i < reps; i++) {
        uint64_t stamp = (uint64_t)(i + 3) << 32 | (uint64_t)bytes;
        if (s->self == 0)
            fill(way->in_window ? s->shared->window : s->buffer, bytes, stamp);
        meet(s);
        double start = now_s();
        way->move(s, bytes, way->chunk);
        meet(s);
        double took = now_s() - start;
        if (s->self == 1) {
            check(way->in_target ? s->shared->target : s->buffer, bytes, stamp, way->name);
            s->shared->times[i < 0 ? 0 : i] = took;
        }
    }
    if (s->self == 1) {
        qsort(s->shared->times, (size_t)reps, sizeof(double), by_value);
        printf("%-24s %9zu B  %8.2f us  %7.2f GB/s  (n = %d)\n", way->name, bytes, s->shared->times[reps / 2] * 1e6,
               (double)bytes * 1e-9 / s->shared->times[reps / 2], reps);
        fflush(stdout);
    }
    meet(s);
}

static void act(Shared *shared, int self, size_t lo, size_t hi, int reps, int cpu)
{
    pin("weft-bench-transfer", cpu);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* the other side may copy here even where only children may be traced */
    Side s = {.shared = shared, .self = self, .allocated = aligned_alloc(4096, (hi + 64 + 4095) / 4096 * 4096)};
    must(s.allocated != NULL, "malloc");
    memset(s.allocated, 0, hi + 64);
    s.buffer = s.allocated;
    *(self == 0 ? &shared->out : &shared->in) = s.buffer;
    shared->pids[self] = getpid();
    meet(&s);
    for (size_t bytes = lo; bytes <= hi; bytes *= 2)
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
            if (ways[w].chunk <= bytes)
                measure(&s, &ways[w], bytes, reps);
    free(s.allocated);
}

int main(int argc, char **argv)
{
    size_t lo = 64 << 10, hi = 4 << 20;
    int reps = 31, cpus[2] = {0, 1};
    bool good = true;
    for (int i = 1; i + 1 < argc && good; i += 2) {
        if (strcmp(argv[i], "-m") == 0)
            good = sscanf(argv[i + 1], "%zu:%zu", &lo, &hi) == 2;
        else if (strcmp(argv[i], "-r") == 0)
            reps = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--cpus") == 0)
            good = sscanf(argv[i + 1], "%d,%d", &cpus[0], &cpus[1]) == 2;
        else
            good = false;
    }
    if (!good || argc % 2 == 0 || lo < 8 || hi < lo || hi > largest || reps < 1 || reps > most_samples) {
        fprintf(stderr, "usage: weft-bench-transfer [-m LO:HI] [-r N] [--cpus A,B]\n");
        return 2;
    }
    setpgid(0, 0);
    Shared *shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    memset(shared->chunks, 0, sizeof shared->chunks);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    act(shared, child == 0, lo, hi, reps, cpus[child == 0]);
    if (child != 0)
        waitpid(child, NULL, 0);
    return 0;
}
