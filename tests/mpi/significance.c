// Arguments that the standard calls not significant are not looked at: those of the root elsewhere, counts and types of what
// MPI_IN_PLACE stands for, all of them on an intercommunicator's processes that take no part. And what is wrong at the root
// alone is an error there alone.
#include "check.h"

enum { most = 16 };
static MPI_Datatype const nothing = MPI_DATATYPE_NULL;

static void rooted(MPI_Comm comm, int root) {
    int own = rank * 10, all[most], ones[most], at[most], got = -1;
    for (int i = 0; i < most; i++) ones[i] = 1, at[i] = i, all[i] = -1;
    int* c = rank == root ? ones : NULL;
    int* d = rank == root ? at : NULL;
    int* b = rank == root ? all : NULL;
    MPI_Datatype t = rank == root ? MPI_INT : nothing;
    OK(MPI_Gather(&own, 1, MPI_INT, b, rank == root ? 1 : -5, t, root, comm));
    for (int i = 0; rank == root && i < size; i++) CHECK(all[i] == i * 10, "block %d is %d", i, all[i]);
    OK(MPI_Gatherv(&own, 1, MPI_INT, b, c, d, t, root, comm));
    OK(MPI_Scatter(b, rank == root ? 1 : -5, t, &got, 1, MPI_INT, root, comm));
    CHECK(got == own, "got %d", got);
    got = -1;
    OK(MPI_Scatterv(b, c, d, t, &got, 1, MPI_INT, root, comm));
    CHECK(got == own, "got %d", got);
    OK(MPI_Reduce(&own, b, 1, MPI_INT, MPI_SUM, root, comm));
    // In place, the root's part of the other side means nothing either.
    if (rank == root) {
        for (int i = 0; i < size; i++) all[i] = i == root ? own : -1;
        OK(MPI_Gather(MPI_IN_PLACE, -5, nothing, all, 1, MPI_INT, root, comm));
        OK(MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, -5, nothing, root, comm));
        for (int i = 0; i < size; i++) CHECK(all[i] == i * 10, "block %d is %d", i, all[i]);
    } else {
        OK(MPI_Gather(&own, 1, MPI_INT, NULL, -5, nothing, root, comm));
        OK(MPI_Scatter(NULL, -5, nothing, &got, 1, MPI_INT, root, comm));
    }
}

static void in_place(MPI_Comm comm) {
    int all[most], ones[most], at[most], bytes[most];
    MPI_Datatype types[most];
    for (int i = 0; i < most; i++) ones[i] = 1, at[i] = i, bytes[i] = 4 * i, all[i] = rank * 100 + i, types[i] = MPI_INT;
    OK(MPI_Allgather(MPI_IN_PLACE, -5, nothing, all, 1, MPI_INT, comm));
    OK(MPI_Allgatherv(MPI_IN_PLACE, -5, nothing, all, ones, at, MPI_INT, comm));
    OK(MPI_Alltoall(MPI_IN_PLACE, -5, nothing, all, 1, MPI_INT, comm));
    for (int i = 0; i < most; i++) all[i] = rank * 100 + i;
    OK(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, nothing, all, ones, at, MPI_INT, comm));
    for (int i = 0; i < size; i++) CHECK(all[i] == i * 100 + rank, "block %d is %d", i, all[i]);
    for (int i = 0; i < most; i++) all[i] = rank * 100 + i;
    OK(MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, ones, bytes, types, comm));
    for (int i = 0; i < size; i++) CHECK(all[i] == i * 100 + rank, "block %d is %d", i, all[i]);
}

// The even processes and the odd ones; of the even, the first is the root.
static void between(MPI_Comm inter) {
    int own = rank, all[most], ones[most], at[most], got = -1, remote;
    for (int i = 0; i < most; i++) ones[i] = 1, at[i] = i, all[i] = -1;
    MPI_Comm_remote_size(inter, &remote);
    if (rank == 0) {
        OK(MPI_Gatherv(NULL, -5, nothing, all, ones, at, MPI_INT, MPI_ROOT, inter));
        for (int i = 0; i < remote; i++) CHECK(all[i] == 2 * i + 1, "block %d is %d", i, all[i]);
        OK(MPI_Scatterv(all, ones, at, MPI_INT, NULL, -5, nothing, MPI_ROOT, inter));
        OK(MPI_Reduce(NULL, &got, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter));
        CHECK(got == remote * remote, "the sum is %d", got);
    } else if (rank % 2 == 0) {
        OK(MPI_Gatherv(NULL, -5, nothing, NULL, NULL, NULL, nothing, MPI_PROC_NULL, inter));
        OK(MPI_Scatterv(NULL, NULL, NULL, nothing, NULL, -5, nothing, MPI_PROC_NULL, inter));
        OK(MPI_Reduce(NULL, NULL, -5, nothing, MPI_SUM, MPI_PROC_NULL, inter));
    } else {
        OK(MPI_Gatherv(&own, 1, MPI_INT, NULL, NULL, NULL, nothing, 0, inter));
        OK(MPI_Scatterv(NULL, NULL, NULL, nothing, &got, 1, MPI_INT, 0, inter));
        CHECK(got == rank, "got %d", got);
        OK(MPI_Reduce(&own, NULL, 1, MPI_INT, MPI_SUM, 0, inter));
    }
}

// Errors in the elements of arrays; the communicator serves on afterwards.
static void wrong(MPI_Comm comm) {
    int own = rank, all[most], counts[most], at[most], far = size - 1;
    MPI_Datatype types[most], raw;
    for (int i = 0; i < most; i++) counts[i] = 1, at[i] = i, types[i] = MPI_INT;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    counts[far] = -2;
    FAILS(MPI_ERR_COUNT, MPI_Allgatherv(&own, 1, MPI_INT, all, counts, at, MPI_INT, comm));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter(all, &own, counts, MPI_INT, MPI_SUM, comm));
    if (rank == 0) {
        FAILS(MPI_ERR_COUNT, MPI_Gatherv(&own, 1, MPI_INT, all, counts, at, MPI_INT, 0, comm));
        FAILS(MPI_ERR_ARG, MPI_Scatterv(all, NULL, at, MPI_INT, &own, 1, MPI_INT, 0, comm));
    }
    counts[far] = 1;
    MPI_Type_contiguous(2, MPI_INT, &raw);
    types[far] = raw;
    FAILS(MPI_ERR_TYPE, MPI_Alltoallw(all, counts, at, types, all, counts, at, types, comm));
    types[far] = MPI_DATATYPE_NULL;
    FAILS(MPI_ERR_TYPE, MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, all, counts, at, types, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(NULL, counts, at, MPI_INT, all, counts, at, MPI_INT, comm));
    MPI_Type_free(&raw);
    // Null buffers are right where nothing is in them.
    for (int i = 0; i < most; i++) counts[i] = 0;
    OK(MPI_Alltoallv(NULL, counts, at, MPI_INT, NULL, counts, at, MPI_INT, comm));
    for (int i = 0; i < most; i++) counts[i] = i == 0;
    for (int i = 0; i < most; i++) all[i] = 1;
    OK(MPI_Reduce_scatter(all, rank == 0 ? &own : NULL, counts, MPI_INT, MPI_SUM, comm));
    CHECK(rank != 0 || own == size, "the sum is %d", own);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size <= most, "too many ranks");
    for (int root = 0; root < size; root++) rooted(MPI_COMM_WORLD, root);
    in_place(MPI_COMM_WORLD);
    if (size > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 3, &inter);
        between(inter);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    wrong(MPI_COMM_WORLD);
    rooted(MPI_COMM_WORLD, 0);
    return finish();
}
