#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lj/lj.h"

/* ---- neighbours: each pair in one list only, on one of its ranks */

/* Whether the pair of an owned atom and a ghost is this rank's. The other rank sees the two in opposite roles and decides the
 * opposite. An atom and its own image are on one rank in both directions, and there the place decides. */
static bool is_mine(const Lj *l, int i, int ghost)
{
    int64_t a = l->id[i], b = l->id[ghost];
    if (a != b)
        return (a + b) % 2 ? a < b : a > b;
    for (int d = 2; d > 0; d--)
        if (l->x[3 * ghost + d] != l->x[3 * i + d])
            return l->x[3 * ghost + d] > l->x[3 * i + d];
    return l->x[3 * ghost] > l->x[3 * i];
}

static int bin_along(const Lj *l, int d, double x)
{
    double width = (l->high[d] - l->low[d] + 2 * l->reach) / l->bins[d];
    int bin = (int)((x - l->low[d] + l->reach) / width);
    return bin < 0 ? 0 : bin >= l->bins[d] ? l->bins[d] - 1 : bin;
}

static int bin_of(const Lj *l, const double x[3])
{
    return (bin_along(l, 2, x[2]) * l->bins[1] + bin_along(l, 1, x[1])) * l->bins[0] + bin_along(l, 0, x[0]);
}

static void fill_bins(Lj *l)
{
    int total = 1;
    for (int d = 0; d < 3; d++) {
        l->bins[d] = (int)((l->high[d] - l->low[d] + 2 * l->reach) / l->reach); /* no bin is narrower than the reach */
        total *= l->bins[d];
    }
    if (total > l->bin_room) {
        free(l->bin_head);
        l->bin_head = malloc(sizeof(int) * (size_t)total);
        l->bin_room = total;
        if (!l->bin_head)
            fail("no memory for %d bins", total);
    }
    for (int b = 0; b < total; b++)
        l->bin_head[b] = -1;
    for (int i = l->owned + l->ghosts - 1; i >= 0; i--) {
        int b = bin_of(l, &l->x[3 * i]);
        l->bin_next[i] = l->bin_head[b];
        l->bin_head[b] = i;
    }
}

static void add_neighbor(Lj *l, int *count, int j)
{
    if ((size_t)*count == l->neighbor_room) {
        l->neighbor_room = l->neighbor_room ? 2 * l->neighbor_room : 4096;
        l->neighbors = realloc(l->neighbors, sizeof(int) * l->neighbor_room);
        if (!l->neighbors)
            fail("no memory for %zu neighbours", l->neighbor_room);
    }
    l->neighbors[(*count)++] = j;
}

static void look_into_bin(Lj *l, int i, int bin, int *count)
{
    const double *xi = &l->x[3 * i], reach2 = l->reach * l->reach;
    for (int j = l->bin_head[bin]; j >= 0; j = l->bin_next[j]) {
        if (j < l->owned ? j <= i : !is_mine(l, i, j))
            continue;
        double dx = xi[0] - l->x[3 * j], dy = xi[1] - l->x[3 * j + 1], dz = xi[2] - l->x[3 * j + 2];
        if (dx * dx + dy * dy + dz * dz < reach2)
            add_neighbor(l, count, j);
    }
}

void lj_find_neighbors(Lj *l)
{
    int count = 0;
    fill_bins(l);
    for (int i = 0; i < l->owned; i++) {
        l->neighbor_start[i] = count;
        int at[3];
        for (int d = 0; d < 3; d++)
            at[d] = bin_along(l, d, l->x[3 * i + d]);
        for (int z = at[2] - 1; z <= at[2] + 1; z++)
            for (int y = at[1] - 1; y <= at[1] + 1; y++)
                for (int x = at[0] - 1; x <= at[0] + 1; x++)
                    if (x >= 0 && y >= 0 && z >= 0 && x < l->bins[0] && y < l->bins[1] && z < l->bins[2])
                        look_into_bin(l, i, (z * l->bins[1] + y) * l->bins[0] + x, &count);
    }
    l->neighbor_start[l->owned] = count;
}

/* ---- forces */

void lj_compute_forces(Lj *l)
{
    double cutoff2 = l->setup.cutoff * l->setup.cutoff, energy = 0;
    const double *x = l->x;
    double *f = l->f;
    memset(f, 0, sizeof(double) * 3 * (size_t)(l->owned + l->ghosts));
    for (int i = 0; i < l->owned; i++) {
        double fx = 0, fy = 0, fz = 0;
        for (int k = l->neighbor_start[i]; k < l->neighbor_start[i + 1]; k++) {
            int j = l->neighbors[k];
            double dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1], dz = x[3 * i + 2] - x[3 * j + 2];
            double r2 = dx * dx + dy * dy + dz * dz;
            if (r2 >= cutoff2)
                continue;
            double s2 = 1 / r2, s6 = s2 * s2 * s2, force = 48 * s6 * (s6 - 0.5) * s2;
            energy += 4 * s6 * (s6 - 1);
            fx += dx * force;
            fy += dy * force;
            fz += dz * force;
            f[3 * j] -= dx * force;
            f[3 * j + 1] -= dy * force;
            f[3 * j + 2] -= dz * force;
        }
        f[3 * i] += fx;
        f[3 * i + 1] += fy;
        f[3 * i + 2] += fz;
    }
    l->potential = energy;
}
