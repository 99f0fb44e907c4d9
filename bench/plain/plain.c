/* The comparators without any MPI: the same token, the same pinning, shared memory and sched_yield; and the rate of a
 * bare ring of cache lines from one process to another, one 64-byte message in each (stream); and 8 bytes there and back
 * through a pair of sockets, looked at all the time (socket);
 * and a barrier, one counter and one flag (barrier).
 * weft-bench-plain ring|pingpong|stream|socket|barrier|hog [-n processes] [--hops N] [-r N] [--cpus A,B,..] prints JSON lines like
 * weft-bench. */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain.h"

typedef struct Slot {
    _Alignas(128) _Atomic uint64_t token;
} Slot;

typedef struct Line {
    _Alignas(64) uint64_t words[7];
    _Atomic uint64_t sequence;
} Line;

enum { max_processes = 256, max_cpus = 1024, ring_lines = 256 };

typedef struct Plan {
    const char *name;
    int processes, reps, cpu_count, cpus[max_cpus];
    int sockets[2];
    long hops;
} Plan;

static void await(_Atomic uint64_t *slot, uint64_t token)
{
    while (atomic_load_explicit(slot, memory_order_acquire) != token)
        sched_yield();
}

/* Process i waits for its own slot and writes its right neighbour's. */
static void lap(Slot *slots, int self, int n, long rounds, uint64_t *token)
{
    int right = (self + 1) % n;
    for (long i = 0; i < rounds; i++) {
        ++*token;
        if (self == 0)
            atomic_store_explicit(&slots[right].token, *token, memory_order_release);
        await(&slots[self].token, *token);
        if (self != 0)
            atomic_store_explicit(&slots[right].token, *token, memory_order_release);
    }
}

/* The producer fills whole lines and runs at most a ring ahead; the consumer says where it is four times a round. */
static void flow(Slot *slots, int self, long messages, uint64_t *done)
{
    uint64_t end = *done + (uint64_t)messages, seen = *done;
    for (uint64_t i = *done; i < end; i++) {
        Line *line = (Line *)(slots + 2) + i % ring_lines;
        if (self == 0) {
            while (i - seen >= ring_lines)
                seen = atomic_load_explicit(&slots[0].token, memory_order_acquire);
            for (int k = 0; k < 7; k++)
                line->words[k] = i + (uint64_t)k;
            atomic_store_explicit(&line->sequence, i + 1, memory_order_release);
        } else {
            while (atomic_load_explicit(&line->sequence, memory_order_acquire) != i + 1) {
            }
            slots[1].token += line->words[6];
            if ((i + 1) % (ring_lines / 4) == 0)
                atomic_store_explicit(&slots[0].token, i + 1, memory_order_release);
        }
    }
    *done = end;
    if (self == 1)
        atomic_store_explicit(&slots[0].token, end, memory_order_release);
    else
        while (atomic_load_explicit(&slots[0].token, memory_order_acquire) != end) {
        }
}

/* The same between two, by datagrams of one token. Who shares a CPU with the other gives way. */
static void talk(const Plan *p, int self, long rounds, uint64_t *token)
{
    int s = p->sockets[self];
    uint64_t got;
    for (long i = 0; i < rounds; i++) {
        ++*token;
        if (self == 0 && send(s, token, sizeof *token, MSG_NOSIGNAL) < 0)
            return perror("weft-bench-plain: send");
        while (recv(s, &got, sizeof got, MSG_DONTWAIT) != sizeof got || got != *token)
            if (p->cpu_count == 1)
                sched_yield();
        if (self != 0 && send(s, token, sizeof *token, MSG_NOSIGNAL) < 0)
            return perror("weft-bench-plain: send");
    }
}

/* The last to come opens slot 1; the others wait there. Slot 0 counts. */
static void meet(Slot *slots, int n, long rounds, uint64_t *token)
{
    for (long i = 0; i < rounds; i++) {
        ++*token;
        if (atomic_fetch_add_explicit(&slots[0].token, 1, memory_order_acq_rel) + 1 == *token * (uint64_t)n)
            atomic_store_explicit(&slots[1].token, *token, memory_order_release);
        else
            await(&slots[1].token, *token);
    }
}

static void act(const Plan *p, Slot *slots, int self)
{
    bool stream = strcmp(p->name, "stream") == 0, socket = strcmp(p->name, "socket") == 0;
    bool barrier = strcmp(p->name, "barrier") == 0;
    long rounds = p->hops / p->processes;
    uint64_t token = 0;
    double *samples = calloc((size_t)p->reps, sizeof(double));
    for (int i = -1; i < p->reps; i++) { /* one to warm up */
        double start = now_s();
        if (stream)
            flow(slots, self, p->hops, &token);
        else if (socket)
            talk(p, self, rounds, &token);
        else if (barrier)
            meet(slots, p->processes, rounds, &token);
        else
            lap(slots, self, p->processes, rounds, &token);
        double took = now_s() - start;
        samples[i < 0 ? 0 : i] = stream    ? (double)p->hops / took * 1e-6
                                 : barrier ? took / (double)rounds * 1e6
                                           : took / ((double)rounds * p->processes) * 1e6;
    }
    if (self == 0) {
        printf("{\"test\":\"%s\",\"bytes\":8,\"unit\":\"%s\",\"samples\":[", p->name,
               stream ? "M/s" : barrier ? "us" : "us/hop");
        for (int i = 0; i < p->reps; i++)
            printf("%s%.9g", i ? "," : "", samples[i]);
        printf("]}\n");
    }
    free(samples);
}

static int parse_cpus(int *cpus, const char *text)
{
    int count = 0;
    char *rest = NULL;
    while (*text && count < max_cpus) {
        cpus[count++] = (int)strtol(text, &rest, 10);
        if (rest == text)
            return 0;
        text = *rest == ',' ? rest + 1 : rest;
    }
    return count;
}

static bool parse(Plan *p, int argc, char **argv)
{
    *p = (Plan){.name = argc > 1 ? argv[1] : "", .processes = 2, .reps = 5, .hops = 10000};
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-n") == 0)
            p->processes = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "-r") == 0)
            p->reps = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--hops") == 0)
            p->hops = atol(argv[i + 1]);
        else if (strcmp(argv[i], "--cpus") == 0)
            p->cpu_count = parse_cpus(p->cpus, argv[i + 1]);
        else
            return false;
    }
    if (!p->cpu_count)
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN) && i < max_cpus; i++)
            p->cpus[p->cpu_count++] = (int)i;
    if (strcmp(p->name, "pingpong") == 0 || strcmp(p->name, "stream") == 0 || strcmp(p->name, "socket") == 0 ||
        strcmp(p->name, "hog") == 0)
        p->processes = 2;
    else if (strcmp(p->name, "ring") != 0 && strcmp(p->name, "barrier") != 0)
        return false;
    return p->processes >= 2 && p->processes <= max_processes && p->reps >= 1 && p->hops >= p->processes;
}

/* Process 0 is this one; the others never outlive it. */
static int start_others(const Plan *p, Slot *slots)
{
    pid_t parent = getpid();
    for (int self = 1; self < p->processes; self++) {
        pid_t child = fork();
        if (child < 0) {
            perror("weft-bench-plain: fork");
            return 1;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            pin("weft-bench-plain", p->cpus[self % p->cpu_count]);
            act(p, slots, self);
            _exit(0);
        }
    }
    return 0;
}

/* A stranger that always wants its CPU; it ends with whoever started it. */
static void hog(int cpu)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin("weft-bench-plain", cpu);
    for (volatile unsigned long turns = 0;; turns++) {
    }
}

int main(int argc, char **argv)
{
    static Plan plan;
    if (!parse(&plan, argc, argv)) {
        fprintf(stderr, "usage: weft-bench-plain ring|pingpong|stream|socket|barrier|hog [-n N] [--hops N] [-r N] [--cpus A,B,..]\n");
        return 2;
    }
    if (strcmp(plan.name, "hog") == 0)
        hog(plan.cpus[0]);
    size_t bytes = sizeof(Slot) * (size_t)plan.processes + sizeof(Line) * ring_lines;
    Slot *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) {
        perror("weft-bench-plain: mmap");
        return 1;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, plan.sockets) != 0) {
        perror("weft-bench-plain: socketpair");
        return 1;
    }
    if (start_others(&plan, slots) != 0)
        return 1;
    pin("weft-bench-plain", plan.cpus[0]);
    act(&plan, slots, 0);
    while (wait(NULL) > 0) {
    }
    return 0;
}
