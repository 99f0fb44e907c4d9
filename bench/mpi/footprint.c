/* Memory: what each rank holds, shared pages counted by share (PSS), and what page tables take. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The field `name` ("Pss:") of a file of lines "name  n kB", in MB. */
static double field_mb(const char *path, const char *name)
{
    char line[256];
    long kib = -1;
    const size_t length = strlen(name);
    FILE *file = fopen(path, "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0)
            sscanf(line + length, "%ld", &kib);
    if (file)
        fclose(file);
    if (kib < 0)
        fail("cannot read %s from %s", name, path);
    return (double)kib * 1024 / 1e6;
}

static double pss_mb(void) { return field_mb("/proc/self/smaps_rollup", "Pss:"); }
static double shared_mb(void) { return field_mb("/proc/self/smaps_rollup", "Pss_Shmem:"); }
static double tables_mb(void) { return field_mb("/proc/self/status", "VmPTE:"); }

/* Every rank's value at rank 0, read while everyone is alive: pages are shared by all of them. */
static double *gather(const World *w, double (*read)(void))
{
    double *samples = calloc((size_t)w->size, sizeof(double));
    meet(w);
    samples[0] = read();
    meet(w);
    for (int peer = 1; peer < w->size && w->rank == 0; peer++)
        MPI_Recv(&samples[peer], 1, MPI_DOUBLE, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (w->rank != 0)
        MPI_Send(&samples[0], 1, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
    return samples;
}

static void exchange(const World *w, void *out, void *in, int bytes)
{
    for (int distance = 1; distance < w->size; distance++) {
        int to = (w->rank + distance) % w->size, from = (w->rank + w->size - distance) % w->size;
        rewrite(out, (size_t)bytes, (uint64_t)w->rank);
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 6, in, bytes, MPI_BYTE, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify(in, (size_t)bytes, (uint64_t)from, "exchange");
    }
}

int run_footprint(const World *w)
{
    enum { short_bytes = 8, long_bytes = 65536 };
    void *out = new_buffer(long_bytes), *in = new_buffer(long_bytes);
    exchange(w, out, in, short_bytes);
    exchange(w, out, in, long_bytes);
    double *samples = gather(w, pss_mb);
    report(w, "pss per rank", 0, "MB", samples, w->size, NULL);
    free(samples);
    free(out);
    free(in);
    return 0;
}

static double shared_and_tables_mb(void) { return shared_mb() + tables_mb(); }

/* Every rank sends a window of messages to every other at once: what the library shares then, a value for each rank. */
int run_windows(const World *w)
{
    const size_t bytes = w->opt.lo_bytes ? w->opt.lo_bytes : 16384;
    const int each = 32, count = each * (w->size - 1);
    char *out = new_buffer(bytes), *in = new_buffer(bytes * (size_t)(count + 1));
    MPI_Request *requests = calloc(2 * (size_t)count + 1, sizeof(MPI_Request));
    rewrite(out, bytes, (uint64_t)w->rank);
    for (int i = 0; i < count; i++)
        MPI_Irecv(in + bytes * (size_t)i, (int)bytes, MPI_BYTE, (w->rank + w->size - 1 - i / each) % w->size, 8, MPI_COMM_WORLD, &requests[i]);
    meet(w);
    for (int i = 0; i < count; i++)
        MPI_Isend(out, (int)bytes, MPI_BYTE, (w->rank + 1 + i / each) % w->size, 8, MPI_COMM_WORLD, &requests[count + i]);
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++)
        verify(in + bytes * (size_t)i, bytes, (uint64_t)((w->rank + w->size - 1 - i / each) % w->size), "windows");
    double *samples = gather(w, shared_and_tables_mb);
    report(w, "shared and page tables per rank", bytes, "MB", samples, w->size, NULL);
    free(samples);
    free(requests);
    free(out);
    free(in);
    return 0;
}

static double anonymous_mb(void) { return field_mb("/proc/self/smaps_rollup", "Pss_Anon:"); }

/* Rank 0's growth of private and of shared memory since `before`, by `count` things, in KB for each of them; `before` is set anew. */
static void report_growth(const World *w, const char *what, int count, double before[2])
{
    for (int shared = 0; shared <= 1; shared++) {
        double *now = gather(w, shared ? shared_mb : anonymous_mb), grown = (now[0] - before[shared]) * 1e3 / count;
        char name[80];
        snprintf(name, sizeof name, "%s, %s", what, shared ? "shared" : "private");
        if (before[shared] > 0)
            report(w, name, 0, "KB", &grown, 1, NULL);
        before[shared] = now[0];
        free(now);
    }
}

/* What communicators of a process with threads take that have lanes of their own (15 of them in Weft, beside the root lane): when they
 * are made, and when every rank has sent 8 B to every other by each; then what a pair of endpoints takes (weft.h). */
int run_lanes(const World *w)
{
    enum { count = 15, endpoints = 64 };
    MPI_Comm comms[count], ep[endpoints];
    int64_t out = 0, in = 0;
    double before[2] = {0, 0};
    reach_normal_state(w);
    report_growth(w, "", 1, before);
    for (int i = 0; i < count; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    report_growth(w, "a communicator", count, before);
    for (int i = 0; i < count; i++)
        for (int distance = 1; distance < w->size; distance++)
            MPI_Sendrecv(&out, 8, MPI_BYTE, (w->rank + distance) % w->size, 6, &in, 8, MPI_BYTE, (w->rank + w->size - distance) % w->size, 6, comms[i],
                         MPI_STATUS_IGNORE);
    if (w->size > 1)
        report_growth(w, "and a peer by it", count * (w->size - 1), before);
    if (MPIX_Comm_create_endpoints) {
        MPIX_Comm_create_endpoints(MPI_COMM_WORLD, endpoints, MPI_INFO_NULL, ep);
        report_growth(w, "a pair of endpoints", endpoints * endpoints, before);
        for (int i = 0; i < endpoints; i++)
            MPI_Comm_free(&ep[i]);
    }
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comms[i]);
    return 0;
}

static double all_mb(void) { return pss_mb() + tables_mb(); }

double job_mb(const World *w)
{
    double *samples = gather(w, all_mb), sum = 0;
    for (int rank = 0; rank < w->size; rank++)
        sum += samples[rank];
    free(samples);
    return sum;
}

/* What a job takes in all once every rank has sent 8 B to every other, by one collective and then each to each. */
int run_alltoall(const World *w)
{
    int64_t *out = calloc((size_t)w->size, sizeof *out), *in = calloc((size_t)w->size, sizeof *in);
    for (int to = 0; to < w->size; to++)
        out[to] = (int64_t)w->rank * w->size + to;
    MPI_Alltoall(out, 1, MPI_INT64_T, in, 1, MPI_INT64_T, MPI_COMM_WORLD);
    for (int from = 0; from < w->size; from++)
        if (in[from] != (int64_t)from * w->size + w->rank)
            fail("alltoall: rank %d got a wrong value from %d", w->rank, from);
    double sum = job_mb(w);
    report(w, "all memory after alltoall", 8, "MB", &sum, 1, NULL);
    void *to = new_buffer(8), *from = new_buffer(8);
    exchange(w, to, from, 8);
    sum = job_mb(w);
    report(w, "all memory after each to each", 8, "MB", &sum, 1, NULL);
    free(to);
    free(from);
    free(out);
    free(in);
    return 0;
}
