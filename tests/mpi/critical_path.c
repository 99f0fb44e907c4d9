// The calls of weft.h's critical path: what they mean, how they mix with the standard's, and what is an error.
#include "check.h"
#include <weft.h>

enum { many = 200, large = 300000 };

static int* numbers(int n, int seed) {
    int* p = malloc(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++) p[i] = seed * 1000003 + i;
    return p;
}

static void check_numbers(const int* p, int n, int seed) {
    for (int i = 0; i < n; i++) CHECK(p[i] == seed * 1000003 + i, "element %d of %d: %d, not %d", i, n, p[i], seed * 1000003 + i);
}

static int right(void) { return (rank + 1) % size; }
static int left(void) { return (rank - 1 + size) % size; }

// A communicator with the ranks reversed: what is sent to a rank of the world comes from the sender's rank there.
static void check_global(void) {
    MPI_Comm back;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &back));
    for (int n = 1; n <= large; n *= 60) {
        int *out = numbers(n, rank), *in = numbers(n, -1);
        MPI_Request both[2];
        MPI_Status status[2];
        OK(MPI_Irecv(in, n, MPI_INT, MPI_ANY_SOURCE, 3, back, &both[0]));
        OK(MPIX_Isend_global(out, n, MPI_INT, right(), 3, back, &both[1]));
        OK(MPI_Waitall(2, both, status));
        CHECK(status[0].MPI_SOURCE == size - 1 - left(), "from rank %d", status[0].MPI_SOURCE);
        check_numbers(in, n, left());
        free(out);
        free(in);
    }
    MPI_Request none;
    OK(PMPIX_Isend_global(NULL, 0, MPI_INT, MPI_PROC_NULL, 3, back, &none));
    OK(MPI_Wait(&none, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&back));
}

// Plain, global, npn and noreq sends of several sizes on one communicator arrive in the order in which they were sent.
static void check_order(void) {
    static int in[many][40];
    int out[many][40], counts[3] = {1, 10, 40};
    MPI_Request sent[many], received[many];
    for (int i = 0; i < many; i++) OK(MPI_Irecv(in[i], 40, MPI_INT, left(), 4, MPI_COMM_WORLD, &received[i]));
    for (int i = 0; i < many; i++) {
        const int n = counts[i % 3];
        for (int k = 0; k < n; k++) out[i][k] = i;
        sent[i] = MPI_REQUEST_NULL;
        switch (i % 4) {
        case 0: OK(MPI_Isend(out[i], n, MPI_INT, right(), 4, MPI_COMM_WORLD, &sent[i])); break;
        case 1: OK(MPIX_Isend_global(out[i], n, MPI_INT, right(), 4, MPI_COMM_WORLD, &sent[i])); break;
        case 2: OK(MPIX_Isend_npn(out[i], n, MPI_INT, right(), 4, MPI_COMM_WORLD, &sent[i])); break;
        case 3: OK(MPIX_Isend_noreq(out[i], n, MPI_INT, right(), 4, MPI_COMM_WORLD)); break;
        }
    }
    OK(MPI_Waitall(many, received, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(many, sent, MPI_STATUSES_IGNORE));
    OK(MPIX_Comm_waitall(MPI_COMM_WORLD));
    for (int i = 0; i < many; i++) CHECK(in[i][0] == i && in[i][counts[i % 3] - 1] == i, "message %d: %d", i, in[i][0]);
}

// Buffers may be changed after MPIX_Comm_waitall, also those of large messages, and of more than are kept at first.
static void check_noreq(void) {
    enum { messages = 40 };
    int *out[messages], *in[messages];
    MPI_Request received[messages];
    OK(MPIX_Comm_waitall(MPI_COMM_WORLD));
    for (int i = 0; i < messages; i++) {
        out[i] = numbers(large / messages * (i + 1), i);
        in[i] = numbers(large / messages * (i + 1), -1);
        OK(MPIX_Isend_noreq(out[i], large / messages * (i + 1), MPI_INT, right(), i, MPI_COMM_WORLD));
    }
    for (int i = 0; i < messages; i++)
        OK(MPI_Irecv(in[i], large / messages * (i + 1), MPI_INT, left(), i, MPI_COMM_WORLD, &received[i]));
    OK(PMPIX_Comm_waitall(MPI_COMM_WORLD));
    for (int i = 0; i < messages; i++) memset(out[i], 0, 4 * (size_t)large / messages * (size_t)(i + 1));
    OK(MPI_Waitall(messages, received, MPI_STATUSES_IGNORE));
    for (int i = 0; i < messages; i++) {
        check_numbers(in[i], large / messages * (i + 1), i);
        free(out[i]);
        free(in[i]);
    }
}

// A communicator that is freed while sends without a request are under way.
static void check_freed(void) {
    MPI_Comm twin;
    MPI_Request received;
    int *out = numbers(large, rank), *in = numbers(large, -1);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPIX_Isend_noreq(out, large, MPI_INT, right(), 1, twin));
    OK(MPI_Irecv(in, large, MPI_INT, left(), 1, twin, &received));
    OK(MPI_Comm_free(&twin));
    OK(MPI_Wait(&received, MPI_STATUS_IGNORE));
    check_numbers(in, large, left());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(out);
    free(in);
}

// Messages without source and tag meet neither ordinary receives nor those of other communicators, and keep their order.
static void check_nomatch(void) {
    MPI_Comm twin;
    MPI_Request sent[4], received[4];
    int out[4] = {rank * 10, rank * 10 + 1, rank * 10 + 2, rank * 10 + 3}, in[4] = {-1, -1, -1, -1};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Irecv(&in[3], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, twin, &received[3]));
    OK(MPIX_Irecv_nomatch(&in[2], 1, MPI_INT, MPI_COMM_WORLD, &received[2]));
    for (int i = 0; i < 2; i++) OK(MPIX_Irecv_nomatch(&in[i], 1, MPI_INT, twin, &received[i]));
    for (int i = 0; i < 2; i++) OK(MPIX_Isend_nomatch(&out[i], 1, MPI_INT, right(), twin, &sent[i]));
    OK(MPIX_Isend_nomatch(&out[2], 1, MPI_INT, right(), MPI_COMM_WORLD, &sent[2]));
    OK(MPI_Isend(&out[3], 1, MPI_INT, right(), 0, twin, &sent[3]));
    OK(MPI_Waitall(4, sent, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(4, received, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; i++) CHECK(in[i] == left() * 10 + i, "message %d: %d", i, in[i]);
    OK(MPI_Comm_free(&twin));
}

// The same, unexpected and of every size.
static void check_nomatch_sizes(void) {
    for (int n = 1; n <= large; n *= 30) {
        int *out = numbers(n, rank), *in = numbers(n, -1), other = 0;
        MPI_Request sent, received;
        OK(MPIX_Isend_nomatch(out, n, MPI_INT, right(), MPI_COMM_WORLD, &sent));
        OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE));
        CHECK(!other, "a probe has found a message without source and tag");
        OK(PMPIX_Irecv_nomatch(in, n, MPI_INT, MPI_COMM_WORLD, &received));
        OK(MPI_Wait(&received, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        check_numbers(in, n, left());
        OK(MPI_Barrier(MPI_COMM_WORLD));
        free(out);
        free(in);
    }
}

static void all_around(MPI_Comm comm, int n) {
    int *out = numbers(n, rank), *in = numbers(n, -1);
    MPI_Request received;
    OK(MPIX_Irecv_nomatch(in, n, MPI_INT, comm, &received));
    OK(MPIX_Isend_all_opts(out, n, MPI_INT, right(), comm));
    OK(MPI_Wait(&received, MPI_STATUS_IGNORE));
    OK(MPIX_Comm_waitall(comm));
    check_numbers(in, n, left());
    free(out);
    free(in);
}

static void check_fixed(void) {
    MPI_Comm made = MPIX_COMM_2, each[4] = {MPIX_COMM_1, MPIX_COMM_2, MPIX_COMM_3, MPIX_COMM_4};
    int result, mine, id;
    OK(MPIX_Comm_dup_predefined(MPI_COMM_WORLD, MPIX_COMM_1));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, MPIX_COMM_1, &result));
    CHECK(result == MPI_CONGRUENT, "a duplicate compares as %d", result);
    id = MPI_Comm_toint(MPIX_COMM_1);
    CHECK(MPI_Comm_fromint(id) == MPIX_COMM_1, "integer %d", id);
    OK(MPIX_Comm_split_predefined(MPIX_COMM_1, 0, -rank, MPIX_COMM_2));
    OK(MPI_Comm_rank(MPIX_COMM_2, &mine));
    CHECK(mine == size - 1 - rank, "rank %d of the reversed communicator", mine);
    for (int i = 0; i < 2; i++)
        for (int n = 1; n <= large; n *= 50) all_around(each[i], n);
    OK(PMPIX_Comm_split_predefined(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, 0, MPIX_COMM_3));
    if (rank == 0) OK(MPI_Comm_free(&each[2]));
    OK(MPI_Comm_free(&made));
    CHECK(made == MPI_COMM_NULL, "the handle is not null");
    for (int i = 1; i < 4; i++) {   // again, with what is free
        made = i == 1 ? MPIX_COMM_2 : i == 2 ? MPIX_COMM_3 : MPIX_COMM_4;
        OK(PMPIX_Comm_dup_predefined(MPIX_COMM_1, made));
        all_around(made, 100);
        OK(MPI_Comm_free(&made));
    }
    made = MPIX_COMM_1;
    OK(MPI_Comm_free(&made));
}

static void check_windows(void) {
    int64_t value = 100 + rank, *base, own[8];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Aint at, *where = malloc(sizeof(MPI_Aint) * (size_t)size);
    MPI_Win win;
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0) OK(MPI_Win_allocate(sizeof own, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        if (kind == 1) OK(MPI_Win_create(base = own, sizeof own, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        if (kind == 2) {
            OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            OK(MPI_Win_attach(win, base = own, sizeof own));
        }
        memset(base, 0, sizeof own);
        OK(MPI_Get_address(&base[5], &at));
        OK(MPI_Allgather(&at, 1, MPI_AINT, where, 1, MPI_AINT, MPI_COMM_WORLD));
        OK(MPI_Win_fence(0, win));
        OK(MPIX_Put_virtual_addr(&value, 1, MPI_INT64_T, right(), where[right()], 1, MPI_INT64_T, win));
        OK(PMPIX_Put_virtual_addr(&value, 0, MPI_INT64_T, MPI_PROC_NULL, 0, 0, MPI_INT64_T, win));
        OK(MPI_Win_fence(0, win));
        CHECK(base[5] == 100 + left() && base[4] == 0 && base[6] == 0, "kind %d: %lld", kind, (long long)base[5]);
        OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        if (kind < 2) {
            FAILS(MPI_ERR_RMA_RANGE, MPIX_Put_virtual_addr(&value, 1, MPI_INT64_T, right(), where[right()] + 24, 1, MPI_INT64_T, win));
            FAILS(MPI_ERR_RMA_RANGE, MPIX_Put_virtual_addr(&value, 1, MPI_INT64_T, right(), where[right()] - 48, 1, MPI_INT64_T, win));
        }
        FAILS(MPI_ERR_RANK, MPIX_Put_virtual_addr(&value, 1, MPI_INT64_T, size, where[0], 1, MPI_INT64_T, win));
        FAILS(MPI_ERR_COUNT, MPIX_Put_virtual_addr(&value, -1, MPI_INT64_T, 0, where[0], 1, MPI_INT64_T, win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_free(&win));
    }
    FAILS(MPI_ERR_WIN, MPIX_Put_virtual_addr(&value, 1, MPI_INT64_T, 0, where[0], 1, MPI_INT64_T, MPI_WIN_NULL));
    free(where);
}

static void check_errors(void) {
    int value = 1;
    MPI_Request r;
    MPI_Comm world = MPI_COMM_WORLD, mine;
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_RANK, MPIX_Isend_npn(&value, 1, MPI_INT, MPI_PROC_NULL, 1, world, &r));
    FAILS(MPI_ERR_RANK, MPIX_Isend_npn(&value, 1, MPI_INT, size, 1, world, &r));
    FAILS(MPI_ERR_RANK, MPIX_Isend_global(&value, 1, MPI_INT, size, 1, world, &r));
    FAILS(MPI_ERR_RANK, MPIX_Isend_global(&value, 1, MPI_INT, -1, 1, world, &r));
    if (size > 1) FAILS(MPI_ERR_RANK, MPIX_Isend_global(&value, 1, MPI_INT, right(), 1, MPI_COMM_SELF, &r));
    FAILS(MPI_ERR_TAG, MPIX_Isend_global(&value, 1, MPI_INT, 0, -1, world, &r));
    FAILS(MPI_ERR_COUNT, MPIX_Isend_noreq(&value, -1, MPI_INT, 0, 1, world));
    FAILS(MPI_ERR_TYPE, MPIX_Isend_nomatch(&value, 1, MPI_DATATYPE_NULL, 0, world, &r));
    FAILS(MPI_ERR_ARG, MPIX_Irecv_nomatch(&value, 1, MPI_INT, world, NULL));
    FAILS(MPI_ERR_COMM, MPIX_Isend_all_opts(&value, 1, MPI_INT, 0, world));
    FAILS(MPI_ERR_COMM, MPIX_Isend_all_opts(&value, 1, MPI_INT, 0, MPIX_COMM_4));
    FAILS(MPI_ERR_COMM, MPIX_Comm_waitall(MPI_COMM_NULL));
    FAILS(MPI_ERR_COMM, MPIX_Comm_dup_predefined(world, world));
    OK(MPIX_Comm_dup_predefined(world, MPIX_COMM_4));
    FAILS(MPI_ERR_COMM, MPIX_Comm_dup_predefined(world, MPIX_COMM_4));
    FAILS(MPI_ERR_COMM, MPIX_Comm_split_predefined(world, 0, 0, MPIX_COMM_4));
    FAILS(MPI_ERR_RANK, MPIX_Isend_all_opts(&value, 1, MPI_INT, MPI_PROC_NULL, MPIX_COMM_4));
    FAILS(MPI_ERR_RANK, MPIX_Isend_all_opts(&value, 1, MPI_INT, size, MPIX_COMM_4));
    mine = MPIX_COMM_4;
    OK(MPI_Comm_free(&mine));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL));
}

// A receive that is too short makes the send without a request no error; MPIX_Comm_waitall on it still ends.
static void check_truncated(void) {
    int out[2000] = {0}, in[1];
    MPI_Request received;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPIX_Isend_noreq(out, 2000, MPI_INT, right(), 9, MPI_COMM_WORLD));
    OK(MPI_Irecv(in, 1, MPI_INT, left(), 9, MPI_COMM_WORLD, &received));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&received, MPI_STATUS_IGNORE));
    OK(MPIX_Comm_waitall(MPI_COMM_WORLD));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    check_global();
    check_order();
    check_noreq();
    check_freed();
    check_nomatch();
    check_nomatch_sizes();
    check_fixed();
    check_windows();
    check_errors();
    check_truncated();
    return finish();
}
