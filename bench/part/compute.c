#include "part.h"

#include <cpuid.h>
#include <emmintrin.h>
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static _Atomic long clamps;

static void pin_to(const int *cpus, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET((size_t)cpus[i], &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "weft-bench-part: a thread stays unpinned: CPU %d: %s\n", cpus[0], strerror(errno));
}

/* The same for every library, whatever its launcher did. */
void place_threads(const Part *p)
{
    const Options *o = &p->w.opt;
    int threads = p->s.threads, share = o->cpu_count / p->w.size;
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* 1 ns; inherited by the threads made from here on */
    omp_set_dynamic(0);
    if (o->pin)
        pin_to(share ? &o->cpus[p->w.rank * share] : &o->cpus[p->w.rank % o->cpu_count], share ? share : 1);
    int started = 0;
#pragma omp parallel num_threads(threads) reduction(+ : started)
    {
        started++;
        if (o->pin && share >= threads)
            pin_to(&o->cpus[p->w.rank * share + omp_get_thread_num()], 1);
    }
    if (started != threads)
        fail("%d threads instead of %d: OpenMP's limits (OMP_THREAD_LIMIT) do not allow them", started, threads);
}

static void sleep_until(double deadline_s)
{
    struct timespec t = {.tv_sec = (time_t)deadline_s};
    t.tv_nsec = (long)((deadline_s - (double)t.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

void compute_until(const Part *p, double deadline_s)
{
    if (now_s() >= deadline_s)
        return;
    if (!p->s.spin) {
        sleep_until(deadline_s);
        return;
    }
    for (uint64_t work = 1; now_s() < deadline_s;) {
        for (int i = 0; i < 32; i++)
            work = work * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(work));
    }
}

double thread_compute(const Part *p, int thread, uint64_t step)
{
    bool clamped = false;
    double time = compute_time(&p->noise, p->w.rank, thread, step, &clamped);
    if (clamped)
        atomic_fetch_add(&clamps, 1);
    return time;
}

long clamped_draws(void)
{
    return atomic_load(&clamps);
}

void wait_a_little(const Part *p)
{
    if (p->s.busy_poll)
        _mm_pause();
    else
        sched_yield();
}

/* All ranks compute at the same time, without noise; no barrier between the regions, as a library that spins in it
 * would keep others from waking. So this is what the machine itself adds. */
Jitter calibrate(const Part *p)
{
    int rounds = p->s.calibration, threads = p->s.threads;
    double *late = calloc((size_t)(rounds * threads), sizeof(double)), regions = 0;
    if (!late)
        fail("no memory for the calibration");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = -1; round < rounds; round++) { /* the first one warms up */
        double start = now_s(), deadline = start + p->noise.compute_s;
#pragma omp parallel num_threads(threads)
        {
            compute_until(p, deadline);
            if (round >= 0)
                late[round * threads + omp_get_thread_num()] = (now_s() - deadline) * 1e6;
        }
        regions += round >= 0 ? (now_s() - start) * 1e3 : 0;
    }
    Jitter mine = {median_of(late, rounds * threads), 0, regions / rounds}, worst;
    for (int i = 0; i < rounds * threads; i++)
        mine.max_us = fmax(mine.max_us, late[i]);
    free(late);
    MPI_Allreduce(&mine, &worst, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return worst;
}

/* Each byte from the one before it, so that nothing is skipped and nothing runs ahead. */
static void pass_over(unsigned char *buffer, size_t bytes)
{
    for (size_t i = 1; i < bytes; i++)
        buffer[i] = (unsigned char)(buffer[i - 1] + 1);
    __asm__ volatile("" : : "r"(buffer) : "memory");
}

__attribute__((target("clflushopt"))) static void flush_lines(const char *at, const char *end)
{
    for (; at < end; at += 64)
        __builtin_ia32_clflushopt((void *)(uintptr_t)at);
    _mm_sfence();
}

static bool has_clflushopt(void)
{
    unsigned a, b = 0, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1);
}

/* Cold: L1 and L2 of every CPU this rank may use hold another buffer. DRAM: the message's lines are in no cache at
 * all. */
void flush_caches(const Part *p, const void *message, size_t bytes)
{
    static unsigned char *buffer;
    if (p->s.cache == cache_hot)
        return;
    if (p->s.cache == cache_dram) {
        if (!has_clflushopt())
            fail("--cache=dram needs a processor with clflushopt; take --cache=cold");
        flush_lines(message, (const char *)message + bytes);
        return;
    }
    if (!buffer)
        buffer = new_buffer(p->s.flush_bytes);
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    cpu_set_t todo = before;
    for (int i = 0; p->s.threads > 1 && i < p->w.opt.cpu_count / p->w.size; i++) /* threads with CPUs of their own */
        CPU_SET((size_t)p->w.opt.cpus[p->w.rank * (p->w.opt.cpu_count / p->w.size) + i], &todo);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET((size_t)cpu, &todo))
            continue;
        pin_to(&cpu, 1);
        pass_over(buffer, p->s.flush_bytes);
    }
    sched_setaffinity(0, sizeof before, &before);
}

int run_jitter(Part *p)
{
    double region = p->jitter.region_ms * 1e3, median = p->jitter.median_us, most = p->jitter.max_us;
    print_record(p, 0, "", (Samples[]){{"region_us", &region}, {"late_median_us", &median}, {"late_max_us", &most}, {0}}, 1);
    return 0;
}
