/* Halo3D: every rank of a grid of processes computes, then exchanges a face with each of up to six neighbours. One
 * thread does all; or the rank is a cube of threads, and each one that touches a face exchanges its piece of it with
 * the thread on the other side, by messages of its own or as a partition of the face's persistent message.
 * Pieces are written within the compute time and checked after the iteration's time has been taken. */
#include "pattern.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

enum { dimensions = 3, faces = 6 }; /* face 2 d looks down dimension d, face 2 d + 1 up */

typedef struct Cube {
    Part *p;
    int side;              /* threads along each edge */
    int threads, pieces;   /* in all; on a face */
    size_t piece, face;    /* bytes: of one piece, of a whole face as it travels */
    int neighbour[faces];
    char *in[faces], *out[faces];
    MPI_Request requests[2 * faces]; /* partitioned */
    MPI_Request *send[faces];        /* null where there is no neighbour */
    int count;
} Cube;

static uint64_t stamp_of(const Cube *c, uint64_t iteration, int rank, int face, int piece)
{
    double u[2];
    draw_pair(c->p->s.seed + 0xface, rank, face * 4096 + piece, iteration, u);
    return (uint64_t)(u[0] * 0x1p62);
}

/* The thread's piece of a face, or -1 where it does not touch it. */
static int piece_of(const Cube *c, int thread, int face)
{
    int at[dimensions] = {thread % c->side, thread / c->side % c->side, thread / (c->side * c->side)};
    int along = face / 2, edge = face % 2 ? c->side - 1 : 0;
    if (at[along] != edge || c->neighbour[face] == MPI_PROC_NULL)
        return -1;
    return at[along == 0] + c->side * at[along == 2 ? 1 : 2];
}

static int tag_of(int face, int piece)
{
    static const int tags[dimensions] = {1000, 2000, 4000};
    return tags[face / 2] + piece;
}

static void find_neighbours(Cube *c)
{
    const int *grid = c->p->s.grid, rank = c->p->w.rank;
    int at[dimensions] = {rank % grid[0], rank / grid[0] % grid[1], rank / (grid[0] * grid[1])};
    for (int face = 0, stride = 1; face < faces; face++) {
        int d = face / 2, next = at[d] + (face % 2 ? 1 : -1);
        c->neighbour[face] = next < 0 || next >= grid[d] ? MPI_PROC_NULL : rank + (face % 2 ? stride : -stride);
        stride *= face % 2 ? grid[d] : 1;
    }
}

static Cube new_cube(Part *p, size_t bytes)
{
    const Settings *s = &p->s;
    Cube c = {.p = p, .side = 1, .threads = s->style == style_single ? 1 : s->threads};
    int edge = (int)sqrt((double)bytes / (double)(8 * s->vars));
    while (c.side * c.side * c.side < c.threads)
        c.side++;
    if (c.side * c.side * c.side != c.threads)
        fail("%d threads are no cube: take 1, 8, 27 or 64", c.threads);
    if (s->grid[0] * s->grid[1] * s->grid[2] != p->w.size)
        fail("a grid of %d x %d x %d does not hold %d ranks: say --grid", s->grid[0], s->grid[1], s->grid[2], p->w.size);
    c.pieces = c.side * c.side;
    /* The artifact divides a face by all threads, though only those on the face send. */
    bool less = s->artifact_volume && s->style == style_multiple;
    c.piece = (size_t)edge * (size_t)edge * (size_t)s->vars / (size_t)(less ? c.threads : c.pieces) * 8;
    c.face = c.piece * (size_t)c.pieces;
    if (!c.piece)
        fail("%zu bytes give a face of %d x %d cells, too few for %d threads", bytes, edge, edge, c.pieces);
    find_neighbours(&c);
    for (int face = 0; face < faces; face++) {
        c.in[face] = new_buffer(c.face);
        c.out[face] = new_buffer(c.face);
    }
    return c;
}

static void make_partitioned(Cube *c)
{
    for (int face = 0; face < faces; face++) {
        if (c->neighbour[face] == MPI_PROC_NULL)
            continue;
        precv_init(c->in[face], c->pieces, c->face, c->neighbour[face], tag_of(face, 0), &c->requests[c->count++]);
        c->send[face] = &c->requests[c->count++];
        psend_init(c->out[face], c->pieces, c->face, c->neighbour[face], tag_of(face, 0), c->send[face]);
    }
}

static void end_cube(Cube *c)
{
    for (int i = 0; i < c->count; i++)
        MPI_Request_free(&c->requests[i]);
    for (int face = 0; face < faces; face++) {
        free(c->in[face]);
        free(c->out[face]);
    }
}

/* The thread's messages, all in flight at once. Returns the bytes it sent. */
static size_t exchange_pieces(Cube *c, int thread)
{
    MPI_Request requests[2 * faces];
    size_t sent = 0;
    int count = 0;
    for (int face = 0; face < faces; face++) {
        int piece = piece_of(c, thread, face);
        if (piece < 0)
            continue;
        size_t at = (size_t)piece * c->piece;
        MPI_Irecv(c->in[face] + at, (int)c->piece, MPI_BYTE, c->neighbour[face], tag_of(face, piece), MPI_COMM_WORLD,
                  &requests[count++]);
        MPI_Isend(c->out[face] + at, (int)c->piece, MPI_BYTE, c->neighbour[face], tag_of(face, piece), MPI_COMM_WORLD,
                  &requests[count++]);
        sent += c->piece;
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    return sent;
}

static size_t mark_pieces(Cube *c, int thread)
{
    size_t sent = 0;
    for (int face = 0; face < faces; face++) {
        int piece = piece_of(c, thread, face);
        if (piece < 0)
            continue;
        MPI_Pready(piece, *c->send[face]);
        sent += c->piece;
    }
    return sent;
}

static void write_pieces(Cube *c, int thread, uint64_t iteration)
{
    for (int face = 0; face < faces; face++) {
        int piece = piece_of(c, thread, face);
        if (piece >= 0)
            rewrite(c->out[face] + (size_t)piece * c->piece, c->piece, stamp_of(c, iteration, c->p->w.rank, face, piece));
    }
}

static size_t run_iteration(Cube *c, uint64_t iteration)
{
    bool partitioned = c->p->s.style == style_partitioned;
    size_t sent = 0;
    if (c->count)
        MPI_Startall(c->count, c->requests);
    double start = now_s();
#pragma omp parallel num_threads(c->threads) reduction(+ : sent)
    {
        int thread = omp_get_thread_num();
        write_pieces(c, thread, iteration);
        compute_until(c->p, start + thread_compute(c->p, thread, iteration));
        sent = partitioned ? mark_pieces(c, thread) : exchange_pieces(c, thread);
    }
    if (c->count)
        MPI_Waitall(c->count, c->requests, MPI_STATUSES_IGNORE);
    return sent;
}

static void check_faces(Cube *c, uint64_t iteration)
{
    for (int face = 0; face < faces; face++) {
        for (int piece = 0; c->neighbour[face] != MPI_PROC_NULL && piece < c->pieces; piece++)
            verify(c->in[face] + (size_t)piece * c->piece, c->piece,
                   stamp_of(c, iteration, c->neighbour[face], face ^ 1, piece), "a piece of a face");
        memset(c->in[face], 0, c->face);
    }
}

int run_halo3d(Part *p)
{
    const Settings *s = &p->s;
    double *time = new_samples(s->iterations), *ideal = new_samples(s->iterations);
    for (size_t bytes = p->w.opt.lo_bytes; bytes <= p->w.opt.hi_bytes; bytes *= 4) {
        Cube c = new_cube(p, bytes);
        Volume volume = {.with_neighbour = 2 * c.face, .nominal = 2 * bytes};
        if (s->style == style_partitioned)
            make_partitioned(&c);
        for (int i = 0; i < s->warmup + s->iterations; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = now_s();
            volume.sent = run_iteration(&c, (uint64_t)i);
            double took = now_s() - begin;
            check_faces(&c, (uint64_t)i);
            pattern_sample(p, i - s->warmup, took,
                           longest_compute(p->w.size, c.threads, draw_of_noise, &p->noise, (uint64_t)i), time, ideal);
        }
        pattern_report(p, bytes, &volume, time, ideal);
        end_cube(&c);
    }
    free(time);
    free(ideal);
    return 0;
}
