/* The comparators without any MPI: the same token, the same pinning, shared memory and sched_yield.
 * weft-bench-plain ring|pingpong [-n processes] [--hops N] [-r N] [--cpus A,B,..] prints the JSON lines of weft-bench. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct Slot {
    _Alignas(128) _Atomic uint64_t token;
} Slot;

enum { max_processes = 256, max_cpus = 1024 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "weft-bench-plain: CPU %d: %s\n", cpu, strerror(errno));
}

static void act(Slot *slots, int self, int n, long hops, int reps, const char *name)
{
    long rounds = hops / n;
    uint64_t token = 0;
    lap(slots, self, n, rounds / 10 + 1, &token);
    double *samples = calloc((size_t)reps, sizeof(double));
    for (int i = 0; i < reps; i++) {
        double start = now_s();
        lap(slots, self, n, rounds, &token);
        samples[i] = (now_s() - start) / ((double)rounds * n) * 1e6;
    }
    if (self == 0) {
        printf("{\"test\":\"%s\",\"bytes\":8,\"unit\":\"us/hop\",\"samples\":[", name);
        for (int i = 0; i < reps; i++)
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

int main(int argc, char **argv)
{
    int n = 2, reps = 5, cpu_count = 0;
    static int cpus[max_cpus];
    long hops = 10000;
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-n") == 0)
            n = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "-r") == 0)
            reps = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--hops") == 0)
            hops = atol(argv[i + 1]);
        else if (strcmp(argv[i], "--cpus") == 0)
            cpu_count = parse_cpus(cpus, argv[i + 1]);
    }
    if (strcmp(name, "pingpong") == 0)
        n = 2;
    else if (strcmp(name, "ring") != 0)
        n = 0;
    if (n < 2 || n > max_processes || reps < 1 || hops < n) {
        fprintf(stderr, "usage: weft-bench-plain ring|pingpong [-n N] [--hops N] [-r N] [--cpus A,B,..]\n");
        return 2;
    }
    if (!cpu_count)
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN) && i < max_cpus; i++)
            cpus[cpu_count++] = (int)i;
    Slot *slots = mmap(NULL, sizeof(Slot) * (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) {
        perror("weft-bench-plain: mmap");
        return 1;
    }
    pid_t parent = getpid();
    for (int self = 1; self < n; self++) {
        pid_t child = fork();
        if (child < 0) {
            perror("weft-bench-plain: fork");
            return 1;
        }
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left spinning when the parent is killed */
            if (getppid() != parent)
                _exit(1);
            pin(cpus[self % cpu_count]);
            act(slots, self, n, hops, reps, name);
            _exit(0);
        }
    }
    pin(cpus[0]);
    act(slots, 0, n, hops, reps, name);
    while (wait(NULL) > 0) {
    }
    return 0;
}
