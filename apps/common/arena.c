#include "common/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The call itself, not the C library's function: a sanitizer would look at the address before the kernel does. */
bool arena_can_read(const void *address, uint64_t *word)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    bool there = syscall(SYS_write, ends[1], address, sizeof *word) == (long)sizeof *word && read(ends[0], word, sizeof *word) == sizeof *word;
    close(ends[0]);
    close(ends[1]);
    return there;
}

static bool holds(const void *address, uint64_t stamp)
{
    uint64_t seen;
    return arena_can_read(address, &seen) && seen == stamp;
}

static uint64_t stamp_of(int node_rank) { return mix(0xa4e4a00u + (uint64_t)node_rank); }

/* Blocks of MPI_Alloc_mem, if all can read each other's at their addresses. */
static bool by_alloc_mem(Arena *a)
{
    char *mine = NULL;
    MPI_Aint address;
    MPI_Aint *all = malloc(sizeof(MPI_Aint) * (size_t)a->node_size);
    if (MPI_Alloc_mem((MPI_Aint)a->bytes, MPI_INFO_NULL, &mine) != MPI_SUCCESS || !all)
        fail("no memory for %zu bytes", a->bytes);
    memset(mine, 0, a->bytes);
    uint64_t stamp = stamp_of(a->node_rank);
    memcpy(mine, &stamp, sizeof stamp);
    address = (MPI_Aint)mine;
    MPI_Allgather(&address, 1, MPI_AINT, all, 1, MPI_AINT, a->node);
    int good = 1, good_for_all;
    for (int i = 0; i < a->node_size; i++) {
        a->piece[i] = (char *)all[i];
        good = good && holds(a->piece[i], stamp_of(i));
    }
    MPI_Allreduce(&good, &good_for_all, 1, MPI_INT, MPI_MIN, a->node); /* and nobody reads a stamp any more */
    memset(mine, 0, sizeof stamp);
    if (!good_for_all)
        MPI_Free_mem(mine);
    free(all);
    return good_for_all != 0;
}

static bool by_window(Arena *a)
{
    void *mine, *at;
    MPI_Aint size;
    int unit;
    MPI_Comm_set_errhandler(a->node, MPI_ERRORS_RETURN);
    int code = MPI_Win_allocate_shared((MPI_Aint)a->bytes, 1, MPI_INFO_NULL, a->node, &mine, &a->window);
    MPI_Comm_set_errhandler(a->node, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS) {
        a->window = MPI_WIN_NULL;
        return false;
    }
    for (int i = 0; i < a->node_size; i++) {
        MPI_Win_shared_query(a->window, i, &size, &unit, &at);
        a->piece[i] = at;
    }
    memset(a->piece[a->node_rank], 0, a->bytes);
    return true;
}

static void find_node(Arena *a, int ranks_per_node)
{
    int rank, size;
    MPI_Comm real;
    MPI_Group all, here;
    MPI_Comm_rank(a->comm, &rank);
    MPI_Comm_size(a->comm, &size);
    MPI_Comm_split_type(a->comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &real);
    MPI_Comm_split(real, ranks_per_node > 0 ? rank / ranks_per_node : 0, rank, &a->node);
    MPI_Comm_free(&real);
    MPI_Comm_rank(a->node, &a->node_rank);
    MPI_Comm_size(a->node, &a->node_size);
    a->node_rank_of = malloc(sizeof(int) * (size_t)size * 2);
    a->piece = calloc((size_t)a->node_size, sizeof *a->piece);
    if (!a->node_rank_of || !a->piece)
        fail("no memory for a table of %d ranks", size);
    int *ranks = a->node_rank_of + size;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    MPI_Comm_group(a->comm, &all);
    MPI_Comm_group(a->node, &here);
    MPI_Group_translate_ranks(all, size, ranks, here, a->node_rank_of);
    MPI_Group_free(&all);
    MPI_Group_free(&here);
}

void arena_open(Arena *a, MPI_Comm comm, int ranks_per_node, size_t bytes)
{
    *a = (Arena){.comm = comm, .bytes = bytes < 4096 ? 4096 : bytes, .window = MPI_WIN_NULL};
    find_node(a, ranks_per_node);
    a->same_address = by_alloc_mem(a);
    a->shared = a->same_address || by_window(a);
    if (!a->shared) {
        memset(a->piece, 0, sizeof *a->piece * (size_t)a->node_size);
        a->piece[a->node_rank] = aligned_alloc(64, (a->bytes + 63) / 64 * 64);
        if (!a->piece[a->node_rank])
            fail("no memory for %zu bytes", a->bytes);
        memset(a->piece[a->node_rank], 0, a->bytes);
    }
    MPI_Barrier(a->node);
}

void arena_close(Arena *a)
{
    MPI_Barrier(a->node);
    if (a->window != MPI_WIN_NULL)
        MPI_Win_free(&a->window);
    else if (a->shared)
        MPI_Free_mem(a->piece[a->node_rank]);
    else
        free(a->piece[a->node_rank]);
    free(a->piece);
    free(a->node_rank_of);
    MPI_Comm_free(&a->node);
}

void *arena_take(Arena *a, size_t bytes)
{
    size_t at = a->used;
    a->used += (bytes + 63) / 64 * 64;
    if (a->used > a->bytes)
        fail("the shared piece has %zu bytes, and %zu are needed", a->bytes, a->used);
    return a->piece[a->node_rank] + at;
}
