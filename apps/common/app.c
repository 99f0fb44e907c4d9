#include "common/app.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const form_names[form_count] = {"mpi", "opi", "shared", "fused"};

static void usage(const char *about, const Flag *flags)
{
    printf("%s\n\noptions:\n", about);
    for (const Flag *f = flags; f->name; f++)
        printf("  %-18s %s\n", f->name, f->what);
    fputs("  -r N               repetitions (5)\n"
          "  -t MS              length of a timed window\n"
          "  --cpus A,B,..      rank i runs on the (i mod n)-th of these; all online ones otherwise\n"
          "  --no-pin           leave the ranks where the launcher put them\n"
          "  -j, --json         one JSON object per line, with every sample\n", stdout);
}

static bool take(const Flag *f, const char *value)
{
    char *rest = "";
    if (f->kind == flag_int)
        *(int *)f->to = (int)strtol(value, &rest, 0);
    else if (f->kind == flag_double)
        *(double *)f->to = strtod(value, &rest);
    else if (f->kind == flag_text)
        *(const char **)f->to = value;
    else if (f->kind == flag_sizes)
        return parse_sizes(&((World *)f->to)->opt, value);
    return *value && *rest == 0;
}

static bool take_common(Options *o, const char *name, const char *value)
{
    if (strcmp(name, "--cpus") == 0)
        return parse_cpus(o, value);
    double number = atof(value);
    if (strcmp(name, "-r") == 0)
        o->reps = (int)number;
    else if (strcmp(name, "-t") == 0)
        o->window_ms = number;
    else
        return false;
    return number > 0 && number < max_samples;
}

/* The number of words of this option, 0 if it cannot be used. */
static int option(World *w, const Flag *flags, char **at)
{
    if (strcmp(at[0], "-j") == 0 || strcmp(at[0], "--json") == 0)
        return w->opt.json = true, 1;
    if (strcmp(at[0], "--no-pin") == 0)
        return w->opt.pin = false, 1;
    for (const Flag *f = flags; f->name; f++)
        if (strcmp(at[0], f->name) == 0) {
            if (f->kind == flag_set)
                return *(bool *)f->to = true, 1;
            return at[1] && take(f, at[1]) ? 2 : 0;
        }
    return at[1] && take_common(&w->opt, at[0], at[1]) ? 2 : 0;
}

void app_start(World *w, int *argc, char ***argv, const char *about, const Flag *flags, int ranks)
{
    Options *o = &w->opt;
    int used;
    *o = (Options){.reps = 5, .rewrite = true, .pin = true, .lo_bytes = o->lo_bytes, .hi_bytes = o->hi_bytes,
                   .window_ms = o->window_ms};
    for (char **at = *argv + 1; *at; at += used) {
        if (strcmp(*at, "-h") == 0 || strcmp(*at, "--help") == 0) {
            usage(about, flags);
            exit(0);
        }
        used = option(w, flags, at);
        if (!used) {
            fprintf(stderr, "%s: cannot use %s %s; -h lists the options\n", **argv, at[0], at[1] ? at[1] : "");
            exit(2);
        }
    }
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w->size);
    if (w->size < ranks)
        fail("needs at least %d ranks, not %d", ranks, w->size);
    pin(w);
    introduce(w);
    reach_normal_state(w);
}

void app_end(void)
{
    MPI_Finalize();
}

void parse_forms(const char *text, bool on[form_count])
{
    bool all = strcmp(text, "all") == 0;
    for (int i = 0; i < form_count; i++)
        on[i] = all;
    while (!all && *text) {
        size_t length = strcspn(text, ",");
        int i = 0;
        while (i < form_count && (strlen(form_names[i]) != length || strncmp(form_names[i], text, length) != 0))
            i++;
        if (i == form_count)
            fail("there is no form %.*s; there are mpi, opi, shared, fused and all", (int)length, text);
        on[i] = true;
        text += length + (text[length] == ',');
    }
}

void expect_close(const char *what, double got, double want, double tolerance)
{
    double scale = fabs(want) > 1 ? fabs(want) : 1;
    if (!(fabs(got - want) <= tolerance * scale))
        fail("%s: %.17g instead of %.17g, a difference of %.3g; %.3g is allowed", what, got, want, got - want, tolerance * scale);
}

void expect_same(const char *what, uint64_t got, uint64_t want)
{
    if (got != want)
        fail("%s: %#llx instead of %#llx, which differ by %lld", what, (unsigned long long)got, (unsigned long long)want,
             (long long)(got - want));
}

double mean_over(MPI_Comm comm, double value)
{
    int size;
    double sum;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    return sum / size;
}

double greatest_of(MPI_Comm comm, double value)
{
    double greatest;
    MPI_Allreduce(&value, &greatest, 1, MPI_DOUBLE, MPI_MAX, comm);
    return greatest;
}

uint64_t mix(uint64_t word)
{
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

uint64_t sum_of(const void *buffer, size_t bytes)
{
    const unsigned char *from = buffer;
    uint64_t sum = 0, word, last = 0;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        memcpy(&word, from + i, 8);
        sum += word;
    }
    memcpy(&last, from + bytes / 8 * 8, bytes % 8);
    return sum + last;
}

uint64_t sum_of_rewritten(size_t bytes, uint64_t stamp)
{
    uint64_t words = bytes / 8, last = stamp + words, part = 0;
    memcpy(&part, &last, bytes % 8);
    return words * stamp + (words % 2 ? words * ((words - 1) / 2) : words / 2 * (words - 1)) + part;
}
