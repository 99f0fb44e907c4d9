// Calls made of other ones: a send and a receive in one request, persistent requests, buffered sends at all three levels,
// generalized requests.
#include "check.h"

static MPI_Comm world;
static int right, left;

static void send_receive(void) {
    int out = rank, in = -1, count = -1;
    MPI_Request r;
    MPI_Status s;
    OK(MPI_Isendrecv(&out, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1, world, &r));
    OK(MPI_Wait(&r, &s));
    OK(MPI_Get_count(&s, MPI_INT, &count));
    CHECK(in == left && count == 1 && r == MPI_REQUEST_NULL, "got %d", in);
    CHECK(s.MPI_SOURCE == left && s.MPI_TAG == 1, "from %d with tag %d", s.MPI_SOURCE, s.MPI_TAG);
    in = rank;
    OK(MPI_Isendrecv_replace(&in, 1, MPI_INT, right, 2, left, 2, world, &r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(in == left, "got %d", in);
    // Large enough not to fit anywhere on the way: the cycle must not block.
    enum { n = 1 << 18 };
    int* big = malloc(n * sizeof *big);
    for (int i = 0; i < n; i++) big[i] = rank * n + i;
    OK(MPI_Isendrecv_replace(big, n, MPI_INT, right, 3, left, 3, world, &r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++) CHECK(big[i] == left * n + i, "at %d: %d", i, big[i]);
    OK(MPI_Isendrecv(big, n, MPI_INT, MPI_PROC_NULL, 4, &in, 1, MPI_INT, MPI_PROC_NULL, 4, world, &r));
    OK(MPI_Wait(&r, &s));
    CHECK(s.MPI_SOURCE == MPI_PROC_NULL, "source %d", s.MPI_SOURCE);
    free(big);
}

static void persistent(void) {
    int out = 0, in = -1, flag = 0;
    MPI_Request r[2];
    MPI_Status s;
    OK(MPI_Send_init(&out, 1, MPI_INT, right, 5, world, &r[0]));
    OK(MPI_Recv_init(&in, 1, MPI_INT, left, 5, world, &r[1]));
    OK(MPI_Wait(&r[1], &s));   // inactive: at once, and empty
    CHECK(s.MPI_SOURCE == MPI_ANY_SOURCE && r[1] != MPI_REQUEST_NULL, "source %d", s.MPI_SOURCE);
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&r[1]));
    for (int i = 0; i < 20; i++) {
        out = rank * 100 + i;
        if (i % 2) OK(MPI_Startall(2, r));
        else { OK(MPI_Start(&r[1])); OK(MPI_Start(&r[0])); }
        FAILS(MPI_ERR_REQUEST, MPI_Start(&r[1]));
        if (i % 3 == 0) OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        else {
            OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
            do OK(MPI_Test(&r[1], &flag, &s)); while (!flag);
            CHECK(s.MPI_SOURCE == left && s.MPI_TAG == 5, "from %d", s.MPI_SOURCE);
        }
        CHECK(in == left * 100 + i, "round %d: got %d", i, in);
    }
    OK(MPI_Request_free(&r[1]));
    CHECK(r[1] == MPI_REQUEST_NULL, "freed");

    // Freed while active: it still arrives.
    out = 7;
    OK(MPI_Start(&r[0]));
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Recv(&in, 1, MPI_INT, left, 5, world, MPI_STATUS_IGNORE));
    CHECK(in == 7, "got %d", in);

    // A receive nobody sends for can be cancelled, and started again.
    OK(MPI_Recv_init(&in, 1, MPI_INT, left, 6, world, &r[0]));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Start(&r[0]));
        OK(MPI_Cancel(&r[0]));
        OK(MPI_Wait(&r[0], &s));
        OK(MPI_Test_cancelled(&s, &flag));
        CHECK(flag, "not cancelled");
    }
    OK(MPI_Request_free(&r[0]));

    // With nothing active the status is empty, MPI_ERROR included.
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int index = 0;
    s.MPI_ERROR = s.MPI_TAG = 99;
    OK(MPI_Request_get_status_any(2, none, &index, &flag, &s));
    CHECK(flag && index == MPI_UNDEFINED && s.MPI_ERROR == MPI_SUCCESS && s.MPI_TAG == MPI_ANY_TAG, "error %d", s.MPI_ERROR);

    // The type may be freed at once; the request keeps it.
    MPI_Datatype pair;
    int two[2] = {rank, rank + 1}, got[2];
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Ssend_init(two, 1, pair, right, 7, world, &r[0]));
    OK(MPI_Recv_init(got, 1, pair, left, 7, world, &r[1]));
    OK(MPI_Type_free(&pair));
    OK(MPI_Startall(2, r));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    CHECK(got[0] == left && got[1] == left + 1, "got %d %d", got[0], got[1]);
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
}

static void buffered(void) {
    enum { ints = 100, messages = 4 };
    int data[ints] = {0}, n = messages * (ints * (int)sizeof(int) + MPI_BSEND_OVERHEAD), bytes = -1;
    void *memory = malloc((size_t)n), *address = &bytes;
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, 1, MPI_INT, right, 1, world));
    OK(MPI_Buffer_attach(memory, n));
    FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(memory, n));
    for (int round = 0; round < 5; round++) {
        for (int k = 0; k < messages; k++) {
            for (int i = 0; i < ints; i++) data[i] = rank * 1000 + k;
            OK(MPI_Bsend(data, ints, MPI_INT, right, 10 + k, world));
        }
        for (int k = messages - 1; k >= 0; k--) {
            OK(MPI_Recv(data, ints, MPI_INT, left, 10 + k, world, MPI_STATUS_IGNORE));
            CHECK(data[ints - 1] == left * 1000 + k, "got %d", data[ints - 1]);
        }
        OK(MPI_Buffer_flush());
    }
    char* large = calloc(1, (size_t)n);
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(large, n, MPI_CHAR, right, 1, world));   // with its overhead it does not fit
    free(large);
    OK(MPI_Buffer_detach(&address, &bytes));
    CHECK(address == memory && bytes == n, "%d bytes", bytes);
    OK(MPI_Buffer_detach(&address, &bytes));
    CHECK(address == NULL && bytes == 0, "%d bytes", bytes);

    // The communicator's buffer comes first: its size decides, though the process's would do.
    OK(MPI_Buffer_attach(memory, n));
    OK(MPI_Comm_attach_buffer(world, memory, 1));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(data, 1, MPI_INT, right, 1, world));
    OK(MPI_Comm_detach_buffer(world, &address, &bytes));
    CHECK(address == memory && bytes == 1, "%d bytes", bytes);
    OK(MPI_Comm_attach_buffer(world, MPI_BUFFER_AUTOMATIC, 0));
    MPI_Request send, flush, now;
    OK(MPI_Bsend_init(data, ints, MPI_INT, right, 20, world, &send));
    for (int i = 0; i < 50; i++) {
        data[0] = i;
        OK(MPI_Start(&send));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
    OK(MPI_Ibsend(data, 1, MPI_INT, right, 21, world, &now));
    OK(MPI_Wait(&now, MPI_STATUS_IGNORE));
    OK(MPI_Comm_iflush_buffer(world, &flush));
    for (int i = 0; i < 50; i++) {
        OK(MPI_Recv(data, ints, MPI_INT, left, 20, world, MPI_STATUS_IGNORE));
        CHECK(data[0] == i, "message %d: %d", i, data[0]);
    }
    OK(MPI_Recv(data, 1, MPI_INT, left, 21, world, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&flush, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Comm_detach_buffer(world, &address, &bytes));
    CHECK(address == MPI_BUFFER_AUTOMATIC, "%p", address);
    OK(MPI_Barrier(world));
    free(memory);   // still attached to the process: MPI_Finalize detaches it, and never reads it
}

static int queries, frees, cancels;
static int query(void* extra, MPI_Status* s) {
    queries++;
    MPI_Status_set_elements(s, MPI_INT, *(int*)extra);
    MPI_Status_set_cancelled(s, 0);
    s->MPI_SOURCE = 7;
    s->MPI_TAG = 8;
    return MPI_SUCCESS;
}
static int release(void* extra) { return frees++, *(int*)extra == 13 ? MPI_ERR_OTHER : MPI_SUCCESS; }
static int cancel(void* extra, int complete) { return cancels += 1 + complete, (void)extra, MPI_SUCCESS; }

static void generalized(void) {
    int extra = 3, flag = -1, count = -1;
    MPI_Request g;
    MPI_Status s;
    OK(MPI_Grequest_start(query, release, cancel, &extra, &g));
    OK(MPI_Test(&g, &flag, &s));
    CHECK(!flag && queries == 0, "flag %d", flag);
    OK(MPI_Cancel(&g));
    CHECK(cancels == 1, "%d", cancels);
    OK(MPI_Grequest_complete(g));
    OK(MPI_Request_get_status(g, &flag, &s));
    CHECK(flag && queries == 1 && frees == 0 && s.MPI_SOURCE == 7, "flag %d", flag);
    OK(MPI_Wait(&g, &s));
    CHECK(queries == 2 && frees == 1 && g == MPI_REQUEST_NULL && s.MPI_TAG == 8, "%d queries", queries);
    OK(MPI_Get_count(&s, MPI_INT, &count));
    CHECK(count == 3, "%d", count);

    extra = 13;   // the free function's error is the result
    OK(MPI_Grequest_start(query, release, cancel, &extra, &g));
    OK(MPI_Grequest_complete(g));
    FAILS(MPI_ERR_OTHER, MPI_Wait(&g, MPI_STATUS_IGNORE));
    CHECK(g == MPI_REQUEST_NULL, "kept");

    extra = 0;   // freed first, complete later
    OK(MPI_Grequest_start(query, release, cancel, &extra, &g));
    MPI_Request mine = g;
    OK(MPI_Request_free(&g));
    CHECK(frees == 2, "%d frees", frees);
    OK(MPI_Grequest_complete(mine));
    CHECK(frees == 3, "%d frees", frees);
    FAILS(MPI_ERR_ARG, MPI_Grequest_start(NULL, release, cancel, &extra, &g));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    send_receive();
    persistent();
    buffered();
    generalized();
    OK(MPI_Comm_free(&world));
    return finish();
}
