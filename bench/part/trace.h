/* What one transfer of n partitions says: from the times at which partitions became ready and arrived to the four
 * metrics of Temucin, Grant, Afsahi, "Micro-Benchmarking MPI Partitioned Point-to-Point Communication", ICPP '22,
 * equations 1 to 4. All times are seconds from the begin of the compute region. No MPI, no state; any thread. */
#ifndef WEFT_PART_TRACE_H
#define WEFT_PART_TRACE_H

#include <stddef.h>

typedef struct Interval {
    double from, to; /* ready, arrived */
} Interval;

/* Sorts and merges overlapping intervals in place; returns how many are left. One that ends before it begins is
 * empty. */
int merge_intervals(Interval *intervals, int n);
/* The span of all: one interval, from the first begin to the last end. n >= 1. */
Interval span_of(const Interval *intervals, int n);
/* The part of disjoint intervals that lies between two times, in seconds. */
double length_within(const Interval *disjoint, int n, double from, double to);
/* From the last begin to the last end: how long the last partition took to be there. */
double last_of(const Interval *intervals, int n);

/* The share of partitions that had arrived by then. Equation 4 counts a partition that waits in the library as communication:
 * with one message for all, sent when the last is ready, it comes close to 1, and this share is 0. */
double arrived_by(const Interval *intervals, int n, double time);

typedef struct Metrics {
    double overhead;     /* (1) t_part / t_pt2pt */
    double bandwidth;    /* (2) bytes / t_part_last, 10^6 B/s */
    double availability; /* (3) 1 - t_after_join / t_pt2pt; negative where partitions arrive later than a plain message */
    double early_bird;   /* (4) t_before_join / t_part, from 0 to 1 */
} Metrics;

/* `disjoint` is a merged union, or the one interval of a span. */
Metrics metrics_of(const Interval *disjoint, int n, size_t bytes, double last_s, double plain_s, double join_s);

#endif
