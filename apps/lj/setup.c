#include "lj/lj.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

LjSetup lj_melt(const int cells[3])
{
    return (LjSetup){.cells = {cells[0], cells[1], cells[2]}, .rebuild_every = 20, .density = 0.8442, .temperature = 1.44,
                     .cutoff = 2.5, .skin = 0.3, .dt = 0.005};
}

int64_t lj_atoms(const Lj *l) { return 4 * (int64_t)l->setup.cells[0] * l->setup.cells[1] * l->setup.cells[2]; }

/* The grid of ranks whose boxes have the least surface; of equal ones the last, which parts z before y before x. */
static void choose_grid(Lj *l)
{
    double least = INFINITY;
    for (int nx = 1; nx <= l->size; nx++)
        for (int ny = 1; nx * ny <= l->size; ny++) {
            int nz = l->size / (nx * ny);
            if (nx * ny * nz != l->size || nx > ny || ny > nz)
                continue;
            double x = l->box[0] / nx, y = l->box[1] / ny, z = l->box[2] / nz, surface = x * y + y * z + z * x;
            if (surface < least * (1 - 1e-9)) {
                least = surface;
                memcpy(l->grid, (int[3]){nx, ny, nz}, sizeof l->grid);
            }
        }
}

static int rank_at(const Lj *l, const int at[3])
{
    int place[3];
    for (int d = 0; d < 3; d++)
        place[d] = (at[d] + l->grid[d]) % l->grid[d];
    return (place[2] * l->grid[1] + place[1]) * l->grid[0] + place[0];
}

static void find_place(Lj *l)
{
    double edge = cbrt(4 / l->setup.density);
    for (int d = 0; d < 3; d++)
        l->box[d] = edge * l->setup.cells[d];
    choose_grid(l);
    l->at[0] = l->rank % l->grid[0];
    l->at[1] = l->rank / l->grid[0] % l->grid[1];
    l->at[2] = l->rank / l->grid[0] / l->grid[1];
    for (int d = 0; d < 3; d++) {
        int beside[3] = {l->at[0], l->at[1], l->at[2]};
        /* The same expression on both sides of a boundary: every atom is on one of them. */
        l->low[d] = l->box[d] * l->at[d] / l->grid[d];
        l->high[d] = l->box[d] * (l->at[d] + 1) / l->grid[d];
        beside[d] = l->at[d] - 1;
        l->below[d] = rank_at(l, beside);
        beside[d] = l->at[d] + 1;
        l->above[d] = rank_at(l, beside);
    }
}

/* Atoms that fit a rank with its ghosts: by the volume, half as many again, and the same on all ranks. */
static int capacity_of(const Lj *l)
{
    double volume = 1;
    for (int d = 0; d < 3; d++)
        volume *= l->box[d] / l->grid[d] + 2 * l->reach;
    return (int)(1.5 * l->setup.density * volume) + 256;
}

void lj_open(Lj *l, MPI_Comm comm, const LjSetup *setup)
{
    memset(l, 0, sizeof *l);
    l->setup = *setup;
    l->comm = comm;
    l->reach = setup->cutoff + setup->skin;
    MPI_Comm_rank(comm, &l->rank);
    MPI_Comm_size(comm, &l->size);
    find_place(l);
    l->capacity = capacity_of(l);
    size_t triples = sizeof(double) * 3 * (size_t)l->capacity;
    arena_open(&l->arena, comm, setup->ranks_per_node, 4 * (triples + 64) + sizeof(Board) + 64);
    l->board = arena_take(&l->arena, sizeof(Board));
    l->x = arena_take(&l->arena, triples);
    l->f = arena_take(&l->arena, triples);
    l->send = arena_take(&l->arena, triples);
    l->receive = arena_take(&l->arena, triples);
    l->v = malloc(triples);
    l->id = malloc(sizeof(int64_t) * (size_t)l->capacity);
    l->neighbor_start = malloc(sizeof(int) * (size_t)(l->capacity + 1));
    l->bin_next = malloc(sizeof(int) * (size_t)l->capacity);
    if (!l->v || !l->id || !l->neighbor_start || !l->bin_next)
        fail("no memory for %d atoms", l->capacity);
    for (int i = 0; i < lj_most_swaps; i++) {
        l->swaps[i].list = malloc(sizeof(int) * (size_t)l->capacity);
        if (!l->swaps[i].list)
            fail("no memory for %d atoms", l->capacity);
    }
    opi_open(&l->opi);
}

void lj_close(Lj *l)
{
    opi_close(&l->opi);
    arena_close(&l->arena);
    for (int i = 0; i < lj_most_swaps; i++)
        free(l->swaps[i].list);
    free(l->v);
    free(l->id);
    free(l->neighbor_start);
    free(l->neighbors);
    free(l->bin_head);
    free(l->bin_next);
}

static double raw_velocity(int64_t id, int d) { return unit_interval((uint64_t)(3 * id + d)) - 0.5; }

/* What makes the momentum zero and the temperature right: sums over all atoms in one order, the same on every rank. */
static void velocity_scale(const Lj *l, double mean[3], double *scale)
{
    int64_t n = lj_atoms(l);
    double squares = 0;
    for (int d = 0; d < 3; d++) {
        mean[d] = 0;
        for (int64_t id = 0; id < n; id++)
            mean[d] += raw_velocity(id, d);
        mean[d] /= (double)n;
    }
    for (int64_t id = 0; id < n; id++)
        for (int d = 0; d < 3; d++) {
            double v = raw_velocity(id, d) - mean[d];
            squares += v * v;
        }
    *scale = sqrt(3 * (double)(n - 1) * l->setup.temperature / squares);
}

static void place_atoms(Lj *l)
{
    static const double corner[4][3] = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
    double edge = cbrt(4 / l->setup.density), mean[3], scale;
    const int *cells = l->setup.cells;
    velocity_scale(l, mean, &scale);
    l->owned = l->ghosts = 0;
    for (int64_t id = 0; id < lj_atoms(l); id++) {
        int64_t cell = id / 4;
        int64_t index[3] = {cell % cells[0], cell / cells[0] % cells[1], cell / cells[0] / cells[1]};
        double at[3];
        bool mine = true;
        for (int d = 0; d < 3; d++) {
            at[d] = ((double)index[d] + corner[id % 4][d]) * edge;
            mine = mine && at[d] >= l->low[d] && at[d] < l->high[d];
        }
        if (!mine)
            continue;
        if (l->owned == l->capacity)
            fail("more than %d atoms on a rank", l->capacity);
        for (int d = 0; d < 3; d++) {
            l->x[3 * l->owned + d] = at[d];
            l->v[3 * l->owned + d] = (raw_velocity(id, d) - mean[d]) * scale;
        }
        l->id[l->owned++] = id;
    }
}

void lj_begin(Lj *l)
{
    MPI_Barrier(l->comm); /* nobody reads the old atoms any more */
    place_atoms(l);
    l->communication_s = l->force_s = l->rebuild_s = 0;
    l->census = (Census){0};
    lj_migrate_atoms(l);
    lj_find_borders(l);
    lj_find_neighbors(l);
}
