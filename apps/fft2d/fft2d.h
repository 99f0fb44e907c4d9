/* A two-dimensional FFT over ranks, n by n complex numbers, n a power of two: each rank holds n / ranks rows. Rows are transformed,
 * the matrix is transposed, rows are transformed, and it is transposed back; the transposition is an exchange of blocks of each
 * rank with each, and the part that the four forms do differently. The transforms are unitary, so that four of them give the
 * input again. One thread per rank; no globals. */
#ifndef WEFT_FFT2D_H
#define WEFT_FFT2D_H

#include <weft_signal.h>

#include "common/arena.h"
#include "common/opi.h"

typedef struct Complex {
    double re, im;
} Complex;

/* ---- one row (fft.c) */

typedef struct Plan {
    int n;
    int *reversed;     /* where each index goes */
    Complex *turns;    /* n / 2 of them, the roots of unity */
    double scale;      /* 1 / sqrt(n) */
} Plan;

void plan_open(Plan *p, int n);
void plan_close(Plan *p);
void transform(const Plan *p, Complex *row);
/* The whole matrix by one rank, in the same order of operations: equal to the bit. `scratch` has n * n elements, too. */
void serial_fft2d(const Plan *p, Complex *matrix, Complex *scratch);

/* ---- the exchange (transpose.c) */

typedef struct Transpose {
    MPI_Comm comm;
    int n, ranks, rank, rows; /* rows = n / ranks: also the edge of a block */
    Arena *arena;
    Opi opi;
    weft_counter *turn;       /* in the arena: how often this rank has come to meet its node */
    Complex *send;            /* in the arena: one packed block for each rank */
    Complex *receive;         /* one block from each rank */
    MPI_Request *sends, *receives;
} Transpose;

/* Bytes of the arena that one takes. */
size_t transpose_bytes(int n, int ranks);
void transpose_open(Transpose *t, Arena *arena, MPI_Comm comm, int n);
void transpose_close(Transpose *t);
/* Returns when all ranks of the node have come: nobody reads this rank's matrices any more. */
void transpose_meet(Transpose *t);
/* out = in transposed. Both lie in the arena, and differ. What may be changed on return: `in` after the next transpose(). */
void transpose(Transpose *t, Form form, const Complex *in, Complex *out);

/* ---- all of it (run.c) */

typedef struct Fft2d {
    Plan plan;
    Arena arena;
    Transpose transpose;
    Complex *a, *b;           /* own rows, and those of the transposed matrix; in the arena */
    double communication_s;   /* of the transpositions since it was last set to 0 */
} Fft2d;

void fft2d_open(Fft2d *f, MPI_Comm comm, int n, int ranks_per_node);
void fft2d_close(Fft2d *f);
/* Element (row, column) of the input. */
Complex fft2d_input(int row, int column);
void fft2d_fill(Fft2d *f);
/* One forward transform of `a` in place. */
void fft2d_forward(Fft2d *f, Form form);
/* Checks `a` after fft2d_fill() and one transform: equal to the bit to the serial one, and in a few places close to the sum that
 * defines it. Ends the job otherwise. */
void fft2d_check_once(Fft2d *f, const char *form);
/* Checks `a` after fft2d_fill() and a multiple of four transforms: close to the input. */
void fft2d_check_returned(Fft2d *f, const char *form, long transforms);
/* The same bits, as a number, over all ranks. */
uint64_t fft2d_digest(const Fft2d *f);

#endif
