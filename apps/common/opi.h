/* Ownership passing for programs that run on any library: weft.h's OPI_* functions where the library has them, the same by MPI
 * calls where it has not. Then a give is a send after which the buffer returns to a pool of this rank, and a take fills a
 * buffer from that pool: the most recently freed one that is large enough, as weft.h's do.
 *
 * Whether the library has them is asked at run time, so one binary serves all. One thread per rank. */
#ifndef WEFT_APP_OPI_H
#define WEFT_APP_OPI_H

#include "common/app.h"

enum { opi_pool_limit = 64, opi_most_given = 512 };

typedef struct OpiBlock {
    struct OpiBlock *next;
    size_t capacity; /* of what follows it */
} OpiBlock;

typedef struct Opi {
    int (*alloc)(void **ptr, size_t bytes); /* null: the library has no OPI_* functions */
    int (*release)(void **ptr);
    int (*give)(void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm);
    int (*igive)(void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request);
    int (*take)(void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Status *status);
    OpiBlock *pool; /* most recently freed first */
    int pooled;
    void *given[opi_most_given]; /* sends under way */
    int given_count;
} Opi;

void opi_open(Opi *o);
void opi_close(Opi *o);
void opi_alloc(Opi *o, void **ptr, size_t bytes);
void opi_free(Opi *o, void **ptr);
/* The buffer is no longer the caller's; *ptr becomes null. */
void opi_give(Opi *o, void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm);
void opi_igive(Opi *o, void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm, MPI_Request *request);
void opi_take(Opi *o, void **ptr, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm);
/* Completes all gives since the last call: `requests` are those of them all. */
void opi_wait(Opi *o, int count, MPI_Request *requests);

#endif
