// Partitioned messages: equal and unequal divisions, marks in random order (also by several threads), restarts, several
// messages of one tag matched in the order of their making and started in another, tags that differ only in high bits,
// empty partitions, MPI_PROC_NULL, requests never started, noncontiguous types, and what goes wrong.
#include "check.h"

#include <pthread.h>

static uint64_t state = 99;

struct marker {
    MPI_Request request;
    int from, to;
};
static void* mark(void* arg) {
    struct marker* m = arg;
    for (int i = m->from; i < m->to; i++) OK(MPI_Pready(i, m->request));
    return NULL;
}

// Sends `total` bytes in `ps` partitions and receives them in `pr`, three times over.
static void divide(int ps, int pr, int total, int threads) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    unsigned char* out = malloc((size_t)total + 1);
    unsigned char* in = malloc((size_t)total + 1);
    MPI_Request r[2];
    OK(MPI_Precv_init(in, pr, total / pr, MPI_BYTE, left, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Psend_init(out, ps, total / ps, MPI_BYTE, right, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    for (int round = 0; round < 3; round++) {
        memset(in, 0, (size_t)total + 1);
        OK(MPI_Startall(2, r));
        fill(out, (size_t)total, (uint32_t)(rank * 100 + round));
        if (threads) {
            pthread_t t;
            struct marker a = {r[1], 0, ps / 2}, b = {r[1], ps / 2, ps};
            pthread_create(&t, NULL, mark, &a);
            mark(&b);
            pthread_join(t, NULL);
        } else if (round == 0) {
            OK(MPI_Pready_range(0, ps - 1, r[1]));
        } else {
            int* list = malloc(sizeof(int) * (size_t)ps);
            for (int i = 0; i < ps; i++) list[i] = i;
            for (int i = ps - 1; i > 0; i--) {
                int k = (int)below(&state, (uint32_t)i + 1), swap = list[i];
                list[i] = list[k], list[k] = swap;
            }
            OK(MPI_Pready_list(ps / 2, list, r[1]));
            for (int i = ps / 2; i < ps; i++) OK(MPI_Pready(list[i], r[1]));
            free(list);
        }
        // A partition that has arrived may be read before the whole.
        for (int i = 0; i < pr; i++) {
            int flag = 0;
            while (!flag) OK(MPI_Parrived(r[0], i, &flag));
            size_t each = (size_t)(total / pr);
            for (size_t k = 0; k < each; k++)
                CHECK(in[(size_t)i * each + k] == pattern((uint32_t)(left * 100 + round), (size_t)i * each + k), "partition %d of %d (sent in %d)", i, pr, ps);
        }
        MPI_Status s[2];
        OK(MPI_Waitall(2, r, s));
        CHECK(s[0].MPI_SOURCE == left && s[0].MPI_TAG == 7, "status: %d %d", s[0].MPI_SOURCE, s[0].MPI_TAG);
        CHECK(differs(in, (size_t)total, (uint32_t)(left * 100 + round)) < 0 && in[total] == 0, "round %d", round);
    }
    OK(MPI_Request_free(&r[0]));
    OK(MPI_Request_free(&r[1]));
    free(out);
    free(in);
}

// Three of one tag, and two tags that differ in high bits only: the order of making decides, whatever starts first.
static void order(void) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size, out[5], in[5];
    int send_tags[5] = {3, 3, 3, 5, 5 + (1 << 28)}, recv_tags[5] = {5 + (1 << 28), 3, 5, 3, 3}, from[5] = {4, 0, 3, 1, 2};
    MPI_Request s[5], r[5];
    for (int i = 0; i < 5; i++) OK(MPI_Psend_init(&out[i], 1, 1, MPI_INT, right, send_tags[i], MPI_COMM_WORLD, MPI_INFO_NULL, &s[i]));
    for (int i = 0; i < 5; i++) OK(MPI_Precv_init(&in[i], 1, 1, MPI_INT, left, recv_tags[i], MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]));
    for (int i = 4; i >= 0; i--) {
        out[i] = rank * 10 + i;
        OK(MPI_Start(&s[i]));
        OK(MPI_Pready(0, s[i]));
    }
    for (int i = 0; i < 5; i++) OK(MPI_Start(&r[(i * 2) % 5]));
    OK(MPI_Waitall(5, r, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(5, s, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 5; i++) {
        CHECK(in[i] == left * 10 + from[i], "receive %d got %d", i, in[i]);
        MPI_Request_free(&s[i]);
        MPI_Request_free(&r[i]);
    }
}

// A pair that is never started must leave nothing for the next one.
static void never_started(void) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size, out = rank, in = -1;
    for (int i = 0; i < 4; i++) {
        MPI_Request r[2];
        OK(MPI_Precv_init(&in, 1, 1, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
        OK(MPI_Psend_init(&out, 1, 1, MPI_INT, right, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
        int flag = 0;
        OK(MPI_Parrived(r[0], 0, &flag));
        CHECK(flag, "an inactive request's partition has not arrived");
        if (i == 3) {
            OK(MPI_Startall(2, r));
            OK(MPI_Pready(0, r[1]));
            OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
            CHECK(in == left, "got %d", in);
        }
        MPI_Request_free(&r[0]);
        MPI_Request_free(&r[1]);
    }
}

// Internal messages must not meet those of nonblocking collectives on the same communicator, whatever the tags.
static void beside_collectives(void) {
    enum { n = 24 };
    int left = (rank + size - 1) % size, right = (rank + 1) % size, out[n], in[n], sum[n];
    MPI_Request s[n], r[n], c[n];
    for (int i = 0; i < n; i++) {
        out[i] = rank * 100 + i, in[i] = sum[i] = -1;
        OK(MPI_Psend_init(&out[i], 1, 1, MPI_INT, right, i, MPI_COMM_WORLD, MPI_INFO_NULL, &s[i]));
        OK(MPI_Iallreduce(&out[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &c[i]));
    }
    for (int i = 0; i < n; i++) OK(MPI_Precv_init(&in[i], 1, 1, MPI_INT, left, i, MPI_COMM_WORLD, MPI_INFO_NULL, &r[i]));
    OK(MPI_Startall(n, s));
    OK(MPI_Startall(n, r));
    for (int i = 0; i < n; i++) OK(MPI_Pready(0, s[i]));
    OK(MPI_Waitall(n, r, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(n, s, MPI_STATUSES_IGNORE));
    OK(MPI_Waitall(n, c, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) {
        CHECK(in[i] == left * 100 + i, "message %d is %d", i, in[i]);
        CHECK(sum[i] == 100 * size * (size - 1) / 2 + size * i, "sum %d is %d", i, sum[i]);
        MPI_Request_free(&s[i]);
        MPI_Request_free(&r[i]);
    }
}

static void strided(void) {
    enum { n = 60 };
    int left = (rank + size - 1) % size, right = (rank + 1) % size, out[2 * n], in[2 * n];
    MPI_Datatype every_second, pair;
    MPI_Type_create_resized(MPI_INT, 0, 8, &every_second);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&every_second);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 2 * n; i++) out[i] = rank * 1000 + i, in[i] = -1;
    MPI_Request r[2];
    // 12 partitions of 5 strided integers; received in 3 of 10 pairs: a boundary in the middle of a pair.
    OK(MPI_Psend_init(out, 12, 5, every_second, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(in, 3, 10, pair, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    MPI_Type_free(&every_second);
    MPI_Type_free(&pair);
    for (int round = 0; round < 2; round++) {
        OK(MPI_Startall(2, r));
        for (int i = 11; i >= 0; i--) OK(MPI_Pready(i, r[0]));
        OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; i++) CHECK(in[i] == left * 1000 + 2 * i, "element %d is %d", i, in[i]);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

// Of no partitions at all, on both sides or on one whose partitions are empty.
static void none(void) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size, x = 5, flag;
    static const int shapes[][4] = {{0, 3, 0, 3}, {0, 0, 2, 0}, {3, 0, 0, 7}};   // partitions and count: sent, received
    for (int i = 0; i < 3; i++) {
        const int* s = shapes[i];
        MPI_Request r[2];
        MPI_Status status;
        OK(MPI_Psend_init(s[0] ? &x : NULL, s[0], s[1], MPI_INT, right, i, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
        OK(MPI_Precv_init(s[2] ? &x : NULL, s[2], s[3], MPI_INT, left, i, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
        for (int round = 0; round < 3; round++) {
            OK(MPI_Startall(2, r));
            for (int k = 0; k < s[0]; k++) OK(MPI_Pready(k, r[0]));
            for (int k = 0; k < s[2]; k++)
                do OK(MPI_Parrived(r[1], k, &flag)); while (!flag);
            OK(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
            OK(MPI_Wait(&r[1], &status));
            CHECK(status.MPI_SOURCE == left && status.MPI_TAG == i && x == 5, "%d %d", status.MPI_SOURCE, status.MPI_TAG);
        }
        MPI_Request_free(&r[0]);
        MPI_Request_free(&r[1]);
    }
}

static void wrong(void) {
    MPI_Request r[2], other;
    int x = 0, flag = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_ARG, MPI_Psend_init(&x, -1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &other));
    OK(MPI_Psend_init(&x, 2, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(NULL, 2, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, r[0]));
    OK(MPI_Startall(2, r));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, r[1]));
    FAILS(MPI_ERR_REQUEST, MPI_Parrived(r[0], 0, &flag));
    FAILS(MPI_ERR_ARG, MPI_Pready(2, r[0]));
    FAILS(MPI_ERR_ARG, MPI_Parrived(r[1], -1, &flag));
    OK(MPI_Pready(0, r[0]));
    OK(MPI_Parrived(r[1], 1, &flag));
    CHECK(flag, "nothing comes from MPI_PROC_NULL, and it is there");
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);

    // A partition is ready once; what is too long is cut, and the pair serves again.
    int out[6] = {1, 2, 3, 4, 5, 6}, in[6] = {0};
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Psend_init(out, 3, 2, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &r[0]));
    OK(MPI_Precv_init(in, 2, 2, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_INFO_NULL, &r[1]));
    for (int round = 0; round < 2; round++) {
        MPI_Status s[2];
        memset(in, 0, sizeof in);
        OK(MPI_Startall(2, r));
        OK(MPI_Pready(1, r[0]));
        FAILS(MPI_ERR_ARG, MPI_Pready(1, r[0]));
        OK(MPI_Pready(0, r[0]));
        OK(MPI_Pready(2, r[0]));
        FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&r[1], &s[1]));
        OK(MPI_Wait(&r[0], &s[0]));
        for (int i = 0; i < 6; i++) CHECK(in[i] == (i < 4 ? out[i] : 0), "element %d is %d", i, in[i]);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static const int shapes[][3] = {{1, 1, 8}, {4, 4, 64}, {8, 2, 4096}, {3, 5, 15 * 1000}, {16, 1, 1 << 20}, {1, 16, 1 << 20}, {7, 7, 0}};
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        divide(shapes[i][0], shapes[i][1], shapes[i][2], 0);
        if (provided == MPI_THREAD_MULTIPLE) divide(shapes[i][0], shapes[i][1], shapes[i][2], 1);
    }
    order();
    never_started();
    beside_collectives();
    strided();
    none();
    wrong();
    MPI_Barrier(MPI_COMM_WORLD);
    return finish();
}
