/* How long a pattern would take if communication took no time: computed from the same draws, so that what the
 * measurement takes longer is communication (and jitter, which the calibration tells). No MPI, no state. */
#ifndef WEFT_PART_SCHEDULE_H
#define WEFT_PART_SCHEDULE_H

#include "noise.h"

enum { passes = 2, corners = 4 };

/* The sweep's four corners in order: which way x and y go, and the tag of its messages. Ranks are numbered x first. */
typedef struct Corner {
    int dx, dy, tag;
} Corner;
extern const Corner corner_of[corners];

typedef struct Sweep {
    int px, py;     /* the grid of processes */
    int threads;    /* block k is computed by thread k mod threads */
    int blocks;     /* blocks in a corner */
} Sweep;

/* The number of a block's draw. */
uint64_t sweep_step(const Sweep *sweep, uint64_t iteration, int pass, int corner, int block);

/* Seconds that this thread of this rank computes in this step. */
typedef double Draw(const void *context, int rank, int thread, uint64_t step);
Draw draw_of_noise; /* the context is a Noise */

/* Seconds from a common begin until the last rank has done all corners of both passes. A thread takes its blocks in
 * order, a block needs the same block of both neighbours it comes from, and a corner begins when the rank has done
 * the one before. */
double ideal_sweep(const Sweep *sweep, Draw *draw, const void *context, uint64_t iteration);

/* The longest time that any thread of any rank computes in this step. */
double longest_compute(int ranks, int threads, Draw *draw, const void *context, uint64_t step);

#endif
