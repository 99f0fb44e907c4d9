// MPI_Waitall on 10^5 requests of all kinds: everything is right, and the call allocates nothing for them. The progress inside it may
// make the table of posted receives longer, once.
#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static long allocations(void) { return 0; }  // the sanitizers' own malloc must stay
#else
// Every allocation of the process, the library's included, comes by here.
static _Atomic long count_of_allocations;
static long allocations(void) { return count_of_allocations; }
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
void* malloc(size_t n) {
    count_of_allocations++;
    return __libc_malloc(n);
}
void* calloc(size_t n, size_t each) {
    count_of_allocations++;
    return __libc_calloc(n, each);
}
void* realloc(void* p, size_t n) {
    count_of_allocations++;
    return __libc_realloc(p, n);
}
void* aligned_alloc(size_t align, size_t n) {
    count_of_allocations++;
    return __libc_memalign(align, n);
}
void free(void* p) { __libc_free(p); }
#endif

enum { n = 100000, kinds = 8 };
static MPI_Request requests[n];
static MPI_Status statuses[n];
static int out[n], in[n];

// A call over sockets may let in a peer that connects, which takes memory.
static int over_sockets(void) {
    const char* wire = getenv("WEFT_WIRE");
    return wire != NULL && strcmp(wire, "shm") != 0;
}

static int query(void* extra, MPI_Status* s) {
    MPI_Status_set_elements(s, MPI_INT, 1);
    MPI_Status_set_cancelled(s, 0);
    s->MPI_SOURCE = s->MPI_TAG = *(int*)extra;
    return MPI_SUCCESS;
}
static int release(void* extra) { return ++*(int*)extra, MPI_SUCCESS; }
static int cancel(void* extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

// Request i is a send or receive between neighbours for even kinds, so that each receive has its send in the same call.
// A synchronous send's answer may take memory of its own where rings are full: `synchronous` rounds do not count.
static void post(int i, int synchronous) {
    const int other = rank ^ 1, tag = i / kinds;
    MPI_Request* r = &requests[i];
    out[i] = rank * n + i;
    in[i] = -1;
    switch (i % kinds) {
    case 0: OK(MPI_Irecv(&in[i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, r)); break;
    case 1: OK(MPI_Isend(&out[i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, r)); break;
    case 2:
        OK(MPI_Recv_init(&in[i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, r));
        OK(MPI_Start(r));
        break;
    case 3:
        OK((synchronous ? MPI_Ssend_init : MPI_Send_init)(&out[i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, r));
        OK(MPI_Start(r));
        break;
    case 4: *r = MPI_REQUEST_NULL; break;
    case 5: OK(MPI_Recv_init(&in[i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, r)); break;  // stays inactive
    case 6:
        OK(MPI_Grequest_start(query, release, cancel, &out[i], r));
        OK(MPI_Grequest_complete(*r));
        break;
    case 7: OK(MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, tag, MPI_COMM_WORLD, r)); break;
    }
}

static void check(int i, int with_statuses) {
    const int other = rank ^ 1, tag = i / kinds, kind = i % kinds;
    const int received = kind == 0 || kind == 2;
    const int source = received ? other : kind == 6 ? rank * n + i : kind == 7 ? MPI_PROC_NULL : MPI_ANY_SOURCE;
    const int found_tag = received ? tag : kind == 6 ? rank * n + i : MPI_ANY_TAG;
    const int persistent = kind == 2 || kind == 3 || kind == 5;
    if (with_statuses && kind != 1 && kind != 3) {  // a send's status says nothing
        int count = -1;
        MPI_Get_count(&statuses[i], MPI_INT, &count);
        CHECK(statuses[i].MPI_SOURCE == source && statuses[i].MPI_TAG == found_tag, "request %d: from %d with tag %d",
              i, statuses[i].MPI_SOURCE, statuses[i].MPI_TAG);
        CHECK(count == (received || kind == 6), "request %d: %d elements", i, count);
    }
    if (received) CHECK(in[i] == other * n + i + 1, "request %d received %d", i, in[i]);
    if (kind == 6)
        CHECK(out[i] == rank * n + i + 1, "request %d: its free function ran %d times", i, out[i] - rank * n - i);
    CHECK((requests[i] != MPI_REQUEST_NULL) == persistent, "request %d is %s", i, persistent ? "gone" : "still there");
    if (persistent) OK(MPI_Request_free(&requests[i]));
}

static void handshake(void) {
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, rank ^ 1, n, NULL, 0, MPI_INT, rank ^ 1, n, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size % 2 == 0, "an even number of ranks");
    // Whoever is done first says so while the other still waits, and that message is kept: there is room for it.
    OK(MPI_Send(NULL, 0, MPI_INT, rank, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(NULL, 0, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int round = 0; round < 3; round++) {
        // All receives first: a message that finds no receive is kept, and that takes memory.
        for (int i = 0; i < n; i++)
            if (i % kinds != 1 && i % kinds != 3) post(i, round == 2);
        handshake();
        for (int i = 0; i < n; i++)
            if (i % kinds == 1 || i % kinds == 3) post(i, round == 2);
        const long before = allocations();
        OK(MPI_Waitall(n, requests, round ? statuses : MPI_STATUSES_IGNORE));
        const long after = allocations();
        for (int i = 0; i < n; i++) check(i, round);
        handshake();
        // The first message that is kept for a peer makes the state of that peer, and may need a block of the pool.
        CHECK(after - before <= 2 || round == 2 || over_sockets(), "MPI_Waitall allocated %ld times", after - before);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        CHECK(before > 0, "allocations are not counted");
#endif
    }
    return finish();
}
