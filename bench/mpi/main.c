/* weft-bench <test> [options]: short measurements of two-sided MPI, one test per run, the same binary for every
 * standard-ABI library. The harness beside it (bench.py) interleaves libraries and repeats. */
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Test {
    const char *name;
    int ranks; /* exactly, when two; at least, when negative */
    int (*run)(const World *w);
    const char *what;
    double window_ms, warm_ms; /* unless the command line says otherwise */
} Test;

static const Test tests[] = {
    {"latency", 2, run_latency, "ping-pong, half a round trip, by size", 5, 5},
    {"bandwidth", 2, run_bandwidth, "one way, a window of messages in flight, by size", 5, 5},
    {"rate", 2, run_rate, "messages per second, 8 bytes, one pair", 5, 5},
    {"limits", 2, run_limits, "bare cache-line ping-pong alternating with MPI's", 5, 5},
    {"copies", -1, run_copies, "memcpy on one core", 5, 5},
    {"variants", 2, run_variants, "latency of plain, persistent and matched-probe exchanges", 5, 5},
    {"ring", -2, run_ring, "a token around all ranks", 5, 5},
    {"after", 2, run_after, "8 B latency before any collective and after three, in one process", 5, 5},
    {"pingpong", -2, run_pingpong, "ping-pong of all pairs at once: mean of a long window", 300, 50},
    {"stream", -2, run_stream, "bandwidth of all pairs at once: mean of a long window", 300, 50},
    {"flood", -2, run_flood, "10^5 blocking sends of 8 B and their receives, all pairs at once", 300, 50},
    {"allreduce", -2, run_allreduce, "of 8-byte integers: mean of a long window", 300, 50},
    {"halo", -2, run_halo, "64 KiB to and from both neighbours, Isend, Irecv, Waitall", 300, 50},
    {"sendrecv", -2, run_sendrecv, "the same by two MPI_Sendrecv", 300, 50},
    {"busy", -2, run_busy, "pingpong, flood, allreduce, halo and sendrecv, one after another", 300, 50},
    {"depth", 2, run_depth, "8 B latency behind 1 to 10^5 posted receives or unexpected messages", 5, 5},
    {"footprint", -1, run_footprint, "memory per rank after messages with every peer", 5, 5},
    {"windows", -2, run_windows, "shared memory per rank after 32 messages of 16 KiB (-m) to every peer at once", 5, 5},
    {"alltoall", -2, run_alltoall, "memory of all ranks after 8 B from each to each", 5, 5},
};
enum { test_count = sizeof tests / sizeof tests[0] };

static void usage(void)
{
    fputs("usage: mpiexec -n 2 weft-bench TEST [options]\n\ntests:\n", stdout);
    for (int i = 0; i < test_count; i++)
        printf("  %-10s %s\n", tests[i].name, tests[i].what);
    fputs("\noptions:\n"
          "  -m LO:HI        message sizes in bytes, doubling\n"
          "  -r N            timed windows per size, each reported (5)\n"
          "  -t MS           length of a timed window (5; 300 from pingpong to busy)\n"
          "  -w MS           warm-up per size (5; 50 from pingpong to busy)\n"
          "  --window N      messages in flight (64)\n"
          "  --buffers N     distinct buffers among them (as many)\n"
          "  --hops N        hops of the ring (10000)\n"
          "  --messages N    messages of the flood (100000)\n"
          "  --pairs N       alternating windows of limits (200)\n"
          "  --cpus A,B,..   rank i runs on the (i mod n)-th of these; all online ones otherwise\n"
          "  --no-pin        leave the ranks where the launcher put them\n"
          "  --no-rewrite    send the same bytes again and again\n"
          "  -j, --json      one JSON object per line, with every sample\n",
          stdout);
}

static bool parse_sizes(Options *o, const char *text)
{
    char *rest;
    o->lo_bytes = o->hi_bytes = strtoull(text, &rest, 0);
    if (*rest == ':')
        o->hi_bytes = strtoull(rest + 1, &rest, 0);
    return *rest == 0 && o->lo_bytes > 0 && o->hi_bytes >= o->lo_bytes && o->hi_bytes <= (size_t)1 << 30;
}

static bool parse_cpus(Options *o, const char *text)
{
    o->cpu_count = 0;
    while (*text && o->cpu_count < max_cpus) {
        char *rest;
        o->cpus[o->cpu_count++] = (int)strtol(text, &rest, 10);
        if (rest == text || (*rest && *rest != ','))
            return false;
        text = *rest ? rest + 1 : rest;
    }
    return o->cpu_count > 0;
}

/* 1: taken, 0: not an option with this name, -1: bad value. */
static int parse_value(Options *o, const char *name, const char *value)
{
    char *rest = NULL;
    double number = strtod(value, &rest);
    bool good = rest != value && *rest == 0 && number > 0;
    if (strcmp(name, "-m") == 0)
        return parse_sizes(o, value) ? 1 : -1;
    if (strcmp(name, "--cpus") == 0)
        return parse_cpus(o, value) ? 1 : -1;
    if (strcmp(name, "-t") == 0)
        o->window_ms = number;
    else if (strcmp(name, "-w") == 0)
        o->warm_ms = number;
    else if (strcmp(name, "-r") == 0)
        o->reps = number < max_samples ? (int)number : max_samples;
    else if (strcmp(name, "--window") == 0)
        o->window = (int)number;
    else if (strcmp(name, "--buffers") == 0)
        o->buffers = (int)number;
    else if (strcmp(name, "--hops") == 0)
        o->hops = (long)number;
    else if (strcmp(name, "--messages") == 0)
        o->messages = number < 1e9 ? (long)number : 1000000000;
    else if (strcmp(name, "--pairs") == 0)
        o->pairs = number < max_samples ? (int)number : max_samples;
    else
        return 0;
    return good ? 1 : -1;
}

static bool parse(Options *o, int argc, char **argv)
{
    *o = (Options){.reps = 5, .window = 64, .hops = 10000, .messages = 100000, .pairs = 200, .rewrite = true,
                   .pin = true};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (name[0] != '-' && !o->test) {
            o->test = name;
        } else if (strcmp(name, "-j") == 0 || strcmp(name, "--json") == 0) {
            o->json = true;
        } else if (strcmp(name, "--no-pin") == 0) {
            o->pin = false;
        } else if (strcmp(name, "--no-rewrite") == 0) {
            o->rewrite = false;
        } else {
            int taken = i + 1 < argc ? parse_value(o, name, argv[i + 1]) : 0;
            if (taken < 1) {
                fprintf(stderr, "weft-bench: %s %s\n", taken ? "bad value for" : "cannot use option", name);
                return false;
            }
            i++;
        }
    }
    if (!o->buffers)
        o->buffers = o->window;
    if (!o->test)
        fputs("weft-bench: which test?\n", stderr);
    return o->test != NULL;
}

/* The same placement for every library, whatever its launcher did: a comparison of bindings is not wanted here. */
static void pin(World *w)
{
    Options *o = &w->opt;
    if (!o->cpu_count) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        for (int i = 0; i < online && i < max_cpus; i++)
            o->cpus[o->cpu_count++] = i;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)o->cpus[w->rank % o->cpu_count], &set);
    if (o->pin && sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "weft-bench: rank %d stays unpinned: CPU %d: %s\n", w->rank, o->cpus[w->rank % o->cpu_count],
                strerror(errno));
}

static void introduce(const World *w)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (w->rank != 0)
        return;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n\"\\")] = 0;
    for (char *at = version; *at; at++)
        *at = *at < ' ' ? ' ' : *at;
    if (w->opt.json)
        printf("{\"test\":\"header\",\"library\":\"%s\",\"ranks\":%d}\n", version, w->size);
    else
        printf("# %s, %d ranks\n", version, w->size);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static World world;
    if (argc == 2 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
        usage();
        return 0;
    }
    if (!parse(&world.opt, argc, argv)) {
        fputs("weft-bench: -h lists tests and options\n", stderr);
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    pin(&world);
    int status = 2;
    for (int i = 0; i < test_count; i++) {
        const Test *t = &tests[i];
        if (strcmp(t->name, world.opt.test) != 0)
            continue;
        if ((t->ranks > 0 && world.size != t->ranks) || world.size < -t->ranks)
            fail("%s needs %s %d ranks", t->name, t->ranks > 0 ? "exactly" : "at least", abs(t->ranks));
        introduce(&world);
        world.opt.window_ms = world.opt.window_ms ? world.opt.window_ms : t->window_ms;
        world.opt.warm_ms = world.opt.warm_ms ? world.opt.warm_ms : t->warm_ms;
        if (t->run != run_after)
            reach_normal_state(&world);
        status = t->run(&world);
    }
    if (status == 2)
        fail("there is no test named %s; -h lists them", world.opt.test);
    MPI_Finalize();
    return status;
}
