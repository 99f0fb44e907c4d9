// Matched probes: a message that was probed belongs to its handle, whatever is received meanwhile.
#include <pthread.h>

#include "check.h"

enum { n_sizes = 5 };
static const int sizes[n_sizes] = {0, 8, 5000, 60000, 500000};
static char* data;

static void expect(const MPI_Status* s, int source, int tag, int bytes) {
    int count = -1;
    MPI_Get_count(s, MPI_BYTE, &count);
    CHECK(s->MPI_SOURCE == source && s->MPI_TAG == tag && count == bytes, "status: %d %d %d, not %d %d %d",
          s->MPI_SOURCE, s->MPI_TAG, count, source, tag, bytes);
}

// Two messages of each size with one tag: the first is probed, the second received, then the first by its handle.
static void out_of_order(void) {
    for (int i = 0; i < n_sizes; i++) {
        const size_t n = (size_t)sizes[i];
        if (rank == 1) {
            MPI_Request r[2];
            char* other = malloc(n + 1);
            fill(data, n, 1);
            fill(other, n, 2);
            OK(MPI_Isend(data, sizes[i], MPI_BYTE, 0, i, MPI_COMM_WORLD, &r[0]));
            OK(MPI_Isend(other, sizes[i], MPI_BYTE, 0, i, MPI_COMM_WORLD, &r[1]));
            OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
            free(other);
        } else if (rank == 0) {
            MPI_Message m[2], third = MPI_MESSAGE_NULL;
            MPI_Status s;
            MPI_Request r;
            int flag = 0;
            OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &m[0], &s));
            CHECK(m[0] != MPI_MESSAGE_NULL && m[0] != MPI_MESSAGE_NO_PROC, "no message");
            expect(&s, 1, i, sizes[i]);
            if (i % 2) {
                OK(MPI_Recv(data, sizes[i], MPI_BYTE, 1, i, MPI_COMM_WORLD, &s));
            } else {
                while (!flag) OK(MPI_Improbe(1, i, MPI_COMM_WORLD, &flag, &m[1], &s));
                expect(&s, 1, i, sizes[i]);
                OK(MPI_Improbe(1, i, MPI_COMM_WORLD, &flag, &third, MPI_STATUS_IGNORE));
                CHECK(!flag, "a third message");
                OK(MPI_Imrecv(data, sizes[i], MPI_BYTE, &m[1], &r));
                CHECK(m[1] == MPI_MESSAGE_NULL, "the handle is still there");
                OK(MPI_Wait(&r, &s));
            }
            expect(&s, 1, i, sizes[i]);
            CHECK(differs(data, n, 2) < 0, "the second of %d bytes", sizes[i]);
            OK(MPI_Mrecv(data, sizes[i], MPI_BYTE, &m[0], &s));
            CHECK(m[0] == MPI_MESSAGE_NULL, "the handle is still there");
            expect(&s, 1, i, sizes[i]);
            CHECK(differs(data, n, 1) < 0, "the first of %d bytes", sizes[i]);
        }
    }
}

static void from_nobody(void) {
    MPI_Message m = MPI_MESSAGE_NULL;
    MPI_Request r;
    MPI_Status s;
    int flag = 0;
    OK(MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &m, &s));
    CHECK(m == MPI_MESSAGE_NO_PROC, "not MPI_MESSAGE_NO_PROC");
    expect(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Mrecv(data, 5, MPI_BYTE, &m, &s));
    CHECK(m == MPI_MESSAGE_NULL, "the handle is still there");
    expect(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Improbe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flag, &m, &s));
    CHECK(flag && m == MPI_MESSAGE_NO_PROC, "flag %d", flag);
    OK(MPI_Imrecv(data, 5, MPI_BYTE, &m, &r));
    OK(MPI_Wait(&r, &s));
    expect(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    OK(MPI_Improbe(rank, 4242, MPI_COMM_WORLD, &flag, &m, &s));
    CHECK(!flag, "a message from nowhere");
}

// A synchronous send is complete when it is received, not when it is probed; a short receive is an error of its own.
static void modes_and_errors(void) {
    MPI_Message m;
    MPI_Status s;
    if (rank == 1) {
        MPI_Request r;
        int flag;
        OK(MPI_Issend(data, 100, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &r));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 20; i++) {
            OK(MPI_Test(&r, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag, "complete before it was received");
        }
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        fill(data, 200000, 3);
        OK(MPI_Send(data, 100, MPI_BYTE, 0, 8, MPI_COMM_WORLD));
        OK(MPI_Send(data, 200000, MPI_BYTE, 0, 8, MPI_COMM_WORLD));
    } else if (rank == 0) {
        OK(MPI_Mprobe(1, 6, MPI_COMM_WORLD, &m, &s));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Mrecv(data, 100, MPI_BYTE, &m, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2; i++) {
            OK(MPI_Mprobe(1, 8, MPI_COMM_WORLD, &m, &s));
            memset(data, 'x', 200);
            FAILS(MPI_ERR_TRUNCATE, MPI_Mrecv(data, 50, MPI_BYTE, &m, &s));
            CHECK(differs(data, 50, 3) < 0 && data[50] == 'x' && m == MPI_MESSAGE_NULL, "a truncated message");
        }
        FAILS(MPI_ERR_REQUEST, MPI_Mrecv(data, 50, MPI_BYTE, &m, &s));  // MPI_MESSAGE_NULL
        FAILS(MPI_ERR_COUNT, (m = MPI_MESSAGE_NO_PROC, MPI_Mrecv(data, -1, MPI_BYTE, &m, &s)));
    }
}

// The communicator may go while a message of it is held.
static void outliving(void) {
    MPI_Comm c;
    MPI_Message m = MPI_MESSAGE_NO_PROC;
    MPI_Datatype every_second;
    int v[20];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    for (int i = 0; i < 20; i++) v[i] = i;
    if (rank == 1) OK(MPI_Send(v, 10, MPI_INT, 0, 9, c));
    if (rank == 0) OK(MPI_Mprobe(1, 9, c, &m, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&c));
    memset(v, 0, sizeof v);
    OK(MPI_Type_vector(10, 1, 2, MPI_INT, &every_second));
    OK(MPI_Type_commit(&every_second));
    OK(MPI_Mrecv(v, 1, every_second, &m, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&every_second));
    for (int i = 0; i < 20 && rank == 0; i++) CHECK(v[i] == (i % 2 ? 0 : i / 2), "element %d: %d", i, v[i]);
}

// Handles that are held while their ring goes round many times: of one line each, one after the other and two at once.
static void held_long(void) {
    enum { n = 3000 };
    MPI_Message m[2];
    MPI_Status s;
    MPI_Request r;
    int64_t v;
    if (rank == 1) {
        for (v = 0; v < n; v++) OK(MPI_Send(&v, 1, MPI_INT64_T, 0, (int)(v % 3), MPI_COMM_WORLD));
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else if (rank == 0) {
        for (int i = 0; i < n;) {
            const int hold = 2 + i % 700, first = i;
            OK(MPI_Mprobe(1, i % 3, MPI_COMM_WORLD, &m[0], &s));
            expect(&s, 1, i % 3, 8);
            i++;
            OK(MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &m[1], &s));
            expect(&s, 1, i % 3, 8);
            for (i++; i < n && i < first + hold; i++) {
                v = -1;
                OK(MPI_Recv(&v, 1, MPI_INT64_T, 1, i % 3, MPI_COMM_WORLD, &s));
                CHECK(v == i, "%d, not %d", (int)v, i);
            }
            for (int k = 0; k < 2; k++) {
                v = -1;
                if (first % 4 == k) {
                    OK(MPI_Imrecv(&v, 1, MPI_INT64_T, &m[k], &r));
                    OK(MPI_Wait(&r, &s));
                } else {
                    OK(MPI_Mrecv(&v, 1, MPI_INT64_T, &m[k], &s));
                }
                expect(&s, 1, (first + k) % 3, 8);
                CHECK(v == first + k && m[k] == MPI_MESSAGE_NULL, "%d, not %d", (int)v, first + k);
            }
        }
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
    }
}

// What matched probes are for: threads that probe for anything, and each receives what it has probed.
enum { threads = 4, messages = 400 };
static int seen[messages];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void* take_messages(void* unused) {
    (void)unused;
    for (;;) {
        MPI_Message m;
        MPI_Status s;
        int count, v[64];
        OK(MPI_Mprobe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &s));
        MPI_Get_count(&s, MPI_INT, &count);
        OK(MPI_Mrecv(v, count, MPI_INT, &m, MPI_STATUS_IGNORE));
        if (s.MPI_TAG == messages) return NULL;
        CHECK(count == 1 + s.MPI_TAG % 64, "message %d of %d ints", s.MPI_TAG, count);
        for (int i = 0; i < count; i++) CHECK(v[i] == s.MPI_TAG, "message %d holds %d", s.MPI_TAG, v[i]);
        pthread_mutex_lock(&lock);
        seen[s.MPI_TAG]++;
        pthread_mutex_unlock(&lock);
    }
}

static void by_threads(void) {
    if (rank == 1) {
        int v[64];
        for (int k = 0; k < messages; k++) {
            for (int i = 0; i < 64; i++) v[i] = k;
            OK(MPI_Send(v, 1 + k % 64, MPI_INT, 0, k, MPI_COMM_WORLD));
        }
        for (int t = 0; t < threads; t++) OK(MPI_Send(v, 1, MPI_INT, 0, messages, MPI_COMM_WORLD));
    } else if (rank == 0) {
        pthread_t t[threads];
        for (int i = 0; i < threads; i++) CHECK(pthread_create(&t[i], NULL, take_messages, NULL) == 0, "no thread");
        for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
        for (int k = 0; k < messages; k++) CHECK(seen[k] == 1, "message %d was received %d times", k, seen[k]);
    }
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size >= 2, "at least two ranks");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    data = malloc(500001);
    out_of_order();
    from_nobody();
    modes_and_errors();
    outliving();
    held_long();
    if (provided == MPI_THREAD_MULTIPLE) by_threads();
    free(data);
    return finish();
}
