/* weft-halo: the exchange of a three-dimensional stencil with all 26 neighbours, as LULESH makes it: six faces, twelve edges, eight corners,
 * three numbers for each cell, nonblocking. Ranks form a periodic grid, so that two ranks have all 26 neighbours as well (some of
 * them twice, told apart by their tags). Every ghost is checked. Forms: mpi, opi, and fused, which reads the neighbour's cells
 * themselves. Any number of ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_signal.h>

#include "common/arena.h"
#include "common/opi.h"

enum { directions = 27, here = 13, fields = 3, tag = 10 };

typedef struct Halo {
    const World *w;
    MPI_Comm comm;             /* Cartesian, periodic */
    int n, width;              /* cells of a rank along each dimension, without and with ghosts */
    int grid[3], at[3];
    int peer[directions];
    Arena arena;
    Opi opi;
    double *cells;             /* width^3 times fields; in the arena */
    weft_counter *turn;        /* in the arena */
    double *send[directions], *receive[directions];
    MPI_Request requests[2 * directions];
    int64_t step;
} Halo;

static int offset(int direction, int d) { return direction / (d == 0 ? 1 : d == 1 ? 3 : 9) % 3 - 1; }
static int opposite(int direction) { return directions - 1 - direction; }

/* The cells along dimension d that go in a direction, or the ghosts that come from there: [first, first + count). */
static int first_of(const Halo *h, int direction, int d, bool ghosts)
{
    int o = offset(direction, d);
    return o == 0 ? 1 : ghosts ? (o < 0 ? 0 : h->n + 1) : (o < 0 ? 1 : h->n);
}
static int count_of(const Halo *h, int direction, int d) { return offset(direction, d) ? 1 : h->n; }
static int numbers(const Halo *h, int direction)
{
    return fields * count_of(h, direction, 0) * count_of(h, direction, 1) * count_of(h, direction, 2);
}

static double *cell(const Halo *h, double *cells, int x, int y, int z)
{
    return cells + fields * (((size_t)z * (size_t)h->width + (size_t)y) * (size_t)h->width + (size_t)x);
}

/* Row by row between a buffer and this side of the box. */
static void pack(const Halo *h, int direction, double *buffer)
{
    size_t row = sizeof(double) * fields * (size_t)count_of(h, direction, 0);
    int x = first_of(h, direction, 0, false), y = first_of(h, direction, 1, false), z = first_of(h, direction, 2, false);
    for (int k = 0; k < count_of(h, direction, 2); k++)
        for (int j = 0; j < count_of(h, direction, 1); j++, buffer += row / sizeof(double))
            memcpy(buffer, cell(h, h->cells, x, y + j, z + k), row);
}

static void unpack(const Halo *h, int direction, const double *buffer)
{
    size_t row = sizeof(double) * fields * (size_t)count_of(h, direction, 0);
    int x = first_of(h, direction, 0, true), y = first_of(h, direction, 1, true), z = first_of(h, direction, 2, true);
    for (int k = 0; k < count_of(h, direction, 2); k++)
        for (int j = 0; j < count_of(h, direction, 1); j++, buffer += row / sizeof(double))
            memcpy(cell(h, h->cells, x, y + j, z + k), buffer, row);
}

/* Both in one: from the neighbour's cells to the own ghosts. */
static void copy_from(const Halo *h, int direction, double *theirs)
{
    size_t row = sizeof(double) * fields * (size_t)count_of(h, direction, 0);
    int back = opposite(direction);
    for (int k = 0; k < count_of(h, direction, 2); k++)
        for (int j = 0; j < count_of(h, direction, 1); j++)
            memcpy(cell(h, h->cells, first_of(h, direction, 0, true), first_of(h, direction, 1, true) + j, first_of(h, direction, 2, true) + k),
                   cell(h, theirs, first_of(h, back, 0, false), first_of(h, back, 1, false) + j, first_of(h, back, 2, false) + k), row);
}

/* ---- the forms */

static void by_messages(Halo *h)
{
    for (int i = 0; i < directions; i++)
        if (i != here)
            MPI_Irecv(h->receive[i], numbers(h, i), MPI_DOUBLE, h->peer[i], tag + opposite(i), h->comm, &h->requests[i]);
    for (int i = 0; i < directions; i++)
        if (i != here) {
            pack(h, i, h->send[i]);
            MPI_Isend(h->send[i], numbers(h, i), MPI_DOUBLE, h->peer[i], tag + i, h->comm, &h->requests[directions + i]);
        }
    MPI_Waitall(2 * directions, h->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < directions; i++)
        if (i != here)
            unpack(h, i, h->receive[i]);
}

static void by_ownership(Halo *h)
{
    void *buffer;
    for (int i = 0; i < directions; i++)
        if (i != here) {
            opi_alloc(&h->opi, &buffer, sizeof(double) * (size_t)numbers(h, i));
            pack(h, i, buffer);
            opi_igive(&h->opi, &buffer, numbers(h, i), MPI_DOUBLE, h->peer[i], tag + i, h->comm, &h->requests[i]);
        }
    for (int i = 0; i < directions; i++)
        if (i != here) {
            opi_take(&h->opi, &buffer, numbers(h, i), MPI_DOUBLE, h->peer[i], tag + opposite(i), h->comm);
            unpack(h, i, buffer);
            opi_free(&h->opi, &buffer);
        }
    opi_wait(&h->opi, directions, h->requests);
}

static void meet_node(Halo *h)
{
    int64_t before = weft_counter_add(h->turn, 1);
    for (int i = 0; i < h->arena.node_size; i++)
        weft_counter_wait_gt(arena_of(&h->arena, i, h->turn), before);
}

/* Between two meetings all read: nobody changes the cells next to a side before its neighbours have them. */
static void by_fused_loops(Halo *h)
{
    meet_node(h);
    for (int i = 0; i < directions; i++)
        if (i != here)
            copy_from(h, i, arena_of(&h->arena, h->arena.node_rank_of[h->peer[i]], h->cells));
    meet_node(h);
}

static void exchange(Halo *h, Form form)
{
    if (form == form_mpi)
        by_messages(h);
    else if (form == form_opi)
        by_ownership(h);
    else
        by_fused_loops(h);
}

/* ---- data: what a cell holds at the start, by its place in the whole box, and one more with each step */

static double start_of(const Halo *h, int x, int y, int z, int field)
{
    int64_t at[3] = {x - 1, y - 1, z - 1}, place = 0;
    for (int d = 2; d >= 0; d--) {
        int64_t extent = (int64_t)h->n * h->grid[d];
        place = place * extent + ((int64_t)h->at[d] * h->n + at[d] + extent) % extent;
    }
    return (double)(mix((uint64_t)(place * fields + field)) % 1000003);
}

static void fill(Halo *h)
{
    memset(h->cells, 0, sizeof(double) * fields * (size_t)h->width * h->width * h->width);
    for (int z = 1; z <= h->n; z++)
        for (int y = 1; y <= h->n; y++)
            for (int x = 1; x <= h->n; x++)
                for (int f = 0; f < fields; f++)
                    cell(h, h->cells, x, y, z)[f] = start_of(h, x, y, z, f);
    h->step = 0;
    MPI_Barrier(h->comm);
}

static void compute(Halo *h)
{
    h->step++;
    for (int z = 1; z <= h->n; z++)
        for (int y = 1; y <= h->n; y++) {
            double *row = cell(h, h->cells, 1, y, z);
            for (int i = 0; i < fields * h->n; i++)
                row[i] += 1;
        }
}

static void check(const Halo *h, const char *form)
{
    for (int z = 0; z < h->width; z++)
        for (int y = 0; y < h->width; y++)
            for (int x = 0; x < h->width; x++)
                for (int f = 0; f < fields; f++) {
                    double got = cell(h, h->cells, x, y, z)[f], want = start_of(h, x, y, z, f) + (double)h->step;
                    if (got != want)
                        fail("halo %s: cell (%d, %d, %d), field %d, after step %lld: %.17g instead of %.17g", form, x, y, z, f,
                             (long long)h->step, got, want);
                }
}

static void open_halo(Halo *h, const World *w, int n)
{
    static const int periodic[3] = {1, 1, 1};
    *h = (Halo){.w = w, .n = n, .width = n + 2};
    MPI_Dims_create(w->size, 3, h->grid);
    MPI_Cart_create(MPI_COMM_WORLD, 3, h->grid, periodic, 0, &h->comm);
    MPI_Cart_coords(h->comm, w->rank, 3, h->at);
    size_t bytes = sizeof(double) * fields * (size_t)h->width * h->width * h->width;
    arena_open(&h->arena, h->comm, 0, bytes + sizeof(weft_counter) + 64);
    h->turn = arena_take(&h->arena, sizeof(weft_counter));
    h->cells = arena_take(&h->arena, bytes);
    opi_open(&h->opi);
    for (int i = 0; i < directions; i++) {
        int to[3] = {h->at[0] + offset(i, 0), h->at[1] + offset(i, 1), h->at[2] + offset(i, 2)};
        MPI_Cart_rank(h->comm, to, &h->peer[i]);
        h->requests[i] = h->requests[directions + i] = MPI_REQUEST_NULL;
        h->send[i] = new_buffer(sizeof(double) * (size_t)numbers(h, i));
        h->receive[i] = new_buffer(sizeof(double) * (size_t)numbers(h, i));
    }
}

static void close_halo(Halo *h)
{
    for (int i = 0; i < directions; i++) {
        free(h->send[i]);
        free(h->receive[i]);
    }
    opi_close(&h->opi);
    arena_close(&h->arena);
    MPI_Comm_free(&h->comm);
}

/* Microseconds of an exchange; the cells are checked after the first and the last. */
static double measure(Halo *h, Form form, int64_t steps)
{
    double took = 0;
    fill(h);
    for (int64_t i = 0; i < steps; i++) {
        compute(h);
        double start = now_s();
        exchange(h, form);
        took += now_s() - start;
        if (i == 0)
            check(h, form_names[form]);
    }
    check(h, form_names[form]);
    MPI_Barrier(h->comm);
    return greatest_of(h->comm, took) / (double)steps * 1e6;
}

static bool can_fuse(const Halo *h)
{
    int size;
    MPI_Comm_size(h->comm, &size);
    return h->arena.shared && h->arena.node_size == size;
}

static void measure_all(const World *w, Halo *h, const bool on[form_count])
{
    static double samples[form_count][max_samples], lines[max_samples + 1];
    int64_t steps[form_count] = {0};
    for (int form = 0; form < form_count; form++)
        if (on[form] && form != form_shared && (form != form_fused || can_fuse(h)))
            steps[form] = agree(w, 1 + (int64_t)(w->opt.window_ms * 1e3 / measure(h, form, 10)));
    lines[0] = line_ns(w);
    for (int rep = 0; rep < w->opt.reps; rep++) {
        for (int i = 0; i < form_count; i++) {
            int form = (i + rep) % form_count;
            if (steps[form])
                samples[form][rep] = measure(h, form, steps[form]);
        }
        lines[rep + 1] = line_ns(w);
    }
    for (int form = 0; form < form_count; form++)
        if (steps[form])
            report(w, form_names[form], sizeof(double) * (size_t)numbers(h, 4), "us", samples[form], w->opt.reps, lines);
}

int main(int argc, char **argv)
{
    static World w;
    static Halo h;
    int n = 15;
    const char *forms = "all";
    bool on[form_count];
    const Flag flags[] = {
        {"--n", flag_int, &n, "cells of a rank along each edge (15)"},
        {"--form", flag_text, &forms, "mpi, opi, fused, several with commas, or all (all)"},
        {0}};
    w.opt.window_ms = 10;
    app_start(&w, &argc, &argv, "weft-halo: a stencil's exchange with 26 neighbours", flags, 1);
    if (n < 1 || n > 512)
        fail("--n is 1 to 512");
    parse_forms(forms, on);
    if (strcmp(forms, "all") != 0 && on[form_shared])
        fail("halo has no form shared: it is mpi, opi or fused");
    open_halo(&h, &w, n);
    if (strcmp(forms, "all") != 0 && on[form_fused] && !can_fuse(&h))
        fail("the form fused needs memory that all ranks share");
    measure_all(&w, &h, on);
    close_halo(&h);
    app_end();
    return 0;
}
