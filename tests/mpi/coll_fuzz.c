// Random collectives against what one process computes alone: every collective, blocking, nonblocking and persistent, with
// random counts, roots, types, MPI_IN_PLACE and operations (one that does not commute), on intracommunicators of all
// shapes and on an intercommunicator, up to three under way at once.  Arguments: seed, iterations; to look closer: the number of one call, of one form.
#include "check.h"

enum { most_ranks = 16, most_count = 40, guard = 64 };
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

// An element type: what it is to MPI, and how an element is found in memory.
struct shape {
    MPI_Datatype type;
    int stride, wide;
};
static struct shape shapes[3];
static int only_call = -1, only_form = -1;

static MPI_Datatype affine_type;
static MPI_Op affine_op;

// x -> a x + b; composed left to right, modulo 2^32: associative, and it matters who comes first.
static void compose(void* in, void* inout, int* len, MPI_Datatype* type) {
    (void)type;
    uint32_t *l = in, *r = inout;
    for (int i = 0; i < *len; i++) {
        uint32_t a = l[2 * i] * r[2 * i], b = l[2 * i + 1] * r[2 * i] + r[2 * i + 1];
        r[2 * i] = a, r[2 * i + 1] = b;
    }
}

struct op {
    enum call call;
    enum form form;
    const struct place* at;
    const struct shape* shape;
    int count, root, in_place, reduction, starts;
    uint32_t salt;
    char *send, *recv;
    size_t send_bytes, recv_bytes;
    int scounts[most_ranks], sdispls[most_ranks], rcounts[most_ranks], rdispls[most_ranks];
    MPI_Datatype stypes[most_ranks], rtypes[most_ranks];
    MPI_Request request;
};

// Element i of what process `from` sends to `to` (-1: to everybody).
static uint32_t value(const struct op* o, int from, int to, int i) {
    uint64_t s = o->salt * 2654435761ull + (uint64_t)from * 40503 + (uint64_t)(to + 1) * 9176 + (uint64_t)i * 271;
    return random32(&s);
}
static int varying(const struct op* o, int from, int to) {
    uint64_t s = o->salt * 31ull + (uint64_t)from * 17 + (uint64_t)to * 5;
    return (int)(random32(&s) % (uint32_t)(o->count + 2));
}

static void put(const struct op* o, char* base, long index, uint32_t v) {
    char* at = base + index * o->shape->stride;
    if (o->shape->wide) {
        int64_t w = (int64_t)v << 8;
        memcpy(at, &w, 8);
    } else {
        memcpy(at, &v, 4);
    }
}
static uint32_t get(const struct op* o, const char* base, long index) {
    const char* at = base + index * o->shape->stride;
    int64_t w;
    uint32_t v;
    if (o->shape->wide) return memcpy(&w, at, 8), (uint32_t)(w >> 8);
    return memcpy(&v, at, 4), v;
}

static void expect_block(const struct op* o, long first, int from, int to, int offset, int count) {
    for (int i = 0; i < count; i++) {
        uint32_t got = get(o, o->recv, first + i), want = value(o, from, to, offset + i);
        CHECK(got == want, "%s (form %d, count %d, root %d, in place %d) on %s: element %d of %d from %d is %x, not %x", call_names[o->call],
              o->form, o->count, o->root, o->in_place, o->at->name, i, count, from, got, want);
    }
}
static void fill_block(struct op* o, char* base, long first, int from, int to, int offset, int count) {
    for (int i = 0; i < count; i++) put(o, base, first + i, value(o, from, to, offset + i));
}

// ---- reductions: integers by MPI_SUM, MPI_MAX, MPI_BXOR, or pairs by composition.

static MPI_Op reduction_op(const struct op* o) {
    MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR, affine_op};
    return ops[o->reduction];
}
static MPI_Datatype reduction_type(const struct op* o) { return o->reduction == 3 ? affine_type : MPI_UINT32_T; }
static int words(const struct op* o) { return o->reduction == 3 ? 2 : 1; }

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
        for (int w = 0; w < words(o); w++)
            CHECK(got[i * words(o) + w] == acc[w], "%s (form %d, count %d, root %d, op %d, in place %d) on %s: element %d is %x, not %x",
                  call_names[o->call], o->form, o->count, o->root, o->reduction, o->in_place, o->at->name, i, got[i * words(o) + w], acc[w]);
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

// Blocks of the given sizes, laid out backwards with a gap after each; the number of elements in all.
static long lay_out(int n, const int* counts, int* displs) {
    long at = 0;
    for (int i = n - 1; i >= 0; i--) displs[i] = (int)at, at += counts[i] + 1;
    return at;
}

static void allocate(struct op* o, long send, long recv) {
    int stride = is_reduction(o->call) ? 8 : o->shape->stride;
    o->send_bytes = (size_t)send * (size_t)stride + guard;
    o->recv_bytes = (size_t)recv * (size_t)stride + guard;
    o->send = malloc(o->send_bytes);
    o->recv = malloc(o->recv_bytes);
    memset(o->send, 0xee, o->send_bytes);
    memset(o->recv, 0xee, o->recv_bytes);
}

static void dispatch(struct op* o);

static void prepare_moves(struct op* o) {
    const struct place* p = o->at;
    int me = rank, n = p->far_n, count = o->count;
    long slots = (long)most_ranks * (most_count + 4);
    allocate(o, slots, slots);
    int v = o->call == GATHERV || o->call == SCATTERV || o->call == ALLGATHERV || o->call == ALLTOALLV || o->call == ALLTOALLW;
    for (int i = 0; i < n; i++) {
        int to_all = o->call == GATHERV || o->call == ALLGATHERV;
        o->scounts[i] = !v ? count : varying(o, me, to_all ? 0 : p->far[i]);
        o->rcounts[i] = !v ? count : varying(o, p->far[i], to_all ? 0 : me);
    }
    if (v) {
        lay_out(n, o->scounts, o->sdispls);
        lay_out(n, o->rcounts, o->rdispls);
    } else {
        for (int i = 0; i < n; i++) o->sdispls[i] = o->rdispls[i] = i * count;
    }
    for (int i = 0; i < n; i++) o->stypes[i] = o->rtypes[i] = o->shape->type;

    int own = p->inter ? -1 : p->me;
    switch (o->call) {
    case BCAST:
        if (at_root(o)) fill_block(o, o->recv, 0, me, -1, 0, count);
        break;
    case GATHER: case GATHERV: case ALLGATHER: case ALLGATHERV: {
        int mine = v ? varying(o, me, 0) : count;
        int root = o->call == ALLGATHER || o->call == ALLGATHERV || at_root(o);
        o->in_place = o->in_place && !p->inter && root;
        if (o->call == ALLGATHER || o->call == ALLGATHERV) o->in_place = 0;   // all or none: chosen below from the salt
        if ((o->call == ALLGATHER || o->call == ALLGATHERV) && !p->inter) o->in_place = o->salt % 3 == 0;
        fill_block(o, o->in_place ? o->recv : o->send, o->in_place ? o->rdispls[own] : 0, me, -1, 0, mine);
        break;
    }
    case SCATTER: case SCATTERV:
        o->in_place = o->in_place && !p->inter && at_root(o);
        if (at_root(o))
            for (int i = 0; i < n; i++) fill_block(o, o->send, o->sdispls[i], me, p->far[i], 0, o->scounts[i]);
        break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW:
        o->in_place = !p->inter && o->salt % 3 == 0;
        if (o->in_place) {   // counts must agree pairwise
            for (int i = 0; i < n; i++)
                if (v) o->rcounts[i] = varying(o, me < p->far[i] ? me : p->far[i], me < p->far[i] ? p->far[i] : me);
            if (v) lay_out(n, o->rcounts, o->rdispls);
        }
        for (int i = 0; i < n; i++)
            fill_block(o, o->in_place ? o->recv : o->send, o->in_place ? o->rdispls[i] : o->sdispls[i], me, p->far[i], 0,
                       o->in_place ? o->rcounts[i] : o->scounts[i]);
        break;
    default: break;
    }
    if (o->call == ALLTOALLW)
        for (int i = 0; i < n; i++) o->sdispls[i] *= o->shape->stride, o->rdispls[i] *= o->shape->stride;
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
    allocate(o, total + 1, total + 1);
    o->in_place = !p->inter && o->salt % 3 == 0 && (o->call != REDUCE || at_root(o));
    uint32_t* data = (uint32_t*)(o->in_place ? o->recv : o->send);
    for (int i = 0; i < total * words(o); i++) data[i] = value(o, rank, -1, i);
}

static void begin(struct op* o) {
    o->request = MPI_REQUEST_NULL;
    if (is_reduction(o->call)) prepare_reduction(o);
    else prepare_moves(o);
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

// The three forms of one call.
#define FORM3(name, iname, ...)                                                                                          \
    do {                                                                                                                 \
        if (o->form == BLOCKING) OK(MPI_##name(__VA_ARGS__, o->at->comm));                                               \
        else if (o->form == NONBLOCKING) OK(MPI_##iname(__VA_ARGS__, o->at->comm, &o->request));                         \
        else OK(MPI_##name##_init(__VA_ARGS__, o->at->comm, MPI_INFO_NULL, &o->request));                                \
    } while (0)

static void dispatch(struct op* o) {
    MPI_Datatype t = o->shape->type, rt = reduction_type(o);
    MPI_Op op = reduction_op(o);
    int count = o->count, root = rooted(o->call) ? root_argument(o) : 0;
    int mine = varying(o, rank, 0), from_root = varying(o, rooted(o->call) ? root_world(o) : 0, rank);
    const void* send = o->in_place ? MPI_IN_PLACE : o->send;
    void* recv = o->recv;
    switch (o->call) {
    case BARRIER:
        if (o->form == BLOCKING) OK(MPI_Barrier(o->at->comm));
        else if (o->form == NONBLOCKING) OK(MPI_Ibarrier(o->at->comm, &o->request));
        else OK(MPI_Barrier_init(o->at->comm, MPI_INFO_NULL, &o->request));
        break;
    case BCAST: FORM3(Bcast, Ibcast, recv, count, t, root); break;
    case GATHER: FORM3(Gather, Igather, send, count, t, recv, count, t, root); break;
    case GATHERV: FORM3(Gatherv, Igatherv, send, mine, t, recv, o->rcounts, o->rdispls, t, root); break;
    case SCATTER: FORM3(Scatter, Iscatter, o->send, count, t, o->in_place ? MPI_IN_PLACE : recv, count, t, root); break;
    case SCATTERV:
        FORM3(Scatterv, Iscatterv, o->send, o->scounts, o->sdispls, t, o->in_place ? MPI_IN_PLACE : recv, from_root, t, root);
        break;
    case ALLGATHER: FORM3(Allgather, Iallgather, send, count, t, recv, count, t); break;
    case ALLGATHERV: FORM3(Allgatherv, Iallgatherv, send, mine, t, recv, o->rcounts, o->rdispls, t); break;
    case ALLTOALL: FORM3(Alltoall, Ialltoall, send, count, t, recv, count, t); break;
    case ALLTOALLV: FORM3(Alltoallv, Ialltoallv, send, o->scounts, o->sdispls, t, recv, o->rcounts, o->rdispls, t); break;
    case ALLTOALLW:
        FORM3(Alltoallw, Ialltoallw, send, o->scounts, o->sdispls, o->stypes, recv, o->rcounts, o->rdispls, o->rtypes);
        break;
    case REDUCE: FORM3(Reduce, Ireduce, send, recv, count, rt, op, root); break;
    case ALLREDUCE: FORM3(Allreduce, Iallreduce, send, recv, count, rt, op); break;
    case REDUCE_SCATTER: FORM3(Reduce_scatter, Ireduce_scatter, send, recv, o->rcounts, rt, op); break;
    case REDUCE_SCATTER_BLOCK: FORM3(Reduce_scatter_block, Ireduce_scatter_block, send, recv, count, rt, op); break;
    case SCAN: FORM3(Scan, Iscan, send, recv, count, rt, op); break;
    case EXSCAN: FORM3(Exscan, Iexscan, send, recv, count, rt, op); break;
    default: break;
    }
}

static void check_moves(struct op* o) {
    const struct place* p = o->at;
    switch (o->call) {
    case BCAST:
        if (!looks_on(o) && !(p->inter && at_root(o))) expect_block(o, 0, root_world(o), -1, 0, o->count);
        break;
    case GATHER: case GATHERV:
        for (int i = 0; at_root(o) && i < p->far_n; i++) expect_block(o, o->rdispls[i], p->far[i], -1, 0, o->rcounts[i]);
        break;
    case ALLGATHER: case ALLGATHERV:
        for (int i = 0; i < p->far_n; i++) expect_block(o, o->rdispls[i], p->far[i], -1, 0, o->rcounts[i]);
        break;
    case SCATTER: case SCATTERV:
        if (!looks_on(o) && !o->in_place && !(p->inter && at_root(o)))
            expect_block(o, 0, root_world(o), rank, 0, o->call == SCATTER ? o->count : varying(o, root_world(o), rank));
        break;
    case ALLTOALL: case ALLTOALLV: case ALLTOALLW:
        for (int i = 0; i < p->far_n; i++)
            expect_block(o, o->call == ALLTOALLW ? o->rdispls[i] / o->shape->stride : o->rdispls[i], p->far[i], rank, 0, o->rcounts[i]);
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
    for (size_t i = o->recv_bytes - guard / 2; i < o->recv_bytes; i++)
        CHECK((unsigned char)o->recv[i] == 0xee, "%s wrote behind its receive buffer", call_names[o->call]);
    if (is_reduction(o->call)) check_reduction(o);
    else check_moves(o);
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
    o->shape = &shapes[below(state, 3)];
    o->count = (int)below(state, most_count);
    if (below(state, 8) == 0) o->count = 0;
    uint32_t root = below(state, 1000);
    o->in_place = below(state, 2) == 0;
    o->reduction = (int)below(state, 4);
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

    MPI_Datatype odd;
    MPI_Type_create_resized(MPI_INT, 0, 12, &odd);
    MPI_Type_commit(&odd);
    shapes[0] = (struct shape){MPI_INT, 4, 0};
    shapes[1] = (struct shape){MPI_INT64_T, 8, 1};
    shapes[2] = (struct shape){odd, 12, 0};
    MPI_Type_contiguous(2, MPI_UINT32_T, &affine_type);
    MPI_Type_commit(&affine_type);
    MPI_Op_create(compose, 0, &affine_op);
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
    MPI_Type_free(&affine_type);
    MPI_Type_free(&odd);
    return finish();
}
