/* Sweep3D: wavefronts over a grid of processes, from each of its four corners, twice. A corner is cut into blocks
 * along the third dimension; each needs the same block of two neighbours, computes, and goes on to the two others.
 * One thread takes the blocks in order, or each thread takes every T-th with calls of its own, or by partitions of
 * persistent messages.
 * Every block is written by its sender and checked by its receiver, both within the compute time. Each block has a
 * tag of its own, so that no thread can take another's. */
#include "pattern.h"
#include "schedule.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { to_x, to_y, axes };

typedef struct Grid {
    Part *p;
    Sweep sweep;
    size_t block;                         /* bytes of one block to one neighbour */
    char *in[corners][axes], *out[corners][axes];
    int from[corners][axes], to[corners][axes];
    MPI_Request requests[4 * corners];    /* partitioned: all receives and sends of a pass, without gaps */
    MPI_Request *receive[corners][axes], *send[corners][axes]; /* null where there is no neighbour */
    int count;
} Grid;

static uint64_t stamp_of(const Grid *g, uint64_t step, int rank, int axis)
{
    double u[2];
    draw_pair(g->p->s.seed + 0xb10c, rank, axis, step, u);
    return (uint64_t)(u[0] * 0x1p62);
}

static int neighbour(const Grid *g, int x, int y)
{
    return x < 0 || y < 0 || x >= g->sweep.px || y >= g->sweep.py ? MPI_PROC_NULL : x + y * g->sweep.px;
}

static void connect_corner(Grid *g, int c)
{
    const Corner *corner = &corner_of[c];
    int x = g->p->w.rank % g->sweep.px, y = g->p->w.rank / g->sweep.px, blocks = g->sweep.blocks;
    size_t whole = g->block * (size_t)blocks;
    g->from[c][to_x] = neighbour(g, x - corner->dx, y);
    g->to[c][to_x] = neighbour(g, x + corner->dx, y);
    g->from[c][to_y] = neighbour(g, x, y - corner->dy);
    g->to[c][to_y] = neighbour(g, x, y + corner->dy);
    for (int axis = 0; axis < axes; axis++) {
        g->in[c][axis] = new_buffer(whole);
        g->out[c][axis] = new_buffer(whole);
        if (g->p->s.style != style_partitioned)
            continue;
        if (g->from[c][axis] != MPI_PROC_NULL) {
            g->receive[c][axis] = &g->requests[g->count++];
            precv_init(g->in[c][axis], blocks, whole, g->from[c][axis], corner->tag, g->receive[c][axis]);
        }
        if (g->to[c][axis] != MPI_PROC_NULL) {
            g->send[c][axis] = &g->requests[g->count++];
            psend_init(g->out[c][axis], blocks, whole, g->to[c][axis], corner->tag, g->send[c][axis]);
        }
    }
}

static void end_grid(Grid *g)
{
    for (int i = 0; i < g->count; i++)
        MPI_Request_free(&g->requests[i]);
    for (int c = 0; c < corners; c++) {
        for (int axis = 0; axis < axes; axis++) {
            free(g->in[c][axis]);
            free(g->out[c][axis]);
        }
    }
}

static void receive_block(Grid *g, int c, int k, int axis)
{
    if (g->from[c][axis] == MPI_PROC_NULL)
        return;
    if (g->p->s.style == style_partitioned)
        await_partition(g->p, *g->receive[c][axis], k);
    else
        MPI_Recv(g->in[c][axis] + (size_t)k * g->block, (int)g->block, MPI_BYTE, g->from[c][axis], corner_of[c].tag + k,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Returns the bytes that left. */
static size_t send_block(Grid *g, int c, int k, int axis)
{
    if (g->to[c][axis] == MPI_PROC_NULL)
        return 0;
    if (g->p->s.style == style_partitioned)
        MPI_Pready(k, *g->send[c][axis]);
    else
        MPI_Send(g->out[c][axis] + (size_t)k * g->block, (int)g->block, MPI_BYTE, g->to[c][axis], corner_of[c].tag + k,
                 MPI_COMM_WORLD);
    return g->block;
}

/* Checks what came, writes what goes, and fills the rest of the time. */
static void compute_block(Grid *g, int c, int k, uint64_t step, double deadline)
{
    for (int axis = 0; axis < axes; axis++) {
        size_t at = (size_t)k * g->block;
        if (g->from[c][axis] != MPI_PROC_NULL)
            verify(g->in[c][axis] + at, g->block, stamp_of(g, step, g->from[c][axis], axis), "a block of the sweep");
        if (g->to[c][axis] != MPI_PROC_NULL)
            rewrite(g->out[c][axis] + at, g->block, stamp_of(g, step, g->p->w.rank, axis));
    }
    compute_until(g->p, deadline);
}

static size_t run_corner(Grid *g, uint64_t iteration, int pass, int c)
{
    size_t sent = 0;
#pragma omp parallel for num_threads(g->sweep.threads) schedule(static, 1) reduction(+ : sent)
    for (int k = 0; k < g->sweep.blocks; k++) {
        uint64_t step = sweep_step(&g->sweep, iteration, pass, c, k);
        for (int axis = 0; axis < axes; axis++)
            receive_block(g, c, k, axis);
        compute_block(g, c, k, step, now_s() + thread_compute(g->p, omp_get_thread_num(), step));
        for (int axis = 0; axis < axes; axis++)
            sent += send_block(g, c, k, axis);
    }
    return sent;
}

/* Returns the bytes this rank sent. */
static size_t run_iteration(Grid *g, uint64_t iteration)
{
    size_t sent = 0;
    for (int pass = 0; pass < passes; pass++) {
        if (g->count)
            MPI_Startall(g->count, g->requests);
        for (int c = 0; c < corners; c++)
            sent += run_corner(g, iteration, pass, c);
        if (g->count)
            MPI_Waitall(g->count, g->requests, MPI_STATUSES_IGNORE);
    }
    return sent;
}

static Sweep shape_of(const Part *p)
{
    const Settings *s = &p->s;
    bool fewer = s->artifact_volume && s->style == style_single; /* there: 128 planes by 16; with threads 1024 by 64 */
    Sweep sweep = {.px = s->grid[0], .py = s->grid[1], .threads = s->style == style_single ? 1 : s->threads,
                   .blocks = fewer ? s->blocks / 2 : s->blocks};
    if (sweep.px * sweep.py != p->w.size)
        fail("a grid of %d x %d does not hold %d ranks: say --grid", sweep.px, sweep.py, p->w.size);
    return sweep;
}

static Grid new_grid(Part *p, size_t bytes)
{
    const Settings *s = &p->s;
    Grid g = {.p = p, .sweep = shape_of(p)};
    bool whole = s->artifact_volume && s->style != style_partitioned; /* there each block is a whole message */
    if (bytes % (size_t)s->blocks)
        fail("%zu bytes cannot be cut into %d blocks: change --message-size or --blocks", bytes, s->blocks);
    g.block = whole ? bytes : bytes / (size_t)s->blocks;
    return g;
}

int run_sweep3d(Part *p)
{
    const Settings *s = &p->s;
    double *time = new_samples(s->iterations), *ideal = new_samples(s->iterations);
    for (size_t bytes = p->w.opt.lo_bytes; bytes <= p->w.opt.hi_bytes; bytes *= 2) {
        Grid g = new_grid(p, bytes);
        /* With each neighbour every corner either sends or receives. */
        Volume volume = {.with_neighbour = passes * corners * g.block * (size_t)g.sweep.blocks, .nominal = 2 * bytes};
        for (int c = 0; c < corners; c++)
            connect_corner(&g, c);
        for (int i = 0; i < s->warmup + s->iterations; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = now_s();
            volume.sent = run_iteration(&g, (uint64_t)i);
            double took = now_s() - begin;
            pattern_sample(p, i - s->warmup, took, ideal_sweep(&g.sweep, draw_of_noise, &p->noise, (uint64_t)i), time, ideal);
        }
        pattern_report(p, bytes, &volume, time, ideal);
        end_grid(&g);
    }
    free(time);
    free(ideal);
    return 0;
}
