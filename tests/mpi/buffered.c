// Buffered sends: the levels of buffers and which one is taken, room and its end, MPI_BUFFER_AUTOMATIC, flushing,
// detaching, and the errors.
#include "check.h"

enum { far = 2 << 20 };  // neither it nor half of it is sent at once: such messages stay in the buffer until they are received

static char* big;        // `far` bytes
static char* place;      // where they are received

static void detach_expecting(const void* address, long bytes) {
    void* a = &a;
    int n = -1;
    OK(MPI_Buffer_detach(&a, &n));
    CHECK(a == address && (bytes < 0 || n == bytes), "detached %p and %d, not %p and %ld", a, n, address, bytes);
}

static void receive(int tag, uint32_t id, int bytes) {
    MPI_Status s;
    int count;
    memset(place, 0, (size_t)bytes);
    OK(MPI_Recv(place, far, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, &s));
    MPI_Get_count(&s, MPI_BYTE, &count);
    CHECK(count == bytes && differs(place, (size_t)bytes, id) < 0, "message %u: %d bytes of %d", id, count, bytes);
}

static void go(void) { OK(MPI_Send(NULL, 0, MPI_INT, 1 - rank, 1000, MPI_COMM_WORLD)); }
static void wait_for_go(void) { OK(MPI_Recv(NULL, 0, MPI_INT, 1 - rank, 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

// Without a buffer: an error, also for small messages; not for messages to nobody.
static void without(void) {
    char c = 0;
    MPI_Request r;
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(&c, 1, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Ibsend(big, far, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &r));
    OK(MPI_Bsend_init(&c, 1, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &r));
    FAILS(MPI_ERR_BUFFER, MPI_Start(&r));  // the buffer is chosen at the start
    OK(MPI_Request_free(&r));
    OK(MPI_Bsend(&c, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    detach_expecting(NULL, 0);
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_iflush(&r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
}

// What the standard promises room for fits, at any address; the sender does not wait for the receiver.
static void promised_room(int messages, int bytes, int skew) {
    const size_t space = (size_t)messages * ((size_t)bytes + MPI_BSEND_OVERHEAD);
    char* buffer = malloc(space + 64);
    if (rank == 0) {
        OK(MPI_Buffer_attach(buffer + skew, (int)space));
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < messages; i++) {
                fill(big, (size_t)bytes, (uint32_t)(i + round));
                OK(MPI_Bsend(big, bytes, MPI_BYTE, 1, i % 7, MPI_COMM_WORLD));
            }
            memset(big, 0xee, (size_t)bytes);
            go();
            wait_for_go();  // all of it has been received: the room is free again
        }
        detach_expecting(buffer + skew, (long)space);
    } else {
        for (int round = 0; round < 2; round++) {
            wait_for_go();
            for (int i = 0; i < messages; i++) receive(i % 7, (uint32_t)(i + round), bytes);
            go();
        }
    }
    free(buffer);
}

// Receives in another order leave holes, which are joined.
static void holes(void) {
    const int n = 6, half = far / 2;
    const size_t space = (size_t)n * ((size_t)half + MPI_BSEND_OVERHEAD);
    char* buffer = malloc(space);
    if (rank == 0) {
        OK(MPI_Buffer_attach(buffer, (int)space));
        for (int i = 0; i < n; i++) {
            fill(big, (size_t)half, (uint32_t)i);
            OK(MPI_Bsend(big, half, MPI_BYTE, 1, i, MPI_COMM_WORLD));
        }
        FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, half, MPI_BYTE, 1, n, MPI_COMM_WORLD));
        FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, far, MPI_BYTE, 1, n, MPI_COMM_WORLD));
        go();
        wait_for_go();  // 2 and 3 are out: room for a message of twice the size
        fill(big, far, 77);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 77, MPI_COMM_WORLD));
        FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, half, MPI_BYTE, 1, n, MPI_COMM_WORLD));
        go();
        detach_expecting(buffer, (long)space);
    } else {
        wait_for_go();
        receive(3, 3, half);
        receive(2, 2, half);
        go();
        wait_for_go();
        receive(77, 77, far);
        for (int i = n - 1; i >= 0; i--)
            if (i != 2 && i != 3) receive(i, (uint32_t)i, half);
    }
    free(buffer);
}

// Flushing waits for what is in the buffer, and leaves it attached; the request does the same without waiting.
static void flushing(void) {
    const int space = 2 * (far + MPI_BSEND_OVERHEAD);
    char* buffer = malloc((size_t)space);
    if (rank == 0) {
        MPI_Request r, idle;
        int flag;
        OK(MPI_Buffer_attach(buffer, space));
        OK(MPI_Buffer_iflush(&r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        fill(big, far, 1);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Buffer_iflush(&r));
        for (int i = 0; i < 20; i++) {
            OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag, "flushed what nobody has received");
        }
        OK(MPI_Buffer_iflush(&idle));
        OK(MPI_Request_free(&idle));
        go();
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        fill(big, far, 2);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        go();
        OK(MPI_Buffer_flush());
        OK(MPI_Buffer_iflush(&r));
        OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
        CHECK(flag, "nothing is left to flush");
        fill(big, far, 3);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Buffer_iflush(&r));  // and is completed after the buffer has gone
        go();
        detach_expecting(buffer, space);
        memset(buffer, 0xee, (size_t)space);
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    } else {
        for (uint32_t i = 1; i <= 3; i++) {
            wait_for_go();
            receive(1, i, far);
        }
    }
    free(buffer);
}

static void automatic(void) {
    const int n = 60;
    if (rank == 0) {
        OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
        MPI_Request r[n];
        for (int i = 0; i < n; i++) {
            const int bytes = i % 3 == 0 ? 8 : i % 3 == 1 ? 5000 : 200000;
            fill(big, (size_t)bytes, (uint32_t)i);
            OK(MPI_Ibsend(big, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &r[i]));
        }
        memset(big, 0xee, far);
        OK(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
        go();
        OK(MPI_Buffer_flush());
        detach_expecting(MPI_BUFFER_AUTOMATIC, -1);
        detach_expecting(NULL, 0);
    } else {
        wait_for_go();
        for (int i = 0; i < n; i++) receive(1, (uint32_t)i, i % 3 == 0 ? 8 : i % 3 == 1 ? 5000 : 200000);
    }
}

// The communicator's buffer is taken before the process's, and there is no way over to the other.
static void levels(void) {
    char* of_comm = malloc(far + MPI_BSEND_OVERHEAD);
    char* of_process = malloc(far + MPI_BSEND_OVERHEAD);
    if (rank == 0) {
        void* a;
        int n;
        MPI_Request r;
        OK(MPI_Buffer_attach(of_process, far + MPI_BSEND_OVERHEAD));
        OK(MPI_Comm_attach_buffer(MPI_COMM_WORLD, of_comm, far + MPI_BSEND_OVERHEAD));
        FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(of_process, 100));
        FAILS(MPI_ERR_BUFFER, MPI_Comm_attach_buffer(MPI_COMM_WORLD, of_comm, 100));
        fill(big, far, 1);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, far, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
        OK(MPI_Buffer_flush());  // nothing is in that one
        OK(MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &r));
        go();
        OK(MPI_Comm_flush_buffer(MPI_COMM_WORLD));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        OK(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &a, &n));
        CHECK(a == of_comm && n == far + MPI_BSEND_OVERHEAD, "detached %p %d", a, n);
        OK(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &a, &n));
        CHECK(a == NULL && n == 0, "detached %p %d from nothing", a, n);
        fill(big, far, 2);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 2, MPI_COMM_WORLD));  // now into the process's
        MPI_Count wide;
        go();
        OK(MPI_Buffer_detach_c(&a, &wide));
        CHECK(a == of_process && wide == far + MPI_BSEND_OVERHEAD, "detached %p %lld", a, (long long)wide);
    } else {
        for (int i = 1; i <= 2; i++) {
            wait_for_go();
            receive(i, (uint32_t)i, far);
        }
    }
    free(of_comm);
    free(of_process);
}

// A buffer goes with its communicator, and the messages in it are sent; a later communicator has none.
static void of_a_communicator(void) {
    char* buffer = malloc(far + MPI_BSEND_OVERHEAD);
    for (int round = 0; round < 3; round++) {
        MPI_Comm c;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
        FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, 8, MPI_BYTE, 1 - rank, 1, c));
        if (rank == 0) {
            OK(MPI_Comm_attach_buffer(c, buffer, far + MPI_BSEND_OVERHEAD));
            fill(big, far, (uint32_t)round);
            OK(MPI_Bsend(big, far, MPI_BYTE, 1, 1, c));
            if (round == 1) OK(MPI_Comm_disconnect(&c));
            else OK(MPI_Comm_free(&c));
            memset(buffer, 0xee, far + MPI_BSEND_OVERHEAD);
        } else {
            MPI_Request r;
            memset(place, 0, far);
            OK(MPI_Irecv(place, far, MPI_BYTE, 0, 1, c, &r));
            if (round == 1) OK(MPI_Comm_disconnect(&c));
            else OK(MPI_Comm_free(&c));
            OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
            CHECK(differs(place, far, (uint32_t)round) < 0, "round %d", round);
        }
    }
    free(buffer);
}

// A session's buffer serves the communicators that descend from it, after their own and before the process's.
static void of_a_session(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm c;
    void* a;
    int bytes;
    char* buffer = malloc(far + MPI_BSEND_OVERHEAD);
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "buffered", MPI_INFO_NULL, MPI_ERRORS_RETURN, &c));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_attach_buffer(session, buffer, far + MPI_BSEND_OVERHEAD));
    FAILS(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, buffer, 100));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, 8, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD));  // not of the session
    if (rank == 0) {
        MPI_Request r;
        int flag;
        OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
        fill(big, far, 6);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 1, c));
        FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, far, MPI_BYTE, 1, 1, c));  // full, though the process's has no end
        OK(MPI_Session_iflush_buffer(session, &r));
        OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "flushed what nobody has received");
        go();
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        OK(MPI_Session_flush_buffer(session));
        detach_expecting(MPI_BUFFER_AUTOMATIC, -1);
    } else {
        wait_for_go();
        memset(place, 0, far);
        OK(MPI_Recv(place, far, MPI_BYTE, 0, 1, c, MPI_STATUS_IGNORE));
        CHECK(differs(place, far, 6) < 0, "through the session's buffer");
    }
    OK(MPI_Session_detach_buffer(session, &a, &bytes));
    CHECK(a == buffer && bytes == far + MPI_BSEND_OVERHEAD, "detached %p %d", a, bytes);
    OK(MPI_Session_attach_buffer(session, buffer, far + MPI_BSEND_OVERHEAD));  // and goes with the session
    OK(MPI_Comm_free(&c));
    OK(MPI_Session_finalize(&session));
    free(buffer);
}

// To oneself; and a size beyond int.
static void to_self(void) {
    char* buffer = malloc(far + MPI_BSEND_OVERHEAD);
    OK(MPI_Buffer_attach(buffer, far + MPI_BSEND_OVERHEAD));
    fill(big, far, 5);
    OK(MPI_Bsend(big, far, MPI_BYTE, rank, 3, MPI_COMM_WORLD));
    FAILS(MPI_ERR_BUFFER, MPI_Bsend(big, far, MPI_BYTE, rank, 3, MPI_COMM_WORLD));
    OK(MPI_Recv(place, far, MPI_BYTE, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(differs(place, far, 5) < 0, "to oneself");
    detach_expecting(buffer, far + MPI_BSEND_OVERHEAD);
    free(buffer);
    void* a = NULL;
    int n;
    MPI_Count wide;
    OK(MPI_Buffer_attach_c(big, (MPI_Count)3 << 30));  // more than there is, but none of it is touched
    FAILS(MPI_ERR_VALUE_TOO_LARGE, MPI_Buffer_detach(&a, &n));
    OK(MPI_Buffer_detach_c(&a, &wide));
    CHECK(a == big && wide == (MPI_Count)3 << 30, "detached %p %lld", a, (long long)wide);
    FAILS(MPI_ERR_BUFFER, MPI_Buffer_attach(NULL, 100));
    FAILS(MPI_ERR_ARG, MPI_Buffer_attach(big, -1));
}

static void typed(void) {
    if (rank == 0) {
        MPI_Datatype every_second;
        int v[2000];
        char* buffer = malloc(4000 + MPI_BSEND_OVERHEAD);
        for (int i = 0; i < 2000; i++) v[i] = i;
        OK(MPI_Type_vector(1000, 1, 2, MPI_INT, &every_second));
        OK(MPI_Type_commit(&every_second));
        OK(MPI_Buffer_attach(buffer, 4000 + MPI_BSEND_OVERHEAD));
        OK(MPI_Bsend(v, 1, every_second, 1, 4, MPI_COMM_WORLD));
        OK(MPI_Type_free(&every_second));
        memset(v, 0, sizeof v);
        detach_expecting(buffer, 4000 + MPI_BSEND_OVERHEAD);
        free(buffer);
    } else {
        int v[1000];
        OK(MPI_Recv(v, 1000, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 1000; i++) CHECK(v[i] == 2 * i, "element %d: %d", i, v[i]);
    }
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size == 2, "two ranks");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    big = malloc(far);
    place = malloc(far);
    without();
    promised_room(1, 100, 0);
    promised_room(1, far, 63);
    promised_room(300, 17, 1);
    promised_room(40, 5000, 8);
    promised_room(10, 100000, 33);
    holes();
    flushing();
    automatic();
    levels();
    of_a_communicator();
    of_a_session();
    to_self();
    typed();
    // What is in the buffer at the end is sent by MPI_Finalize.
    static char last[far + MPI_BSEND_OVERHEAD];
    if (rank == 0) {
        OK(MPI_Buffer_attach(last, sizeof last));
        fill(big, far, 9);
        OK(MPI_Bsend(big, far, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
        free(big);
    } else {
        sleep_ms(20);
        receive(9, 9, far);
    }
    return finish();
}
