/* What the plain programs share: a clock, and a CPU of one's own. */
#ifndef WEFT_BENCH_PLAIN_H
#define WEFT_BENCH_PLAIN_H
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void pin(const char *program, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "%s: CPU %d: %s\n", program, cpu, strerror(errno));
}

#endif
