/* weft-bench <test> [options]: short measurements of messages, collectives and threads, one test per run, the same binary for every
 * standard-ABI library. The harness beside it (bench.py) interleaves libraries and repeats. */
#include "collectives.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    {"lanes", -1, run_lanes, "memory of communicators with lanes of their own, and of endpoints", 5, 5},
    {"windows", -2, run_windows, "shared memory per rank after 32 messages of 16 KiB (-m) to every peer at once", 5, 5},
    {"alltoall", -2, run_alltoall, "memory of all ranks after 8 B from each to each", 5, 5},
    {"coll", -2, run_coll, "collective operations by size (--ops, --form, --starts)", 5, 5},
    {"communicators", -2, run_communicators, "10^4 communicators: dup and free, with and without an allreduce on each", 5, 5},
    {"thread-rate", -2, run_thread_rate, "messages per second of pairs of threads, windows of messages", 200, 50},
    {"thread-latency", -2, run_thread_latency, "ping-pong of pairs of threads at once", 200, 50},
    {"thread-put", -2, run_thread_put, "puts per second of pairs of threads, a flush after each window of them", 200, 50},
    {"thread-allreduce", -2, run_thread_allreduce, "an allreduce over all threads of all ranks: folded first, or by endpoints", 50, 0},
    {"allocate", -1, run_allocate, "malloc and free of 16 to 1024 B, by one thread, by two, and freed by another", 5, 5},
    {"rma", 2, run_rma, "put, get, atomics and locks of an allocated window, beside bare loads and stores", 5, 5},
    {"rma-malloc", 2, run_rma_malloc, "the same for a window on memory of malloc", 5, 5},
    {"startup", -1, run_startup, "MPI_Init_thread and MPI_Finalize", 5, 5},
};
enum { test_count = sizeof tests / sizeof tests[0] };

static void usage(void)
{
    fputs("usage: mpiexec -n 2 weft-bench TEST [options]\n\ntests:\n", stdout);
    for (int i = 0; i < test_count; i++)
        printf("  %-14s %s\n", tests[i].name, tests[i].what);
    fputs("\noperations of coll:", stdout);
    for (int i = 0; i < operation_count; i++)
        printf("%s%s", i % 8 ? " " : "\n  ", operations[i].name);
    fputs("\n", stdout);
    fputs("\noptions:\n"
          "  -m LO:HI        message sizes in bytes, doubling\n"
          "  -r N            timed windows per size, each reported (5)\n"
          "  -t MS           length of a timed window (5; 300 from pingpong to busy)\n"
          "  -w MS           warm-up per size (5; 50 from pingpong to busy)\n"
          "  --window N      messages in flight (64)\n"
          "  --buffers N     distinct buffers among them (as many)\n"
          "  --hops N        hops of the ring (10000)\n"
          "  --messages N    messages of the flood; a tenth of the pairs of allocate (100000)\n"
          "  --pairs N       alternating windows of limits (200)\n"
          "  --ops A,B,..    operations of coll (all)\n"
          "  --form F        blocking, nonblocking or persistent (blocking)\n"
          "  --starts S      coll: together, each call when the last rank is ready; free, one after the other (together)\n"
          "  --step N        coll: sizes grow by this factor; the largest is always measured (2)\n"
          "  --spoil         coll: turn a bit over before the check, which then must fail\n"
          "  --threads N     threads of each process (2)\n"
          "  --share N       how many of these use one communicator (1)\n"
          "  --hints         communicators with hints for channels of their own\n"
          "  --level L       single or multiple (single; multiple in the tests of threads)\n"
          "  --busy US       thread-rate: what receiving threads compute before each window (0)\n"
          "  --cpus A,B,..   rank i runs on the (i mod n)-th of these; all online ones otherwise\n"
          "  --no-pin        leave the ranks where the launcher put them\n"
          "  --no-rewrite    send the same bytes again and again\n"
          "  --alloc-mem     latency, bandwidth, rate: buffers from MPI_Alloc_mem instead of malloc\n"
          "  -j, --json      one JSON object per line, with every sample\n",
          stdout);
}

/* Options whose values are words: as parse_value(). */
static int parse_word(Options *o, const char *name, const char *value)
{
    if (strcmp(name, "--ops") == 0)
        o->ops = value;
    else if (strcmp(name, "--form") == 0)
        o->form = value;
    else if (strcmp(name, "--starts") == 0)
        return (o->free_starts = strcmp(value, "free") == 0) || strcmp(value, "together") == 0 ? 1 : -1;
    else if (strcmp(name, "--level") == 0)
        return o->level = value, strcmp(value, "single") == 0 || strcmp(value, "multiple") == 0 ? 1 : -1;
    else
        return 0;
    return 1;
}

/* 1: taken, 0: not an option with this name, -1: bad value. */
static int parse_value(Options *o, const char *name, const char *value)
{
    int word = parse_word(o, name, value);
    if (word)
        return word;
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
    else if (strcmp(name, "--step") == 0)
        good = good && (o->step = (int)number) >= 2;
    else if (strcmp(name, "--threads") == 0)
        good = good && (o->threads = (int)number) >= 1 && number <= max_threads;
    else if (strcmp(name, "--share") == 0)
        good = good && (o->share = (int)number) >= 1;
    else if (strcmp(name, "--busy") == 0)
        o->busy_us = number;
    else
        return 0;
    return good ? 1 : -1;
}

static bool parse_flag(Options *o, const char *name)
{
    if (strcmp(name, "-j") == 0 || strcmp(name, "--json") == 0)
        o->json = true;
    else if (strcmp(name, "--no-pin") == 0)
        o->pin = false;
    else if (strcmp(name, "--no-rewrite") == 0)
        o->rewrite = false;
    else if (strcmp(name, "--alloc-mem") == 0)
        o->alloc_mem = true;
    else if (strcmp(name, "--spoil") == 0)
        o->spoil = true;
    else if (strcmp(name, "--hints") == 0)
        o->hints = true;
    else
        return false;
    return true;
}

static bool parse(Options *o, int argc, char **argv)
{
    *o = (Options){.reps = 5, .window = 64, .hops = 10000, .messages = 100000, .pairs = 200, .step = 2, .threads = 2,
                   .share = 1, .rewrite = true, .pin = true};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (name[0] != '-' && !o->test) {
            o->test = name;
        } else if (!parse_flag(o, name)) {
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

static const Test *test_named(const char *name)
{
    for (int i = 0; i < test_count; i++)
        if (strcmp(tests[i].name, name) == 0)
            return &tests[i];
    return NULL;
}

/* Whether a test asks for MPI_THREAD_MULTIPLE where the command line does not say. */
static bool threaded(const Test *t)
{
    return t && (t->run == run_thread_rate || t->run == run_thread_latency || t->run == run_thread_put || t->run == run_thread_allreduce || t->run == run_lanes || t->run == run_startup);
}

static void start_mpi(World *w, const Test *t, int *argc, char ***argv)
{
    bool multiple = w->opt.level ? strcmp(w->opt.level, "multiple") == 0 : threaded(t);
    int required = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, provided;
    double start = now_s();
    MPI_Init_thread(argc, argv, required, &provided);
    w->init_ms = (now_s() - start) * 1e3;
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    if (provided < required)
        fail("this library has no MPI_THREAD_MULTIPLE");
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
    const Test *t = test_named(world.opt.test);
    start_mpi(&world, t, &argc, &argv);
    if (!t)
        fail("there is no test named %s; -h lists them", world.opt.test);
    if ((t->ranks > 0 && world.size != t->ranks) || world.size < -t->ranks)
        fail("%s needs %s %d ranks", t->name, t->ranks > 0 ? "exactly" : "at least", abs(t->ranks));
    pin(&world);
    introduce(&world);
    world.opt.window_ms = world.opt.window_ms ? world.opt.window_ms : t->window_ms;
    world.opt.warm_ms = world.opt.warm_ms ? world.opt.warm_ms : t->warm_ms;
    if (t->run != run_after)
        reach_normal_state(&world);
    int status = t->run(&world);
    double start = now_s();
    MPI_Finalize();
    if (t->run == run_startup)
        report_startup(&world, (now_s() - start) * 1e3);
    return status;
}
