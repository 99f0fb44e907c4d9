/* Conjugate gradients on the mass matrix of a spectral-element mesh, the model problem of Nek5000 in "Why is MPI so slow?": B u = f on the
 * unit cube, a brick of elements for each rank, all of one order. B is the consistent mass matrix: values on the Gauss-Lobatto-
 * Legendre (GLL) points are interpolated to M Gauss points in each direction, weighted, and brought back by the transposed
 * interpolation.
 *
 * Vectors hold all points of each element, so a point that several elements share is there several times. sem_assemble adds the copies up
 * over faces, edges and vertices, by messages to up to 26 neighbours. Runs on any communicator, MPI_COMM_SELF for the serial
 * one. No globals; each rank is one thread. */
#ifndef WEFT_SEM_H
#define WEFT_SEM_H

#include "common/app.h"

enum { sem_most_points = 32, sem_directions = 27, sem_here = 13 };

/* One direction of an element: n GLL points, m Gauss points on [-1, 1]. */
typedef struct Basis {
    int n, m;
    double gll[sem_most_points], weight[sem_most_points];
    double to_gauss[sem_most_points * sem_most_points]; /* m rows of n */
    double to_gll[sem_most_points * sem_most_points];   /* its transpose: n rows of m */
} Basis;

typedef struct SemSetup {
    int order;      /* N: N + 1 points in each direction */
    int gauss;      /* M */
    int grid[3];    /* ranks along x, y, z */
    int brick[3];   /* elements of a rank along x, y, z */
} SemSetup;

typedef struct Sem {
    SemSetup setup;
    Basis basis;
    MPI_Comm comm;
    int rank, size, at[3];
    int elements;              /* of this rank */
    size_t length;             /* of its vectors */
    int width[3];              /* points of the brick along each dimension, shared ones once */
    int peer[sem_directions];  /* MPI_PROC_NULL outside the cube */
    int *surface, surface_points; /* where in the brick the points of its six sides lie */
    double *own, *sum;         /* the brick's points: this rank's part, and with the neighbours' */
    double *send[sem_directions], *receive[sem_directions];
    double *share;             /* one over the number of copies of a point */
    double *scratch[2];        /* of one element, between contractions */
    double *f, *u, *r, *p, *q; /* right side, solution, and what the iteration needs */
} Sem;

void sem_basis(Basis *b, int order, int gauss);                /* basis.c */
void sem_apply_mass(const Sem *s, const double *u, double *q); /* B of each element by itself; operator.c */

/* The number of ranks in comm is that of setup->grid. Collective, as is all that follows. */
void sem_open(Sem *s, MPI_Comm comm, const SemSetup *setup);   /* mesh.c */
void sem_close(Sem *s);
/* Every copy of a point becomes the sum of all its copies. Ranks add in one order: the copies of a point agree to the bit. */
void sem_assemble(Sem *s, double *u);
/* Whether the neighbours have the same bits of the vector that was assembled last. */
bool sem_copies_agree(Sem *s);
/* Where in the whole cube a point is: its index along x, y, z. `i` is its place in a vector. */
void sem_place(const Sem *s, size_t i, int64_t at[3]);
double sem_coordinate(const Sem *s, int d, int64_t index);

double sem_dot(const Sem *s, const double *a, const double *b); /* solve.c; each point once */
/* Solves B u = f from u = 0. Stops after so many iterations or when the residual is below `tolerance` times f; returns how many. */
int sem_solve(Sem *s, int iterations, double tolerance);

#endif
