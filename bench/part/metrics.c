/* Overhead, perceived bandwidth, application availability and early-bird communication, from rank 0 to rank 1.
 * One iteration is a plain exchange and a partitioned one with the same draws: each begins with a barrier and a fork,
 * every thread computes its time, then a plain message follows the join, or each thread marks its partitions ready
 * inside the region. The receiver has as many threads, which do not compute and wait for the partitions with the same
 * numbers. */
#include "part.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Exchange {
    Part *p;
    size_t bytes;
    int n;                       /* partitions */
    char *buffer, *notes;        /* the message; a byte for each notification */
    MPI_Request data, back;      /* back: notifications, from the receiver to the sender */
    double *ready, *arrived;     /* of the iteration at hand: per partition, absolute */
    double *join, *plain, *late; /* per iteration: fork to join, the plain transfer, the latest thread's lateness */
    double *last, *start;        /* per iteration: perceived time of the last partition; begin of the region */
    Interval *parts;             /* per iteration and partition, relative to the begin of the region */
} Exchange;

static int first_of(const Exchange *x, int thread)
{
    return (int)((long)x->n * thread / x->p->s.threads);
}

/* Each thread writes (or reads) its own partitions, so that they are in the caches of the thread that sends (or got)
 * them. */
static void fill(const Exchange *x, uint64_t stamp)
{
    size_t each = x->bytes / (size_t)x->n;
#pragma omp parallel num_threads(x->p->s.threads)
    for (int i = first_of(x, omp_get_thread_num()), end = first_of(x, omp_get_thread_num() + 1); i < end; i++)
        rewrite(x->buffer + (size_t)i * each, each, stamp + (uint64_t)i * 1000003);
}

static void check(const Exchange *x, uint64_t stamp, const char *what)
{
    size_t each = x->bytes / (size_t)x->n;
    for (int i = 0; i < x->n; i++)
        verify(x->buffer + (size_t)i * each, each, stamp + (uint64_t)i * 1000003, what);
    memset(x->buffer, 0, x->bytes);
}

/* Stamps of the same iteration differ for the two exchanges, so that no check can pass by the other one's data. */
static uint64_t stamp_of(const Part *p, uint64_t step, bool partitioned)
{
    uint32_t counter[4] = {(uint32_t)step, (uint32_t)(step >> 32), partitioned, 0xda7a}, words[4];
    philox(counter, (uint32_t[2]){(uint32_t)p->s.seed, (uint32_t)(p->s.seed >> 32)}, words);
    return (uint64_t)words[0] << 32 | words[1];
}

static void prepare(const Exchange *x, uint64_t stamp)
{
    if (x->p->w.rank == 0)
        fill(x, stamp);
    flush_caches(x->p, x->buffer, x->bytes);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The acknowledgement or the receiver's clock: when was it there? */
static double arrival_of_plain(const Exchange *x)
{
    char byte = 0;
    double stamp = 0;
    if (x->p->s.arrival == arrival_clock) {
        MPI_Recv(&stamp, 1, MPI_DOUBLE, 1, ack_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return stamp;
    }
    MPI_Recv(&byte, 1, MPI_BYTE, 1, ack_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return now_s();
}

static void acknowledge(const Exchange *x, double stamp)
{
    char byte = 1;
    if (x->p->s.arrival == arrival_clock)
        MPI_Send(&stamp, 1, MPI_DOUBLE, 0, ack_tag, MPI_COMM_WORLD);
    else
        MPI_Send(&byte, 1, MPI_BYTE, 0, ack_tag, MPI_COMM_WORLD);
}

static void plain_sender(Exchange *x, uint64_t step, int slot)
{
    double start = now_s();
#pragma omp parallel num_threads(x->p->s.threads)
    compute_until(x->p, start + thread_compute(x->p, omp_get_thread_num(), step));
    double join = now_s();
    MPI_Send(x->buffer, (int)x->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    double arrived = arrival_of_plain(x);
    if (slot >= 0) {
        x->join[slot] = join - start;
        x->plain[slot] = arrived - join;
    }
}

static void plain_receiver(Exchange *x)
{
    MPI_Request request;
    if (x->p->s.receiver_waits) {
        MPI_Recv(x->buffer, (int)x->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(x->buffer, (int)x->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        complete(x->p, &request);
    }
    acknowledge(x, now_s());
}

/* One thread's share of the region: compute, mark the own partitions, and see their notifications. */
static double send_partitions(Exchange *x, int thread, double deadline)
{
    int lo = first_of(x, thread), hi = first_of(x, thread + 1);
    compute_until(x->p, deadline);
    double woke = now_s();
    for (int i = lo; i < hi; i++) {
        x->ready[i] = now_s();
        MPI_Pready(i, x->data);
        if (x->p->s.from_return)
            x->ready[i] = now_s();
    }
    if (x->p->s.arrival == arrival_notify)
        await_partitions(x->p, x->back, lo, hi, x->arrived);
    return woke - deadline;
}

static void partitioned_sender(Exchange *x, uint64_t step, int slot)
{
    const Part *p = x->p;
    double late = 0, ack = 0;
    if (p->s.arrival == arrival_notify)
        MPI_Start(&x->back);
    MPI_Start(&x->data);
    double start = now_s();
#pragma omp parallel num_threads(p->s.threads) reduction(max : late)
    late = send_partitions(x, omp_get_thread_num(), start + thread_compute(p, omp_get_thread_num(), step));
    complete(p, &x->data);
    if (p->s.arrival == arrival_notify)
        complete(p, &x->back);
    if (p->s.arrival == arrival_ack)
        ack = arrival_of_plain(x);
    if (p->s.arrival == arrival_clock)
        MPI_Recv(x->arrived, x->n, MPI_DOUBLE, 1, notify_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < x->n && p->s.arrival == arrival_ack; i++)
        x->arrived[i] = ack;
    if (slot < 0)
        return;
    x->late[slot] = late;
    for (int i = 0; i < x->n; i++)
        x->parts[slot * x->n + i] = (Interval){x->ready[i] - start, x->arrived[i] - start};
    x->last[slot] = last_of(&x->parts[slot * x->n], x->n);
}

static void receive_partitions(Exchange *x, int thread)
{
    int lo = first_of(x, thread), hi = first_of(x, thread + 1);
    if (x->p->s.arrival != arrival_notify) {
        await_partitions(x->p, x->data, lo, hi, x->arrived);
        return;
    }
    for (int i = lo; i < hi; i++) {
        await_partition(x->p, x->data, i);
        MPI_Pready(i, x->back);
    }
}

static void partitioned_receiver(Exchange *x)
{
    const Part *p = x->p;
    if (p->s.arrival == arrival_notify)
        MPI_Start(&x->back);
    MPI_Start(&x->data);
    if (!p->s.receiver_waits) {
#pragma omp parallel num_threads(p->s.threads)
        receive_partitions(x, omp_get_thread_num());
    }
    complete(p, &x->data);
    double now = now_s();
    for (int i = 0; i < x->n && p->s.receiver_waits; i++)
        x->arrived[i] = now;
    if (p->s.arrival == arrival_notify)
        complete(p, &x->back);
    if (p->s.arrival == arrival_ack)
        acknowledge(x, now);
    if (p->s.arrival == arrival_clock)
        MPI_Send(x->arrived, x->n, MPI_DOUBLE, 0, notify_tag, MPI_COMM_WORLD);
}

static void iterate(Exchange *x, int iteration, bool partitioned)
{
    const Part *p = x->p;
    uint64_t step = (uint64_t)iteration, stamp = stamp_of(p, step, partitioned);
    int slot = iteration - p->s.warmup;
    prepare(x, stamp);
    if (p->w.rank == 0 && partitioned)
        partitioned_sender(x, step, slot);
    else if (p->w.rank == 0)
        plain_sender(x, step, slot);
    else if (partitioned)
        partitioned_receiver(x);
    else
        plain_receiver(x);
    if (p->w.rank == 1)
        check(x, stamp, partitioned ? "a partitioned transfer" : "a plain transfer");
}

static char *message_buffer(const Part *p, size_t bytes)
{
    char *buffer = NULL;
    if (!p->s.shared)
        return new_buffer(bytes);
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &buffer);
    return memset(buffer, 0, bytes);
}

static Exchange new_exchange(Part *p, size_t bytes)
{
    int n = p->s.partitions, its = p->s.iterations;
    Exchange x = {.p = p, .bytes = bytes, .n = n, .buffer = message_buffer(p, bytes), .notes = new_buffer((size_t)n),
                  .ready = new_samples(n), .arrived = new_samples(n), .join = new_samples(its), .plain = new_samples(its),
                  .late = new_samples(its), .last = new_samples(its), .parts = new_buffer(sizeof(Interval) * (size_t)(n * its))};
    if (p->w.rank == 0)
        psend_init(x.buffer, n, bytes, 1, 0, &x.data);
    else
        precv_init(x.buffer, n, bytes, 0, 0, &x.data);
    if (p->s.arrival == arrival_notify && p->w.rank == 0)
        precv_init(x.notes, n, (size_t)n, 1, notify_tag, &x.back);
    else if (p->s.arrival == arrival_notify)
        psend_init(x.notes, n, (size_t)n, 0, notify_tag, &x.back);
    return x;
}

static void end_exchange(Exchange *x)
{
    MPI_Request_free(&x->data);
    if (x->p->s.arrival == arrival_notify)
        MPI_Request_free(&x->back);
    if (x->p->s.shared)
        MPI_Free_mem(x->buffer);
    else
        free(x->buffer);
    void *owned[] = {x->notes, x->ready, x->arrived, x->join, x->plain, x->late, x->last, x->parts};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
}

static void print_traces(const Exchange *x)
{
    for (int it = 0; it < x->p->s.iterations; it++) {
        printf("{\"test\":\"trace\",\"bytes\":%zu,\"iteration\":%d,\"join_us\":%.12g,\"plain_us\":%.12g", x->bytes, it,
               x->join[it] * 1e6, x->plain[it] * 1e6);
        for (int side = 0; side < 2; side++) {
            for (int i = 0; i < x->n; i++) {
                const Interval *part = &x->parts[it * x->n + i];
                printf("%s%.12g", i ? "," : side ? "],\"arrived_us\":[" : ",\"ready_us\":[", (side ? part->to : part->from) * 1e6);
            }
        }
        printf("]}\n");
    }
}

static double mean_of(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum / count;
}

enum { v_join, v_plain, v_span, v_union, v_last, v_late, v_overhead, v_overhead_span, v_bandwidth, v_corrected, v_availability,
       v_availability_mean, v_early, v_early_mean, v_early_span, v_early_partitions,
       values };

static const char *const value_names[values] = {
    "join_us", "plain_us", "span_us", "union_us", "last_us", "late_us", "overhead", "overhead_span", "bandwidth_MBps",
    "bandwidth_corrected_MBps", "availability", "availability_mean_join", "early_bird", "early_bird_mean_join", "early_bird_span",
    "early_bird_partitions"};

/* Everything one iteration says. The plain exchange with the same draws gives join and plain time; the means over all
 * iterations give both for the values named so, as two separate phases would. */
static void evaluate(const Exchange *x, int it, double mean_join, double mean_plain, double *out[values])
{
    Interval *parts = &x->parts[it * x->n], span = span_of(parts, x->n);
    double early = arrived_by(parts, x->n, x->join[it]), last = x->last[it], one_way = x->p->s.arrival == arrival_clock ? 0 : x->p->ack_us * 1e-6;
    int n = merge_intervals(parts, x->n);
    Metrics of_union = metrics_of(parts, n, x->bytes, last, x->plain[it], x->join[it]);
    Metrics by_mean = metrics_of(parts, n, x->bytes, last - one_way, mean_plain, mean_join);
    Metrics of_span = metrics_of(&span, 1, x->bytes, last, x->plain[it], x->join[it]);
    const double found[values] = {
        x->join[it] * 1e6, x->plain[it] * 1e6, (span.to - span.from) * 1e6, length_within(parts, n, -INFINITY, INFINITY) * 1e6,
        last * 1e6, x->late[it] * 1e6, of_union.overhead, of_span.overhead, of_union.bandwidth, by_mean.bandwidth,
        of_union.availability, by_mean.availability, of_union.early_bird, by_mean.early_bird, of_span.early_bird, early};
    for (int v = 0; v < values; v++)
        out[v][it] = found[v];
}

static void report_exchange(Exchange *x)
{
    int its = x->p->s.iterations;
    double *out[values], mean_join = mean_of(x->join, its), mean_plain = mean_of(x->plain, its);
    Samples samples[values + 1] = {0};
    if (x->p->s.trace)
        print_traces(x);
    for (int v = 0; v < values; v++)
        samples[v] = (Samples){value_names[v], out[v] = new_samples(its)};
    for (int it = 0; it < its; it++)
        evaluate(x, it, mean_join, mean_plain, out);
    print_record(x->p, x->bytes, "", samples, its);
    for (int v = 0; v < values; v++)
        free(out[v]);
}

static double one_way_us(const Part *p)
{
    enum { rounds = 200 };
    double samples[rounds];
    char byte = 0;
    for (int i = -20; i < rounds; i++) {
        double begin = now_s();
        if (p->w.rank == 0)
            MPI_Send(&byte, 1, MPI_BYTE, 1, ack_tag, MPI_COMM_WORLD);
        MPI_Recv(&byte, 1, MPI_BYTE, !p->w.rank, ack_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (p->w.rank == 1)
            MPI_Send(&byte, 1, MPI_BYTE, 0, ack_tag, MPI_COMM_WORLD);
        if (i >= 0)
            samples[i] = (now_s() - begin) / 2 * 1e6;
    }
    return median_of(samples, rounds);
}

int run_metrics(Part *p)
{
    p->ack_us = one_way_us(p);
    for (size_t bytes = p->w.opt.lo_bytes; bytes <= p->w.opt.hi_bytes; bytes *= 2) {
        if (bytes % (size_t)p->s.partitions)
            continue; /* main() has made sure that some sizes can be divided */
        Exchange x = new_exchange(p, bytes);
        for (int i = 0; i < p->s.warmup + p->s.iterations; i++) {
            iterate(&x, i, false);
            iterate(&x, i, true);
        }
        if (p->w.rank == 0)
            report_exchange(&x);
        end_exchange(&x);
    }
    return 0;
}
