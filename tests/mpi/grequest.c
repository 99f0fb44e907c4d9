// Generalized requests: alone, among others, from another thread, cancelled, freed, and their errors.
#include <pthread.h>

#include "check.h"

struct op {
    int value, queried, freed, cancels, complete_seen, cancelled, fail;
};

static int on_query(void* extra, MPI_Status* s) {
    struct op* o = extra;
    o->queried++;
    MPI_Status_set_elements(s, MPI_INT, o->value);
    MPI_Status_set_cancelled(s, o->cancelled);
    s->MPI_SOURCE = o->value + 1;
    s->MPI_TAG = o->value + 2;
    return o->fail ? MPI_ERR_OTHER : MPI_SUCCESS;
}
static int on_free(void* extra) {
    ((struct op*)extra)->freed++;
    return MPI_SUCCESS;
}
static int on_cancel(void* extra, int complete) {
    struct op* o = extra;
    o->cancels++;
    o->complete_seen = complete;
    o->cancelled = !complete;
    return MPI_SUCCESS;
}

static void expect(const MPI_Status* s, const struct op* o) {
    int count = -1, elements = -1, cancelled = -1;
    MPI_Get_count(s, MPI_INT, &count);
    MPI_Get_elements(s, MPI_INT, &elements);
    MPI_Test_cancelled(s, &cancelled);
    CHECK(s->MPI_SOURCE == o->value + 1 && s->MPI_TAG == o->value + 2, "source %d, tag %d", s->MPI_SOURCE, s->MPI_TAG);
    CHECK(count == o->value && elements == o->value && cancelled == o->cancelled, "count %d, cancelled %d", count,
          cancelled);
}

static MPI_Request begin(struct op* o, int value) {
    MPI_Request r;
    *o = (struct op){.value = value};
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, o, &r));
    return r;
}

static void alone(void) {
    struct op o;
    MPI_Status s;
    int flag;
    MPI_Request r = begin(&o, 3);
    OK(MPI_Test(&r, &flag, &s));
    CHECK(!flag && o.queried == 0, "complete before MPI_Grequest_complete");
    OK(MPI_Request_get_status(r, &flag, &s));
    CHECK(!flag, "complete before MPI_Grequest_complete");
    OK(MPI_Grequest_complete(r));
    OK(MPI_Request_get_status(r, &flag, &s));
    CHECK(flag && o.freed == 0, "MPI_Request_get_status: %d, freed %d", flag, o.freed);
    expect(&s, &o);
    OK(MPI_Wait(&r, &s));
    expect(&s, &o);
    CHECK(r == MPI_REQUEST_NULL && o.freed == 1, "freed %d times", o.freed);
    r = begin(&o, 4);
    OK(MPI_Grequest_complete(r));
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    CHECK(o.freed == 1 && o.queried >= 1, "without a status: queried %d, freed %d", o.queried, o.freed);
}

static void among_others(void) {
    struct op o[3];
    MPI_Request r[7];
    MPI_Status s[7];
    int in = -1, outcount, indices[7], index, flag, value = 9;
    r[0] = begin(&o[0], 10);
    OK(MPI_Irecv(&in, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &r[1]));
    r[2] = begin(&o[1], 20);
    r[3] = MPI_REQUEST_NULL;
    OK(MPI_Isend(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &r[4]));
    r[5] = begin(&o[2], 30);
    r[6] = MPI_REQUEST_NULL;
    OK(MPI_Grequest_complete(r[2]));
    for (int left = 3; left > 0; left -= outcount) {
        OK(MPI_Waitsome(7, r, &outcount, indices, s));
        CHECK(outcount > 0, "Waitsome: %d", outcount);
        for (int i = 0; i < outcount; i++) {
            CHECK(indices[i] == 1 || indices[i] == 2 || indices[i] == 4, "index %d", indices[i]);
            if (indices[i] == 2) expect(&s[i], &o[1]);
        }
    }
    OK(MPI_Testany(7, r, &index, &flag, &s[0]));
    CHECK(!flag && index == MPI_UNDEFINED, "Testany: %d %d", flag, index);
    OK(MPI_Grequest_complete(r[5]));
    OK(MPI_Waitany(7, r, &index, &s[0]));
    CHECK(index == 5 && o[2].freed == 1, "Waitany: %d", index);
    expect(&s[0], &o[2]);
    OK(MPI_Grequest_complete(r[0]));
    OK(MPI_Waitall(7, r, s));
    expect(&s[0], &o[0]);
    CHECK(o[0].freed == 1 && o[1].freed == 1 && in == 9, "freed %d %d, received %d", o[0].freed, o[1].freed, in);
}

static void cancelled_and_freed(void) {
    struct op o;
    MPI_Status s;
    MPI_Request r = begin(&o, 5), copy;
    OK(MPI_Cancel(&r));
    CHECK(o.cancels == 1 && !o.complete_seen, "cancel: %d, %d", o.cancels, o.complete_seen);
    OK(MPI_Grequest_complete(r));
    OK(MPI_Wait(&r, &s));
    expect(&s, &o);
    r = begin(&o, 6);
    OK(MPI_Grequest_complete(r));
    OK(MPI_Cancel(&r));
    CHECK(o.cancels == 1 && o.complete_seen, "cancel after completion: %d", o.complete_seen);
    OK(MPI_Wait(&r, &s));
    // Freed before it completes: the free function runs at completion; afterwards: at once.
    r = copy = begin(&o, 7);
    OK(MPI_Request_free(&r));
    CHECK(r == MPI_REQUEST_NULL && o.freed == 0, "freed too early");
    OK(MPI_Grequest_complete(copy));
    CHECK(o.freed == 1, "freed %d times", o.freed);
    r = begin(&o, 8);
    OK(MPI_Grequest_complete(r));
    OK(MPI_Request_free(&r));
    CHECK(o.freed == 1, "freed %d times", o.freed);
}

static void* complete_later(void* request) {
    sleep_ms(30);
    OK(MPI_Grequest_complete(*(MPI_Request*)request));
    return NULL;
}

static void from_another_thread(void) {
    for (int i = 0; i < 5; i++) {
        struct op o;
        MPI_Status s;
        MPI_Request r = begin(&o, 40 + i), copy = r;
        pthread_t t;
        CHECK(pthread_create(&t, NULL, complete_later, &copy) == 0, "no thread");
        OK(MPI_Wait(&r, &s));
        expect(&s, &o);
        pthread_join(t, NULL);
    }
}

static void refused(void) {
    struct op o, fine;
    MPI_Status s[2];
    MPI_Request r[2];
    int value = 0;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Irecv(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &r[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(r[0]));
    FAILS(MPI_ERR_REQUEST, MPI_Grequest_complete(MPI_REQUEST_NULL));
    OK(MPI_Send(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD));
    OK(MPI_Wait(&r[0], s));
    // What the query function returns is what the completing call returns.
    r[0] = begin(&o, 1);
    o.fail = 1;
    OK(MPI_Grequest_complete(r[0]));
    FAILS(MPI_ERR_OTHER, MPI_Wait(&r[0], s));
    CHECK(o.freed == 1, "freed %d times", o.freed);
    r[0] = begin(&o, 1);
    r[1] = begin(&fine, 2);
    o.fail = 1;
    OK(MPI_Grequest_complete(r[0]));
    OK(MPI_Grequest_complete(r[1]));
    FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, r, s));
    CHECK(s[0].MPI_ERROR == MPI_ERR_OTHER && s[1].MPI_ERROR == MPI_SUCCESS, "errors %d %d", s[0].MPI_ERROR,
          s[1].MPI_ERROR);
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    alone();
    among_others();
    cancelled_and_freed();
    if (provided == MPI_THREAD_MULTIPLE) from_another_thread();
    refused();
    return finish();
}
