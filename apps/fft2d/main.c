/* weft-fft2d: a two-dimensional FFT whose transposition is done in four forms, checked, timed in turns. */
#include <stdio.h>
#include <string.h>

#include "fft2d/fft2d.h"

typedef struct Choice {
    int n, ranks_per_node;
    const char *forms;
    bool check_only;
} Choice;

/* Each form: once from the start, compared with a serial transform and with the other forms. */
static void check(Fft2d *f, const bool on[form_count])
{
    uint64_t first = 0;
    for (int form = 0; form < form_count; form++) {
        if (!on[form])
            continue;
        fft2d_fill(f);
        fft2d_forward(f, form);
        fft2d_check_once(f, form_names[form]);
        uint64_t digest = fft2d_digest(f);
        if (first)
            expect_same("fft2d: the bits of two forms", digest, first);
        first = digest;
    }
}

typedef struct Times {
    double communication_us, total_us; /* of one transform: two transpositions */
} Times;

/* `transforms` is a multiple of four, after which the input is there again. */
static Times measure(Fft2d *f, Form form, long transforms)
{
    fft2d_fill(f);
    MPI_Barrier(f->arena.comm);
    f->communication_s = 0;
    double start = now_s();
    for (long i = 0; i < transforms; i++)
        fft2d_forward(f, form);
    double took = now_s() - start;
    fft2d_check_returned(f, form_names[form], transforms);
    return (Times){greatest_of(f->arena.comm, f->communication_s) / (double)transforms * 1e6,
                   greatest_of(f->arena.comm, took) / (double)transforms * 1e6};
}

static void measure_all(const World *w, Fft2d *f, const bool on[form_count])
{
    static double samples[form_count][2][max_samples], lines[max_samples + 1];
    size_t block = sizeof(Complex) * (size_t)f->transpose.rows * f->transpose.rows;
    long transforms[form_count];
    for (int form = 0; form < form_count; form++)
        if (on[form]) {
            double each_us = measure(f, form, 4).total_us;
            transforms[form] = 4 * agree(w, 1 + (int64_t)(w->opt.window_ms * 1e3 / each_us / 4));
        }
    lines[0] = line_ns(w);
    for (int rep = 0; rep < w->opt.reps; rep++) {
        for (int i = 0; i < form_count; i++) {
            int form = (i + rep) % form_count; /* none is always the first */
            if (!on[form])
                continue;
            Times t = measure(f, form, transforms[form]);
            samples[form][0][rep] = t.communication_us;
            samples[form][1][rep] = t.total_us;
        }
        lines[rep + 1] = line_ns(w);
    }
    for (int form = 0; form < form_count; form++)
        for (int what = 0; on[form] && what < 2; what++) {
            char name[64];
            snprintf(name, sizeof name, "%s %s", form_names[form], what ? "application" : "communication");
            report(w, name, block, "us", samples[form][what], w->opt.reps, lines);
        }
}

int main(int argc, char **argv)
{
    static World w;
    Choice c = {.n = 512, .forms = "all"};
    const Flag flags[] = {
        {"--n", flag_int, &c.n, "edge of the matrix, a power of two (512)"},
        {"--form", flag_text, &c.forms, "mpi, opi, shared, fused, several with commas, or all (all)"},
        {"--ranks-per-node", flag_int, &c.ranks_per_node, "take runs of so many ranks for nodes (0: as they are)"},
        {"--check", flag_set, &c.check_only, "only check the results, without timing"},
        {0}};
    w.opt.window_ms = 50;
    app_start(&w, &argc, &argv, "weft-fft2d: a two-dimensional FFT; its transposition in four forms", flags, 1);
    bool on[form_count];
    Fft2d f;
    parse_forms(c.forms, on);
    fft2d_open(&f, MPI_COMM_WORLD, c.n, c.ranks_per_node);
    if (strcmp(c.forms, "all") == 0 && !f.arena.shared) {
        on[form_shared] = on[form_fused] = false;
        if (w.rank == 0)
            fputs("# no memory is shared here: the forms shared and fused are left out\n", stderr);
    }
    check(&f, on);
    if (!c.check_only)
        measure_all(&w, &f, on);
    fft2d_close(&f);
    app_end();
    return 0;
}
