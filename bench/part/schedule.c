#include "schedule.h"

#include <math.h>
#include <stdlib.h>

const Corner corner_of[corners] = {{1, 1, 1000}, {-1, 1, 2000}, {-1, -1, 3000}, {1, -1, 4000}};

uint64_t sweep_step(const Sweep *sweep, uint64_t iteration, int pass, int corner, int block)
{
    return ((iteration * passes + (uint64_t)pass) * corners + (uint64_t)corner) * (uint64_t)sweep->blocks + (uint64_t)block;
}

double draw_of_noise(const void *context, int rank, int thread, uint64_t step)
{
    return compute_time(context, rank, thread, step, NULL);
}

typedef struct Clock {
    const Sweep *sweep;
    Draw *draw;
    const void *context;
    double *done;   /* when a rank has done its last corner */
    double *block;  /* when a rank has done a block of this corner */
    double *thread; /* when a thread of the rank at hand is free */
} Clock;

/* One rank's share of a corner; the neighbours it waits for have done theirs. */
static void advance(const Clock *t, int x, int y, const Corner *corner, uint64_t first_step)
{
    const Sweep *s = t->sweep;
    int rank = x + y * s->px, from_x = x - corner->dx, from_y = y - corner->dy;
    for (int i = 0; i < s->threads; i++)
        t->thread[i] = t->done[rank];
    for (int k = 0; k < s->blocks; k++) {
        int i = k % s->threads;
        double begin = t->thread[i];
        if (from_x >= 0 && from_x < s->px)
            begin = fmax(begin, t->block[(rank - corner->dx) * s->blocks + k]);
        if (from_y >= 0 && from_y < s->py)
            begin = fmax(begin, t->block[(rank - corner->dy * s->px) * s->blocks + k]);
        t->thread[i] = begin + t->draw(t->context, rank, i, first_step + (uint64_t)k);
        t->block[rank * s->blocks + k] = t->thread[i];
    }
    for (int i = 0; i < s->threads; i++)
        t->done[rank] = fmax(t->done[rank], t->thread[i]);
}

double ideal_sweep(const Sweep *s, Draw *draw, const void *context, uint64_t iteration)
{
    int ranks = s->px * s->py;
    Clock t = {s, draw, context, calloc((size_t)ranks, sizeof(double)),
               calloc((size_t)(ranks * s->blocks), sizeof(double)), calloc((size_t)s->threads, sizeof(double))};
    double longest = 0;
    if (!t.done || !t.block || !t.thread)
        abort();
    for (int turn = 0; turn < passes * corners; turn++) {
        const Corner *corner = &corner_of[turn % corners];
        uint64_t first = sweep_step(s, iteration, turn / corners, turn % corners, 0);
        for (int i = 0; i < ranks; i++) {
            int x = corner->dx > 0 ? i % s->px : s->px - 1 - i % s->px;
            int y = corner->dy > 0 ? i / s->px : s->py - 1 - i / s->px;
            advance(&t, x, y, corner, first);
        }
    }
    for (int rank = 0; rank < ranks; rank++)
        longest = fmax(longest, t.done[rank]);
    free(t.done);
    free(t.block);
    free(t.thread);
    return longest;
}

double longest_compute(int ranks, int threads, Draw *draw, const void *context, uint64_t step)
{
    double longest = 0;
    for (int rank = 0; rank < ranks; rank++)
        for (int thread = 0; thread < threads; thread++)
            longest = fmax(longest, draw(context, rank, thread, step));
    return longest;
}
