/* Compute times with noise, drawn from a counter: a draw depends on (seed, rank, thread, step) alone, so threads
 * share no state, any rank can repeat another's draws, and the same seed gives the same run. No MPI, no locks; any
 * thread. */
#ifndef WEFT_PART_NOISE_H
#define WEFT_PART_NOISE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum NoiseModel { noise_single, noise_uniform, noise_gaussian } NoiseModel;

typedef struct Noise {
    NoiseModel model;
    double compute_s; /* c, the compute time without noise */
    double share;     /* q: the noise as a share of c; 0.04 for 4 % */
    uint64_t seed;
} Noise;

/* Philox4x32 with ten rounds (Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC '11). */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* Two independent numbers of [0, 1) for this rank, thread and step. */
void draw_pair(uint64_t seed, int rank, int thread, uint64_t step, double out[2]);

/* Seconds that this thread computes in this step.
 *   single:   c + c q in thread 0, c in all others
 *
 *   uniform:  from c to c + c q, in every thread
 *
 *   gaussian: mean c, standard deviation c q; a negative draw becomes 0 and sets *clamped (never cleared; may be null) */
double compute_time(const Noise *noise, int rank, int thread, uint64_t step, bool *clamped);

#endif
