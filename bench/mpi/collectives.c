#include "collectives.h"

#include <stdlib.h>
#include <string.h>

/* Each call in its three forms. */
#define FORMS(name, Name, ...)                                                                                              \
    static void name##_now(Job *j) { MPI_##Name(__VA_ARGS__, j->comm); }                                                    \
    static void name##_start(Job *j) { MPI_I##name(__VA_ARGS__, j->comm, &j->request); }                                    \
    static void name##_init(Job *j) { MPI_##Name##_init(__VA_ARGS__, j->comm, MPI_INFO_NULL, &j->request); }

static void barrier_now(Job *j) { MPI_Barrier(j->comm); }
static void barrier_start(Job *j) { MPI_Ibarrier(j->comm, &j->request); }
static void barrier_init(Job *j) { MPI_Barrier_init(j->comm, MPI_INFO_NULL, &j->request); }
static void none_now(Job *j) { (void)j; }

FORMS(bcast, Bcast, j->in, j->count, MPI_BYTE, 0)
FORMS(reduce, Reduce, j->out, j->in, j->count, MPI_DOUBLE, MPI_SUM, 0)
FORMS(allreduce, Allreduce, j->out, j->in, j->count, MPI_DOUBLE, MPI_SUM)
FORMS(gather, Gather, j->out, j->count, MPI_BYTE, j->in, j->count, MPI_BYTE, 0)
FORMS(gatherv, Gatherv, j->out, j->counts[j->rank], MPI_BYTE, j->in, j->counts, j->displs, MPI_BYTE, 0)
FORMS(scatter, Scatter, j->out, j->count, MPI_BYTE, j->in, j->count, MPI_BYTE, 0)
FORMS(scatterv, Scatterv, j->out, j->counts, j->displs, MPI_BYTE, j->in, j->counts[j->rank], MPI_BYTE, 0)
FORMS(allgather, Allgather, j->out, j->count, MPI_BYTE, j->in, j->count, MPI_BYTE)
FORMS(allgatherv, Allgatherv, j->out, j->counts[j->rank], MPI_BYTE, j->in, j->counts, j->displs, MPI_BYTE)
FORMS(alltoall, Alltoall, j->out, j->count, MPI_BYTE, j->in, j->count, MPI_BYTE)
FORMS(alltoallv, Alltoallv, j->out, j->counts, j->displs, MPI_BYTE, j->in, j->counts, j->displs, MPI_BYTE)
FORMS(alltoallw, Alltoallw, j->out, j->counts, j->displs, j->types, j->in, j->counts, j->displs, j->types)
FORMS(reduce_scatter, Reduce_scatter, j->out, j->in, j->counts, MPI_DOUBLE, MPI_SUM)
FORMS(reduce_scatter_block, Reduce_scatter_block, j->out, j->in, j->count, MPI_DOUBLE, MPI_SUM)
FORMS(scan, Scan, j->out, j->in, j->count, MPI_DOUBLE, MPI_SUM)
FORMS(exscan, Exscan, j->out, j->in, j->count, MPI_DOUBLE, MPI_SUM)
FORMS(neighbor_alltoall, Neighbor_alltoall, j->out, j->count, MPI_BYTE, j->in, j->count, MPI_BYTE)

#define OPERATION(name, kind, flags) {#name, name##_now, name##_start, name##_init, kind, flags}
const Operation operations[] = {
    {"none", none_now, NULL, NULL, nothing, 0},
    OPERATION(barrier, nothing, 0),
    OPERATION(bcast, broadcast, 0),
    OPERATION(reduce, reducing, 0),
    OPERATION(allreduce, reducing, to_all),
    OPERATION(gather, gathering, 0),
    OPERATION(gatherv, gathering, uneven),
    OPERATION(scatter, scattering, 0),
    OPERATION(scatterv, scattering, uneven),
    OPERATION(allgather, gathering, to_all),
    OPERATION(allgatherv, gathering, to_all | uneven),
    OPERATION(alltoall, exchanging, 0),
    OPERATION(alltoallv, exchanging, uneven),
    OPERATION(alltoallw, exchanging, uneven),
    OPERATION(reduce_scatter, dividing, uneven),
    OPERATION(reduce_scatter_block, dividing, 0),
    OPERATION(scan, prefixing, 0),
    OPERATION(exscan, prefixing, exclusive),
    OPERATION(neighbor_alltoall, neighbouring, 0),
};
const int operation_count = sizeof operations / sizeof operations[0];

static bool of_doubles(Kind kind) { return kind == reducing || kind == dividing || kind == prefixing; }

static bool gets(const Job *j, const Operation *op)
{
    if (op->kind == nothing)
        return false;
    if (op->kind == gathering || op->kind == reducing)
        return (op->flags & to_all) || j->rank == 0;
    return !(op->flags & exclusive) || j->rank > 0;
}

static size_t place(const Job *j, int block) { return (size_t)j->displs[block] * j->unit; }
static size_t length(const Job *j, int block) { return (size_t)j->counts[block] * j->unit; }
static size_t all_blocks(const Job *j) { return place(j, j->blocks - 1) + length(j, j->blocks - 1); }

/* No two words that ranks give to each other are equal, nor those of two rounds. */
static uint64_t stamp(const Job *j, int from, int to)
{
    return (uint64_t)(from * 1024 + to + 1) << 44 | (j->round & 0xfffff) << 24;
}

/* Small whole numbers, whose sums are exact in every order. */
static double term(const Job *j, size_t i) { return (double)((i + j->round) % 61 + 1); }

static void lay_out_blocks(Job *j, const Operation *op)
{
    int shift = op->kind == exchanging ? j->rank : 0; /* what one sends is what the other receives */
    j->blocks = op->kind == neighbouring ? 4 : j->size;
    j->counts = calloc((size_t)j->blocks, sizeof(int));
    j->displs = calloc((size_t)j->blocks, sizeof(int));
    j->types = calloc((size_t)j->blocks, sizeof(MPI_Datatype));
    if (!j->counts || !j->displs || !j->types)
        fail("no memory for %d counts", j->blocks);
    for (int i = 0; i < j->blocks; i++) {
        bool small = (i + shift) % 2;
        j->counts[i] = !(op->flags & uneven) ? j->count : small ? j->count / 2 : j->count + (j->count + 1) / 2;
        j->displs[i] = i ? j->displs[i - 1] + j->counts[i - 1] : 0;
        j->types[i] = MPI_BYTE;
    }
}

static void make_grid(Job *j)
{
    int sides[2] = {0, 0}, periodic[2] = {1, 1};
    MPI_Dims_create(j->size, 2, sides);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, periodic, 0, &j->comm);
    for (int d = 0; d < 2; d++)
        MPI_Cart_shift(j->comm, d, 1, &j->neighbours[2 * d], &j->neighbours[2 * d + 1]);
}

Job new_job(const World *w, const Operation *op, Form form, size_t bytes)
{
    Job j = {.comm = MPI_COMM_WORLD, .rank = w->rank, .size = w->size, .bytes = bytes, .unit = of_doubles(op->kind) ? 8 : 1};
    if (bytes % j.unit)
        fail("%s needs sizes of whole 8-byte words", op->name);
    j.count = (int)(bytes / j.unit);
    lay_out_blocks(&j, op);
    if (op->kind == neighbouring)
        make_grid(&j);
    bool many_out = op->kind == exchanging || op->kind == neighbouring || op->kind == dividing ||
                    (op->kind == scattering && j.rank == 0);
    bool many_in = op->kind == exchanging || op->kind == neighbouring || (op->kind == gathering && gets(&j, op));
    j.out = new_buffer(many_out ? all_blocks(&j) : 2 * bytes); /* an uneven block has at most twice as many bytes */
    j.in = new_buffer(many_in ? all_blocks(&j) : 2 * bytes);
    if (form == persistent)
        op->init(&j);
    return j;
}

void end_job(Job *j, Form form)
{
    if (form == persistent)
        MPI_Request_free(&j->request);
    if (j->comm != MPI_COMM_WORLD)
        MPI_Comm_free(&j->comm);
    free(j->counts);
    free(j->displs);
    free(j->types);
    free(j->out);
    free(j->in);
}

static void fill_doubles(Job *j, size_t bytes)
{
    double *to = (double *)j->out;
    for (size_t i = 0; i < bytes / 8; i++)
        to[i] = (j->rank + 1) * term(j, i);
}

void fill(Job *j, const Operation *op)
{
    j->round++;
    if (op->kind == broadcast && j->rank == 0)
        rewrite(j->in, j->bytes, stamp(j, 0, 0));
    else if (op->kind == gathering)
        rewrite(j->out, length(j, j->rank), stamp(j, j->rank, 0));
    else if (of_doubles(op->kind))
        fill_doubles(j, op->kind == dividing ? all_blocks(j) : j->bytes);
    else if (op->kind == exchanging || op->kind == neighbouring || (op->kind == scattering && j->rank == 0))
        for (int to = 0; to < j->blocks; to++)
            rewrite(j->out + place(j, to), length(j, to), stamp(j, j->rank, to));
}

/* The sum of what ranks 0 to last gave, from element `first` on. */
static void check_sums(const Job *j, const Operation *op, int last, size_t first, size_t bytes)
{
    const double *from = (const double *)j->in, ranks = (last + 1) * (last + 2) / 2;
    for (size_t i = 0; i < bytes / 8; i++)
        if (from[i] != ranks * term(j, first + i))
            fail("%s: element %zu is %g instead of %g", op->name, i, from[i], ranks * term(j, first + i));
}

void check(Job *j, const Operation *op, bool spoil)
{
    if (!gets(j, op))
        return;
    if (spoil)
        j->in[0] ^= 1;
    if (op->kind == broadcast)
        verify(j->in, j->bytes, stamp(j, 0, 0), op->name);
    if (op->kind == scattering)
        verify(j->in, length(j, j->rank), stamp(j, 0, j->rank), op->name);
    if (op->kind == reducing)
        check_sums(j, op, j->size - 1, 0, j->bytes);
    if (op->kind == dividing)
        check_sums(j, op, j->size - 1, (size_t)j->displs[j->rank], length(j, j->rank));
    if (op->kind == prefixing)
        check_sums(j, op, j->rank - (op->flags & exclusive ? 1 : 0), 0, j->bytes);
    for (int from = 0; from < j->blocks; from++) {
        void *block = j->in + place(j, from);
        if (op->kind == gathering)
            verify(block, length(j, from), stamp(j, from, 0), op->name);
        if (op->kind == exchanging)
            verify(block, length(j, from), stamp(j, from, j->rank), op->name);
        if (op->kind == neighbouring) /* what a neighbour sent the other way */
            verify(block, length(j, from), stamp(j, j->neighbours[from], from ^ 1), op->name);
    }
}
