// Persistent sends and receives of all modes: many rounds, statuses, inactive requests, freeing, cancelling, errors.
#include "check.h"

static int is_empty(const MPI_Status* s) {
    int count = -1, cancelled = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    MPI_Test_cancelled(s, &cancelled);
    return s->MPI_SOURCE == MPI_ANY_SOURCE && s->MPI_TAG == MPI_ANY_TAG && count == 0 && !cancelled;
}

static void expect(const MPI_Status* s, int source, int tag, int bytes) {
    int count = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    CHECK(s->MPI_SOURCE == source && s->MPI_TAG == tag && count == bytes, "status: %d %d %d, not %d %d %d",
          s->MPI_SOURCE, s->MPI_TAG, count, source, tag, bytes);
}

enum { rounds = 50, n_sizes = 6 };
static const int sizes[n_sizes] = {0, 8, 48, 5000, 70000, 400000};
static char* out[n_sizes];
static char* in[n_sizes];

// Everybody sends to the next one and receives from the one before, by the same requests in each round. A message of
// half the size in odd rounds must not remain in the request.
static void ring(int mode, int any) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Request r[2 * n_sizes];
    MPI_Status s[2 * n_sizes];
    static char space[1 << 21];
    if (mode == 3) OK(MPI_Buffer_attach(space, sizeof space));
    for (int i = 0; i < n_sizes; i++) {
        OK(MPI_Recv_init(in[i], sizes[i] + 1, MPI_BYTE, any ? MPI_ANY_SOURCE : from, i, MPI_COMM_WORLD, &r[i]));
        MPI_Request* send = &r[n_sizes + i];
        switch (mode) {
        case 0: OK(MPI_Send_init(out[i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, send)); break;
        case 1: OK(MPI_Ssend_init(out[i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, send)); break;
        case 2: OK(MPI_Rsend_init(out[i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, send)); break;
        case 3: OK(MPI_Bsend_init(out[i], sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, send)); break;
        }
    }
    for (int round = 0; round < rounds; round++) {
        int flag = 0;
        MPI_Status one;
        memset(&one, 1, sizeof one);
        OK(MPI_Wait(&r[round % (2 * n_sizes)], &one));  // inactive: returns at once, and stays
        CHECK(is_empty(&one) && r[round % (2 * n_sizes)] != MPI_REQUEST_NULL, "an inactive request is not empty");
        for (int i = 0; i < n_sizes; i++) {
            fill(out[i], (size_t)sizes[i], (uint32_t)(rank * 1000 + round * 10 + i));
            memset(in[i], 0, (size_t)sizes[i]);
        }
        if (mode == 2) {  // the receives have been started before any ready send
            OK(MPI_Startall(n_sizes, r));
            OK(MPI_Sendrecv(NULL, 0, MPI_INT, from, 99, NULL, 0, MPI_INT, to, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Startall(n_sizes, r + n_sizes));
        } else if (round % 2) {
            OK(MPI_Startall(2 * n_sizes, r));
        } else {  // the messages are there first, where the mode lets them
            for (int i = 2 * n_sizes - 1; i >= 0; i--) OK(MPI_Start(&r[i]));
        }
        memset(s, 1, sizeof s);
        if (round % 3 == 2) {
            while (!flag) OK(MPI_Testall(2 * n_sizes, r, &flag, s));
        } else if (round % 3 == 1) {
            for (int left = 2 * n_sizes; left > 0; left--) {
                int index;
                OK(MPI_Waitany(2 * n_sizes, r, &index, &one));
                CHECK(index >= 0 && index < 2 * n_sizes, "Waitany: %d", index);
                s[index] = one;
            }
            int index;
            OK(MPI_Waitany(2 * n_sizes, r, &index, &one));
            CHECK(index == MPI_UNDEFINED, "Waitany of inactive requests: %d", index);
        } else {
            OK(MPI_Waitall(2 * n_sizes, r, s));
        }
        for (int i = 0; i < n_sizes; i++) {
            expect(&s[i], from, i, sizes[i]);
            CHECK(differs(in[i], (size_t)sizes[i], (uint32_t)(from * 1000 + round * 10 + i)) < 0,
                  "mode %d, round %d, size %d", mode, round, sizes[i]);
            CHECK(r[i] != MPI_REQUEST_NULL && r[n_sizes + i] != MPI_REQUEST_NULL, "a request is gone");
        }
    }
    for (int i = 0; i < 2 * n_sizes; i++) {
        OK(MPI_Request_free(&r[i]));
        CHECK(r[i] == MPI_REQUEST_NULL, "not null after MPI_Request_free");
    }
    if (mode == 3) {
        void* address;
        int bytes;
        OK(MPI_Buffer_detach(&address, &bytes));
        CHECK(address == space && bytes == (int)sizeof space, "detached %p, %d", address, bytes);
    }
}

// The type and the communicator may be freed while the request lives, the request while it is active.
static void freed_early(void) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Datatype every_second;
    int sent[20], got[10];
    MPI_Request send, recv;
    OK(MPI_Type_vector(10, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Send_init(sent, 1, every_second, to, 7, MPI_COMM_WORLD, &send));
    OK(MPI_Recv_init(got, 10, MPI_INT, from, 7, MPI_COMM_WORLD, &recv));
    OK(MPI_Type_free(&every_second));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) sent[i] = rank * 100 + round + i;
        OK(MPI_Start(&recv));
        OK(MPI_Start(&send));
        OK(MPI_Wait(&recv, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        for (int i = 0; i < 10; i++)
            CHECK(got[i] == from * 100 + round + 2 * i, "round %d, element %d: %d", round, i, got[i]);
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&recv));

    static char large[1 << 20], there[1 << 20];
    fill(large, sizeof large, (uint32_t)rank);
    OK(MPI_Send_init(large, sizeof large, MPI_BYTE, to, 8, MPI_COMM_WORLD, &send));
    OK(MPI_Start(&send));
    OK(MPI_Request_free(&send));
    CHECK(send == MPI_REQUEST_NULL, "an active request is not null after MPI_Request_free");
    OK(MPI_Recv(there, sizeof there, MPI_BYTE, from, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(differs(there, sizeof there, (uint32_t)from) < 0, "the freed send's data");
    // Nothing else says that it has left: the receiver does.
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, from, 9, NULL, 0, MPI_INT, to, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void cancelled(void) {
    MPI_Request r;
    MPI_Status s;
    int value = 5, flag;
    OK(MPI_Recv_init(&value, 1, MPI_INT, rank, 11, MPI_COMM_WORLD, &r));
    OK(MPI_Start(&r));
    OK(MPI_Cancel(&r));
    OK(MPI_Wait(&r, &s));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(flag && r != MPI_REQUEST_NULL, "the receive was not cancelled");
    OK(MPI_Start(&r));  // and it works again
    int seven = 7;
    OK(MPI_Send(&seven, 1, MPI_INT, rank, 11, MPI_COMM_WORLD));
    OK(MPI_Wait(&r, &s));
    OK(MPI_Test_cancelled(&s, &flag));
    CHECK(!flag && value == 7, "after cancelling: %d", value);
    OK(MPI_Request_free(&r));
}

static void to_nobody(void) {
    MPI_Request r[2];
    MPI_Status s[2];
    int value = 5;
    OK(MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &r[0]));
    OK(MPI_Ssend_init(&value, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &r[1]));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Startall(2, r));
        OK(MPI_Waitall(2, r, s));
        expect(&s[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    }
    CHECK(value == 5, "MPI_PROC_NULL sent %d", value);
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static void refused(void) {
    MPI_Request r, plain;
    MPI_Status s;
    int value = 1, two[2] = {1, 2};
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Recv_init(&value, 1, MPI_INT, rank, 12, MPI_COMM_WORLD, &r));
    OK(MPI_Start(&r));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&r));
    OK(MPI_Send(two, 2, MPI_INT, rank, 12, MPI_COMM_WORLD));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&r, &s));
    OK(MPI_Start(&r));  // an error is of one round only
    OK(MPI_Send(two, 1, MPI_INT, rank, 12, MPI_COMM_WORLD));
    OK(MPI_Wait(&r, &s));
    OK(MPI_Request_free(&r));
    OK(MPI_Irecv(&value, 1, MPI_INT, rank, 12, MPI_COMM_WORLD, &plain));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&plain));
    OK(MPI_Send(two, 1, MPI_INT, rank, 12, MPI_COMM_WORLD));
    OK(MPI_Wait(&plain, &s));
    FAILS(MPI_ERR_TAG, MPI_Send_init(two, 1, MPI_INT, 0, -5, MPI_COMM_WORLD, &r));
    FAILS(MPI_ERR_COUNT, MPI_Recv_init(two, -1, MPI_INT, 0, 5, MPI_COMM_WORLD, &r));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    for (int i = 0; i < n_sizes; i++) {
        out[i] = malloc((size_t)sizes[i] + 1);
        in[i] = malloc((size_t)sizes[i] + 1);
    }
    for (int mode = 0; mode < 4; mode++)
        for (int any = 0; any < 2; any++) ring(mode, any);
    freed_early();
    cancelled();
    to_nobody();
    refused();
    return finish();
}
