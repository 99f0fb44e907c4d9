// Endpoints (MPIX_Comm_create_endpoints): ranks of threads.
//   matching           several endpoints of each process, more on some than on others: pairs in every direction, within a process too, by
//                      wildcards, probes and matched probes, in all modes and sizes; cancels; freeing with messages under way
//   threads N          N endpoints in each process, a thread each: streams between all of them and collectives at once
//   extensions         partitioned messages, ownership passing, and the sends of weft.h, among all endpoints
//   contexts           context ids of duplicates that are freed are used again once
//   errors             what such a communicator cannot do
//   fuzz SEED ROUNDS   random messages among endpoints of random numbers, each compared with what its receiver is due
#include <pthread.h>
#include <weft.h>

#include "check.h"

enum { most = 40 };
static MPI_Comm ep[most];
static int mine;                 // endpoints of this process
static int total, base;          // of all; the rank of the first one here

static void make(int n) {
    mine = n;
    OK(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, n, MPI_INFO_NULL, ep));
    int before = 0;
    MPI_Exscan(&n, &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    base = rank == 0 ? 0 : before;
    MPI_Allreduce(&n, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++) {
        int r, s;
        MPI_Comm_rank(ep[i], &r);
        MPI_Comm_size(ep[i], &s);
        CHECK(r == base + i && s == total, "endpoint %d is %d of %d, not %d of %d", i, r, s, base + i, total);
    }
}
static void let_go(void) {
    for (int i = 0; i < mine; i++) {
        OK(MPI_Comm_free(&ep[i]));
        CHECK(ep[i] == MPI_COMM_NULL, "the handle is still there");
    }
}

// ---------------------------------------------------------------------------------------------------------- matching

// The endpoints of a process are on different lanes while there are lanes, at least 4 where there are several.
static void check_lanes(void) {
    unsigned lanes = 0;
    for (int i = 0; i < mine; i++) {
        MPI_Info told;
        char value[16] = "";
        int there, room = sizeof value;
        MPI_Comm_get_info(ep[i], &told);
        MPI_Info_get_string(told, "weft_lane", &room, value, &there);
        MPI_Info_free(&told);
        lanes |= 1u << (there ? atoi(value) : 0);
    }
    const int used = __builtin_popcount(lanes);
    CHECK(lanes == 1 || used == mine || used >= 4, "%d endpoints on %d lanes", mine, used);
}

static const size_t sizes[] = {0, 8, 48, 200, 5000, 100000, 700000};
enum { n_sizes = sizeof sizes / sizeof sizes[0] };
// Of the message between two ranks, the same both ways; not the largest where there are many.
static size_t size_of(int a, int b) { return sizes[(a + b) % (total > 12 ? n_sizes - 2 : n_sizes)]; }

static uint32_t id_of(int from, int to, int tag) { return (uint32_t)(from * 1009 + to * 31 + tag); }

// Every endpoint here sends to every other, and to itself, by all sizes in turn; all receive by name.
static void by_names(int synchronous) {
    const int n = mine * total;
    MPI_Request *request = malloc(2 * (size_t)n * sizeof *request);
    char **out = malloc((size_t)n * sizeof *out), **in = malloc((size_t)n * sizeof *in);
    for (int i = 0; i < mine; i++)
        for (int r = 0; r < total; r++) {
            const int at = i * total + r, me = base + i;
            const size_t there = size_of(r, me);
            in[at] = new_buffer(there + 1);
            out[at] = new_buffer(there + 1);
            fill(out[at], there, id_of(me, r, 7));
            OK(MPI_Irecv(in[at], (int)there, MPI_BYTE, r, 7, ep[i], &request[at]));
        }
    for (int i = 0; i < mine; i++)
        for (int r = 0; r < total; r++) {
            const int at = i * total + r;
            OK((synchronous ? MPI_Issend : MPI_Isend)(out[at], (int)size_of(r, base + i), MPI_BYTE, r, 7, ep[i], &request[n + at]));
        }
    MPI_Status *status = malloc(2 * (size_t)n * sizeof *status);
    OK(MPI_Waitall(2 * n, request, status));
    for (int i = 0; i < mine; i++)
        for (int r = 0; r < total; r++) {
            const int at = i * total + r, me = base + i;
            CHECK(status[at].MPI_SOURCE == r && status[at].MPI_TAG == 7, "from %d, tag %d", status[at].MPI_SOURCE, status[at].MPI_TAG);
            CHECK(differs(in[at], size_of(r, me), id_of(r, me, 7)) < 0, "wrong data from %d to %d", r, me);
            free_buffer(in[at]);
            free_buffer(out[at]);
        }
    free(request);
    free(status);
    free(out);
    free(in);
}

// All endpoints send two messages to each one here; those are received by wildcards, in turn by each way that there is.
static void by_wildcards(void) {
    const int n = 2 * mine * total;
    MPI_Request *sent = malloc((size_t)n * sizeof *sent);
    int *value = malloc((size_t)n * sizeof *value), k = 0;
    for (int i = 0; i < mine; i++)
        for (int r = 0; r < total; r++)
            for (int tag = 1; tag <= 2; tag++, k++) {
                value[k] = (int)id_of(base + i, r, tag);
                OK(MPI_Isend(&value[k], 1, MPI_INT, r, tag, ep[i], &sent[k]));
            }
    for (int i = mine - 1; i >= 0; i--)
        for (int m = 0, got = -1; m < 2 * total; m++, got = -1) {
            MPI_Status s;
            MPI_Message message;
            int there = 0, count = -1;
            switch (m % 5) {
            case 0: OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ep[i], &s)); break;
            case 1:
                OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, ep[i], &s));
                OK(MPI_Recv(&got, 1, MPI_INT, s.MPI_SOURCE, s.MPI_TAG, ep[i], &s));
                break;
            case 2:
                OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ep[i], &message, &s));
                OK(MPI_Mrecv(&got, 1, MPI_INT, &message, &s));
                break;
            case 3:
                while (!there) OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ep[i], &there, &s));
                OK(MPI_Recv(&got, 1, MPI_INT, s.MPI_SOURCE, MPI_ANY_TAG, ep[i], &s));
                break;
            default:
                while (!there) OK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, ep[i], &there, &message, &s));
                OK(MPI_Mrecv(&got, 1, MPI_INT, &message, &s));
            }
            MPI_Get_count(&s, MPI_INT, &count);
            CHECK(count == 1 && got == (int)id_of(s.MPI_SOURCE, base + i, s.MPI_TAG), "%d from %d with tag %d to %d", got, s.MPI_SOURCE, s.MPI_TAG, base + i);
        }
    OK(MPI_Waitall(n, sent, MPI_STATUSES_IGNORE));
    free(sent);
    free(value);
}

// Persistent, buffered and combined calls around the ring of all endpoints, the caller's one after the other.
static void other_modes(void) {
    MPI_Request request[3 * most];
    int out[most], in[3][most];
    const int cost = mine * (MPI_BSEND_OVERHEAD + (int)sizeof(int));
    char *room = malloc((size_t)cost + 1);
    OK(MPI_Buffer_attach(room, cost));
    for (int i = 0; i < mine; i++) {
        const int right = (base + i + 1) % total, left = (base + i + total - 1) % total;
        out[i] = base + i;
        OK(MPI_Send_init(&out[i], 1, MPI_INT, right, 3, ep[i], &request[3 * i]));
        OK(MPI_Recv_init(&in[0][i], 1, MPI_INT, left, 3, ep[i], &request[3 * i + 1]));
        OK(MPI_Irecv(&in[1][i], 1, MPI_INT, left, 4, ep[i], &request[3 * i + 2]));
        OK(MPI_Bsend(&out[i], 1, MPI_INT, right, 4, ep[i]));
    }
    for (int i = 0; i < mine; i++) OK(MPI_Startall(2, &request[3 * i]));
    for (int i = 0; i < mine; i++) {
        OK(MPI_Waitall(3, &request[3 * i], MPI_STATUSES_IGNORE));
        OK(MPI_Request_free(&request[3 * i]));
        OK(MPI_Request_free(&request[3 * i + 1]));
        const int left = (base + i + total - 1) % total;
        CHECK(in[0][i] == left && in[1][i] == left, "%d and %d from %d", in[0][i], in[1][i], left);
        OK(MPI_Isendrecv(&out[i], 1, MPI_INT, (base + i + 1) % total, 5, &in[2][i], 1, MPI_INT, left, 5, ep[i], &request[i]));
    }
    OK(MPI_Waitall(mine, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < mine; i++) CHECK(in[2][i] == (base + i + total - 1) % total, "%d", in[2][i]);
    int bytes;
    OK(MPI_Buffer_detach(&room, &bytes));
    free(room);
}

// What nobody is at, what is cancelled, and what is too long.
static void edges(void) {
    for (int i = 0; i < mine; i++) {
        MPI_Request request;
        MPI_Status s;
        int none = 7, cancelled = 0;
        OK(MPI_Sendrecv(&none, 1, MPI_INT, MPI_PROC_NULL, 0, &none, 1, MPI_INT, MPI_PROC_NULL, 0, ep[i], &s));
        CHECK(s.MPI_SOURCE == MPI_PROC_NULL && none == 7, "from %d", s.MPI_SOURCE);
        OK(MPI_Irecv(&none, 1, MPI_INT, MPI_ANY_SOURCE, 99, ep[i], &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &s));
        MPI_Test_cancelled(&s, &cancelled);
        CHECK(cancelled, "the receive was not cancelled");
        MPI_Comm_set_errhandler(ep[i], MPI_ERRORS_RETURN);
        const int two[2] = {1, 2};
        OK(MPI_Irecv(&none, 1, MPI_INT, base + i, 6, ep[i], &request));
        OK(MPI_Send(two, 2, MPI_INT, base + i, 6, ep[i]));
        FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, &s));
        FAILS(MPI_ERR_RANK, MPI_Send(two, 1, MPI_INT, total, 6, ep[i]));
    }
}

// Handles that go while messages are under way.
static void freed_early(void) {
    MPI_Request request[2 * most];
    static char out[most][100000], in[most][100000];
    for (int i = 0; i < mine; i++) {
        fill(out[i], sizeof out[i], (uint32_t)(base + i));
        OK(MPI_Irecv(in[i], sizeof in[i], MPI_BYTE, (base + i + 1) % total, 1, ep[i], &request[i]));
    }
    for (int i = 0; i < mine; i++) OK(MPI_Isend(out[i], sizeof out[i], MPI_BYTE, (base + i + total - 1) % total, 1, ep[i], &request[mine + i]));
    let_go();
    OK(MPI_Waitall(2 * mine, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < mine; i++) CHECK(differs(in[i], sizeof in[i], (uint32_t)((base + i + 1) % total)) < 0, "wrong data");
}

static void matching(void) {
    static const int counts[][3] = {{1, 1, 1}, {2, 2, 2}, {3, 0, 5}, {0, 4, 1}, {8, 9, 10}, {20, 3, 17}, {0, 0, 0}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        make(counts[i][rank % 3]);
        check_lanes();
        by_names(0);
        by_names(1);
        MPI_Barrier(MPI_COMM_WORLD);   // what the others send next, wildcards would receive
        by_wildcards();
        MPI_Barrier(MPI_COMM_WORLD);
        other_modes();
        edges();
        freed_early();
    }
}

// ----------------------------------------------------------------------------------------------------------- threads

static pthread_barrier_t meeting;

static void collectives(int me, MPI_Comm comm) {
    enum { n = 3000 };
    int *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *each = malloc((size_t)total * sizeof *each), *other = malloc((size_t)total * sizeof *other);
    OK(MPI_Barrier(comm));
    for (int count = 1; count <= n; count += 1499) {
        for (int i = 0; i < count; i++) a[i] = me + i;
        OK(MPI_Allreduce(a, b, count, MPI_INT, MPI_SUM, comm));
        for (int i = 0; i < count; i++) CHECK(b[i] == total * (total - 1) / 2 + i * total, "sum %d of %d", b[i], i);
        const int root = (count + 1) % total;
        OK(MPI_Bcast(a, count, MPI_INT, root, comm));
        for (int i = 0; i < count; i++) CHECK(a[i] == root + i, "%d from root %d", a[i], root);
        OK(MPI_Reduce(a, b, count, MPI_INT, MPI_MAX, root, comm));
        if (me == root) CHECK(b[count - 1] == root + count - 1, "greatest %d", b[count - 1]);
    }
    OK(MPI_Allgather(&me, 1, MPI_INT, each, 1, MPI_INT, comm));
    for (int i = 0; i < total; i++) CHECK(each[i] == i, "%d of %d", each[i], i);
    for (int i = 0; i < total; i++) each[i] = me * 1000 + i;
    MPI_Request request;
    OK(MPI_Ialltoall(each, 1, MPI_INT, other, 1, MPI_INT, comm, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < total; i++) CHECK(other[i] == i * 1000 + me, "%d from %d", other[i], i);
    free(a);
    free(b);
    free(each);
    free(other);
}

// A stream each way with every other endpoint, of which the receiver's tags count.
static void streams(int me, MPI_Comm comm) {
    enum { messages = 30 };
    for (int distance = 0; distance < total; distance++) {
        const int to = (me + distance) % total, from = (me + total - distance) % total;
        MPI_Request request[2 * messages];
        int out[messages], in[messages];
        for (int i = 0; i < messages; i++) {
            OK(MPI_Irecv(&in[i], 1, MPI_INT, i % 2 && distance == 0 ? MPI_ANY_SOURCE : from, distance, comm, &request[i]));
            out[i] = me * messages + i;
        }
        for (int i = 0; i < messages; i++) OK(MPI_Isend(&out[i], 1, MPI_INT, to, distance, comm, &request[messages + i]));
        OK(MPI_Waitall(2 * messages, request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < messages; i++) CHECK(in[i] == from * messages + i, "%d from %d", in[i], from);
    }
}

// One thread waits in a probe for what another of its process sends.
static void neighbours(int i, MPI_Comm comm) {
    MPI_Status s;
    int value = -1;
    if (mine < 2 || i > 1) return;
    if (i == 0) {
        sleep_ms(20);
        value = 5;
        OK(MPI_Send(&value, 1, MPI_INT, base + 1, 12, comm));
        OK(MPI_Ssend(&value, 1, MPI_INT, base + 1, 13, comm));
        return;
    }
    OK(MPI_Probe(MPI_ANY_SOURCE, 12, comm, &s));
    OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 12, comm, &s));
    CHECK(value == 5 && s.MPI_SOURCE == base, "%d from %d", value, s.MPI_SOURCE);
    sleep_ms(20);
    OK(MPI_Recv(&value, 1, MPI_INT, base, 13, comm, &s));
}

static void* endpoint(void* arg) {
    const int i = (int)((MPI_Comm*)arg - ep);
    MPI_Comm twin;
    streams(base + i, ep[i]);
    collectives(base + i, ep[i]);
    neighbours(i, ep[i]);
    OK(MPI_Comm_dup(ep[i], &twin));
    int r, s;
    MPI_Comm_rank(twin, &r);
    MPI_Comm_size(twin, &s);
    CHECK(r == base + i && s == total, "the duplicate is %d of %d", r, s);
    pthread_barrier_wait(&meeting);
    streams(r, twin);
    OK(MPI_Comm_free(&ep[i]));
    collectives(r, twin);
    OK(MPI_Comm_free(&twin));
    return NULL;
}

static void threads(int n) {
    pthread_t thread[most];
    make(n);
    pthread_barrier_init(&meeting, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) CHECK(pthread_create(&thread[i], NULL, endpoint, &ep[i]) == 0, "no thread");
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
}

// -------------------------------------------------------------------------------------------------------- extensions

static void extensions(int n) {
    enum { parts = 4 };
    make(n);
    MPI_Request sends[most], receives[most];
    int out[most][parts], in[most][parts];
    for (int i = 0; i < mine; i++) {
        OK(MPI_Psend_init(out[i], parts, 1, MPI_INT, (base + i + 1) % total, 2, ep[i], MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(in[i], parts, 1, MPI_INT, (base + i + total - 1) % total, 2, ep[i], MPI_INFO_NULL, &receives[i]));
    }
    for (int round = 0; round < 3; round++) {
        OK(MPI_Startall(mine, receives));
        OK(MPI_Startall(mine, sends));
        for (int i = 0; i < mine; i++)
            for (int k = 0; k < parts; k++) {
                out[i][k] = (base + i) * 10 + k + round;
                OK(MPI_Pready(k, sends[i]));
            }
        OK(MPI_Waitall(mine, sends, MPI_STATUSES_IGNORE));
        OK(MPI_Waitall(mine, receives, MPI_STATUSES_IGNORE));
        for (int i = 0; i < mine; i++)
            for (int k = 0; k < parts; k++)
                CHECK(in[i][k] == (base + i + total - 1) % total * 10 + k + round, "partition %d of endpoint %d: %d", k, base + i, in[i][k]);
    }
    for (int i = 0; i < mine; i++) {
        OK(MPI_Request_free(&sends[i]));
        OK(MPI_Request_free(&receives[i]));
    }
    for (int i = 0; i < mine; i++) {
        const int right = (base + i + 1) % total;
        out[i][0] = base + i;
        OK(MPIX_Irecv_nomatch(&in[i][0], 1, MPI_INT, ep[i], &receives[i]));
        OK(MPIX_Isend_noreq(&out[i][0], 1, MPI_INT, right, 3, ep[i]));
        OK(MPIX_Isend_npn(&out[i][0], 1, MPI_INT, right, 3, ep[i], &sends[i]));
        OK(MPI_Wait(&sends[i], MPI_STATUS_IGNORE));
        OK(MPIX_Isend_nomatch(&out[i][0], 1, MPI_INT, right, ep[i], &sends[i]));
        void* given;
        OK(OPI_Alloc(&given, sizeof(int)));
        *(int*)given = base + i;
        OK(OPI_Igive(&given, 1, MPI_INT, right, 4, ep[i], &sends[most / 2 + i]));
    }
    for (int i = 0; i < mine; i++) {
        const int left = (base + i + total - 1) % total;
        OK(MPI_Wait(&sends[i], MPI_STATUS_IGNORE));
        OK(MPI_Wait(&receives[i], MPI_STATUS_IGNORE));
        OK(MPI_Recv(&in[i][1], 1, MPI_INT, left, 3, ep[i], MPI_STATUS_IGNORE));
        OK(MPI_Recv(&in[i][2], 1, MPI_INT, left, 3, ep[i], MPI_STATUS_IGNORE));
        OK(MPIX_Comm_waitall(ep[i]));
        void* taken;
        OK(OPI_Take(&taken, 1, MPI_INT, left, 4, ep[i], MPI_STATUS_IGNORE));
        CHECK(in[i][0] == left && in[i][1] == left && in[i][2] == left && *(int*)taken == left, "%d, %d, %d and %d from %d", in[i][0], in[i][1], in[i][2], *(int*)taken, left);
        OK(OPI_Free(&taken));
        OK(MPI_Wait(&sends[most / 2 + i], MPI_STATUS_IGNORE));
    }
    let_go();
}

// ---------------------------------------------------------------------------------------------------------- contexts

static void* duplicate(void* arg) {
    MPI_Comm twin;
    OK(MPI_Comm_dup(*(MPI_Comm*)arg, &twin));
    OK(MPI_Comm_free(&twin));
    return NULL;
}

// Ids are used again, the oldest first, while more than 16384 are free (their lane is a part of them: one lane, for this test). Were one given back by each endpoint, two communicators would get
// it then, and take each other's messages.
static void contexts(void) {
    enum { waiting = 16384 - 50, kept = 100, endpoints = 3 };
    MPI_Comm comm[kept];
    for (int i = 0; i < kept; i++) OK(MPI_Comm_dup(MPI_COMM_SELF, &comm[i]));
    pthread_t thread[endpoints];
    make(endpoints);
    for (int i = 0; i < endpoints; i++) CHECK(pthread_create(&thread[i], NULL, duplicate, &ep[i]) == 0, "no thread");
    for (int i = 0; i < endpoints; i++) pthread_join(thread[i], NULL);
    let_go();
    for (int i = 0; i < waiting; i++) {
        MPI_Comm other;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &other));
        OK(MPI_Comm_free(&other));
    }
    for (int i = 0; i < kept; i++) OK(MPI_Comm_free(&comm[i]));
    MPI_Request request[kept];
    int out[kept], in;
    for (int i = 0; i < kept; i++) {
        out[i] = i;
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comm[i]));
        OK(MPI_Isend(&out[i], 1, MPI_INT, 0, 0, comm[i], &request[i]));
    }
    for (int i = kept - 1; i >= 0; i--) {
        OK(MPI_Recv(&in, 1, MPI_INT, 0, 0, comm[i], MPI_STATUS_IGNORE));
        CHECK(in == i, "communicator %d has the message of %d", i, in);
    }
    OK(MPI_Waitall(kept, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < kept; i++) OK(MPI_Comm_free(&comm[i]));
}

// ------------------------------------------------------------------------------------------------------------ errors

// An error handler is told of the handle that the program has.
static MPI_Comm blamed;
static void handler(MPI_Comm* comm, int* code, ...) {
    (void)code;
    blamed = *comm;
}
static void tells_the_handle(MPI_Comm comm) {
    MPI_Errhandler made;
    MPI_Request request;
    const int two[2] = {1, 2};
    int one;
    OK(MPI_Comm_create_errhandler(handler, &made));
    OK(MPI_Comm_set_errhandler(comm, made));
    OK(MPI_Errhandler_free(&made));
    OK(MPI_Irecv(&one, 1, MPI_INT, base, 6, comm, &request));
    OK(MPI_Send(two, 2, MPI_INT, base, 6, comm));
    FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(blamed == comm, "the handler was given another handle");
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
}

// What is made of processes, or names ranks of MPI_COMM_WORLD.
static void makes_nothing(MPI_Comm comm) {
    MPI_Comm other;
    MPI_Win win;
    MPI_Request request;
    void* at;
    int value = 0;
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Comm_create_group(comm, MPI_GROUP_EMPTY, 0, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Cart_create(comm, 1, &total, &value, 0, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Dist_graph_create_adjacent(comm, 0, &value, &value, 0, &value, &value, MPI_INFO_NULL, 0, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, comm, &win));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_allocate(8, 1, MPI_INFO_NULL, comm, &at, &win));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, comm, &at, &win));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPIX_Comm_dup_predefined(comm, MPIX_COMM_1));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPIX_Comm_split_predefined(comm, 0, 0, MPIX_COMM_1));
    FAILS(MPI_ERR_COMM, MPIX_Isend_global(&value, 1, MPI_INT, rank, 1, comm, &request));
    FAILS(MPI_ERR_COMM, MPIX_Isend_all_opts(&value, 1, MPI_INT, rank, comm));
}

static void errors(void) {
    MPI_Comm other, inter;
    MPI_Group group;
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_ARG, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, -1, MPI_INFO_NULL, ep));
    FAILS(MPI_ERR_ARG, MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 1, MPI_INFO_NULL, NULL));
    FAILS(MPI_ERR_COMM, MPIX_Comm_create_endpoints(MPI_COMM_NULL, 1, MPI_INFO_NULL, ep));
    make(1);
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPIX_Comm_create_endpoints(ep[0], 1, MPI_INFO_NULL, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Comm_group(ep[0], &group));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Comm_split(ep[0], 0, 0, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Comm_idup(ep[0], &other, &request));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Comm_create(ep[0], MPI_GROUP_EMPTY, &other));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Intercomm_create(ep[0], 0, MPI_COMM_WORLD, 0, 1, &inter));
    MPI_Comm_set_errhandler(ep[0], MPI_ERRORS_RETURN);
    makes_nothing(ep[0]);
    tells_the_handle(ep[0]);
    let_go();
    make(2);
    MPI_Comm_set_errhandler(ep[1], MPI_ERRORS_RETURN);
    makes_nothing(ep[1]);
    let_go();
}

// -------------------------------------------------------------------------------------------------------------- fuzz

// Messages between random endpoints. Those of one pair arrive in order.
static void round_of(uint64_t *state) {
    enum { messages = 60 };
    int plan[messages][2];   // from, to: the same in every process
    for (int m = 0; m < messages; m++)
        for (int i = 0; i < 2; i++) plan[m][i] = (int)below(state, (uint32_t)total);
    MPI_Request request[messages];
    char *out[messages];
    int n = 0;
    for (int m = 0; m < messages; m++) {
        const int from = plan[m][0] - base;
        if (from < 0 || from >= mine) continue;
        const size_t bytes = sizes[m % n_sizes];
        out[n] = new_buffer(bytes + 1);
        fill(out[n], bytes, (uint32_t)m);
        OK((m % 3 ? MPI_Isend : MPI_Issend)(out[n], (int)bytes, MPI_BYTE, plan[m][1], m % 2, ep[from], &request[n]));
        n++;
    }
    static char in[700000];
    for (int i = 0; i < mine; i++)
        for (int from = 0; from < total; from++)
            for (int m = 0; m < messages; m++) {
                if (plan[m][0] != from || plan[m][1] != base + i) continue;
                MPI_Status s;
                int count;
                OK(MPI_Probe(from, MPI_ANY_TAG, ep[i], &s));
                OK(MPI_Recv(in, sizeof in, MPI_BYTE, from, s.MPI_TAG, ep[i], &s));
                MPI_Get_count(&s, MPI_BYTE, &count);
                CHECK(s.MPI_TAG == m % 2 && (size_t)count == sizes[m % n_sizes] && differs(in, (size_t)count, (uint32_t)m) < 0,
                      "message %d from %d to %d: tag %d, %d bytes", m, from, base + i, s.MPI_TAG, count);
            }
    OK(MPI_Waitall(n, request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) free_buffer(out[i]);
}

static void fuzz(uint64_t seed, int rounds) {
    for (int i = 0; i < rounds; i++) {
        uint64_t state = seed * 1000 + (uint64_t)i, own = state * 77 + (uint64_t)rank;
        make((int)below(&own, 12) + (rank == 0));
        for (int k = 0; k < 4; k++) round_of(&state);
        let_go();
    }
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 1, "which part?");
    if (strcmp(argv[1], "matching") == 0) matching();
    else if (strcmp(argv[1], "threads") == 0) threads(atoi(argv[2]));
    else if (strcmp(argv[1], "extensions") == 0) extensions(atoi(argv[2]));
    else if (strcmp(argv[1], "contexts") == 0) contexts();
    else if (strcmp(argv[1], "errors") == 0) errors();
    else if (strcmp(argv[1], "fuzz") == 0) fuzz(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    else CHECK(0, "no part is called %s", argv[1]);
    return finish();
}
