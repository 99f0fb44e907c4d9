/* What the programs of the partitioned suite share: settings, computing for a given time, polling, caches and output.
 * Included by the files of bench/part only; plain C11 and OpenMP on mpi.h. Functions are called by the main thread of
 * each rank, but for compute_until(), wait_a_little() and thread_compute(), which any thread may call. */
#ifndef WEFT_PART_H
#define WEFT_PART_H

#include "bench.h"
#include "noise.h"
#include "trace.h"

enum { default_pattern_ms = 10, notify_tag = 421, ack_tag = 420 };

typedef enum Cache { cache_hot, cache_cold, cache_dram } Cache;
typedef enum Arrival { arrival_clock, arrival_notify, arrival_ack } Arrival; /* ack: perceived bandwidth by notify */
typedef enum Style { style_single, style_multiple, style_partitioned } Style;

typedef struct Settings {
    const char *test;
    int threads, partitions, iterations, warmup, calibration;
    double compute_ms, percent_noise;
    NoiseModel model;
    uint64_t seed;
    bool spin;            /* computes by spinning; else it sleeps, and every thread is a virtual core */
    bool busy_poll, poll_given; /* polls without giving the CPU away; whether the command line says so */
    bool receiver_waits;  /* in MPI_Wait and MPI_Recv; else it polls both kinds of transfers */
    bool from_return;     /* a partition counts as ready when MPI_Pready returns; else when it is called */
    bool shared;          /* the message's buffers come from MPI_Alloc_mem */
    bool trace;           /* prints when every partition was ready and arrived */
    Cache cache;
    size_t flush_bytes;
    Arrival arrival;
    Style style;
    bool artifact_volume;
    int grid[3], blocks, vars;
} Settings;

/* How late threads wake after the end of their compute time, and what a region without noise takes. */
typedef struct Jitter {
    double median_us, max_us, region_ms;
} Jitter;

typedef struct Part {
    World w;
    Settings s;
    Noise noise;
    Jitter jitter;
    double ack_us; /* one way of one byte between the main threads of ranks 0 and 1 */
} Part;

/* compute.c */
void place_threads(const Part *p);                     /* rank by rank on the allowed CPUs, thread by thread where they suffice */
void compute_until(const Part *p, double deadline_s);  /* occupies the calling thread until then, on now_s()'s clock */
/* The thread's draw for this step, in seconds; counts a draw that had to be clamped. */
double thread_compute(const Part *p, int thread, uint64_t step);
long clamped_draws(void);
void wait_a_little(const Part *p);                     /* between two polls */
Jitter calibrate(const Part *p);
void flush_caches(const Part *p, const void *message, size_t bytes);

/* partitioned.c: the calls as every library's header has them, and ways to wait for them */
void psend_init(const void *buffer, int partitions, size_t bytes, int dest, int tag, MPI_Request *request);
void precv_init(void *buffer, int partitions, size_t bytes, int source, int tag, MPI_Request *request);
void await_partition(const Part *p, MPI_Request request, int partition);
/* Polls partitions lo .. hi - 1 and notes when each was seen. */
void await_partitions(const Part *p, MPI_Request request, int lo, int hi, double *seen_s);
void complete(const Part *p, MPI_Request *request);

/* output.c */
double *new_samples(int count); /* zeros; the caller frees them */
typedef struct Samples {
    const char *name;
    const double *values;
} Samples;
/* One record of rank 0: bytes, more fields (JSON, may be ""), and `count` samples of each kind, a null name ends the
 * list. */
void print_record(const Part *p, size_t bytes, const char *fields, const Samples *samples, int count);
void print_settings(const Part *p);
void report_clamps(const Part *p); /* collective: how many draws were negative */

int run_metrics(Part *p);
int run_sweep3d(Part *p);
int run_halo3d(Part *p);
int run_jitter(Part *p);

#endif
