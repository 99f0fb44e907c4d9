/* What the applications share beyond bench.h (clock, report, buffers): a start with options, and a way to end with the difference
 * when a result is wrong. Plain C11 on mpi.h. No locks: each rank is one thread, and nothing here is global. */
#ifndef WEFT_APP_H
#define WEFT_APP_H

#include "bench.h"

/* How neighbours exchange: by messages; by handing buffers over; by writing into each other's buffers, with signals; by one loop
 * that reads here and writes there, without buffers. */
typedef enum Form { form_mpi, form_opi, form_shared, form_fused, form_count } Form;
extern const char *const form_names[form_count];

typedef struct Flag {
    const char *name; /* "--steps" */
    enum { flag_int, flag_double, flag_text, flag_sizes, flag_set } kind;
    void *to;         /* int, double, const char *, World (its sizes) or bool */
    const char *what; /* one line for the help */
} Flag;

/* Starts MPI, reads the options (these, and -r, -t, --cpus, --no-pin, --json of bench.h), pins, prints the header. Ends the
 * program on a wrong option (2) or -h (0). Ranks: at least that many. */
void app_start(World *w, int *argc, char ***argv, const char *about, const Flag *flags, int ranks);
void app_end(void);

/* Which of the forms to run: `text` is a name, several with commas, or "all". */
void parse_forms(const char *text, bool on[form_count]);

/* Checks that end the job with status 1 and the difference. */
void expect_close(const char *what, double got, double want, double tolerance); /* relative to |want|, absolute below 1 */
void expect_same(const char *what, uint64_t got, uint64_t want);

/* Of all ranks, on all ranks. */
double mean_over(MPI_Comm comm, double value);
double greatest_of(MPI_Comm comm, double value);

/* A well-mixed 64-bit number; the programs' data come from it, so that every rank can compute what another must have sent. */
uint64_t mix(uint64_t word);
static inline double unit_interval(uint64_t word) { return (double)(mix(word) >> 11) * 0x1p-53; } /* [0, 1) */

/* Reads every word of a buffer; the programs use it as the consumer of a message. Bytes behind the last word count, too. */
uint64_t sum_of(const void *buffer, size_t bytes);
/* What sum_of gives for a buffer that rewrite() of bench.h filled with this stamp. */
uint64_t sum_of_rewritten(size_t bytes, uint64_t stamp);

#endif
