#include "fft2d/fft2d.h"

#include <math.h>
#include <stdlib.h>

void plan_open(Plan *p, int n)
{
    if (n < 2 || (n & (n - 1)) != 0)
        fail("the edge of the matrix is a power of two, not %d", n);
    *p = (Plan){.n = n, .reversed = malloc(sizeof(int) * (size_t)n), .turns = malloc(sizeof(Complex) * (size_t)n / 2),
                .scale = 1 / sqrt(n)};
    if (!p->reversed || !p->turns)
        fail("no memory for a plan of %d", n);
    p->reversed[0] = 0;
    for (int i = 1; i < n; i++)
        p->reversed[i] = p->reversed[i / 2] / 2 + (i % 2 ? n / 2 : 0);
    for (int i = 0; i < n / 2; i++) {
        double angle = -2 * 3.14159265358979323846 * i / n;
        p->turns[i] = (Complex){cos(angle), sin(angle)};
    }
}

void plan_close(Plan *p)
{
    free(p->reversed);
    free(p->turns);
}

/* Radix 2, decimation in time. */
void transform(const Plan *p, Complex *row)
{
    int n = p->n;
    for (int i = 0; i < n; i++) {
        int k = p->reversed[i];
        if (i < k) {
            Complex kept = row[i];
            row[i] = row[k];
            row[k] = kept;
        }
    }
    for (int half = 1; half < n; half *= 2)
        for (int start = 0; start < n; start += 2 * half)
            for (int i = 0; i < half; i++) {
                Complex w = p->turns[i * (n / (2 * half))], *low = &row[start + i], *high = low + half;
                Complex t = {w.re * high->re - w.im * high->im, w.re * high->im + w.im * high->re};
                *high = (Complex){low->re - t.re, low->im - t.im};
                *low = (Complex){low->re + t.re, low->im + t.im};
            }
    for (int i = 0; i < n; i++)
        row[i] = (Complex){row[i].re * p->scale, row[i].im * p->scale};
}

void serial_fft2d(const Plan *p, Complex *matrix, Complex *scratch)
{
    Complex *from = matrix, *to = scratch;
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < p->n; r++)
            transform(p, from + (size_t)r * p->n);
        for (int r = 0; r < p->n; r++)
            for (int c = 0; c < p->n; c++)
                to[(size_t)c * p->n + r] = from[(size_t)r * p->n + c];
        from = scratch;
        to = matrix;
    }
}
