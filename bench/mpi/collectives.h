/* The collective operations that weft-bench can call: their buffers, their calls in three forms, and the check of every byte
 * of their results. Included by coll.c, collectives.c and main.c only. No locks: each rank is one thread. */
#ifndef WEFT_BENCH_COLLECTIVES_H
#define WEFT_BENCH_COLLECTIVES_H

#include "bench.h"

typedef enum Form { blocking, nonblocking, persistent } Form;

/* Who sends what to whom; the root is always rank 0. */
typedef enum Kind { nothing, broadcast, gathering, scattering, exchanging, neighbouring, reducing, dividing, prefixing } Kind;
enum { to_all = 1, uneven = 2, exclusive = 4 };

/* One operation at one size on one communicator. `bytes` is one rank's block, or the whole vector of a broadcast, reduction or
 * scan. A vector (v, w) or divided operation has blocks of 1.5 and 0.5 times that, in turn. */
typedef struct Job {
    MPI_Comm comm;
    int rank, size;
    size_t bytes, unit;       /* unit: of counts and displacements, in bytes: 1, or 8 for doubles */
    int count;                /* of one block or vector */
    int *counts, *displs;     /* of all blocks; `blocks` of each */
    int blocks;
    int neighbours[4];        /* of neighbouring: below and above in both dimensions */
    MPI_Datatype *types;
    char *out, *in;           /* a broadcast has `in` alone */
    uint64_t round;           /* how often `out` was filled; in step on all ranks */
    MPI_Request request;      /* of the nonblocking and persistent forms */
} Job;

typedef struct Operation {
    const char *name;
    void (*now)(Job *), (*start)(Job *), (*init)(Job *);
    Kind kind;
    int flags;
} Operation;

extern const Operation operations[];
extern const int operation_count;

Job new_job(const World *w, const Operation *op, Form form, size_t bytes);
void end_job(Job *j, Form form);
/* New contents in every byte that this rank gives. */
void fill(Job *j, const Operation *op);
/* Every byte that this rank has got; fails where one is wrong. `spoil` turns a bit over before, where this rank gets any. */
void check(Job *j, const Operation *op, bool spoil);

static inline void call(Job *j, const Operation *op, Form form)
{
    if (form == blocking) {
        op->now(j);
        return;
    }
    if (form == nonblocking)
        op->start(j);
    else
        MPI_Start(&j->request);
    MPI_Wait(&j->request, MPI_STATUS_IGNORE);
}

#endif
