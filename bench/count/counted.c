/* The program `weft count` runs under callgrind: short loops of one call each, cut into phases by client requests.
 * Rank 0 is counted; rank 1, where there is one, runs natively and does the other half. Who waits for whom is settled
 * through a shared page, never by MPI, so that nothing but the phase's own calls meets the library.
 *
 * counted null          one process that has a peer on the null wire (WEFT_WIRE=null)
 * counted shm           two ranks on one node
 * counted ... slope     collects whole loops instead of single functions: for programs the library is inlined into
 * counted ... multiple  under MPI_THREAD_MULTIPLE, with one thread
 */
#include "../mpi/bench.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <valgrind/callgrind.h>
#if __has_include(<weft.h>) /* no peer has these calls */
#define OWNERSHIP
#include <weft.h>
#endif

enum { most = 64, repeats = 11, tag = 1, bytes = 8, deep = 10000, ahead_tag = 1000 };

typedef struct Steps {
    _Alignas(128) _Atomic int64_t count[2];
} Steps;

typedef struct Bench {
    World world;
    Steps *steps; /* null without a peer */
    int64_t step;
    bool slope, counting;
    char out[bytes], in[most][bytes];
    MPI_Request requests[most];
    MPI_Request to, from; /* persistent, between the two */
    MPI_Request parts_to, parts_from; /* partitioned, in memory from MPI_Alloc_mem; null on the null wire */
    char *parts_out, *parts_in;
    int posted, unexpected; /* what lies ahead, each with a tag of its own, from ahead_tag on; rank 1: sent so far */
    MPI_Request ahead[deep];
    void *buffers[most]; /* that change their owner */
    MPI_Request sums;  /* a persistent allreduce of 8 B */
    MPI_Comm grid;     /* both ranks, a neighbour of each other twice */
    MPI_Comm twin; /* of MPI_COMM_WORLD; null wire only */
    MPI_Win win;   /* in an epoch of MPI_Win_lock_all */
    char *part;
} Bench;

/* A phase in three parts: before and after are not counted, the middle is. Rank 1 runs its own three. */
typedef struct Phase {
    const char *name;
    void (*before)(Bench *b, int n), (*counted)(Bench *b, int n), (*after)(Bench *b, int n);
    void (*peer)(Bench *b, int n);
} Phase;

/* Both sides arrive, then both go on. */
static void step(Bench *b)
{
    if (!b->steps)
        return;
    b->step++;
    atomic_store_explicit(&b->steps->count[b->world.rank], b->step, memory_order_release);
    while (atomic_load_explicit(&b->steps->count[1 - b->world.rank], memory_order_acquire) < b->step)
        sched_yield();
}

static void nothing(Bench *b, int n)
{
    (void)b;
    (void)n;
}

__attribute__((noinline)) static void empty(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        __asm__ volatile("" : : "r"(b) : "memory");
}

__attribute__((noinline)) static void send(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Send(b->out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void isend(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(b->out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &b->requests[i]);
}

__attribute__((noinline)) static void isend_twin(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(b->out, bytes, MPI_BYTE, 1, tag, b->twin, &b->requests[i]);
}

__attribute__((noinline)) static void fetch(Bench *b, int n)
{
    uint64_t one = 1, old;
    for (int i = 0; i < n; i++)
        MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 1, 0, MPI_SUM, b->win);
}

__attribute__((noinline)) static void swap(Bench *b, int n)
{
    uint64_t one = 1, old;
    for (int i = 0; i < n; i++)
        MPI_Compare_and_swap(&one, &one, &old, MPI_UINT64_T, 1, 0, b->win);
}

__attribute__((noinline)) static void put(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Put(b->out, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, b->win);
}

__attribute__((noinline)) static void get(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Get(b->in[0], bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, b->win);
}

#ifdef OWNERSHIP
__attribute__((noinline)) static void isend_fixed(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(b->out, bytes, MPI_BYTE, 1, tag, MPIX_COMM_1, &b->requests[i]);
}

__attribute__((noinline)) static void isend_global(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_global(b->out, bytes, MPI_BYTE, 1, tag, b->twin, &b->requests[i]);
}

__attribute__((noinline)) static void isend_npn(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_npn(b->out, bytes, MPI_BYTE, 1, tag, b->twin, &b->requests[i]);
}

__attribute__((noinline)) static void isend_noreq(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_noreq(b->out, bytes, MPI_BYTE, 1, tag, b->twin);
}

__attribute__((noinline)) static void isend_nomatch(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_nomatch(b->out, bytes, MPI_BYTE, 1, b->twin, &b->requests[i]);
}

// The same on a fixed communicator. These are each function's second place, too: what is called in one place alone is inlined whatever its
// size, and then the rows of the optimised build would say nothing of programs that call it in several.
__attribute__((noinline)) static void isend_global_fixed(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_global(b->out, bytes, MPI_BYTE, 1, tag, MPIX_COMM_1, &b->requests[i]);
}

__attribute__((noinline)) static void isend_npn_fixed(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_npn(b->out, bytes, MPI_BYTE, 1, tag, MPIX_COMM_1, &b->requests[i]);
}

__attribute__((noinline)) static void isend_noreq_fixed(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_noreq(b->out, bytes, MPI_BYTE, 1, tag, MPIX_COMM_1);
}

__attribute__((noinline)) static void isend_nomatch_fixed(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_nomatch(b->out, bytes, MPI_BYTE, 1, MPIX_COMM_1, &b->requests[i]);
}

__attribute__((noinline)) static void isend_all_opts(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Isend_all_opts(b->out, bytes, MPI_BYTE, 1, MPIX_COMM_1);
}

__attribute__((noinline)) static void put_virtual(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPIX_Put_virtual_addr(b->out, bytes, MPI_BYTE, 1, (MPI_Aint)b->part, bytes, MPI_BYTE, b->win);
}
#endif

__attribute__((noinline)) static void isend_burst(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(b->out, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &b->requests[i]);
    MPI_Waitall(n, b->requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void wait_each(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Wait(&b->requests[i], MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void wait_all(Bench *b, int n)
{
    MPI_Waitall(n, b->requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void recv(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Recv(b->in[i], bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void irecv(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Irecv(b->in[i], bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &b->requests[i]);
}

__attribute__((noinline)) static void start_send(Bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Start(&b->to);
        MPI_Wait(&b->to, MPI_STATUS_IGNORE);
    }
}

__attribute__((noinline)) static void start_recv(Bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Start(&b->from);
        MPI_Wait(&b->from, MPI_STATUS_IGNORE);
    }
}

__attribute__((noinline)) static void match(Bench *b, int n)
{
    MPI_Message message;
    for (int i = 0; i < n; i++) {
        MPI_Mprobe(1, tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(b->in[i], bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
}

#ifdef OWNERSHIP
__attribute__((noinline)) static void give(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        OPI_Give(&b->buffers[i], bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void take(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        OPI_Take(&b->buffers[i], bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void free_and_allocate(Bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        OPI_Free(&b->buffers[i]);
        OPI_Alloc(&b->buffers[i], bytes);
    }
}

static void allocate(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        OPI_Alloc(&b->buffers[i], bytes);
}

static void release(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        OPI_Free(&b->buffers[i]);
}
#endif

/* Irecv and Waitall count, the time between them does not: there the peer's messages arrive. */
static void collect(const Bench *b)
{
    if (b->slope && b->counting)
        CALLGRIND_TOGGLE_COLLECT;
}

static void irecv_burst(Bench *b, int n)
{
    irecv(b, n);
    collect(b);
    step(b);
    step(b);
    collect(b);
    wait_all(b, n);
}

static void take_posted(Bench *b, int n)
{
    step(b);
    step(b);
    wait_all(b, n);
}

static void await_peer(Bench *b, int n)
{
    (void)n;
    step(b);
}

/* By calls that do not wait, as in feed(): a peer that sleeps, because the counted side is slow, would have to be woken. */
static void drain(Bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Request request;
        MPI_Irecv(b->in[i], bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        for (int there = 0; !there;)
            MPI_Test(&request, &there, MPI_STATUS_IGNORE);
    }
}

/* Everything is on its way before the counted side looks; nothing blocks, however small the ring. */
static void feed(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Isend(b->out, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &b->requests[i]);
    step(b);
    for (int all = 0; !all;)
        MPI_Testall(n, b->requests, &all, MPI_STATUSES_IGNORE);
}

#ifdef OWNERSHIP
static void drain_buffers(Bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Request request;
        OPI_Itake(&b->buffers[i], bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &request);
        for (int there = 0; !there;)
            MPI_Test(&request, &there, MPI_STATUS_IGNORE);
    }
    release(b, n);
}

static void feed_buffers(Bench *b, int n)
{
    allocate(b, n);
    for (int i = 0; i < n; i++)
        OPI_Igive(&b->buffers[i], bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &b->requests[i]);
    step(b);
    for (int all = 0; !all;)
        MPI_Testall(n, b->requests, &all, MPI_STATUSES_IGNORE);
}
#endif

static void feed_when_posted(Bench *b, int n)
{
    step(b);
    feed(b, n);
}

/* Receives that are posted before those that count, and get no message. The first burst behind them is not counted. */
static void post_ahead(Bench *b, int depth)
{
    for (; b->posted < depth; b->posted++)
        MPI_Irecv(b->out, bytes, MPI_BYTE, 1, ahead_tag + b->posted, MPI_COMM_WORLD, &b->ahead[b->posted]);
}

static void behind_a_posted(Bench *b, int n)
{
    (void)n;
    post_ahead(b, 1);
}

static void behind_many_posted(Bench *b, int n)
{
    (void)n;
    post_ahead(b, deep);
}

static void unpost_ahead(Bench *b)
{
    for (int i = 0; i < b->posted; i++) {
        MPI_Cancel(&b->ahead[i]);
        MPI_Wait(&b->ahead[i], MPI_STATUS_IGNORE);
    }
    b->posted = 0;
}

/* Messages that nobody receives, and then those that count. */
static void send_ahead(Bench *b, int depth, int n)
{
    for (; b->unexpected < depth; b->unexpected++) {
        MPI_Request request;
        MPI_Isend(b->out, bytes, MPI_BYTE, 0, ahead_tag + b->unexpected, MPI_COMM_WORLD, &request);
        for (int there = 0; !there;)
            MPI_Test(&request, &there, MPI_STATUS_IGNORE);
    }
    feed(b, n);
}

static void feed_behind_a_message(Bench *b, int n)
{
    send_ahead(b, 1, n);
}

static void feed_behind_many(Bench *b, int n)
{
    send_ahead(b, deep, n);
}

static void await_ahead(Bench *b, int depth)
{
    for (int there = 0; !there;)
        MPI_Iprobe(1, ahead_tag + depth - 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    b->unexpected = depth;
    step(b);
}

static void behind_a_message(Bench *b, int n)
{
    (void)n;
    await_ahead(b, 1);
}

static void behind_many_messages(Bench *b, int n)
{
    (void)n;
    await_ahead(b, deep);
}

static void receive_ahead(Bench *b)
{
    for (int i = 0; i < b->unexpected; i++)
        MPI_Recv(b->in[0], bytes, MPI_BYTE, 1, ahead_tag + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The receiver's request is started before partitions are marked, so that they can go straight to its buffer. */
static void start_parts(Bench *b, int n)
{
    (void)n;
    MPI_Start(&b->parts_to);
    step(b);
}

__attribute__((noinline)) static void ready(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Pready(i, b->parts_to);
}

static void ready_rest(Bench *b, int n)
{
    for (int i = n; i < most; i++)
        MPI_Pready(i, b->parts_to);
    MPI_Wait(&b->parts_to, MPI_STATUS_IGNORE);
}

static void receive_parts(Bench *b, int n)
{
    (void)n;
    MPI_Start(&b->parts_from);
    step(b);
    for (int there = 0; !there;)
        MPI_Test(&b->parts_from, &there, MPI_STATUS_IGNORE);
}

static void await_parts(Bench *b, int n)
{
    (void)n;
    MPI_Start(&b->parts_from);
    step(b);
    step(b);
}

__attribute__((noinline)) static void arrived(Bench *b, int n)
{
    for (int i = 0, there; i < n; i++)
        MPI_Parrived(b->parts_from, i, &there);
}

static void take_parts(Bench *b, int n)
{
    (void)n;
    MPI_Wait(&b->parts_from, MPI_STATUS_IGNORE);
}

static void send_parts(Bench *b, int n)
{
    start_parts(b, n);
    ready(b, most);
    step(b);
    MPI_Wait(&b->parts_to, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void allreduce(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Allreduce(b->out, b->in[0], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void barrier(Bench *b, int n)
{
    (void)b;
    for (int i = 0; i < n; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

/* Blocks of 8 B, from rank 0 where there is a root: `in` has room for both what is sent and what comes. */
__attribute__((noinline)) static void bcast(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Bcast(b->in[0], 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void reduce(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Reduce(b->out, b->in[0], 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void gather(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Gather(b->out, 1, MPI_INT64_T, b->in[0], 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void scatter(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Scatter(b->in[2], 1, MPI_INT64_T, b->in[0], 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void allgather(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Allgather(b->out, 1, MPI_INT64_T, b->in[0], 1, MPI_INT64_T, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void alltoall(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Alltoall(b->in[2], 1, MPI_INT64_T, b->in[0], 1, MPI_INT64_T, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void reduce_scatter(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Reduce_scatter_block(b->in[2], b->in[0], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void scan(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Scan(b->out, b->in[0], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void alltoallv(Bench *b, int n)
{
    static const int counts[2] = {1, 1}, displs[2] = {0, 1};
    for (int i = 0; i < n; i++)
        MPI_Alltoallv(b->in[2], counts, displs, MPI_INT64_T, b->in[0], counts, displs, MPI_INT64_T, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void start_allreduce(Bench *b, int n)
{
    for (int i = 0; i < n; i++) {
        MPI_Start(&b->sums);
        MPI_Wait(&b->sums, MPI_STATUS_IGNORE);
    }
}

__attribute__((noinline)) static void neighbours(Bench *b, int n)
{
    for (int i = 0; i < n; i++)
        MPI_Neighbor_alltoall(b->in[2], 1, MPI_INT64_T, b->in[0], 1, MPI_INT64_T, b->grid);
}

/* What `neighbours` does, said by messages. */
__attribute__((noinline)) static void neighbours_by_messages(Bench *b, int n)
{
    int other = 1 - b->world.rank;
    for (int i = 0; i < n; i++) {
        MPI_Irecv(b->in[1], 1, MPI_INT64_T, other, tag, b->grid, &b->requests[0]);
        MPI_Irecv(b->in[0], 1, MPI_INT64_T, other, tag, b->grid, &b->requests[1]);
        MPI_Isend(b->in[2], 1, MPI_INT64_T, other, tag, b->grid, &b->requests[2]);
        MPI_Isend(b->in[3], 1, MPI_INT64_T, other, tag, b->grid, &b->requests[3]);
        MPI_Waitall(4, b->requests, MPI_STATUSES_IGNORE);
    }
}

static void make_collectives(Bench *b)
{
    MPI_Allreduce_init(b->out, b->in[0], 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &b->sums);
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){2}, (int[]){1}, 0, &b->grid);
}

static void free_collectives(Bench *b)
{
    MPI_Request_free(&b->sums);
    MPI_Comm_free(&b->grid);
}

static void make_parts(Bench *b)
{
    MPI_Alloc_mem(most * bytes, MPI_INFO_NULL, &b->parts_out);
    MPI_Alloc_mem(most * bytes, MPI_INFO_NULL, &b->parts_in);
    MPI_Psend_init(b->parts_out, most, bytes, MPI_BYTE, 1 - b->world.rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &b->parts_to);
    MPI_Precv_init(b->parts_in, most, bytes, MPI_BYTE, 1 - b->world.rank, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &b->parts_from);
}

static void free_parts(Bench *b)
{
    MPI_Request_free(&b->parts_to);
    MPI_Request_free(&b->parts_from);
    MPI_Free_mem(b->parts_out);
    MPI_Free_mem(b->parts_in);
}

static const Phase by_null[] = {
    {"empty", nothing, empty, nothing, nothing},
    {"isend", nothing, isend, wait_all, nothing},
    {"wait", isend, wait_each, nothing, nothing},
    {"isend-dup", nothing, isend_twin, wait_all, nothing},
    {"put", nothing, put, nothing, nothing},
    {"fetch", nothing, fetch, nothing, nothing},
    {"swap", nothing, swap, nothing, nothing},
    {"get", nothing, get, nothing, nothing},
#ifdef OWNERSHIP
    {"isend-fixed", nothing, isend_fixed, wait_all, nothing},
    {"isend-global", nothing, isend_global, wait_all, nothing},
    {"isend-npn", nothing, isend_npn, wait_all, nothing},
    {"isend-noreq", nothing, isend_noreq, nothing, nothing},
    {"isend-nomatch", nothing, isend_nomatch, wait_all, nothing},
    {"isend-global-fixed", nothing, isend_global_fixed, wait_all, nothing},
    {"isend-npn-fixed", nothing, isend_npn_fixed, wait_all, nothing},
    {"isend-noreq-fixed", nothing, isend_noreq_fixed, nothing, nothing},
    {"isend-nomatch-fixed", nothing, isend_nomatch_fixed, wait_all, nothing},
    {"isend-all-opts", nothing, isend_all_opts, nothing, nothing},
    {"put-virtual", nothing, put_virtual, nothing, nothing},
#endif
    {NULL, NULL, NULL, NULL, NULL},
};

static const Phase by_shm[] = {
    {"empty", nothing, empty, nothing, nothing},
    {"send", nothing, send, nothing, drain},
    {"isend", nothing, isend, wait_all, drain},
    {"isend-burst", nothing, isend_burst, nothing, drain},
    {"recv", await_peer, recv, nothing, feed},
    {"start-send", nothing, start_send, nothing, drain},
    {"start-recv", await_peer, start_recv, nothing, feed},
    {"match", await_peer, match, nothing, feed},
#ifdef OWNERSHIP
    {"give", allocate, give, nothing, drain_buffers},
    {"take", await_peer, take, release, feed_buffers},
    {"free-alloc", allocate, free_and_allocate, release, nothing},
#endif
    {"irecv", nothing, irecv, take_posted, feed_when_posted},
    {"irecv-burst", nothing, irecv_burst, nothing, feed_when_posted},
    {"pready", start_parts, ready, ready_rest, receive_parts},
    {"parrived", await_parts, arrived, take_parts, send_parts},
    {"allreduce", nothing, allreduce, nothing, allreduce},
    {"barrier", nothing, barrier, nothing, barrier},
    {"bcast", nothing, bcast, nothing, bcast},
    {"reduce", nothing, reduce, nothing, reduce},
    {"gather", nothing, gather, nothing, gather},
    {"scatter", nothing, scatter, nothing, scatter},
    {"allgather", nothing, allgather, nothing, allgather},
    {"alltoall", nothing, alltoall, nothing, alltoall},
    {"reduce-scatter", nothing, reduce_scatter, nothing, reduce_scatter},
    {"scan", nothing, scan, nothing, scan},
    {"alltoallv", nothing, alltoallv, nothing, alltoallv},
    {"start-allreduce", nothing, start_allreduce, nothing, start_allreduce},
    {"neighbours", nothing, neighbours, nothing, neighbours},
    {"neighbours-messages", nothing, neighbours_by_messages, nothing, neighbours_by_messages},
    {NULL, NULL, NULL, NULL, NULL},
};

/* After all others: what is ahead stays there. */
static const Phase behind_posted[] = {
    {"posted-1", behind_a_posted, irecv_burst, nothing, feed_when_posted},
    {"posted-10000", behind_many_posted, irecv_burst, nothing, feed_when_posted},
    {NULL, NULL, NULL, NULL, NULL},
};
static const Phase behind_unexpected[] = {
    {"unexpected-1", behind_a_message, recv, nothing, feed_behind_a_message},
    {"unexpected-10000", behind_many_messages, recv, nothing, feed_behind_many},
    {NULL, NULL, NULL, NULL, NULL},
};

static void run(Bench *b, const Phase *p, int n, bool count)
{
    char name[64];
    step(b);
    if (b->world.rank == 1) {
        p->peer(b, n);
        return;
    }
    p->before(b, n);
    b->counting = count;
    if (count)
        CALLGRIND_ZERO_STATS;
    collect(b);
    p->counted(b, n);
    collect(b);
    snprintf(name, sizeof name, "%s %d", p->name, n);
    if (count)
        CALLGRIND_DUMP_STATS_AT(name);
    p->after(b, n);
}

static void run_all(Bench *b, const Phase *list)
{
    for (const Phase *p = list; p->name; p++) {
        run(b, p, most, false); /* warm: pages touched, pools filled, symbols bound */
        run(b, p, most, false);
        for (int i = 0; i < repeats; i++) {
            run(b, p, most, true);
            run(b, p, most / 2, true);
        }
    }
}

/* On the null wire each process is thought to have the memory that this one has. */
static void make_twin_and_window(Bench *b)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &b->twin);
#ifdef OWNERSHIP
    MPIX_Comm_dup_predefined(MPI_COMM_WORLD, MPIX_COMM_1);
#endif
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &b->part, &b->win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, b->win);
}

static void free_twin_and_window(Bench *b)
{
    MPI_Win_unlock_all(b->win);
    MPI_Win_free(&b->win);
    MPI_Comm_free(&b->twin);
}

int main(int argc, char **argv)
{
    static Bench b;
    bool null = argc > 1 && strcmp(argv[1], "null") == 0;
    if (!null && (argc < 2 || strcmp(argv[1], "shm") != 0)) {
        fprintf(stderr, "usage: counted null|shm [slope|multiple]\n");
        return 2;
    }
    b.slope = argc > 2 && strcmp(argv[2], "slope") == 0;
    bool multiple = argc > 2 && strcmp(argv[2], "multiple") == 0;
    int level;
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    if (multiple && level != MPI_THREAD_MULTIPLE)
        fail("the library grants thread level %d", level);
    MPI_Comm_rank(MPI_COMM_WORLD, &b.world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &b.world.size);
    if (b.world.size != 2)
        fail("there must be two ranks, not %d", b.world.size);
    if (!null)
        b.steps = share_page(&b.world, 4096);
    MPI_Send_init(b.out, bytes, MPI_BYTE, 1 - b.world.rank, tag, MPI_COMM_WORLD, &b.to);
    MPI_Recv_init(b.in[0], bytes, MPI_BYTE, 1 - b.world.rank, tag, MPI_COMM_WORLD, &b.from);
    if (null) {
        make_twin_and_window(&b);
    } else {
        make_parts(&b);
        make_collectives(&b);
    }
    run_all(&b, null ? by_null : by_shm);
    if (!null) {
        run_all(&b, behind_posted);
        unpost_ahead(&b);
        run_all(&b, behind_unexpected);
        if (b.world.rank == 0)
            receive_ahead(&b);
    }
    if (null) {
        free_twin_and_window(&b);
    } else {
        free_collectives(&b);
        free_parts(&b);
    }
    MPI_Request_free(&b.to);
    MPI_Request_free(&b.from);
    MPI_Finalize();
    return 0;
}
