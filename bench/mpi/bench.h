/* What every test of weft-bench shares: the options, the clock, buffers that are really rewritten, and the output.
 * Included by the files of bench/mpi, bench/part and apps; plain C11 on mpi.h, so that one binary runs on every standard-ABI library.
 * No locks: each rank is one thread, but in threads.c and threads_coll.c. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

enum { max_cpus = 1024, max_samples = 100000, max_threads = 256 };

typedef struct Options {
    const char *test;
    size_t lo_bytes, hi_bytes; /* sizes double from lo to hi; 0 means the test's own default */
    int reps;                  /* timed windows per size, each printed */
    double window_ms, warm_ms; /* 0 means the test's own default */
    int window;                /* messages in flight in the bandwidth and rate tests */
    int buffers;               /* distinct buffers a window cycles through */
    long hops;                 /* ring */
    long messages;             /* flood */
    int pairs;                 /* limits: alternating windows */
    const char *ops, *form;    /* coll: operations, separated by commas; blocking, nonblocking or persistent */
    int step;                  /* coll: sizes grow by this factor, and the largest is always one of them */
    int threads, share;        /* threads of each process; how many of them use one communicator */
    const char *level;         /* of thread support: single or multiple; 0 means the test's own default */
    double busy_us;            /* what receiving threads compute before each window */
    bool json, rewrite, pin;
    bool alloc_mem;            /* latency, bandwidth, rate: buffers from MPI_Alloc_mem */
    bool free_starts, spoil;   /* coll: calls one after the other; a wrong bit in what the check reads */
    bool hints;                /* communicators with hints for channels of their own */
    int cpus[max_cpus];
    int cpu_count;
} Options;

typedef struct World {
    int rank, size;
    double init_ms; /* what MPI_Init_thread took */
    Options opt;
} World;

/* Below this size a rewrite is cheaper than reading the clock around it, so it stays inside the timed window. */
enum { rewrite_timed_below = 4096 };

/* The same placement for every library, whatever its launcher did: a comparison of bindings is not wanted here. */
void pin(World *w);
/* The calling thread, on the CPU of this number of a job's ranks or threads. Those that talk with each other are 0 and 1, 2
 * and 3, and so on: each is on another CPU than its partner, also where there are fewer CPUs than numbers. */
void pin_thread(const World *w, int number);
/* "LO:HI" or "N" bytes; "0,2,3". False where the text is something else. */
bool parse_sizes(Options *o, const char *text);
bool parse_cpus(Options *o, const char *text);
/* Rank 0 names the library, first of all. */
void introduce(const World *w);

double now_s(void);
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Every byte is written, and the words differ, so that neither side can keep a stale copy unnoticed. */
void rewrite(void *buffer, size_t bytes, uint64_t stamp);
void verify(const void *buffer, size_t bytes, uint64_t stamp, const char *what);
void *new_buffer(size_t bytes);
/* One that is sent from or received into: from MPI_Alloc_mem where the options say so, else from malloc. */
void *new_message_buffer(const World *w, size_t bytes);
void free_message_buffer(const World *w, void *buffer);

/* A barrier, a broadcast and an allreduce, as every program has behind it after its first second: a library may become another
 * by them (connections, progress hooks), and what is measured is meant to be its normal state. */
void reach_normal_state(const World *w);

/* Rank 0 decides, the others learn it. By plain sends, so that no test depends on collectives being fast. */
int64_t agree(const World *w, int64_t value);
void meet(const World *w);

/* Prints one record with all its samples; rank 0 only. `lines`, if not null, are count + 1 readings of the bare machine
 * (line_ns), before each sample and after the last. */
void report(const World *w, const char *test, size_t bytes, const char *unit, const double *samples, int count,
            const double *lines);
double median_of(const double *samples, int count);

/* MB that all ranks hold together, page tables included, read while everyone is alive; the answer is rank 0's. */
double job_mb(const World *w);

/* A page both ranks of a pair see: the raw hardware, beside the library, in the same processes. */
void *share_page(const World *w, size_t bytes);
/* Nanoseconds that a bare cache line takes between two ranks now, read in a fraction of a millisecond: a virtual machine
 * may move its CPUs between one cache and two, and only what was measured at one such pace can be compared. Both ranks
 * call it; the answer is rank 0's, and 0 where the ranks are not pinned to CPUs of their own. */
double line_ns(const World *w);

/* A window that ends itself: whoever leads asks after each round whether the time is up, and marks its last message. */
typedef struct Window {
    double start, seen, limit_s;
    int64_t next, stride; /* rounds done at the next look at the clock, and rounds between looks */
} Window;

Window begin(const World *w, double limit_s);
bool over(Window *t, int64_t done);

/* One window of a test that ends itself, and every size of it, repeated and reported. With pairs, even ranks answer and
 * rank 0 reports their mean. */
typedef double Cell(const World *w, size_t bytes, double limit_s);
void measure_cells(const World *w, const char *name, Cell *cell, size_t bytes, const char *unit, bool pairs);

/* Of Weft alone: null in other libraries. */
int MPIX_Comm_create_endpoints(MPI_Comm parent, int num_ep, MPI_Info info, MPI_Comm out_handles[]) __attribute__((weak));

int run_latency(const World *w);
int run_after(const World *w);
int run_variants(const World *w);
int run_bandwidth(const World *w);
int run_rate(const World *w);
int run_limits(const World *w);
int run_copies(const World *w);
int run_ring(const World *w);
int run_footprint(const World *w);
int run_windows(const World *w);
int run_alltoall(const World *w);
int run_pingpong(const World *w);
int run_flood(const World *w);
int run_allreduce(const World *w);
int run_halo(const World *w);
int run_sendrecv(const World *w);
int run_stream(const World *w);
int run_busy(const World *w);
int run_depth(const World *w);
int run_coll(const World *w);
int run_communicators(const World *w);
int run_thread_rate(const World *w);
int run_thread_put(const World *w);
int run_thread_latency(const World *w);
int run_thread_allreduce(const World *w);
int run_allocate(const World *w);
int run_rma(const World *w);
int run_rma_malloc(const World *w);
int run_lanes(const World *w);
int run_startup(const World *w);
void report_startup(const World *w, double finalize_ms);

#endif
