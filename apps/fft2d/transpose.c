#include "fft2d/fft2d.h"

#include <stdlib.h>
#include <string.h>

enum { tag = 5, tile = 8 };

/* A block of `edge` rows and columns: to[y][x] = from[x][y]. In tiles, because one of the two is always read or written by columns. */
static void turn(Complex *to, int to_width, const Complex *from, int from_width, int edge)
{
    for (int x0 = 0; x0 < edge; x0 += tile)
        for (int y0 = 0; y0 < edge; y0 += tile)
            for (int x = x0; x < edge && x < x0 + tile; x++)
                for (int y = y0; y < edge && y < y0 + tile; y++)
                    to[(size_t)y * to_width + x] = from[(size_t)x * from_width + y];
}

/* The columns of `peer`, row by row. */
static void pack(const Transpose *t, Complex *block, const Complex *in, int peer)
{
    for (int x = 0; x < t->rows; x++)
        memcpy(block + (size_t)x * t->rows, in + (size_t)x * t->n + (size_t)peer * t->rows, sizeof(Complex) * (size_t)t->rows);
}

static void unpack(const Transpose *t, Complex *out, const Complex *block, int peer)
{
    turn(out + (size_t)peer * t->rows, t->n, block, t->rows, t->rows);
}

static size_t block_size(const Transpose *t) { return (size_t)t->rows * t->rows; }
static int numbers(const Transpose *t) { return 2 * t->rows * t->rows; }
static Complex *block_of(const Transpose *t, Complex *blocks, int peer) { return blocks + block_size(t) * peer; }

/* Ranks begin at different partners, so that not all read from the same one. */
static int partner(const Transpose *t, int step) { return (t->rank + step) % t->ranks; }

/* Whether the exchange with `peer` is by memory, in a form that uses memory. */
static bool by_memory(const Transpose *t, int peer)
{
    return t->arena->shared && t->arena->node_rank_of[peer] != MPI_UNDEFINED;
}

/* To and from all partners, or those alone that memory does not reach. */
static void by_messages(Transpose *t, const Complex *in, Complex *out, bool all)
{
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, step);
        t->receives[step] = t->sends[step] = MPI_REQUEST_NULL;
        if (all || !by_memory(t, peer))
            MPI_Irecv(block_of(t, t->receive, peer), numbers(t), MPI_DOUBLE, peer, tag, t->comm, &t->receives[step]);
    }
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, step);
        if (!all && by_memory(t, peer))
            continue;
        pack(t, block_of(t, t->send, peer), in, peer);
        MPI_Isend(block_of(t, t->send, peer), numbers(t), MPI_DOUBLE, peer, tag, t->comm, &t->sends[step]);
    }
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, step);
        if (!all && by_memory(t, peer))
            continue;
        MPI_Wait(&t->receives[step], MPI_STATUS_IGNORE);
        unpack(t, out, block_of(t, t->receive, peer), peer);
    }
    MPI_Waitall(t->ranks - 1, t->sends + 1, MPI_STATUSES_IGNORE);
}

/* A buffer for each partner, handed over; the partner frees it when it has read it. */
static void by_ownership(Transpose *t, const Complex *in, Complex *out)
{
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, step);
        void *block;
        opi_alloc(&t->opi, &block, sizeof(Complex) * block_size(t));
        pack(t, block, in, peer);
        opi_igive(&t->opi, &block, numbers(t), MPI_DOUBLE, peer, tag, t->comm, &t->sends[step]);
    }
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, t->ranks - step);
        void *block;
        opi_take(&t->opi, &block, numbers(t), MPI_DOUBLE, peer, tag, t->comm);
        unpack(t, out, block, peer);
        opi_free(&t->opi, &block);
    }
    opi_wait(&t->opi, t->ranks - 1, t->sends + 1);
}

static int64_t arrive(Transpose *t) { return weft_counter_add(t->turn, 1); }

/* Until that partner has arrived as often as this rank had before `mine`, and once more. */
static void await(Transpose *t, int peer, int64_t mine)
{
    weft_counter_wait_gt(arena_of(t->arena, t->arena->node_rank_of[peer], t->turn), mine);
}

void transpose_meet(Transpose *t)
{
    int64_t mine = arrive(t);
    for (int i = 0; i < t->arena->node_size && t->arena->shared; i++)
        weft_counter_wait_gt(arena_of(t->arena, i, t->turn), mine);
}

/* Stage 1: blocks are packed as for messages, and read by the partner where they are. */
static void by_shared_blocks(Transpose *t, const Complex *in, Complex *out)
{
    for (int step = 1; step < t->ranks; step++)
        if (by_memory(t, partner(t, step)))
            pack(t, block_of(t, t->send, partner(t, step)), in, partner(t, step));
    int64_t packed = arrive(t);
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, step);
        if (!by_memory(t, peer))
            continue;
        await(t, peer, packed);
        Complex *theirs = arena_of(t->arena, t->arena->node_rank_of[peer], t->send);
        unpack(t, out, block_of(t, theirs, t->rank), peer);
    }
    by_messages(t, in, out, false);
    int64_t unpacked = arrive(t); /* before the own blocks are packed again, all must have read them */
    for (int step = 1; step < t->ranks; step++)
        if (by_memory(t, partner(t, step)))
            await(t, partner(t, step), unpacked);
}

/* Stage 2: packing and unpacking in one loop, from the partner's matrix into the own one. There is one meeting: whoever arrives at
 * the next transposition has read all it needs of this one's `in`, and `out` is the own matrix, which nobody reads before. */
static void fused(Transpose *t, const Complex *in, Complex *out)
{
    int64_t ready = arrive(t);
    for (int step = 1; step < t->ranks; step++) {
        int peer = partner(t, step);
        if (!by_memory(t, peer))
            continue;
        await(t, peer, ready);
        const Complex *theirs = arena_of(t->arena, t->arena->node_rank_of[peer], in);
        turn(out + (size_t)peer * t->rows, t->n, theirs + (size_t)t->rank * t->rows, t->n, t->rows);
    }
    by_messages(t, in, out, false);
}

void transpose(Transpose *t, Form form, const Complex *in, Complex *out)
{
    if (form >= form_shared && !t->arena->shared)
        fail("the form %s needs memory that the ranks of a node share, and this library gives none here", form_names[form]);
    turn(out + (size_t)t->rank * t->rows, t->n, in + (size_t)t->rank * t->rows, t->n, t->rows);
    if (form == form_mpi)
        by_messages(t, in, out, true);
    else if (form == form_opi)
        by_ownership(t, in, out);
    else if (form == form_shared)
        by_shared_blocks(t, in, out);
    else
        fused(t, in, out);
}

size_t transpose_bytes(int n, int ranks)
{
    return sizeof(weft_counter) + sizeof(Complex) * (size_t)n * (size_t)(n / ranks) + 64;
}

void transpose_open(Transpose *t, Arena *arena, MPI_Comm comm, int n)
{
    *t = (Transpose){.comm = comm, .n = n, .arena = arena};
    MPI_Comm_rank(comm, &t->rank);
    MPI_Comm_size(comm, &t->ranks);
    t->rows = n / t->ranks;
    if (t->rows * t->ranks != n)
        fail("%d rows cannot be shared out to %d ranks evenly", n, t->ranks);
    t->turn = arena_take(arena, sizeof *t->turn);
    t->send = arena_take(arena, sizeof(Complex) * block_size(t) * (size_t)t->ranks);
    t->receive = malloc(sizeof(Complex) * block_size(t) * (size_t)t->ranks);
    t->sends = malloc(sizeof(MPI_Request) * (size_t)t->ranks * 2);
    if (!t->receive || !t->sends)
        fail("no memory for blocks of %d by %d", t->rows, t->rows);
    t->receives = t->sends + t->ranks;
    opi_open(&t->opi);
}

void transpose_close(Transpose *t)
{
    opi_close(&t->opi);
    free(t->receive);
    free(t->sends);
}
