// Comm_dup, free, compare, names, parents, sizes; many duplicates; a communicator freed while messages are under way.
#include "check.h"

int main(int argc, char** argv) {
    start(&argc, &argv);
    int result, n, r, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm a, b, parent;

    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    CHECK(!strcmp(name, "MPI_COMM_WORLD") && length == 14, "%s", name);
    MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
    CHECK(!strcmp(name, "MPI_COMM_SELF"), "%s", name);
    MPI_Comm_size(MPI_COMM_SELF, &n);
    MPI_Comm_rank(MPI_COMM_SELF, &r);
    CHECK(n == 1 && r == 0, "MPI_COMM_SELF has %d ranks, this is %d", n, r);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL, "a program started by hand has a parent");

    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_dup(a, &b);
    MPI_Comm_size(b, &n);
    MPI_Comm_rank(b, &r);
    CHECK(n == size && r == rank, "a duplicate has %d ranks, this is %d", n, r);
    MPI_Comm_compare(a, a, &result);
    CHECK(result == MPI_IDENT, "%d", result);
    MPI_Comm_compare(MPI_COMM_WORLD, b, &result);
    CHECK(result == MPI_CONGRUENT, "%d", result);
    MPI_Comm_compare(MPI_COMM_SELF, b, &result);
    CHECK(result == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL), "%d", result);
    MPI_Comm_test_inter(b, &result);
    CHECK(!result, "a duplicate of the world is no intercommunicator");
    MPI_Comm_get_name(a, name, &length);
    CHECK(length == 0 && !name[0], "a duplicate is called %s", name);
    MPI_Comm_set_name(a, "left lane");
    MPI_Comm_get_name(a, name, &length);
    CHECK(!strcmp(name, "left lane") && length == 9, "%s", name);

    // A message on a communicator that the sender frees at once.
    int value = 31, got = 0;
    if (size >= 2) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank == 0) MPI_Isend(&value, 1, MPI_INT, 1, 0, b, &request);
        if (rank == 1) MPI_Irecv(&got, 1, MPI_INT, 0, 0, b, &request);
        MPI_Comm_free(&b);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(rank != 1 || got == 31, "got %d", got);
    } else {
        MPI_Comm_free(&b);
    }
    CHECK(b == MPI_COMM_NULL, "MPI_Comm_free leaves the handle");

    // More duplicates than anyone needs, over and over: context ids come back.
    for (int round = 0; round < 20; round++) {
        MPI_Comm many[50];
        for (int i = 0; i < 50; i++) MPI_Comm_dup(i % 2 ? MPI_COMM_WORLD : a, &many[i]);
        for (int i = 0; i < 50; i += 7) {
            int sum = 0;
            MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, many[i]);
            CHECK(sum == i * size, "communicator %d: %d", i, sum);
        }
        for (int i = 0; i < 50; i++) MPI_Comm_free(&many[i]);
    }
    MPI_Comm_free(&a);
    return finish();
}
