// MPI_Request_get_status_any, _all and _some: what Test would say, as often as one asks; nothing is freed.
#include "check.h"

enum { n = 6 };
static MPI_Request r[n];
static MPI_Status s[n];
static int in[n][2], values[2] = {11, 22};

static int is_empty(const MPI_Status* x) {
    int count = -1, cancelled = -1;
    MPI_Get_count(x, MPI_BYTE, &count);
    MPI_Test_cancelled(x, &cancelled);
    return x->MPI_SOURCE == MPI_ANY_SOURCE && x->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

static void send_to(int i, int ints) { OK(MPI_Send(values, ints, MPI_INT, rank, i, MPI_COMM_WORLD)); }

static void on_none(void) {
    MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag = 0, index = 0, count = 0, indices[3];
    OK(MPI_Recv_init(in[0], 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &none[1]));  // inactive: counts as none
    memset(s, 1, sizeof s);
    OK(MPI_Request_get_status_any(3, none, &index, &flag, s));
    CHECK(flag && index == MPI_UNDEFINED && is_empty(s), "any: %d %d", flag, index);
    flag = index = 0;
    OK(MPI_Request_get_status_any(0, NULL, &index, &flag, s));
    CHECK(flag && index == MPI_UNDEFINED, "any of no array: %d %d", flag, index);
    OK(MPI_Request_get_status_some(3, none, &count, indices, s));
    CHECK(count == MPI_UNDEFINED, "some: %d", count);
    memset(s, 1, sizeof s);
    flag = 0;
    OK(MPI_Request_get_status_all(3, none, &flag, s));
    CHECK(flag && is_empty(&s[0]) && is_empty(&s[1]) && is_empty(&s[2]), "all: %d", flag);
    OK(MPI_Request_free(&none[1]));
}

// Receives 0, 2, 4, with a null, a persistent and an inactive request in between.
static void post(void) {
    for (int i = 0; i < n; i += 2) OK(MPI_Irecv(in[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &r[i]));
    r[1] = MPI_REQUEST_NULL;
    OK(MPI_Recv_init(in[3], 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &r[3]));
    OK(MPI_Start(&r[3]));
    OK(MPI_Recv_init(in[5], 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &r[5]));
}

static void expect(const MPI_Status* x, int tag) {
    int count = -1;
    MPI_Get_count(x, MPI_INT, &count);
    CHECK(x->MPI_SOURCE == rank && x->MPI_TAG == tag && count == 1, "from %d, tag %d, %d ints, not tag %d",
          x->MPI_SOURCE, x->MPI_TAG, count, tag);
}

static void one_after_the_other(void) {
    int flag = 1, index = 0, count = -1, indices[n];
    MPI_Request copy[n];
    post();
    memcpy(copy, r, sizeof r);
    OK(MPI_Request_get_status_any(n, r, &index, &flag, s));
    CHECK(!flag && index == MPI_UNDEFINED, "any: %d %d", flag, index);
    OK(MPI_Request_get_status_some(n, r, &count, indices, s));
    CHECK(count == 0, "some: %d", count);
    flag = 1;
    OK(MPI_Request_get_status_all(n, r, &flag, s));
    CHECK(!flag, "all: %d", flag);
    send_to(3, 1);
    for (int again = 0; again < 3; again++) {
        OK(MPI_Request_get_status_any(n, r, &index, &flag, again == 2 ? MPI_STATUS_IGNORE : s));
        CHECK(flag && index == 3, "any: %d %d", flag, index);
        expect(s, 3);
        OK(MPI_Request_get_status_some(n, r, &count, indices, again == 2 ? MPI_STATUSES_IGNORE : s));
        CHECK(count == 1 && indices[0] == 3, "some: %d, %d", count, indices[0]);
        expect(s, 3);
    }
    OK(MPI_Request_get_status_all(n, r, &flag, s));
    CHECK(!flag, "all: %d", flag);
    for (int i = 0; i < n; i += 2) send_to(i, 1);
    for (int again = 0; again < 3; again++) {
        flag = 0;
        OK(MPI_Request_get_status_all(n, r, &flag, again == 2 ? MPI_STATUSES_IGNORE : s));
        CHECK(flag, "all: %d", flag);
        for (int i = 0; i < n; i++) {
            if (i == 1 || i == 5) CHECK(is_empty(&s[i]), "status %d is not empty", i);
            else expect(&s[i], i);
        }
    }
    OK(MPI_Request_get_status_some(n, r, &count, indices, s));
    CHECK(count == 4 && indices[0] == 0 && indices[1] == 2 && indices[2] == 3 && indices[3] == 4, "some: %d", count);
    CHECK(memcmp(copy, r, sizeof r) == 0, "a request has changed");
    OK(MPI_Waitall(n, r, s));
    for (int i = 0; i < n; i++) CHECK((r[i] != MPI_REQUEST_NULL) == (i == 3 || i == 5), "request %d after Waitall", i);
    for (int i = 0; i < n; i++)
        if (i == 0 || i == 2 || i == 3 || i == 4) expect(&s[i], i);
    OK(MPI_Request_free(&r[3]));
    OK(MPI_Request_free(&r[5]));
}

static void errors(void) {
    int flag = 0, index = -1, count = -1, indices[n];
    post();
    send_to(0, 1);
    send_to(2, 2);  // too long
    send_to(3, 1);
    send_to(4, 1);
    for (int again = 0; again < 2; again++) {
        flag = 0;
        FAILS(MPI_ERR_IN_STATUS, MPI_Request_get_status_all(n, r, &flag, s));
        CHECK(flag && s[0].MPI_ERROR == MPI_SUCCESS && s[4].MPI_ERROR == MPI_SUCCESS, "all: %d", flag);
        CHECK(s[2].MPI_ERROR == MPI_ERR_TRUNCATE, "all: error %d", s[2].MPI_ERROR);
        FAILS(MPI_ERR_IN_STATUS, MPI_Request_get_status_some(n, r, &count, indices, s));
        CHECK(count == 4 && indices[1] == 2 && s[1].MPI_ERROR == MPI_ERR_TRUNCATE, "some: %d, error %d", count,
              s[1].MPI_ERROR);
        FAILS(MPI_ERR_TRUNCATE, MPI_Request_get_status_any(1, &r[2], &index, &flag, s));
        CHECK(flag && index == 0, "any: %d %d", flag, index);
        FAILS(MPI_ERR_TRUNCATE, MPI_Request_get_status(r[2], &flag, s));
        CHECK(flag, "one: %d", flag);
    }
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(n, r, s));
    CHECK(s[2].MPI_ERROR == MPI_ERR_TRUNCATE && r[2] == MPI_REQUEST_NULL, "Waitall: error %d", s[2].MPI_ERROR);
    OK(MPI_Request_free(&r[3]));
    OK(MPI_Request_free(&r[5]));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    on_none();
    one_after_the_other();
    errors();
    return finish();
}
