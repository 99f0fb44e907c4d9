#include "trace.h"

#include <math.h>
#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
    double x = ((const Interval *)a)->from, y = ((const Interval *)b)->from;
    return (x > y) - (x < y);
}

int merge_intervals(Interval *intervals, int n)
{
    int last = 0;
    for (int i = 0; i < n; i++)
        intervals[i].to = fmax(intervals[i].from, intervals[i].to);
    if (n < 1)
        return 0;
    qsort(intervals, (size_t)n, sizeof(Interval), by_begin);
    for (int i = 1; i < n; i++) {
        if (intervals[i].from > intervals[last].to)
            intervals[++last] = intervals[i];
        else /* a long interval may hold a short one: the later end counts */
            intervals[last].to = fmax(intervals[last].to, intervals[i].to);
    }
    return last + 1;
}

Interval span_of(const Interval *intervals, int n)
{
    Interval span = intervals[0];
    for (int i = 1; i < n; i++) {
        span.from = fmin(span.from, intervals[i].from);
        span.to = fmax(span.to, intervals[i].to);
    }
    span.to = fmax(span.from, span.to);
    return span;
}

double length_within(const Interval *disjoint, int n, double from, double to)
{
    double length = 0;
    for (int i = 0; i < n; i++)
        length += fmax(0, fmin(disjoint[i].to, to) - fmax(disjoint[i].from, from));
    return length;
}

double last_of(const Interval *intervals, int n)
{
    double ready = intervals[0].from, arrived = intervals[0].to;
    for (int i = 1; i < n; i++) {
        ready = fmax(ready, intervals[i].from);
        arrived = fmax(arrived, intervals[i].to);
    }
    return arrived - ready;
}

double arrived_by(const Interval *intervals, int n, double time)
{
    int arrived = 0;
    for (int i = 0; i < n; i++)
        arrived += intervals[i].to <= time;
    return (double)arrived / n;
}

Metrics metrics_of(const Interval *disjoint, int n, size_t bytes, double last_s, double plain_s, double join_s)
{
    double part = length_within(disjoint, n, -INFINITY, INFINITY);
    return (Metrics){.overhead = part / plain_s,
                     .bandwidth = (double)bytes / last_s * 1e-6,
                     .availability = 1 - length_within(disjoint, n, join_s, INFINITY) / plain_s,
                     .early_bird = length_within(disjoint, n, -INFINITY, join_s) / part};
}
