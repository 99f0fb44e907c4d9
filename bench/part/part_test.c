/* Units of the partitioned suite, without MPI: the generators, the arithmetic of the four metrics on made-up traces,
 * and the schedules that communication time is measured against. Prints each failure; the exit status is their
 * number. */
#include "noise.h"
#include "schedule.h"
#include "trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(condition, ...) \
    do { \
        if (!(condition)) { \
            failures++; \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__); \
            printf("\n"); \
        } \
    } while (0)
#define NEAR(value, wanted) CHECK(fabs((value) - (wanted)) < 1e-12, "%.17g, not %.17g", (double)(value), (double)(wanted))

/* The vectors that the generator's authors publish. */
static void known_answers(void)
{
    static const struct { uint32_t counter[4], key[2], out[4]; } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        philox(known[i].counter, known[i].key, out);
        CHECK(memcmp(out, known[i].out, sizeof out) == 0, "vector %u", i);
    }
}

/* Mean and variance of `threads` x `steps` draws. */
static void moments(const Noise *noise, int threads, int steps, double *mean, double *variance)
{
    double sum = 0, squares = 0, n = (double)threads * steps;
    for (int thread = 0; thread < threads; thread++) {
        for (int step = 0; step < steps; step++) {
            double x = compute_time(noise, 3, thread, (uint64_t)step, NULL);
            sum += x;
            squares += x * x;
        }
    }
    *mean = sum / n;
    *variance = squares / n - *mean * *mean;
}

static void uniform_noise(void)
{
    Noise noise = {noise_uniform, 0.1, 0.04, 7};
    double mean, variance, least = 1, most = 0;
    moments(&noise, 16, 20000, &mean, &variance);
    /* 0.004 wide: the mean of 320,000 draws has a standard deviation of 2e-6, the variance one of 2e-9 */
    CHECK(fabs(mean - 0.102) < 1e-5, "mean %g", mean);
    CHECK(fabs(variance - 0.004 * 0.004 / 12) < 1e-8, "variance %g", variance);
    for (uint64_t step = 0; step < 100000; step++) {
        double x = compute_time(&noise, 0, 0, step, NULL);
        least = fmin(least, x);
        most = fmax(most, x);
    }
    CHECK(least >= 0.1 && least < 0.1001 && most < 0.104 && most > 0.1039, "%g to %g", least, most);
}

static void gaussian_noise(void)
{
    Noise noise = {noise_gaussian, 0.1, 0.03, 7};
    double mean, variance;
    bool clamped = false;
    int clamps = 0;
    moments(&noise, 16, 20000, &mean, &variance);
    CHECK(fabs(mean - 0.1) < 3e-5, "mean %g", mean); /* the standard deviation of the mean is 5e-6 */
    CHECK(fabs(sqrt(variance) - 0.003) < 3e-5, "deviation %g", sqrt(variance));
    compute_time(&noise, 0, 0, 0, &clamped);
    CHECK(!clamped, "10 %% of noise cannot clamp");
    noise.share = 1;
    for (uint64_t step = 0; step < 100000; step++) {
        clamped = false;
        CHECK(compute_time(&noise, 0, 0, step, &clamped) >= 0, "a negative time");
        clamps += clamped;
    }
    /* Below minus one standard deviation: 15.87 %. */
    CHECK(abs(clamps - 15866) < 600, "%d of 100,000 draws were negative", clamps);
}

static void single_noise(void)
{
    Noise noise = {noise_single, 0.1, 0.04, 7};
    for (int thread = 0; thread < 32; thread++)
        NEAR(compute_time(&noise, 1, thread, 9, NULL), thread ? 0.1 : 0.104);
}

static void draws_depend_on_the_counter_alone(void)
{
    Noise noise = {noise_uniform, 1, 1, 42}, other = {noise_uniform, 1, 1, 43};
    double here = compute_time(&noise, 1, 2, 3, NULL), product = 0;
    NEAR(compute_time(&noise, 1, 2, 3, NULL), here);
    CHECK(compute_time(&other, 1, 2, 3, NULL) != here, "another seed");
    CHECK(compute_time(&noise, 2, 2, 3, NULL) != here, "another rank");
    CHECK(compute_time(&noise, 1, 3, 3, NULL) != here, "another thread");
    CHECK(compute_time(&noise, 1, 2, 4, NULL) != here, "another step");
    CHECK(compute_time(&noise, 1, 2, 3 + ((uint64_t)1 << 32), NULL) != here, "a step beyond 2^32");
    for (uint64_t step = 0; step < 100000; step++)
        product += (compute_time(&noise, 0, 0, step, NULL) - 1.5) * (compute_time(&noise, 0, 1, step, NULL) - 1.5);
    CHECK(fabs(product / 100000) < 0.0015, "neighbours' covariance is %g", product / 100000); /* its deviation is 0.00026 */
}

/* Equations 1 to 4 on a trace whose answers are known. */
static void identities(void)
{
    Interval parts[] = {{3, 5}, {1, 2}, {4, 7}}; /* union 1..2 and 3..7: 5; span 1..7: 6 */
    NEAR(last_of(parts, 3), 7 - 4);
    Interval span = span_of(parts, 3);
    NEAR(span.from, 1);
    NEAR(span.to, 7);
    int n = merge_intervals(parts, 3);
    CHECK(n == 2, "%d intervals", n);
    Metrics u = metrics_of(parts, n, 6000000, 3, 2, 4), s = metrics_of(&span, 1, 6000000, 3, 2, 4);
    NEAR(u.overhead, 2.5);
    NEAR(s.overhead, 3);
    NEAR(u.bandwidth, 2);
    NEAR(u.early_bird, 2 / 5.0); /* 1..2 and 3..4 before the join */
    NEAR(s.early_bird, 3 / 6.0);
    NEAR(u.availability, 1 - 3 / 2.0); /* negative: 3 after the join, and a plain message takes 2 */
    NEAR(s.availability, 1 - 3 / 2.0);
    /* What lies before and after the join is all there is. */
    for (double join = 0; join < 9; join += 0.25)
        NEAR(length_within(parts, n, -INFINITY, join) + length_within(parts, n, join, INFINITY), 5);
}

static void nested_and_degenerate(void)
{
    Interval nested[] = {{0, 10}, {1, 2}, {3, 4}, {9, 11}, {12, 13}}; /* the first holds two others */
    int n = merge_intervals(nested, 5);
    CHECK(n == 2, "%d intervals", n);
    NEAR(length_within(nested, n, -INFINITY, INFINITY), 12);
    Interval touching[] = {{0, 1}, {1, 2}};
    CHECK(merge_intervals(touching, 2) == 1, "two that touch are one");
    Interval backwards[] = {{5, 4}, {1, 2}};
    n = merge_intervals(backwards, 2);
    NEAR(length_within(backwards, n, -INFINITY, INFINITY), 1);
    Interval one[] = {{4, 5}};
    Metrics late = metrics_of(one, merge_intervals(one, 1), 8, 1, 1, 4), early = metrics_of(one, 1, 8, 1, 1, 5);
    NEAR(late.early_bird, 0);
    NEAR(late.availability, 0);
    NEAR(early.early_bird, 1);
    NEAR(early.availability, 1);
    NEAR(early.overhead, 1);
}

/* Partitions become ready from 96 to 100; the join is at 100.1. With one message for all, each arrives at 100.2. */
static void one_message_for_all(void)
{
    Interval parts[5], apart[5];
    for (int i = 0; i < 5; i++) {
        parts[i] = (Interval){96 + i, 100.2};
        apart[i] = (Interval){96 + i, 96 + i + 0.05};
    }
    NEAR(arrived_by(parts, 5, 100.1), 0);
    NEAR(arrived_by(apart, 5, 100.1), 1);
    NEAR(arrived_by(apart, 5, 99.5), 0.8);
    Metrics together = metrics_of(parts, merge_intervals(parts, 5), 8, 1, 1, 100.1);
    CHECK(together.early_bird > 0.97, "%g: equation 4 alone does not see the one message", together.early_bird);
    NEAR(together.overhead, 4.2);
}

static double rank_number(const void *context, int rank, int thread, uint64_t step)
{
    (void)context, (void)thread, (void)step;
    return rank + 1;
}

static double one_second(const void *context, int rank, int thread, uint64_t step)
{
    (void)context, (void)rank, (void)thread, (void)step;
    return 1;
}

/* Sweeps whose length can be counted by hand. */
static void schedules(void)
{
    Sweep alone = {.px = 1, .py = 1, .threads = 1, .blocks = 16};
    NEAR(ideal_sweep(&alone, one_second, NULL, 0), 8 * 16);
    alone.threads = 4;
    NEAR(ideal_sweep(&alone, one_second, NULL, 0), 8 * 4);
    /* Two ranks in a row: the second begins a block later, and each of the four turns of the direction costs a block
     * more. */
    Sweep pair = {.px = 2, .py = 1, .threads = 1, .blocks = 4};
    NEAR(ideal_sweep(&pair, one_second, NULL, 0), 8 * 4 + 1 + 4);
    Sweep square = {.px = 2, .py = 2, .threads = 1, .blocks = 2};
    double time = ideal_sweep(&square, one_second, NULL, 0);
    CHECK(time >= 8 * 2 && time <= 8 * (2 + 2), "%g", time);
    Noise noise = {noise_single, 1, 0, 0};
    NEAR(ideal_sweep(&square, draw_of_noise, &noise, 0), time);
    NEAR(longest_compute(8, 8, rank_number, NULL, 0), 8);
}

int main(void)
{
    known_answers();
    uniform_noise();
    gaussian_noise();
    single_noise();
    draws_depend_on_the_counter_alone();
    identities();
    nested_and_degenerate();
    one_message_for_all();
    schedules();
    printf("%d failures\n", failures);
    return failures ? 1 : 0;
}
