// Random collectives against what one process computes alone: every collective, blocking, nonblocking and persistent, each
// also in its form for large counts, with random counts, roots, MPI_IN_PLACE and operations (one that does not commute), types
// that differ between sender and receiver, on intracommunicators of all shapes and on an intercommunicator, up to three under
// way at once. Nothing but the results may change in any buffer.
// Arguments: seed, iterations; to look closer: the number of one call, of one form.
#include "check.h"

enum { most_ranks = 64, most_count = 40, large_count = 20000, guard = 64, n_shapes = 3 };
enum call { BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, REDUCE,
            ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, calls };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, forms };
static const char* const call_names[] = {"Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan"};

// A communicator and the world ranks on both sides of it (the same side twice, unless it is an intercommunicator).
struct place {
    MPI_Comm comm;
    int inter, me, n, far_n;
    int near[most_ranks], far[most_ranks];
    const char* name;
};

// An element type: what it is to MPI, and how an element is found in memory. The first three are integers of 32 bits, the
// others of 64: within each kind, whoever sends and whoever receives may use different ones.
struct shape {
    MPI_Datatype type;
    int stride, wide;
};
static struct shape shapes[2][n_shapes];
static int only_call = -1, only_form = -1;

static MPI_Datatype affine_type;
static MPI_Op affine_op, affine_op_large;

// x -> a x + b; composed left to right, modulo 2^32: associative, and it matters who comes first.
static void compose_large(void* in, void* inout, MPI_Count* len, MPI_Datatype* type) {
    (void)type;
    uint32_t *l = in, *r = inout;
    for (MPI_Count i = 0; i < *len; i++) {
        uint32_t a = l[2 * i] * r[2 * i], b = l[2 * i + 1] * r[2 * i] + r[2 * i + 1];
        r[2 * i] = a, r[2 * i + 1] = b;
    }
}
static void compose(void* in, void* inout, int* len, MPI_Datatype* type) {
    MPI_Count n = *len;
    compose_large(in, inout, &n, type);
}

struct op {
    enum call call;
    enum form form;
    const struct place* at;
    int wide;          // the elements are
    int large;         // the form for large counts
    int count, root, in_place, reduction, starts;
    uint32_t salt;
    char *send, *sent, *recv, *want;   // the buffers, and what must be in them at the end
    size_t send_bytes, recv_bytes;
    int scounts[most_ranks], sdispls[most_ranks], rcounts[most_ranks], rdispls[most_ranks];
    MPI_Count large_scounts[most_ranks], large_rcounts[most_ranks];
    MPI_Aint large_sdispls[most_ranks], large_rdispls[most_ranks];
    MPI_Datatype stypes[most_ranks], rtypes[most_ranks];
    MPI_Request request;
};

// What this process sends block `i` as, and what it receives it as.
static const struct shape* sent_as(const struct op* o, int i) {
    return &shapes[o->wide][(o->salt + (uint32_t)rank + (o->call == ALLTOALLW ? (uint32_t)i : 0)) % n_shapes];
}
static const struct shape* received_as(const struct op* o, int i) {
    return &shapes[o->wide][(o->salt / 3 + 2 * (uint32_t)rank + (o->call == ALLTOALLW ? 2 * (uint32_t)i : 0)) % n_shapes];
}
static char* send_block(const struct op* o, int i) {
    return o->send + (long)o->sdispls[i] * (o->call == ALLTOALLW ? 1 : sent_as(o, i)->stride);
}
// Where block `i` lies behind the start of the receive buffer.
static long place_of(const struct op* o, int i) {
    return (long)o->rdispls[i] * (o->call == ALLTOALLW ? 1 : received_as(o, i)->stride);
}

// Element i of what process `from` sends to `to` (-1: to everybody).
static uint32_t value(const struct op* o, int from, int to, int i) {
    uint64_t s = o->salt * 2654435761ull + (uint64_t)from * 40503 + (uint64_t)(to + 1) * 9176 + (uint64_t)i * 271;
    return random32(&s);
}
static int varying(const struct op* o, int from, int to) {
    uint64_t s = o->salt * 31ull + (uint64_t)from * 17 + (uint64_t)to * 5;
    return (int)(random32(&s) % (uint32_t)(o->count + 2));
}

static void put(const struct shape* as, char* block, long index, uint32_t v) {
    char* at = block + index * as->stride;
    if (as->wide) {
        int64_t w = (int64_t)v << 8;
        memcpy(at, &w, 8);
    } else {
        memcpy(at, &v, 4);
    }
}
static uint32_t get(const struct shape* as, const char* block, long index) {
    const char* at = block + index * as->stride;
    int64_t w;
    uint32_t v;
    if (as->wide) return memcpy(&w, at, 8), (uint32_t)(w >> 8);
    return memcpy(&v, at, 4), v;
}

static void expect_block(const struct op* o, int block, int from, int to, int count) {
    const struct shape* as = received_as(o, block);
    for (int i = 0; i < count; i++) {
        uint32_t got = get(as, o->recv + place_of(o, block), i), want = value(o, from, to, i);
        CHECK(got == want, "%s%s (form %d, count %d, root %d, in place %d) on %s: element %d of %d from %d is %x, not %x", call_names[o->call],
              o->large ? "_c" : "", o->form, o->count, o->root, o->in_place, o->at->name, i, count, from, got, want);
        put(as, o->want + place_of(o, block), i, want);
    }
}
static void fill_block(const struct op* o, const struct shape* as, char* block, int from, int to, int count) {
    for (int i = 0; i < count; i++) put(as, block, i, value(o, from, to, i));
}

// ---- reductions: integers by MPI_SUM, MPI_MAX, MPI_BXOR, or pairs by composition.

static MPI_Op reduction_op(const struct op* o) {
    MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR, affine_op, affine_op_large};
    return ops[o->reduction];
}
static MPI_Datatype reduction_type(const struct op* o) { return o->reduction >= 3 ? affine_type : MPI_UINT32_T; }
static int words(const struct op* o) { return o->reduction >= 3 ? 2 : 1; }

static void expect_reduced(const struct op* o, const uint32_t* got, const int* who, int n, int offset, int count) {
    for (int i = 0; i < count; i++) {
        uint32_t acc[2] = {0, 0};
        for (int r = 0; r < n; r++) {
            uint32_t x = value(o, who[r], -1, (offset + i) * words(o)), y = value(o, who[r], -1, (offset + i) * words(o) + 1);
            if (r == 0) acc[0] = x, acc[1] = y;
            else if (o->reduction == 0) acc[0] += x;
            else if (o->reduction == 1) acc[0] = x > acc[0] ? x : acc[0];
            else if (o->reduction == 2) acc[0] ^= x;
            else acc[1] = acc[1] * x + y, acc[0] *= x;
        }
        for (int w = 0; w < words(o); w++) {
            CHECK(got[i * words(o) + w] == acc[w], "%s (form %d, count %d, root %d, op %d, in place %d) on %s: element %d is %x, not %x",
                  call_names[o->call], o->form, o->count, o->root, o->reduction, o->in_place, o->at->name, i, got[i * words(o) + w], acc[w]);
            memcpy(o->want + 4 * (i * words(o) + w), &acc[w], 4);
        }
    }
}

// ---- one operation from its arguments to its check

static int is_reduction(enum call c) { return c >= REDUCE; }
static int rooted(enum call c) { return (c >= BCAST && c <= SCATTERV) || c == REDUCE; }

// The argument that names the root, as this process gives it; `root` counts over both sides of an intercommunicator.
static int root_argument(const struct op* o) {
    const struct place* p = o->at;
    if (!p->inter) return o->root;
    int root_world = o->root;   // the world rank
    for (int i = 0; i < p->far_n; i++)
        if (p->far[i] == root_world) return i;
    return root_world == rank ? MPI_ROOT : MPI_PROC_NULL;
}
static int root_world(const struct op* o) { return o->at->inter ? o->root : o->at->near[o->root]; }
static int at_root(const struct op* o) { return root_world(o) == rank; }
// Does this process belong to the group that is on the root's side and not the root: no part in it?
static int looks_on(const struct op* o) { return o->at->inter && root_argument(o) == MPI_PROC_NULL; }

// Blocks of the given sizes, laid out backwards with a gap after each; bytes of all of them.
static long lay_out(const struct op* o, int n, const int* counts, int* displs, const struct shape* (*as)(const struct op*, int)) {
    long at = 0;
    for (int i = n - 1; i >= 0; i--) {
        int unit = o->call == ALLTOALLW ? as(o, i)->stride : 1;
        displs[i] = (int)at, at += (counts[i] + 1) * unit;
    }
    return o->call == ALLTOALLW ? at : at * as(o, 0)->stride;
}

static void allocate(struct op* o, long send, long recv) {
    o->send_bytes = (size_t)send + guard;
    o->recv_bytes = (size_t)recv + guard;
    o->send = malloc(2 * o->send_bytes);
    o->recv = malloc(2 * o->recv_bytes);
    o->sent = o->send + o->send_bytes;
    o->want = o->recv + o->recv_bytes;
    memset(o->send, 0xee, o->send_bytes);
    memset(o->recv, 0xee, o->recv_bytes);
}

static void dispatch(struct op* o);

static int to_all(enum call c) { return c == GATHERV || c == ALLGATHERV; }
static int varies(enum call c) { return to_all(c) || c == SCATTERV || c == ALLTOALLV || c == ALLTOALLW; }

// Counts and places of all blocks, and buffers for them.
static void prepare_blocks(struct op* o) {
    const struct place* p = o->at;
    int n = p->far_n, count = o->count;
    long send = 0, recv = 0;
    for (int i = 0; i < n; i++) {
        o->scounts[i] = !varies(o->call) ? count : varying(o, rank, to_all(o->call) ? 0 : p->far[i]);
        o->rcounts[i] = !varies(o->call) ? count : varying(o, p->far[i], to_all(o->call) ? 0 : rank);
        // In place, what two processes exchange has one size.
        if (o->call >= ALLTOALLV && o->in_place)
            o->rcounts[i] = varying(o, rank < p->far[i] ? rank : p->far[i], rank < p->far[i] ? p->far[i] : rank);
        o->stypes[i] = sent_as(o, i)->type, o->rtypes[i] = received_as(o, i)->type;
        o->sdispls[i] = o->rdispls[i] = i * count;
    }
    send = recv = (long)n * count * 16;
    if (varies(o->call)) {
        send = lay_out(o, n, o->scounts, o->sdispls, sent_as);
        recv = lay_out(o, n, o->rcounts, o->rdispls, received_as);
    }
    long own = (count + 2) * 16;   // one block, where the call has just one
    allocate(o, send > own ? send : own, recv > own ? recv : own);
}

static void prepare_moves(struct op* o) {
    const struct place* p = o->at;
    int n = p->far_n, own = p->inter ? 0 : p->me, all_or_none = o->call >= ALLGATHER;
    o->in_place = !p->inter && (all_or_none ? o->salt % 3 == 0 : o->in_place && at_root(o));
    prepare_blocks(o);
    switch (o->call) {
    case BCAST:
        o->rdispls[0] = 0;
        if (at_root(o)) fill_block(o, received_as(o, 0), o->recv, rank, -1, o->count);
        break;
    case GATHER: case GATHERV: case ALLGATHER: case ALLGATHERV: {
        int mine = varies(o->call) ? varying(o, rank, 0) : o->count;
        if (o->in_place) fill_block(o, received_as(o, own), o->recv + place_of(o, own), rank, -1, mine);
        else fill_block(o, sent_as(o, 0), o->send, rank, -1, mine);
        break;
    }
    case SCATTER: case SCATTERV:
        for (int i = 0; at_root(o) && i < n; i++) fill_block(o, sent_as(o, i), send_block(o, i), rank, p->far[i], o->scounts[i]);
        break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW:
        for (int i = 0; i < n; i++)
            if (o->in_place) fill_block(o, received_as(o, i), o->recv + place_of(o, i), rank, p->far[i], o->rcounts[i]);
            else fill_block(o, sent_as(o, i), send_block(o, i), rank, p->far[i], o->scounts[i]);
        break;
    default: break;
    }
}

static void prepare_reduction(struct op* o) {
    const struct place* p = o->at;
    int total = o->count;
    for (int i = 0; i < p->n; i++) o->rcounts[i] = o->count;
    if (o->call == REDUCE_SCATTER_BLOCK || o->call == REDUCE_SCATTER) {
        // Both sides of an intercommunicator must reduce vectors of one length.
        if (p->inter) {
            o->count = p->far_n * (o->count % 4);
            for (int i = 0; i < p->n; i++) o->rcounts[i] = o->count;
            total = o->count * p->n;
        } else {
            total = 0;
            for (int i = 0; i < p->n; i++) {
                if (o->call == REDUCE_SCATTER) o->rcounts[i] = varying(o, i, 0);
                total += o->rcounts[i];
            }
        }
    }
    allocate(o, 8L * (total + 1), 8L * (total + 1));
    o->in_place = !p->inter && o->salt % 3 == 0 && (o->call != REDUCE || at_root(o));
    uint32_t* data = (uint32_t*)(o->in_place ? o->recv : o->send);
    for (int i = 0; i < total * words(o); i++) data[i] = value(o, rank, -1, i);
}

static void begin(struct op* o) {
    o->request = MPI_REQUEST_NULL;
    if (is_reduction(o->call)) prepare_reduction(o);
    else prepare_moves(o);
    for (int i = 0; i < most_ranks; i++) {
        o->large_scounts[i] = o->scounts[i], o->large_sdispls[i] = o->sdispls[i];
        o->large_rcounts[i] = o->rcounts[i], o->large_rdispls[i] = o->rdispls[i];
    }
    memcpy(o->sent, o->send, o->send_bytes);
    memcpy(o->want, o->recv, o->recv_bytes);
    // The same on all. What works in place on salt % 3 == 0 would change its own input.
    o->starts = o->form == PERSISTENT && o->salt % 3 != 0 ? 2 : 1;
    dispatch(o);
    if (o->form == PERSISTENT) {
        for (int i = 1; i < o->starts; i++) {
            MPI_Start(&o->request);
            MPI_Wait(&o->request, MPI_STATUS_IGNORE);
            CHECK(o->request != MPI_REQUEST_NULL, "a persistent request is gone after MPI_Wait");
        }
        MPI_Start(&o->request);
    }
}

// The three forms of one call; `c`: _c or nothing.
#define FORM3(c, name, iname, ...)                                                                                       \
    do {                                                                                                                 \
        if (o->form == BLOCKING) OK(MPI_##name##c(__VA_ARGS__, o->at->comm));                                            \
        else if (o->form == NONBLOCKING) OK(MPI_##iname##c(__VA_ARGS__, o->at->comm, &o->request));                      \
        else OK(MPI_##name##_init##c(__VA_ARGS__, o->at->comm, MPI_INFO_NULL, &o->request));                             \
    } while (0)
// The same arguments, whatever the counts' type.
#define FORM6(name, iname, ...)                                  \
    do {                                                         \
        if (o->large) FORM3(_c, name, iname, __VA_ARGS__);       \
        else FORM3(, name, iname, __VA_ARGS__);                  \
    } while (0)

static void dispatch_large_v(struct op* o, const void* send, void* recv, int root, int mine, int from_root) {
    MPI_Datatype st = sent_as(o, 0)->type, t = received_as(o, 0)->type;
    void* kept = o->in_place ? MPI_IN_PLACE : recv;
    switch (o->call) {
    case GATHERV: FORM3(_c, Gatherv, Igatherv, send, mine, st, recv, o->large_rcounts, o->large_rdispls, t, root); break;
    case SCATTERV: FORM3(_c, Scatterv, Iscatterv, o->send, o->large_scounts, o->large_sdispls, st, kept, from_root, t, root); break;
    case ALLGATHERV: FORM3(_c, Allgatherv, Iallgatherv, send, mine, st, recv, o->large_rcounts, o->large_rdispls, t); break;
    case ALLTOALLV:
        FORM3(_c, Alltoallv, Ialltoallv, send, o->large_scounts, o->large_sdispls, st, recv, o->large_rcounts, o->large_rdispls, t);
        break;
    default:
        FORM3(_c, Alltoallw, Ialltoallw, send, o->large_scounts, o->large_sdispls, o->stypes, recv, o->large_rcounts,
              o->large_rdispls, o->rtypes);
        break;
    }
}

static void dispatch(struct op* o) {
    MPI_Datatype st = sent_as(o, 0)->type, t = received_as(o, 0)->type, rt = reduction_type(o);
    MPI_Op op = reduction_op(o);
    int count = o->count, root = rooted(o->call) ? root_argument(o) : 0;
    int mine = varying(o, rank, 0), from_root = varying(o, rooted(o->call) ? root_world(o) : 0, rank);
    const void* send = o->in_place ? MPI_IN_PLACE : o->send;
    void *recv = o->recv, *kept = o->in_place ? MPI_IN_PLACE : recv;
    if (o->large && varies(o->call)) {
        dispatch_large_v(o, send, recv, root, mine, from_root);
        return;
    }
    switch (o->call) {
    case BARRIER:
        if (o->form == BLOCKING) OK(MPI_Barrier(o->at->comm));
        else if (o->form == NONBLOCKING) OK(MPI_Ibarrier(o->at->comm, &o->request));
        else OK(MPI_Barrier_init(o->at->comm, MPI_INFO_NULL, &o->request));
        break;
    case BCAST: FORM6(Bcast, Ibcast, recv, count, t, root); break;
    case GATHER: FORM6(Gather, Igather, send, count, st, recv, count, t, root); break;
    case GATHERV: FORM3(, Gatherv, Igatherv, send, mine, st, recv, o->rcounts, o->rdispls, t, root); break;
    case SCATTER: FORM6(Scatter, Iscatter, o->send, count, st, kept, count, t, root); break;
    case SCATTERV: FORM3(, Scatterv, Iscatterv, o->send, o->scounts, o->sdispls, st, kept, from_root, t, root); break;
    case ALLGATHER: FORM6(Allgather, Iallgather, send, count, st, recv, count, t); break;
    case ALLGATHERV: FORM3(, Allgatherv, Iallgatherv, send, mine, st, recv, o->rcounts, o->rdispls, t); break;
    case ALLTOALL: FORM6(Alltoall, Ialltoall, send, count, st, recv, count, t); break;
    case ALLTOALLV: FORM3(, Alltoallv, Ialltoallv, send, o->scounts, o->sdispls, st, recv, o->rcounts, o->rdispls, t); break;
    case ALLTOALLW:
        FORM3(, Alltoallw, Ialltoallw, send, o->scounts, o->sdispls, o->stypes, recv, o->rcounts, o->rdispls, o->rtypes);
        break;
    case REDUCE: FORM6(Reduce, Ireduce, send, recv, count, rt, op, root); break;
    case ALLREDUCE: FORM6(Allreduce, Iallreduce, send, recv, count, rt, op); break;
    case REDUCE_SCATTER:
        if (o->large) FORM3(_c, Reduce_scatter, Ireduce_scatter, send, recv, o->large_rcounts, rt, op);
        else FORM3(, Reduce_scatter, Ireduce_scatter, send, recv, o->rcounts, rt, op);
        break;
    case REDUCE_SCATTER_BLOCK: FORM6(Reduce_scatter_block, Ireduce_scatter_block, send, recv, count, rt, op); break;
    case SCAN: FORM6(Scan, Iscan, send, recv, count, rt, op); break;
    case EXSCAN: FORM6(Exscan, Iexscan, send, recv, count, rt, op); break;
    default: break;
    }
}

static void check_moves(struct op* o) {
    const struct place* p = o->at;
    int blocks = o->call >= ALLGATHER || at_root(o) ? p->far_n : 0;
    switch (o->call) {
    case BCAST:
        if (!looks_on(o) && !(p->inter && at_root(o))) expect_block(o, 0, root_world(o), -1, o->count);
        break;
    case GATHER: case GATHERV: case ALLGATHER: case ALLGATHERV:
        for (int i = 0; i < blocks; i++) expect_block(o, i, p->far[i], -1, o->rcounts[i]);
        break;
    case SCATTER: case SCATTERV:
        o->rdispls[0] = 0;
        if (!looks_on(o) && !o->in_place && !(p->inter && at_root(o)))
            expect_block(o, 0, root_world(o), rank, o->call == SCATTER ? o->count : varying(o, root_world(o), rank));
        break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW:
        for (int i = 0; i < blocks; i++) expect_block(o, i, p->far[i], rank, o->rcounts[i]);
        break;
    default: break;
    }
}

static void check_reduction(struct op* o) {
    const struct place* p = o->at;
    const uint32_t* got = (const uint32_t*)o->recv;
    int offset = 0;
    switch (o->call) {
    case REDUCE:
        if (at_root(o)) expect_reduced(o, got, p->far, p->far_n, 0, o->count);
        break;
    case ALLREDUCE: expect_reduced(o, got, p->far, p->far_n, 0, o->count); break;
    case REDUCE_SCATTER: case REDUCE_SCATTER_BLOCK:
        for (int i = 0; i < p->me; i++) offset += o->rcounts[i];
        expect_reduced(o, got, p->far, p->far_n, offset, o->rcounts[p->me]);
        break;
    case SCAN: expect_reduced(o, got, p->near, p->me + 1, 0, o->count); break;
    case EXSCAN:
        if (p->me > 0) expect_reduced(o, got, p->near, p->me, 0, o->count);
        break;
    default: break;
    }
}

static void end(struct op* o) {
    if (o->form != BLOCKING) MPI_Wait(&o->request, MPI_STATUS_IGNORE);
    if (o->form == PERSISTENT) MPI_Request_free(&o->request);
    CHECK(o->request == MPI_REQUEST_NULL, "the request is still there");
    if (is_reduction(o->call)) check_reduction(o);
    else check_moves(o);
    // Reductions may use what lies behind their result in place, and the first of MPI_Exscan may get anything.
    size_t result = is_reduction(o->call) && (o->in_place || o->call == EXSCAN) ? o->recv_bytes - guard : 0;
    CHECK(memcmp(o->recv + result, o->want + result, o->recv_bytes - result) == 0, "%s wrote beside its result", call_names[o->call]);
    CHECK(memcmp(o->send, o->sent, o->send_bytes) == 0, "%s wrote to its send buffer", call_names[o->call]);
    free(o->send);
    free(o->recv);
}

// ---- communicators

static void describe(struct place* p, MPI_Comm comm, const char* name) {
    MPI_Group world, group;
    p->comm = comm;
    p->name = name;
    MPI_Comm_test_inter(comm, &p->inter);
    MPI_Comm_rank(comm, &p->me);
    MPI_Comm_size(comm, &p->n);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int ranks[most_ranks];
    for (int i = 0; i < most_ranks; i++) ranks[i] = i;
    MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(group, p->n, ranks, world, p->near);
    MPI_Group_free(&group);
    p->far_n = p->n;
    memcpy(p->far, p->near, sizeof p->far);
    if (p->inter) {
        MPI_Comm_remote_size(comm, &p->far_n);
        MPI_Comm_remote_group(comm, &group);
        MPI_Group_translate_ranks(group, p->far_n, ranks, world, p->far);
        MPI_Group_free(&group);
    }
    MPI_Group_free(&world);
}

static int make_places(struct place* places) {
    MPI_Comm comm, half;
    int n = 0;
    describe(&places[n++], MPI_COMM_WORLD, "world");
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    describe(&places[n++], comm, "the world backwards");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    describe(&places[n++], comm, "a duplicate");
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank % 2, &comm);   // no node holds ranks in a row there
    describe(&places[n++], comm, "the even ones, then the odd ones");
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    describe(&places[n++], half, "every second one");
    if (size > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 5, &comm);
        describe(&places[n++], comm, "an intercommunicator");
    }
    return n;
}

static void draw(struct op* o, const struct place* at, uint64_t* state, int alone) {
    memset(o, 0, sizeof *o);
    o->at = at;
    do {
        o->call = (enum call)below(state, calls);
    } while (at->inter && (o->call == SCAN || o->call == EXSCAN));
    o->form = (enum form)below(state, forms);
    if (only_call >= 0) o->call = (enum call)only_call;
    if (only_form >= 0) o->form = (enum form)only_form;
    else if (!alone && o->form == BLOCKING) o->form = NONBLOCKING;
    o->wide = (int)below(state, 2);
    o->large = (int)below(state, 2);
    o->count = (int)below(state, below(state, 12) == 0 ? large_count : most_count);
    if (below(state, 8) == 0) o->count = 0;
    uint32_t root = below(state, 1000);
    o->in_place = below(state, 2) == 0;
    o->reduction = (int)below(state, 5);
    o->salt = random32(state);
    // The same on all members: on half of the world the root must not depend on which half.
    o->root = at->inter ? (int)(root % (uint32_t)size) : (int)(root % (uint32_t)at->n);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size <= most_ranks, "too many ranks");
    uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, own = (uint64_t)rank * 77 + 1;
    int iterations = argc > 2 ? atoi(argv[2]) : 300;

    if (argc > 3) only_call = atoi(argv[3]);
    if (argc > 4) only_form = atoi(argv[4]);

    const int strides[2][n_shapes] = {{4, 12, 8}, {8, 16, 12}};
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < n_shapes; i++) {
            MPI_Datatype type = wide ? MPI_INT64_T : MPI_INT;
            if (i > 0) {
                MPI_Type_create_resized(type, 0, strides[wide][i], &type);
                MPI_Type_commit(&type);
            }
            shapes[wide][i] = (struct shape){type, strides[wide][i], wide};
        }
    MPI_Type_contiguous(2, MPI_UINT32_T, &affine_type);
    MPI_Type_commit(&affine_type);
    MPI_Op_create(compose, 0, &affine_op);
    MPI_Op_create_c(compose_large, 0, &affine_op_large);
    struct place places[8];
    int n_places = make_places(places);

    for (int i = 0; i < iterations; i++) {
        struct op ops[3];
        int n = 1 + (int)below(&state, 3);
        if (only_form == BLOCKING) n = 1;
        for (int k = 0; k < n; k++) {
            const struct place* at = &places[below(&state, (uint32_t)n_places)];
            if (at->inter && (only_call == SCAN || only_call == EXSCAN)) at = &places[0];
            draw(&ops[k], at, &state, n == 1);
        }
        for (int k = 0; k < n; k++) begin(&ops[k]);
        // Any order of waiting will do, and each process has its own.
        int first = (int)below(&own, (uint32_t)n);
        for (int k = 0; k < n; k++) end(&ops[(first + k) % n]);
    }
    for (int i = 1; i < n_places; i++) MPI_Comm_free(&places[i].comm);
    MPI_Op_free(&affine_op);
    MPI_Op_free(&affine_op_large);
    MPI_Type_free(&affine_type);
    for (int i = 0; i < 2 * n_shapes; i++)
        if (i % n_shapes > 0) MPI_Type_free(&shapes[i / n_shapes][i % n_shapes].type);
    return finish();
}
