/* What the two patterns report: the time of an iteration, from a barrier to the end of the last rank, beside the time
 * that the same draws of compute time would take without communication. Called by the main threads of all ranks,
 * together. */
#ifndef WEFT_PART_PATTERN_H
#define WEFT_PART_PATTERN_H

#include "part.h"

enum { max_iterations = 10000 };

/* Bytes of one iteration, with a neighbour in both directions. `nominal` is what the public artifact calls them,
 * whatever moves. */
typedef struct Volume {
    size_t with_neighbour, nominal;
    size_t sent; /* by this rank, to all its neighbours, counted as they left */
} Volume;

/* Notes one iteration; slots below 0 are warm-up. */
void pattern_sample(const Part *p, int slot, double took_s, double ideal_s, double *time_us, double *ideal_us);
void pattern_report(const Part *p, size_t bytes, const Volume *volume, const double *time_us, const double *ideal_us);

#endif
