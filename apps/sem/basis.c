#include <math.h>

#include "sem/sem.h"

/* The Legendre polynomial P_n(x), and its derivative. */
static double legendre(int n, double x, double *derivative)
{
    double before = 1, p = x;
    for (int k = 2; k <= n; k++) {
        double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;
        before = p;
        p = next;
    }
    *derivative = n * (x * p - before) / (x * x - 1);
    return p;
}

/* The n roots of P_n by Newton's iteration, and the weights of Gauss's quadrature. */
static void gauss_points(int n, double *points, double *weights)
{
    for (int i = 0; i < n; i++) {
        double x = -cos(M_PI * (i + 0.75) / (n + 0.5)), slope = 1;
        for (int turn = 0; turn < 100; turn++) {
            double step = legendre(n, x, &slope) / slope;
            x -= step;
            if (fabs(step) < 1e-16)
                break;
        }
        legendre(n, x, &slope);
        points[i] = x;
        weights[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

/* The ends and the roots of P'_order, whose own derivative follows from Legendre's equation. */
static void gll_points(int order, double *points)
{
    points[0] = -1;
    points[order] = 1;
    for (int i = 1; i < order; i++) {
        double x = -cos(M_PI * i / order);
        for (int turn = 0; turn < 100; turn++) {
            double slope, value = legendre(order, x, &slope);
            double step = slope * (1 - x * x) / (2 * x * slope - order * (order + 1) * value);
            x -= step;
            if (fabs(step) < 1e-16)
                break;
        }
        points[i] = x;
    }
}

/* Lagrange's polynomial of point j at x. */
static double lagrange(const Basis *b, int j, double x)
{
    double value = 1;
    for (int k = 0; k < b->n; k++)
        if (k != j)
            value *= (x - b->gll[k]) / (b->gll[j] - b->gll[k]);
    return value;
}

void sem_basis(Basis *b, int order, int gauss)
{
    double points[sem_most_points];
    b->n = order + 1;
    b->m = gauss;
    gll_points(order, b->gll);
    gauss_points(gauss, points, b->weight);
    for (int i = 0; i < b->m; i++)
        for (int j = 0; j < b->n; j++)
            b->to_gauss[i * b->n + j] = b->to_gll[j * b->m + i] = lagrange(b, j, points[i]);
}
