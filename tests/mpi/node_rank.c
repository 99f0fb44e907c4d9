// MPIX_Comm_node_rank: ranks within nodes, in several communicators and in the other order; what is wrong is an error.
// WEFT_NODE_RANKS parts the ranks into nodes.
#include "check.h"
#include <weft.h>

static int each;  // ranks on a node
static int node_of(int world_rank) { return each ? world_rank / each : 0; }

// What it must be, counted from the members' world ranks.
static int expected(const int* members, int of) {
    int before = 0;
    if (node_of(members[of]) != node_of(rank)) return MPI_UNDEFINED;
    for (int i = 0; i < of; i++) before += node_of(members[i]) == node_of(rank);
    return before;
}

static void check_comm(MPI_Comm comm) {
    int n, found = -1, members[64];
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Allgather(&rank, 1, MPI_INT, members, 1, MPI_INT, comm));
    for (int i = 0; i < n; i++) {
        OK(MPIX_Comm_node_rank(comm, i, &found));
        CHECK(found == expected(members, i), "member %d: %d, not %d", i, found, expected(members, i));
        OK(PMPIX_Comm_node_rank(comm, i, &found));
        CHECK(found == expected(members, i), "PMPIX, member %d: %d", i, found);
    }
    OK(MPIX_Comm_node_rank(comm, MPI_PROC_NULL, &found));
    CHECK(found == MPI_UNDEFINED, "MPI_PROC_NULL: %d", found);
}

static void check_errors(void) {
    int found;
    MPI_Comm mine = MPI_COMM_WORLD;
    OK(MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_RANK, MPIX_Comm_node_rank(mine, size, &found));
    FAILS(MPI_ERR_RANK, MPIX_Comm_node_rank(mine, MPI_ANY_SOURCE, &found));
    FAILS(MPI_ERR_RANK, MPIX_Comm_node_rank(mine, -4, &found));
    FAILS(MPI_ERR_ARG, MPIX_Comm_node_rank(mine, 0, NULL));
    FAILS(MPI_ERR_COMM, MPIX_Comm_node_rank(MPI_COMM_NULL, 0, &found));
}

static void check_intercomm(MPI_Comm half) {
    int found;
    MPI_Comm inter;
    if (size < 2) return;
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_COMM, MPIX_Comm_node_rank(inter, 0, &found));
    OK(MPI_Comm_free(&inter));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    each = getenv("WEFT_NODE_RANKS") ? atoi(getenv("WEFT_NODE_RANKS")) : 0;
    MPI_Comm other_order, half;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other_order));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    check_comm(MPI_COMM_WORLD);
    check_comm(MPI_COMM_SELF);
    check_comm(other_order);
    check_comm(half);
    check_errors();
    check_intercomm(half);
    OK(MPI_Comm_free(&other_order));
    OK(MPI_Comm_free(&half));
    return finish();
}
