#include "fft2d/fft2d.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fft2d_open(Fft2d *f, MPI_Comm comm, int n, int ranks_per_node)
{
    int ranks;
    MPI_Comm_size(comm, &ranks);
    memset(f, 0, sizeof *f);
    plan_open(&f->plan, n);
    size_t matrix = sizeof(Complex) * (size_t)n * (size_t)(n / ranks);
    arena_open(&f->arena, comm, ranks_per_node, 2 * (matrix + 64) + transpose_bytes(n, ranks));
    transpose_open(&f->transpose, &f->arena, comm, n);
    f->a = arena_take(&f->arena, matrix);
    f->b = arena_take(&f->arena, matrix);
}

void fft2d_close(Fft2d *f)
{
    MPI_Barrier(f->arena.comm);
    transpose_close(&f->transpose);
    arena_close(&f->arena);
    plan_close(&f->plan);
}

Complex fft2d_input(int row, int column)
{
    uint64_t at = (uint64_t)row << 32 | (uint32_t)column;
    return (Complex){unit_interval(2 * at) - 0.5, unit_interval(2 * at + 1) - 0.5};
}

static size_t own_elements(const Fft2d *f) { return (size_t)f->transpose.rows * f->plan.n; }

void fft2d_fill(Fft2d *f)
{
    int n = f->plan.n, first = f->transpose.rank * f->transpose.rows;
    transpose_meet(&f->transpose); /* nobody reads the old contents any more */
    for (int r = 0; r < f->transpose.rows; r++)
        for (int c = 0; c < n; c++)
            f->a[(size_t)r * n + c] = fft2d_input(first + r, c);
}

void fft2d_forward(Fft2d *f, Form form)
{
    Complex *from = f->a, *to = f->b;
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < f->transpose.rows; r++)
            transform(&f->plan, from + (size_t)r * f->plan.n);
        double start = now_s();
        transpose(&f->transpose, form, from, to);
        f->communication_s += now_s() - start;
        from = f->b;
        to = f->a;
    }
}

/* The sum that defines the transform, for one element. */
static Complex by_definition(int n, int row, int column)
{
    Complex sum = {0, 0};
    for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++) {
            double angle = -2 * 3.14159265358979323846 * (double)(((int64_t)row * r + (int64_t)column * c) % n) / n;
            Complex v = fft2d_input(r, c), w = {cos(angle), sin(angle)};
            sum.re += v.re * w.re - v.im * w.im;
            sum.im += v.re * w.im + v.im * w.re;
        }
    return (Complex){sum.re / n, sum.im / n};
}

void fft2d_check_once(Fft2d *f, const char *form)
{
    int n = f->plan.n, first = f->transpose.rank * f->transpose.rows;
    Complex *whole = malloc(sizeof(Complex) * (size_t)n * n), *scratch = malloc(sizeof(Complex) * (size_t)n * n);
    if (!whole || !scratch)
        fail("no memory for a serial transform of %d by %d", n, n);
    for (int r = 0; r < n; r++)
        for (int c = 0; c < n; c++)
            whole[(size_t)r * n + c] = fft2d_input(r, c);
    serial_fft2d(&f->plan, whole, scratch);
    for (size_t i = 0; i < own_elements(f); i++) {
        Complex got = f->a[i], want = whole[(size_t)first * n + i];
        if (memcmp(&got, &want, sizeof got) != 0)
            fail("fft2d %s: element (%zu, %zu) is (%.17g, %.17g); the serial transform gives (%.17g, %.17g), a difference of %.3g", form,
                 first + i / (size_t)n, i % (size_t)n, got.re, got.im, want.re, want.im, hypot(got.re - want.re, got.im - want.im));
    }
    for (int k = 0; k < 2; k++) { /* both programs of this file could be wrong alike */
        int row = first + (k * 7 + 1) % f->transpose.rows, column = (int)(mix((uint64_t)(row + k)) % (uint64_t)n);
        Complex want = by_definition(n, row, column), got = f->a[(size_t)(row - first) * n + column];
        expect_close("fft2d against its definition, real part", got.re, want.re, 1e-10);
        expect_close("fft2d against its definition, imaginary part", got.im, want.im, 1e-10);
    }
    free(whole);
    free(scratch);
}

void fft2d_check_returned(Fft2d *f, const char *form, long transforms)
{
    int n = f->plan.n, first = f->transpose.rank * f->transpose.rows;
    double tolerance = 1e-14 * (double)(transforms + 10);
    for (size_t i = 0; i < own_elements(f); i++) {
        Complex want = fft2d_input(first + (int)(i / (size_t)n), (int)(i % (size_t)n)), got = f->a[i];
        if (!(hypot(got.re - want.re, got.im - want.im) <= tolerance))
            fail("fft2d %s: after %ld transforms element (%zu, %zu) is (%.17g, %.17g) instead of (%.17g, %.17g)", form, transforms,
                 first + i / (size_t)n, i % (size_t)n, got.re, got.im, want.re, want.im);
    }
}

uint64_t fft2d_digest(const Fft2d *f)
{
    uint64_t mine = 0, all;
    uint64_t place = (uint64_t)f->transpose.rank * own_elements(f);
    for (size_t i = 0; i < own_elements(f); i++) {
        uint64_t word[2];
        memcpy(word, &f->a[i], sizeof word);
        mine += mix(word[0] ^ mix(2 * (place + i))) + mix(word[1] ^ mix(2 * (place + i) + 1));
    }
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, f->arena.comm);
    return all;
}
