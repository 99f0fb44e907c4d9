/* weft_opi.h: scatter, gather and all-to-all by ownership passing, made of weft.h's OPI_* calls; or of opi_on_mpi.h's, if that was
   included before. Each block is a buffer of its own, so whoever gets one frees it, and nobody waits for all. A rank's own block stays
   where it is. For intracommunicators; all members call, with the same `count` and `datatype`, in the same order as their other calls
   with this tag. Errors are those of the calls they are made of; then some blocks may have been given away, and those are NULL.

   opi_scatter(blocks, ...)   at the root blocks[i] is rank i's, and all become NULL; *mine is this rank's at every rank
   opi_gather(mine, ...)      *mine is this rank's block and becomes NULL; at the root blocks[i] is the one that came from rank i
   opi_alltoall(blocks, ...)  blocks[i] is for rank i, and becomes the one that came from rank i */
#ifndef WEFT_OPI_H_INCLUDED
#define WEFT_OPI_H_INCLUDED

#ifndef OPI_ON_MPI_H_INCLUDED
#include <weft.h>
#endif
#include <stdlib.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define WEFT_OPI static inline __attribute__((unused))

/* What the calls below need of a communicator, and a request for each member's give. */
struct weft_opi_team {
    MPI_Comm comm;
    int me, members, tag;
    MPI_Request *gives;
};

WEFT_OPI int weft_opi_begin(struct weft_opi_team *t, int tag, MPI_Comm comm)
{
    t->comm = comm;
    t->tag = tag;
    t->gives = NULL;
    int err = MPI_Comm_rank(comm, &t->me);
    if (err == MPI_SUCCESS)
        err = MPI_Comm_size(comm, &t->members);
    if (err != MPI_SUCCESS)
        return err;
    t->gives = (MPI_Request *)malloc((size_t)t->members * sizeof(MPI_Request));
    for (int i = 0; t->gives && i < t->members; i++)
        t->gives[i] = MPI_REQUEST_NULL;
    return t->gives ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Gives each block but this rank's own; each rank begins with another one. */
WEFT_OPI int weft_opi_give_all(struct weft_opi_team *t, void **blocks, int count, MPI_Datatype datatype)
{
    int err = MPI_SUCCESS;
    for (int step = 1; step < t->members && err == MPI_SUCCESS; step++) {
        int to = (t->me + step) % t->members;
        err = OPI_Igive(&blocks[to], count, datatype, to, t->tag, t->comm, &t->gives[to]);
    }
    return err;
}

/* Takes each block but this rank's own, in the order in which they are given. */
WEFT_OPI int weft_opi_take_all(struct weft_opi_team *t, void **blocks, int count, MPI_Datatype datatype)
{
    int err = MPI_SUCCESS;
    for (int step = 1; step < t->members && err == MPI_SUCCESS; step++) {
        int from = (t->me - step + t->members) % t->members;
        err = OPI_Take(&blocks[from], count, datatype, from, t->tag, t->comm, MPI_STATUS_IGNORE);
    }
    return err;
}

/* Waits for the gives, whatever happened before; the first error counts. */
WEFT_OPI int weft_opi_end(struct weft_opi_team *t, int err)
{
    int late = t->gives ? MPI_Waitall(t->members, t->gives, MPI_STATUSES_IGNORE) : MPI_SUCCESS;
    free(t->gives);
    return err != MPI_SUCCESS ? err : late;
}

WEFT_OPI int opi_scatter(void **blocks, int count, MPI_Datatype datatype, int root, int tag, MPI_Comm comm, void **mine)
{
    struct weft_opi_team t;
    int err = weft_opi_begin(&t, tag, comm);
    if (err == MPI_SUCCESS && t.me != root)
        err = OPI_Take(mine, count, datatype, root, tag, comm, MPI_STATUS_IGNORE);
    if (err == MPI_SUCCESS && t.me == root) {
        *mine = blocks[root];
        blocks[root] = NULL;
        err = weft_opi_give_all(&t, blocks, count, datatype);
    }
    return weft_opi_end(&t, err);
}

WEFT_OPI int opi_gather(void **mine, int count, MPI_Datatype datatype, int root, int tag, MPI_Comm comm, void **blocks)
{
    struct weft_opi_team t;
    int err = weft_opi_begin(&t, tag, comm);
    if (err == MPI_SUCCESS && t.me != root)
        err = OPI_Give(mine, count, datatype, root, tag, comm);
    if (err == MPI_SUCCESS && t.me == root) {
        blocks[root] = *mine;
        *mine = NULL;
        err = weft_opi_take_all(&t, blocks, count, datatype);
    }
    return weft_opi_end(&t, err);
}

WEFT_OPI int opi_alltoall(void **blocks, int count, MPI_Datatype datatype, int tag, MPI_Comm comm)
{
    struct weft_opi_team t;
    int err = weft_opi_begin(&t, tag, comm);
    if (err == MPI_SUCCESS)
        err = weft_opi_give_all(&t, blocks, count, datatype);
    if (err == MPI_SUCCESS)
        err = weft_opi_take_all(&t, blocks, count, datatype);
    return weft_opi_end(&t, err);
}

#if defined(__cplusplus)
}
#endif

#endif
