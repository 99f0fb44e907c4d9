// Persistent collectives of a few bytes and of more, many at once: started in an order of each rank's own, completed in every way; roots
// that run ahead; a rank that waits for something else meanwhile; statuses, errors, what may be freed early.
#include "check.h"

enum { kinds = 7, rounds = 60, many = 3000, most_ranks = 32 };

static int one, two[2], first, own, in[many], out[many], everybody[most_ranks];
static struct { int told[3], gap; } spread[2];   // sent without the gaps
static int spread_root(void) { return size - 1; }

// Associative, and does not commute: the first of all remains.
static void keep_left(void* a, void* b, int* n, MPI_Datatype* t) {
    (void)t;
    memcpy(b, a, (size_t)*n * sizeof(int));
}

static void make(MPI_Comm comm, MPI_Request r[kinds]) {
    MPI_Datatype gaps;
    MPI_Op ordered;
    OK(MPI_Type_vector(2, 3, 4, MPI_INT, &gaps));
    OK(MPI_Type_commit(&gaps));
    OK(MPI_Op_create(keep_left, 0, &ordered));
    OK(MPI_Barrier_init(comm, MPI_INFO_NULL, &r[0]));
    OK(MPI_Bcast_init(&one, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &r[1]));
    OK(MPI_Bcast_init(spread, 1, gaps, spread_root(), comm, MPI_INFO_NULL, &r[2]));
    OK(MPI_Allreduce_init(MPI_IN_PLACE, two, 2, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[3]));
    OK(MPI_Reduce_init(&own, &first, 1, MPI_INT, ordered, size / 2, comm, MPI_INFO_NULL, &r[4]));
    OK(MPI_Allreduce_init(in, out, many, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &r[5]));
    OK(MPI_Allgather_init(&rank, 1, MPI_INT, everybody, 1, MPI_INT, comm, MPI_INFO_NULL, &r[6]));
    OK(MPI_Type_free(&gaps));
    OK(MPI_Op_free(&ordered));
}

static void fill_in(int round) {
    one = rank == 0 ? round : -1;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) spread[i].told[k] = rank == spread_root() ? round + i * 3 + k : -1;
    spread[0].gap = spread[1].gap = 77;
    two[0] = rank, two[1] = round;
    own = rank + round, first = -1;
    for (int i = 0; i < many; i++) in[i] = i + rank, out[i] = -1;
    for (int i = 0; i < size; i++) everybody[i] = -1;
}

static void check_all(int round) {
    const int sum = size * (size - 1) / 2;
    CHECK(one == round, "broadcast: %d", one);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) CHECK(spread[i].told[k] == round + i * 3 + k, "element %d %d: %d", i, k, spread[i].told[k]);
    CHECK(spread[0].gap == 77 && spread[1].gap == 77, "a gap was written: %d", spread[0].gap);
    CHECK(two[0] == sum && two[1] == size * round, "allreduce: %d %d", two[0], two[1]);
    CHECK(first == (rank == size / 2 ? round : -1), "reduce: %d", first);
    for (int i = 0; i < many; i++) CHECK(out[i] == i * size + sum, "element %d: %d", i, out[i]);
    for (int i = 0; i < size; i++) CHECK(everybody[i] == i, "allgather: %d", everybody[i]);
}

static void complete(int round, MPI_Request r[kinds]) {
    MPI_Status s[kinds];
    int flag = 0, index, count, done[kinds];
    memset(s, 1, sizeof s);
    switch (round % 5) {
    case 0: OK(MPI_Waitall(kinds, r, s)); break;
    case 1: while (!flag) OK(MPI_Testall(kinds, r, &flag, s)); break;
    case 2:
        for (int i = 0; i < kinds; i++) {
            OK(MPI_Waitany(kinds, r, &index, &s[i]));
            CHECK(index >= 0 && index < kinds, "Waitany: %d", index);
        }
        break;
    case 3:
        for (int left = kinds; left > 0; left -= count) OK(MPI_Waitsome(kinds, r, &count, done, s));
        break;
    default:
        for (int i = kinds - 1; i >= 0; i--)
            if (i % 2) OK(MPI_Wait(&r[i], &s[i]));
            else
                for (flag = 0; !flag;) OK(MPI_Test(&r[i], &flag, &s[i]));
    }
    CHECK(round % 5 == 3 || (s[3].MPI_SOURCE == MPI_ANY_SOURCE && s[3].MPI_TAG == MPI_ANY_TAG), "status: %d %d", s[3].MPI_SOURCE, s[3].MPI_TAG);
    for (int i = 0; i < kinds; i++) {
        CHECK(r[i] != MPI_REQUEST_NULL, "request %d is gone", i);
        OK(MPI_Request_get_status(r[i], &flag, MPI_STATUS_IGNORE));
        CHECK(flag, "request %d is still active", i);
    }
}

static void in_any_order(MPI_Comm comm) {
    MPI_Request r[kinds];
    make(comm, r);
    OK(MPI_Comm_free(&comm));
    for (int round = 0; round < rounds; round++) {
        fill_in(round);
        if (round % 7 == 0) OK(MPI_Barrier(MPI_COMM_WORLD));
        if (round % 2) OK(MPI_Startall(kinds, r));
        else
            for (int i = 0; i < kinds; i++) OK(MPI_Start(&r[(i + rank + round) % kinds]));
        complete(round, r);
        check_all(round);
    }
    for (int i = 0; i < kinds; i++) OK(MPI_Request_free(&r[i]));
}

// Who hears nothing from its readers may be some calls ahead of them, and what they read is still theirs.
static void run_ahead(void) {
    MPI_Request told, sum;
    int word = -1, mine = -1, all = -1;
    OK(MPI_Bcast_init(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &told));
    OK(MPI_Reduce_init(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &sum));
    for (int i = 0; i < 200; i++) {
        if (rank == i / 50 % size) usleep(i % 10 == 0 ? 300 : 0);
        word = rank == 0 ? i : -1;
        OK(MPI_Start(&told));
        OK(MPI_Wait(&told, MPI_STATUS_IGNORE));
        CHECK(word == i, "broadcast %d: %d", i, word);
    }
    for (int i = 0; i < 200; i++) {
        if (rank == i / 50 % size) usleep(i % 10 == 0 ? 300 : 0);
        mine = i + rank;
        OK(MPI_Start(&sum));
        OK(MPI_Wait(&sum, MPI_STATUS_IGNORE));
        CHECK(rank != 0 || all == i * size + size * (size - 1) / 2, "reduction %d: %d", i, all);
    }
    OK(MPI_Request_free(&told));
    OK(MPI_Request_free(&sum));
}

// The first rank's part is done by its start: the others get on while it waits for a message of theirs.
static void meanwhile(void) {
    MPI_Request r;
    int mine = rank, all = -1, word = 0;
    OK(MPI_Allreduce_init(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    for (int i = 0; i < 20; i++) {
        OK(MPI_Start(&r));
        if (rank == 0) {
            for (int from = 1; from < size; from++) OK(MPI_Recv(&word, 1, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
            OK(MPI_Send(&all, 1, MPI_INT, 0, 5, MPI_COMM_WORLD));
        }
        CHECK(all == size * (size - 1) / 2, "allreduce: %d", all);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Start(&r));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    MPI_Comm comm;
    CHECK(size <= most_ranks, "more than %d ranks", most_ranks);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    in_any_order(comm);
    run_ahead();
    meanwhile();
    finish();
    return 0;
}
