// Random neighbourhood collectives against what one process computes alone: all five, blocking, nonblocking and persistent,
// each also for large counts, on grids, graphs and distributed graphs with double edges and loops, with counts and types that
// differ, up to three under way at once. Nothing but the results may change in any buffer. Arguments: seed, iterations.
#include "check.h"

enum { most_ranks = 64, most_edges = 24, most_count = 30, guard = 64 };
enum call { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, calls };
enum form { BLOCKING, NONBLOCKING, PERSISTENT, forms };
static const char* const call_names[] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};

// Everybody's neighbours, in their order; ranks of the communicator. `slot`: where the sender has this edge in its list.
struct net {
    MPI_Comm comm;
    const char* name;
    int n_in[most_ranks], n_out[most_ranks], in[most_ranks][most_edges], slot[most_ranks][most_edges], out[most_ranks][most_edges];
};

static MPI_Datatype wide_int;   // an int every 8 bytes
static uint64_t shared_state;

// The k-th edge from a to b in a's list is the k-th from a in b's.
static void match_edges(struct net* g) {
    for (int b = 0; b < size; b++)
        for (int i = 0; i < g->n_in[b]; i++) {
            int a = g->in[b][i], kth = 0, j = 0;
            for (int k = 0; k < i; k++) kth += g->in[b][k] == a;
            for (; j < g->n_out[a]; j++)
                if (g->out[a][j] == b && kth-- == 0) break;
            CHECK(j < g->n_out[a], "edge %d of %d has no other end", i, b);
            g->slot[b][i] = j;
        }
}

static void make_distributed(struct net* g) {
    g->name = "a distributed graph";
    const int degree = below(&shared_state, 8) == 0 ? most_edges : 3;
    for (int e = (int)below(&shared_state, (uint32_t)(degree * size + 1)); e > 0; e--) {
        int a = (int)below(&shared_state, (uint32_t)size), b = (int)below(&shared_state, (uint32_t)size);
        if (g->n_out[a] == most_edges || g->n_in[b] == most_edges) continue;
        g->out[a][g->n_out[a]++] = b;
        g->in[b][g->n_in[b]++] = a;
    }
    match_edges(g);
    int weights[most_edges] = {0};
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g->n_in[rank], g->in[rank], weights, g->n_out[rank], g->out[rank],
                                      weights, MPI_INFO_NULL, 0, &g->comm));
}

static void make_graph(struct net* g) {
    int index[most_ranks], edges[most_ranks * most_edges], n = 0;
    g->name = "a graph";
    for (int e = (int)below(&shared_state, (uint32_t)(2 * size + 1)); e > 0; e--) {
        int a = (int)below(&shared_state, (uint32_t)size), b = (int)below(&shared_state, (uint32_t)size);
        if (g->n_out[a] + 1 >= most_edges || g->n_out[b] + 1 >= most_edges) continue;
        g->out[a][g->n_out[a]++] = b;
        if (a != b) g->out[b][g->n_out[b]++] = a;
    }
    memcpy(g->in, g->out, sizeof g->in);
    memcpy(g->n_in, g->n_out, sizeof g->n_in);
    match_edges(g);
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < g->n_out[r]; i++) edges[n++] = g->out[r][i];
        index[r] = n;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &g->comm));
}

static void make_grid(struct net* g) {
    int nd = 1 + (int)below(&shared_state, 3), dims[3] = {0}, periods[3], coords[3];
    g->name = "a grid";
    for (int d = 0; d < 3; d++) periods[d] = (int)below(&shared_state, 2);
    OK(MPI_Dims_create(size, nd, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, nd, dims, periods, 0, &g->comm));
    for (int r = 0; r < size; r++) {
        int at = r;
        for (int d = nd - 1; d >= 0; d--) coords[d] = at % dims[d], at /= dims[d];
        g->n_in[r] = g->n_out[r] = 2 * nd;
        for (int i = 0; i < 2 * nd; i++) {
            int d = i / 2, c = coords[d] + (i % 2 ? 1 : -1), stride = 1;
            for (int k = d + 1; k < nd; k++) stride *= dims[k];
            int inside = c >= 0 && c < dims[d], around = (c + dims[d]) % dims[d];
            g->in[r][i] = g->out[r][i] = inside || periods[d] ? r + (around - coords[d]) * stride : MPI_PROC_NULL;
            g->slot[r][i] = i ^ 1;   // what comes from below was sent upwards
        }
    }
}

struct op {
    const struct net* on;
    enum call call;
    enum form form;
    int large, count, n_in, n_out, starts;
    uint32_t salt;
    char *send, *sent, *recv, *want;
    long send_bytes, recv_bytes;
    int scounts[most_edges], rcounts[most_edges], sdispls[most_edges], rdispls[most_edges];
    MPI_Count large_scounts[most_edges], large_rcounts[most_edges];
    MPI_Aint send_at[most_edges], recv_at[most_edges], large_sdispls[most_edges], large_rdispls[most_edges];   // at: in bytes
    MPI_Datatype stypes[most_edges], rtypes[most_edges];
    MPI_Request request;
};

static uint32_t mix(const struct op* o, int from, int slot, int i) {
    uint64_t s = o->salt * 2654435761ull + (uint64_t)from * 40503 + (uint64_t)(slot + 1) * 9176 + (uint64_t)i * 271;
    return random32(&s);
}
static int to_all(const struct op* o) { return o->call == ALLGATHER || o->call == ALLGATHERV; }
// What process `from` sends along its edge `slot`.
static uint32_t value(const struct op* o, int from, int slot, int i) { return mix(o, from, to_all(o) ? -1 : slot, i); }
static int elements(const struct op* o, int from, int slot) {
    if (o->call == ALLGATHER || o->call == ALLTOALL) return o->count;
    return (int)(mix(o, from, o->call == ALLGATHERV ? -1 : slot, -1) % (uint32_t)(o->count + 2));
}
// Who sends or receives uses another type, and with alltoallw another for every edge.
static int strided(const struct op* o, int receives, int i) { return (int)(o->salt + (uint32_t)(rank + receives + (o->call == ALLTOALLW ? i : 0))) % 2 == 0; }
static int stride(const struct op* o, int receives, int i) { return strided(o, receives, i) ? 8 : 4; }

static long lay_out(const struct op* o, int receives, int n, const int* counts, int* displs, MPI_Aint* at) {
    long end = 0;
    int apart = o->call != ALLGATHER && o->call != ALLTOALL;
    for (int k = 0; k < n; k++) {
        int i = apart ? n - 1 - k : k, each = stride(o, receives, i);
        at[i] = end, displs[i] = o->call == ALLTOALLW ? (int)end : (int)(end / each);
        end += (counts[i] + apart) * each;
    }
    return end;
}

static char* twice(long bytes) {
    char* p = malloc(2 * (size_t)bytes);
    memset(p, 0xee, 2 * (size_t)bytes);
    return p;
}

#define FORM3(c, name, ...)                                                                                       \
    do {                                                                                                          \
        if (o->form == BLOCKING) OK(MPI_Neighbor_##name##c(__VA_ARGS__, o->on->comm));                            \
        else if (o->form == NONBLOCKING) OK(MPI_Ineighbor_##name##c(__VA_ARGS__, o->on->comm, &o->request));      \
        else OK(MPI_Neighbor_##name##_init##c(__VA_ARGS__, o->on->comm, MPI_INFO_NULL, &o->request));             \
    } while (0)
#define FORM6(name, ...)                              \
    do {                                              \
        if (o->large) FORM3(_c, name, __VA_ARGS__);   \
        else FORM3(, name, __VA_ARGS__);              \
    } while (0)

static void dispatch(struct op* o) {
    MPI_Datatype st = o->stypes[0], rt = o->rtypes[0];
    int own = to_all(o) ? elements(o, rank, -1) : 0;
    switch (o->call) {
    case ALLGATHER: FORM6(allgather, o->send, o->count, st, o->recv, o->count, rt); break;
    case ALLTOALL: FORM6(alltoall, o->send, o->count, st, o->recv, o->count, rt); break;
    case ALLGATHERV:
        if (o->large) FORM3(_c, allgatherv, o->send, own, st, o->recv, o->large_rcounts, o->large_rdispls, rt);
        else FORM3(, allgatherv, o->send, own, st, o->recv, o->rcounts, o->rdispls, rt);
        break;
    case ALLTOALLV:
        if (o->large) FORM3(_c, alltoallv, o->send, o->large_scounts, o->large_sdispls, st, o->recv, o->large_rcounts, o->large_rdispls, rt);
        else FORM3(, alltoallv, o->send, o->scounts, o->sdispls, st, o->recv, o->rcounts, o->rdispls, rt);
        break;
    default:
        if (o->large) FORM3(_c, alltoallw, o->send, o->large_scounts, o->send_at, o->stypes, o->recv, o->large_rcounts, o->recv_at, o->rtypes);
        else FORM3(, alltoallw, o->send, o->scounts, o->send_at, o->stypes, o->recv, o->rcounts, o->recv_at, o->rtypes);
        break;
    }
}

static void begin(struct op* o) {
    const struct net* g = o->on;
    o->n_in = g->n_in[rank], o->n_out = to_all(o) ? 1 : g->n_out[rank];
    for (int i = 0; i < most_edges; i++) {
        o->stypes[i] = strided(o, 0, i) ? wide_int : MPI_INT, o->rtypes[i] = strided(o, 1, i) ? wide_int : MPI_INT;
        o->scounts[i] = elements(o, rank, i);
        o->rcounts[i] = i >= o->n_in || g->in[rank][i] == MPI_PROC_NULL ? o->count : elements(o, g->in[rank][i], g->slot[rank][i]);
    }
    o->send_bytes = lay_out(o, 0, o->n_out, o->scounts, o->sdispls, o->send_at) + guard;
    o->recv_bytes = lay_out(o, 1, o->n_in, o->rcounts, o->rdispls, o->recv_at) + guard;
    o->send = twice(o->send_bytes), o->sent = o->send + o->send_bytes;
    o->recv = twice(o->recv_bytes), o->want = o->recv + o->recv_bytes;
    for (int i = 0; i < most_edges; i++) {
        o->large_scounts[i] = o->scounts[i], o->large_rcounts[i] = o->rcounts[i];
        o->large_sdispls[i] = o->sdispls[i], o->large_rdispls[i] = o->rdispls[i];
    }
    if (to_all(o)) o->send_at[0] = 0;
    for (int i = 0; i < o->n_out; i++)
        for (int k = 0; k < o->scounts[i]; k++) {
            uint32_t v = value(o, rank, i, k);
            memcpy(o->send + o->send_at[i] + k * stride(o, 0, i), &v, 4);
        }
    memcpy(o->sent, o->send, (size_t)o->send_bytes);
    for (int i = 0; i < o->n_in; i++)
        for (int k = 0; g->in[rank][i] != MPI_PROC_NULL && k < o->rcounts[i]; k++) {
            uint32_t v = value(o, g->in[rank][i], g->slot[rank][i], k);
            memcpy(o->want + o->recv_at[i] + k * stride(o, 1, i), &v, 4);
        }
    o->request = MPI_REQUEST_NULL;
    dispatch(o);
    for (int i = 0; o->form == PERSISTENT && i < o->starts; i++) {
        if (i > 0) OK(MPI_Wait(&o->request, MPI_STATUS_IGNORE));
        OK(MPI_Start(&o->request));
    }
}

static void end(struct op* o) {
    if (o->form != BLOCKING) OK(MPI_Wait(&o->request, MPI_STATUS_IGNORE));
    if (o->form == PERSISTENT) OK(MPI_Request_free(&o->request));
    CHECK(o->request == MPI_REQUEST_NULL, "the request is still there");
    for (long i = 0; i < o->recv_bytes; i++)
        CHECK(o->recv[i] == o->want[i], "%s%s (form %d, count %d) on %s: byte %ld of %ld", call_names[o->call], o->large ? "_c" : "",
              o->form, o->count, o->on->name, i, o->recv_bytes - guard);
    CHECK(memcmp(o->send, o->sent, (size_t)o->send_bytes) == 0, "%s wrote to its send buffer", call_names[o->call]);
    free(o->send);
    free(o->recv);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size <= most_ranks, "too many ranks");
    shared_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int iterations = argc > 2 ? atoi(argv[2]) : 200;
    uint64_t own = (uint64_t)rank * 77 + 1;
    MPI_Type_create_resized(MPI_INT, 0, 8, &wide_int);
    MPI_Type_commit(&wide_int);
    static struct net nets[3];
    for (int i = 0; i < iterations; i++) {
        if (i % 20 == 0) {
            for (int k = 0; k < 3 && i > 0; k++) OK(MPI_Comm_free(&nets[k].comm));
            memset(nets, 0, sizeof nets);
            make_grid(&nets[0]);
            make_graph(&nets[1]);
            make_distributed(&nets[2]);
        }
        struct op ops[3];
        int n = 1 + (int)below(&shared_state, 3);
        for (int k = 0; k < n; k++) {
            struct op* o = &ops[k];
            memset(o, 0, sizeof *o);
            o->on = &nets[below(&shared_state, 3)];
            o->call = (enum call)below(&shared_state, calls);
            o->form = (enum form)below(&shared_state, forms);
            if (n > 1 && o->form == BLOCKING) o->form = NONBLOCKING;
            o->large = (int)below(&shared_state, 2);
            o->count = below(&shared_state, 6) == 0 ? 0 : (int)below(&shared_state, most_count);
            o->starts = 1 + (int)below(&shared_state, 2);
            o->salt = random32(&shared_state);
        }
        for (int k = 0; k < n; k++) begin(&ops[k]);
        int first = (int)below(&own, (uint32_t)n);
        for (int k = 0; k < n; k++) end(&ops[(first + k) % n]);
    }
    for (int k = 0; k < 3; k++) OK(MPI_Comm_free(&nets[k].comm));
    MPI_Type_free(&wide_int);
    return finish();
}
