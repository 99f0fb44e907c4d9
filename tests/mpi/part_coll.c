// Partitioned broadcasts and reductions to all: all roots, partition counts and types, operations that do not commute, restarts, partitions
// that are read before the whole is complete, threads that mark, several at once, requests that are never started or freed while active,
// and what goes wrong.
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <weft.h>

static int thread_level;

struct marker {
    MPI_Request request;
    int from, to, step;
};
static void* mark(void* arg) {
    struct marker* m = arg;
    for (int i = m->from; i < m->to; i += m->step) OK(MPI_Pready(i, m->request));
    return NULL;
}

// All partitions: in order, backwards, or by two threads.
static void mark_all(MPI_Request r, int n, int how) {
    if (how % 3 == 0 && n > 0) {
        OK(MPI_Pready_range(0, n - 1, r));
    } else if (how % 3 == 1 || thread_level < MPI_THREAD_MULTIPLE) {
        for (int i = n - 1; i >= 0; i--) OK(MPI_Pready(i, r));
    } else {
        pthread_t t;
        struct marker even = {r, 0, n, 2}, odd = {r, 1, n, 2};
        pthread_create(&t, NULL, mark, &even);
        mark(&odd);
        pthread_join(t, NULL);
    }
}

static void await(MPI_Request r, int partition) {
    for (int flag = 0; !flag;) {
        OK(MPI_Parrived(r, partition, &flag));
        if (!flag) sched_yield();
    }
}

static void complete(MPI_Request* r, int how) {
    MPI_Status s;
    int flag = 0;
    if (how % 2) OK(MPI_Wait(r, &s));
    while (how % 2 == 0 && !flag) {
        OK(MPI_Test(r, &flag, &s));
        if (!flag) sched_yield();
    }
    CHECK(s.MPI_SOURCE == MPI_ANY_SOURCE && s.MPI_TAG == MPI_ANY_TAG, "status: %d %d", s.MPI_SOURCE, s.MPI_TAG);
}

static void broadcast(int root, int partitions, int each, int rounds) {
    const size_t n = (size_t)partitions * (size_t)each;
    unsigned char* data = (unsigned char*)new_buffer(n + 1);
    MPI_Request r;
    OK(MPIX_Pbcast_init(data, partitions, each, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    for (int round = 0; round < rounds; round++) {
        const uint32_t seed = (uint32_t)(root * 100 + round);
        memset(data, 0, n + 1);
        if (rank == root) fill(data, n, seed);
        OK(MPI_Start(&r));
        if (rank == root) mark_all(r, partitions, round);
        for (int i = 0; i < partitions && round % 2; i++) {
            await(r, i);
            for (int k = 0; k < each; k++) CHECK(data[i * each + k] == pattern(seed, (size_t)(i * each + k)), "partition %d of %d", i, partitions);
        }
        complete(&r, round);
        CHECK(differs(data, n, seed) < 0 && data[n] == 0, "root %d, %d x %d bytes, round %d", root, partitions, each, round);
    }
    OK(MPI_Request_free(&r));
    free_buffer((char*)data);
}

static void sum(int partitions, int each, int in_place, int rounds) {
    const size_t n = (size_t)partitions * (size_t)each;
    double* in = (double*)new_buffer((n + 1) * sizeof *in);
    double* out = (double*)new_buffer((n + 1) * sizeof *out);
    MPI_Request r;
    OK(MPIX_Pallreduce_init(in_place ? MPI_IN_PLACE : in, out, partitions, each, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    for (int round = 0; round < rounds; round++) {
        double* own = in_place ? out : in;
        OK(MPI_Start(&r));
        for (size_t i = 0; i < n; i++) own[i] = rank * 1000 + round + (double)i;
        mark_all(r, partitions, round + rank);
        for (int i = partitions - 1; i >= 0 && round % 2; i--) await(r, i);
        if (round % 2 == 0) complete(&r, round);
        for (size_t i = 0; i < n; i++)
            CHECK(out[i] == 1000.0 * size * (size - 1) / 2 + size * (round + (double)i), "element %zu is %f", i, out[i]);
        if (round % 2) complete(&r, round);
    }
    OK(MPI_Request_free(&r));
    free_buffer((char*)in);
    free_buffer((char*)out);
}

// Maps x -> a x + b: their composition does not commute.
static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
    int *first = in, *then = inout;
    for (int i = 0; i < *count; i++) {
        const int a = first[2 * i] * then[2 * i], b = then[2 * i] * first[2 * i + 1] + then[2 * i + 1];
        then[2 * i] = a, then[2 * i + 1] = b;
    }
    (void)type;
}

static void not_commuting(void) {
    enum { partitions = 5, each = 3, n = partitions * each };
    MPI_Datatype map, padded;
    MPI_Op op;
    MPI_Request r;
    int in[3 * n], out[3 * n], a = 1, b = 0;
    OK(MPI_Type_contiguous(2, MPI_INT, &map));
    OK(MPI_Type_create_resized(MPI_INT, 0, 12, &padded));
    OK(MPI_Type_commit(&map));
    OK(MPI_Type_commit(&padded));
    OK(MPI_Op_create(compose, 0, &op));
    OK(MPIX_Pallreduce_init(in, out, partitions, each, map, op, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OK(MPI_Type_free(&map));
    OK(MPI_Op_free(&op));
    for (int i = 0; i < n; i++) in[2 * i] = rank % 2 ? 2 : 3, in[2 * i + 1] = rank + i;
    OK(MPI_Start(&r));
    mark_all(r, partitions, 1);
    complete(&r, 1);
    for (int i = 0; i < n; i++) {
        a = 1, b = 0;
        for (int k = 0; k < size; k++) a *= k % 2 ? 2 : 3, b = (k % 2 ? 2 : 3) * b + k + i;
        CHECK(out[2 * i] == a && out[2 * i + 1] == b, "map %d: %d %d, not %d %d", i, out[2 * i], out[2 * i + 1], a, b);
    }
    OK(MPI_Request_free(&r));

    // Elements with gaps, which stay as they are.
    for (int i = 0; i < 3 * n; i++) out[i] = i % 3 ? -1 : rank == size - 1 ? i : 0;
    OK(MPIX_Pbcast_init(out, partitions, each, padded, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OK(MPI_Type_free(&padded));
    OK(MPI_Start(&r));
    if (rank == size - 1) mark_all(r, partitions, 0);
    complete(&r, 0);
    for (int i = 0; i < 3 * n; i++) CHECK(out[i] == (i % 3 ? -1 : i), "integer %d is %d", i, out[i]);
    OK(MPI_Request_free(&r));
}

// Two of each at once, beside users' partitioned messages of any tag; started in another order than made.
static void several(void) {
    int out[4] = {rank + 1, rank + 2, 0, 0}, got[4] = {0}, left = (rank + size - 1) % size, right = (rank + 1) % size, from = -1;
    MPI_Request r[6];
    OK(MPIX_Pallreduce_init(&out[0], &got[0], 1, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]));
    OK(MPI_Psend_init(&rank, 1, 1, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[4]));
    OK(MPIX_Pbcast_init(&got[2], 1, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]));
    OK(MPIX_Pallreduce_init(&out[1], &got[1], 1, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, MPI_INFO_NULL, &r[2]));
    OK(MPI_Precv_init(&from, 1, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r[5]));
    OK(MPIX_Pbcast_init(&got[3], 1, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &r[3]));
    for (int i = 5; i >= 0; i--) OK(MPI_Start(&r[(i + rank) % 6]));
    if (rank == 0) got[2] = 77;
    if (rank == size - 1) got[3] = 88;
    for (int i = 0; i < 5; i++)
        if ((i != 1 || rank == 0) && (i != 3 || rank == size - 1)) OK(MPI_Pready(0, r[i]));
    OK(MPI_Waitall(6, r, MPI_STATUSES_IGNORE));
    CHECK(got[0] == size && got[1] == 2 && got[2] == 77 && got[3] == 88 && from == left, "%d %d %d %d %d", got[0], got[1], got[2], got[3], from);
    for (int i = 0; i < 6; i++) OK(MPI_Request_free(&r[i]));
}

// Freed without a start, and while active: then it still completes, by whatever progress comes, and the next ones match.
static void let_go(void) {
    static volatile int data[3];
    MPI_Request r;
    OK(MPIX_Pbcast_init((void*)data, 3, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OK(MPI_Request_free(&r));
    OK(MPIX_Pbcast_init((void*)data, 3, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    for (int i = 0; i < 3 && rank == 0; i++) data[i] = i + 1;
    OK(MPI_Start(&r));
    if (rank == 0) mark_all(r, 3, 0);
    OK(MPI_Request_free(&r));
    broadcast(0, 4, 8, 2);
    for (int flag = 0; data[0] != 1 || data[1] != 2 || data[2] != 3;) OK(MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void wrong(void) {
    int x = 0, y = 0, flag = 0;
    MPI_Request r;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_ROOT, MPIX_Pbcast_init(&x, 1, 1, MPI_INT, size, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    FAILS(MPI_ERR_ARG, MPIX_Pbcast_init(&x, -1, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    FAILS(MPI_ERR_COUNT, MPIX_Pbcast_init(&x, 1, -1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    FAILS(MPI_ERR_TYPE, MPIX_Pallreduce_init(&x, &y, 1, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    FAILS(MPI_ERR_OP, MPIX_Pallreduce_init(&x, &y, 1, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    OK(MPIX_Pbcast_init(&x, 2, 0, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &r));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, r));
    OK(MPI_Parrived(r, 0, &flag));
    CHECK(flag, "an inactive request's partition has not arrived");
    OK(MPI_Start(&r));
    FAILS(MPI_ERR_ARG, MPI_Parrived(r, 2, &flag));
    if (rank == 0) {
        FAILS(MPI_ERR_ARG, MPI_Pready(2, r));
        OK(MPI_Pready(1, r));
        FAILS(MPI_ERR_ARG, MPI_Pready(1, r));
        OK(MPI_Pready(0, r));
    } else {
        FAILS(MPI_ERR_REQUEST, MPI_Pready(0, r));
    }
    OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&r));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &thread_level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    static const int shapes[][2] = {{1, 1}, {16, 1}, {7, 24}, {4, 1000}, {3, 40000}, {0, 3}, {2, 0}};
    for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int root = 0; root < size; root++) broadcast(root, shapes[i][0], shapes[i][1], 6);
        sum(shapes[i][0], shapes[i][1], 0, 6);
        sum(shapes[i][0], shapes[i][1], 1, 6);
    }
    sum(16, 1, 0, 200);
    not_commuting();
    several();
    let_go();
    wrong();
    return finish();
}
