/* Memory that the ranks of a node share, one piece for each, all of the same shape: what the forms without messages need.
 *
 * On a library whose MPI_Alloc_mem gives every rank memory at one address for all (Weft), a piece is such a block, and a pointer
 * means the same in each rank. Elsewhere a piece belongs to a shared window, which each process may map at another address. Pieces are
 * filled in the same order by every rank, so that arena_of() finds a partner's twin of an array without asking. */
#ifndef WEFT_ARENA_H
#define WEFT_ARENA_H

#include "common/app.h"

typedef struct Arena {
    MPI_Comm comm, node;      /* of all, and of those on this node */
    int node_rank, node_size;
    int *node_rank_of;        /* by rank in comm; MPI_UNDEFINED on another node */
    bool shared;              /* false: this node's ranks cannot share memory here, and only the own piece exists */
    bool same_address;
    size_t bytes, used;
    char **piece;             /* by node rank: where it lies in this process */
    MPI_Win window;           /* MPI_WIN_NULL where MPI_Alloc_mem was used */
} Arena;

/* Collective over comm, the same `bytes` everywhere. With ranks_per_node > 0 runs of so many ranks are taken for nodes, so that
 * paths between nodes can be tested on one. The memory is zero. */
void arena_open(Arena *a, MPI_Comm comm, int ranks_per_node, size_t bytes);
void arena_close(Arena *a);
/* The next `bytes` of the own piece, at a cache line. Every rank asks for the same sizes in the same order. */
void *arena_take(Arena *a, size_t bytes);
/* A node rank's twin of what arena_take() gave here. */
static inline void *arena_of(const Arena *a, int node_rank, const void *mine)
{
    return a->piece[node_rank] + ((const char *)mine - a->piece[a->node_rank]);
}

/* Reads a word at an address that may be of nothing: the kernel looks, and then says so. */
bool arena_can_read(const void *address, uint64_t *word);

#endif
