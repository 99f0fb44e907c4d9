#include "part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const cache_names[] = {"hot", "cold", "dram"}, *const arrival_names[] = {"clock", "notify", "ack"},
                  *const style_names[] = {"single", "multiple", "partitioned"},
                  *const noise_names[] = {"single", "uniform", "gaussian"};

static bool is_pattern(const Settings *s)
{
    return strcmp(s->test, "sweep3d") == 0 || strcmp(s->test, "halo3d") == 0;
}

double *new_samples(int count)
{
    return new_buffer(sizeof(double) * (size_t)count);
}

/* All that decides a result, so that it can be repeated. */
void print_settings(const Part *p)
{
    const Settings *s = &p->s;
    if (p->w.rank != 0)
        return;
    introduce(&p->w);
    const char *format = p->w.opt.json
        ? "{\"test\":\"settings\",\"measures\":\"%s\",\"threads\":%d,\"partitions\":%d,\"iterations\":%d,\"warmup\":%d,"
          "\"compute\":\"%s\",\"compute_ms\":%g,\"noise\":\"%s\",\"percent_noise\":%g,\"seed\":%llu,\"cache\":\"%s\","
          "\"arrival\":\"%s\",\"receiver\":\"%s\",\"poll\":\"%s\",\"ready\":\"%s\",\"memory\":\"%s\",\"style\":\"%s\",\"volume\":\"%s\","
          "\"jitter\":{\"late_median_us\":%.4g,\"late_max_us\":%.4g,\"region_ms\":%.6g}}\n"
        : "# %s: %d threads, %d partitions, %d iterations after %d, compute=%s %g ms, noise %s %g %%, seed %llu, cache %s\n"
          "# arrival=%s receiver=%s poll=%s ready=%s memory=%s; style %s, volume %s\n"
          "# jitter: threads wake %.3g us late (median; worst %.3g us), a region without noise takes %.4g ms\n";
    printf(format, s->test, s->threads, s->partitions, s->iterations, s->warmup, s->spin ? "spin" : "sleep", s->compute_ms,
           noise_names[s->model], s->percent_noise, (unsigned long long)s->seed, cache_names[s->cache],
           arrival_names[s->arrival], s->receiver_waits ? "wait" : "poll", s->busy_poll ? "spin" : "yield",
           s->from_return ? "return" : "entry", s->shared ? "alloc" : "malloc", is_pattern(s) ? style_names[s->style] : "none",
           !is_pattern(s) ? "none" : s->artifact_volume ? "artifact" : "equal", p->jitter.median_us, p->jitter.max_us,
           p->jitter.region_ms);
    fflush(stdout);
}

void report_clamps(const Part *p)
{
    long mine = clamped_draws(), clamped = 0;
    MPI_Reduce(&mine, &clamped, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (p->w.rank == 0 && p->w.opt.json)
        printf("{\"test\":\"clamped\",\"draws\":%ld}\n", clamped);
    else if (p->w.rank == 0 && clamped)
        printf("# %ld negative draws of compute time became 0\n", clamped);
}

/* What a person wants to see of this test; --json has everything. */
static bool shown(const char *test, const char *name)
{
    if (strcmp(test, "metrics") == 0)
        return !strcmp(name, "overhead") || !strcmp(name, "bandwidth_MBps") || !strcmp(name, "availability") ||
               !strcmp(name, "early_bird") || !strcmp(name, "early_bird_partitions");
    if (strcmp(test, "perceived_bandwidth") == 0)
        return strncmp(name, "bandwidth", 9) == 0;
    return strstr("overhead availability early_bird", test) == NULL || strncmp(name, test, strlen(test)) == 0;
}

static void print_text(const Part *p, size_t bytes, const Samples *samples, int count)
{
    printf("%10zu B", bytes);
    for (; samples->name; samples++)
        if (shown(p->s.test, samples->name))
            printf("  %s %.4g", samples->name, median_of(samples->values, count));
    printf("  (medians, n = %d; compute=%s, woke %.3g us late, worst %.3g us)\n", count, p->s.spin ? "spin" : "sleep",
           p->jitter.median_us, p->jitter.max_us);
}

void print_record(const Part *p, size_t bytes, const char *fields, const Samples *samples, int count)
{
    if (p->w.rank != 0)
        return;
    if (!p->w.opt.json) {
        print_text(p, bytes, samples, count);
        return;
    }
    printf("{\"test\":\"%s\",\"bytes\":%zu,\"threads\":%d,\"partitions\":%d,%s\"samples\":{", p->s.test, bytes, p->s.threads,
           p->s.partitions, fields);
    for (const Samples *s = samples; s->name; s++) {
        printf("%s\"%s\":[", s == samples ? "" : ",", s->name);
        for (int i = 0; i < count; i++)
            printf(isfinite(s->values[i]) ? "%s%.9g" : "%snull", i ? "," : "", s->values[i]);
        printf("]");
    }
    printf("}}\n");
    fflush(stdout);
}
