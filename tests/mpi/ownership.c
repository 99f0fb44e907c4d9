// Ownership passing: gives and takes with each other and with sends and receives, in one matching space; what is wrong is an error.
// Runs with shared memory, on made-up nodes, and by sockets. With the argument `same` a given buffer must keep its address.
#include "check.h"
#include <weft.h>

static int same;             // gives to other ranks pass addresses
static long balance;         // allocated + taken - given - freed, of this rank
static const size_t sizes[] = {0, 1, 8, 48, 49, 4032, 4096, 65536, 300000, 1 << 20};
enum { size_count = sizeof sizes / sizeof *sizes };

static void* new_owned(size_t bytes, uint32_t id) {
    void* p = NULL;
    OK(OPI_Alloc(&p, bytes));
    CHECK(p != NULL && (uintptr_t)p % 64 == 0, "%p", p);
    fill(p, bytes, id);
    balance++;
    return p;
}

static void free_owned(void** p) {
    OK(OPI_Free(p));
    CHECK(*p == NULL, "%p after OPI_Free", *p);
    balance--;
}

// ---- every pairing, size and order of arrival

typedef enum { give, igive, send, isend, senders } Sender;
typedef enum { take, itake, receive, ireceive, receivers } Receiver;

static void do_send(Sender how, size_t bytes, int to, int tag, uint32_t id) {
    MPI_Request request = MPI_REQUEST_NULL;
    void* p = new_owned(bytes, id);
    if (bytes >= sizeof p) memcpy(p, &p, sizeof p);
    if (how == give) OK(OPI_Give(&p, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD));
    if (how == igive) OK(OPI_Igive(&p, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
    if (how == send) OK(MPI_Send(p, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD));
    if (how == isend) OK(MPI_Isend(p, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
    if (how == give || how == igive) {
        CHECK(p == NULL, "%p after a give", p);
        balance--;
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (how == send || how == isend) free_owned(&p);
}

// Whether the data are those of message `id`, but for the address that its sender wrote at their start.
static void check_data(const char* data, size_t bytes, uint32_t id, const char* what) {
    const size_t from = bytes >= sizeof(void*) ? sizeof(void*) : 0;
    for (size_t i = from; i < bytes; i++)
        CHECK((unsigned char)data[i] == pattern(id, i), "%s of %zu bytes: byte %zu", what, bytes, i);
}

static void check_status(const MPI_Status* s, size_t bytes, int from, int tag) {
    int n = -1;
    OK(MPI_Get_count(s, MPI_BYTE, &n));
    CHECK(n == (int)bytes && s->MPI_SOURCE == from && s->MPI_TAG == tag, "%d bytes from %d with tag %d, not %zu, %d, %d", n,
          s->MPI_SOURCE, s->MPI_TAG, bytes, from, tag);
}

typedef struct {
    Receiver how;
    void* p;
    MPI_Request request;
} Receipt;

// Posts what does not block.
static void post(Receipt* r, Receiver how, size_t room, int from, int tag) {
    *r = (Receipt){how, (void*)8, MPI_REQUEST_NULL};
    if (how == itake) OK(OPI_Itake(&r->p, (int)room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &r->request));
    if (how == receive || how == ireceive) r->p = malloc(room + 1);
    if (how == ireceive) OK(MPI_Irecv(r->p, (int)room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &r->request));
}

static void complete(Receipt* r, size_t room, int from, int tag, MPI_Status* s) {
    if (r->how == take) OK(OPI_Take(&r->p, (int)room, MPI_BYTE, from, tag, MPI_COMM_WORLD, s));
    if (r->how == receive) OK(MPI_Recv(r->p, (int)room, MPI_BYTE, from, tag, MPI_COMM_WORLD, s));
    if (r->how == itake || r->how == ireceive) OK(MPI_Wait(&r->request, s));
}

static void release(Receipt* r, Sender sender, size_t bytes) {
    if (r->how == receive || r->how == ireceive) {
        free(r->p);
        return;
    }
    balance++;
    if (same && sender < send && bytes >= sizeof r->p) CHECK(memcmp(r->p, &r->p, sizeof r->p) == 0, "a given buffer has another address");
    free_owned(&r->p);
}

enum { completes = 8192 };   // from so many bytes on a send from the shared heap waits for its receive

static void one_pairing(Sender sender, Receiver receiver, size_t bytes, int wild, int late) {
    static int tag;
    tag = tag % 30000 + 2;
    const uint32_t id = (uint32_t)tag;
    if (rank == 0) {
        if (late) OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        do_send(sender, bytes, 1, tag, id);
        if (!late) OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else if (rank == 1) {
        Receipt r;
        MPI_Status s;
        const int from = wild ? MPI_ANY_SOURCE : 0, with = wild ? MPI_ANY_TAG : tag;
        if (!late && wild) OK(MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &s));   // its turn is before that of tag 1
        if (!late && !wild && bytes < completes) OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        post(&r, receiver, bytes + 5, from, with);
        if (late) OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
        complete(&r, bytes + 5, from, with, &s);
        check_status(&s, bytes, 0, tag);
        check_data(r.p, bytes, id, sender < send ? "a give" : "a send");
        release(&r, sender, bytes);
        if (!late && (wild || bytes >= completes)) OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

static void check_pairings(void) {
    for (int sender = 0; sender < senders; sender++)
        for (int receiver = 0; receiver < receivers; receiver++)
            for (int i = 0; i < size_count; i++)
                for (int order = 0; order < 4; order++) one_pairing((Sender)sender, (Receiver)receiver, sizes[i], order & 1, order >> 1);
}

// ---- order

// Messages of one tag, gives and sends mixed, are received in order, by takes and receives mixed.
static void check_order(void) {
    enum { messages = 2000 };
    uint64_t random = 5;
    if (size < 2 || rank > 1) return;
    MPI_Request requests[64];
    void* buffers[64];
    for (int i = 0; i < messages; i++) {
        const int gives = below(&random, 2) == 0, takes = below(&random, 2) == 0, slot = i % 64;
        int n = i;
        if (rank == 0) {
            if (i >= 64) OK(MPI_Wait(&requests[slot], MPI_STATUS_IGNORE));
            else buffers[slot] = malloc(sizeof n);
            void* p = gives ? new_owned(sizeof n, 0) : buffers[slot];
            memcpy(p, &n, sizeof n);
            balance -= gives;
            if (gives) OK(OPI_Igive(&p, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[slot]));
            else OK(MPI_Isend(p, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[slot]));
        } else {
            void* p = &n;
            balance += takes;
            if (takes) OK(OPI_Take(&p, 1, MPI_INT, i % 3 ? 0 : MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            else OK(MPI_Recv(p, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(*(int*)p == i, "message %d came in place of %d", *(int*)p, i);
            if (takes) free_owned(&p);
        }
    }
    if (rank == 0) OK(MPI_Waitall(64, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; rank == 0 && i < 64; i++) free(buffers[i]);
}

// More gives than a ring holds, and more than the receiver keeps before it takes any, by any source.
static void check_flood(void) {
    enum { gives = 3000 };
    if (rank != 0) {
        MPI_Request* requests = malloc(gives * sizeof *requests);
        for (int i = 0; i < gives; i++) {
            void* p = new_owned(16, 0);
            memcpy(p, &i, sizeof i);
            OK(OPI_Igive(&p, 16, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &requests[i]));
            balance--;
        }
        OK(MPI_Waitall(gives, requests, MPI_STATUSES_IGNORE));
        free(requests);
        return;
    }
    int* next = calloc((size_t)size, sizeof *next);
    sleep_ms(20);
    for (int i = 0; i < gives * (size - 1); i++) {
        void* p;
        MPI_Status s;
        OK(OPI_Take(&p, 16, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s));
        balance++;
        CHECK(*(int*)p == next[s.MPI_SOURCE]++, "give %d of rank %d came too early", *(int*)p, s.MPI_SOURCE);
        free_owned(&p);
    }
    free(next);
}

// ---- types with gaps

static void check_types(void) {
    MPI_Datatype every_other, in_front;
    OK(MPI_Type_vector(100, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    const int displacement = -1, one = 1;
    OK(MPI_Type_indexed(1, &one, &displacement, MPI_INT, &in_front));
    OK(MPI_Type_commit(&in_front));
    if (rank == 0) {
        for (int packed = 0; packed < 2; packed++) {
            int* p = new_owned(200 * sizeof *p, 0);
            for (int i = 0; i < 200; i++) p[i] = i;
            OK(OPI_Give((void**)&p, packed ? 100 : 1, packed ? MPI_INT : every_other, 1, 5, MPI_COMM_WORLD));
            balance--;
        }
    } else if (rank == 1) {
        int *p, q[200];
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        FAILS(MPI_ERR_TYPE, OPI_Take((void**)&p, 1, in_front, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
        memset(q, 0, sizeof q);
        OK(MPI_Recv(q, 1, every_other, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 200; i++) CHECK(q[i] == (i % 2 ? 0 : i), "element %d is %d", i, q[i]);
        OK(OPI_Take((void**)&p, 1, every_other, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        balance++;
        for (int i = 0; i < 100; i++) CHECK(p[2 * i] == i, "element %d is %d", i, p[2 * i]);
        free_owned((void**)&p);
    }
    OK(MPI_Type_free(&every_other));
    OK(MPI_Type_free(&in_front));
}

// ---- to oneself, to nobody

static void check_self(void) {
    MPI_Status s;
    for (int posted = 0; posted < 2; posted++) {
        void *p = new_owned(1000, 9), *q = NULL, *given = p;
        MPI_Request request = MPI_REQUEST_NULL;
        if (posted) OK(OPI_Itake(&q, 1000, MPI_BYTE, rank, 6, MPI_COMM_WORLD, &request));
        OK(OPI_Give(&p, 1000, MPI_BYTE, rank, 6, MPI_COMM_WORLD));
        balance--;
        if (posted) OK(MPI_Wait(&request, &s));
        else OK(OPI_Take(&q, 2000, MPI_BYTE, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &s));
        balance++;
        check_status(&s, 1000, rank, 6);
        CHECK(q == given && differs(q, 1000, 9) < 0, "a buffer that a rank gives itself is another one");
        free_owned(&q);
    }
    char bytes[100];
    void* p = new_owned(100, 7);
    MPI_Request request;
    OK(OPI_Igive(&p, 100, MPI_BYTE, rank, 6, MPI_COMM_WORLD, &request));
    balance--;
    OK(MPI_Recv(bytes, 100, MPI_BYTE, rank, 6, MPI_COMM_WORLD, &s));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(differs(bytes, 100, 7) < 0, "received from a give to oneself");
    OK(MPI_Isend(bytes, 100, MPI_BYTE, rank, 6, MPI_COMM_WORLD, &request));
    OK(OPI_Take(&p, 100, MPI_BYTE, rank, 6, MPI_COMM_WORLD, &s));
    balance++;
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(differs(p, 100, 7) < 0, "taken from a send to oneself");
    free_owned(&p);
}

static void check_nobody(void) {
    MPI_Status s;
    MPI_Request request;
    void *p = new_owned(64, 1), *q = &s;
    OK(OPI_Give(&p, 64, MPI_BYTE, MPI_PROC_NULL, 6, MPI_COMM_WORLD));
    balance--;
    OK(OPI_Take(&q, 64, MPI_BYTE, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &s));
    CHECK(p == NULL && q == NULL, "%p, %p", p, q);
    check_status(&s, 0, MPI_PROC_NULL, MPI_ANY_TAG);
    q = &s;
    OK(OPI_Itake(&q, 64, MPI_BYTE, MPI_PROC_NULL, 6, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(q == NULL, "%p", q);
}

// ---- requests

static void check_requests(void) {
    enum { n = 8 };
    void* p[n];
    MPI_Request requests[n];
    if (rank == 1) {
        OK(OPI_Itake(&p[0], 8, MPI_BYTE, 0, 99, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Cancel(&requests[0]));
        MPI_Status s;
        int cancelled = 0;
        OK(MPI_Wait(&requests[0], &s));
        OK(MPI_Test_cancelled(&s, &cancelled));
        CHECK(cancelled, "a take without a give cannot be cancelled");
        for (int i = 0; i < n; i++) OK(OPI_Itake(&p[i], 100, MPI_BYTE, 0, 10 + i, MPI_COMM_WORLD, &requests[i]));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
        for (int i = 0; i < n; i++) {
            int at = -1;
            OK(MPI_Waitany(n, requests, &at, &s));
            balance++;
            check_status(&s, (size_t)(10 + at), 0, 10 + at);
            CHECK(differs(p[at], (size_t)(10 + at), (uint32_t)at) < 0, "take %d", at);
            free_owned(&p[at]);
        }
    } else if (rank == 0) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = n - 1; i >= 0; i--) {
            p[i] = new_owned((size_t)(10 + i), (uint32_t)i);
            OK(OPI_Igive(&p[i], 10 + i, MPI_BYTE, 1, 10 + i, MPI_COMM_WORLD, &requests[i]));
            balance--;
            if (i % 2) OK(MPI_Request_free(&requests[i]));
        }
        OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    }
}

// A give is found by probes, and received as a matched message.
static void check_matched(void) {
    char bytes[300];
    MPI_Status s;
    MPI_Message message;
    if (rank == 0) {
        for (int i = 0; i < 2; i++) do_send(give, sizeof bytes, 1, 7, 3);
    } else if (rank == 1) {
        for (int i = 0; i < 2; i++) {
            OK(MPI_Mprobe(0, 7, MPI_COMM_WORLD, &message, &s));
            check_status(&s, sizeof bytes, 0, 7);
            OK(MPI_Mrecv(bytes, sizeof bytes, MPI_BYTE, &message, &s));
            check_data(bytes, sizeof bytes, 3, "a matched give");
        }
    }
}

// ---- errors

static void check_truncation(void) {
    if (rank == 0) {
        for (int i = 0; i < 3; i++) do_send(give, 500, 1, 8, 3);
        do_send(send, 500, 1, 8, 3);
    } else if (rank == 1) {
        void* p = NULL;
        char bytes[500];
        MPI_Request request;
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        for (int i = 0; i < 4; i++) {
            if (i == 0) FAILS(MPI_ERR_TRUNCATE, OPI_Take(&p, 100, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (i == 1) FAILS(MPI_ERR_TRUNCATE, MPI_Recv(bytes, 100, MPI_BYTE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (i > 1) {
                OK(OPI_Itake(&p, 100, MPI_BYTE, 0, 8, MPI_COMM_WORLD, &request));
                FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            if (i == 1) continue;
            balance++;
            check_data(p, 100, 3, "a truncated message");
            free_owned(&p);
        }
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    }
}

static void check_errors(void) {
    void *p = new_owned(64, 0), *inside = (char*)p + 8, *copy = p, *none = NULL, *own = malloc(64);
    MPI_Request request;
    MPI_Comm world = MPI_COMM_WORLD;
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_ARG, OPI_Alloc(NULL, 8));
    FAILS(MPI_ERR_NO_MEM, OPI_Alloc(&none, (size_t)1 << 62));
    FAILS(MPI_ERR_ARG, OPI_Free(NULL));
    OK(OPI_Free(&none));
    FAILS(MPI_ERR_BUFFER, OPI_Free(&own));
    FAILS(MPI_ERR_BUFFER, OPI_Free(&inside));
    FAILS(MPI_ERR_BUFFER, OPI_Give(&none, 1, MPI_BYTE, 0, 1, world));
    FAILS(MPI_ERR_BUFFER, OPI_Give(&inside, 1, MPI_BYTE, 0, 1, world));
    FAILS(MPI_ERR_BUFFER, OPI_Igive(&own, 1, MPI_BYTE, 0, 1, world, &request));
    FAILS(MPI_ERR_ARG, OPI_Give(NULL, 1, MPI_BYTE, 0, 1, world));
    FAILS(MPI_ERR_COUNT, OPI_Give(&p, -1, MPI_BYTE, 0, 1, world));
    FAILS(MPI_ERR_TYPE, OPI_Give(&p, 1, MPI_DATATYPE_NULL, 0, 1, world));
    FAILS(MPI_ERR_RANK, OPI_Give(&p, 1, MPI_BYTE, size, 1, world));
    FAILS(MPI_ERR_RANK, OPI_Give(&p, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, world));
    FAILS(MPI_ERR_RANK, OPI_Igive(&p, 1, MPI_BYTE, MPI_ANY_SOURCE, 1, world, &request));
    FAILS(MPI_ERR_TAG, OPI_Give(&p, 1, MPI_BYTE, 0, MPI_ANY_TAG, world));
    FAILS(MPI_ERR_COMM, OPI_Give(&p, 1, MPI_BYTE, 0, 1, MPI_COMM_NULL));
    FAILS(MPI_ERR_ARG, OPI_Igive(&p, 1, MPI_BYTE, 0, 1, world, NULL));
    FAILS(MPI_ERR_ARG, OPI_Take(NULL, 1, MPI_BYTE, 0, 1, world, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_COUNT, OPI_Take(&none, -1, MPI_BYTE, 0, 1, world, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_RANK, OPI_Take(&none, 1, MPI_BYTE, size, 1, world, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TAG, OPI_Itake(&none, 1, MPI_BYTE, 0, -7, world, &request));
    FAILS(MPI_ERR_ARG, OPI_Itake(&none, 1, MPI_BYTE, 0, 1, world, NULL));
    CHECK(p == copy && differs(p, 64, 0) < 0, "a give that failed took its buffer");
    free_owned(&p);
    FAILS(MPI_ERR_BUFFER, OPI_Free(&copy));
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    free(own);
}

// ---- memory

// One side allocates and gives, the other takes and frees: what they have stays bounded, and comes back to its maker.
static void check_one_way(void) {
    enum { turns = 4000, bytes = 1 << 18 };
    long before = 0;
    for (int i = 0; i < turns && rank < 2; i++) {
        void* p = NULL;
        if (rank == 0) {
            OK(OPI_Alloc(&p, bytes));
            memset(p, 1, bytes / 64);
            OK(OPI_Give(&p, bytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
        } else {
            OK(OPI_Take(&p, bytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(OPI_Free(&p));
        }
        if (i % 8 == 0) {
            int token = 0;   // otherwise the giver may be ahead by the whole ring
            if (rank == 1) OK(MPI_Send(&token, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
            else OK(MPI_Recv(&token, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        if (i == turns / 2) before = share_kib();
    }
    if (rank < 2) CHECK(share_kib() < before + 2048, "%ld KiB, %ld KiB before", share_kib(), before);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    same = argc > 1 && strcmp(argv[1], "same") == 0;
    check_self();
    check_nobody();
    check_errors();
    if (size > 1) {
        check_pairings();
        check_order();
        check_flood();
        check_types();
        check_requests();
        check_matched();
        check_truncation();
        check_one_way();
    }
    CHECK(balance == 0, "allocated + taken - given - freed = %ld", balance);
    return finish();
}
