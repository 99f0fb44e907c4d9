// Virtual topologies: grids of one to four dimensions against their own arithmetic, slices, graphs, distributed graphs
// (adjacent and not, with weights and double edges), what a duplicate inherits, and the neighbourhood collectives.
#include "check.h"

static uint64_t state = 12345;

static void factors(void) {
    static const int cases[][6] = {{6, 2, 0, 3, 2, 0}, {7, 3, 0, 7, 1, 1}, {12, 3, 0, 3, 2, 2}, {64, 3, 0, 4, 4, 4}, {1, 2, 0, 1, 1, 0}, {36, 2, 0, 6, 6, 0}, {1000003, 2, 0, 1000003, 1, 0}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int dims[3] = {0, 0, 0};
        OK(MPI_Dims_create(cases[i][0], cases[i][1], dims));
        for (int d = 0; d < cases[i][1]; d++) CHECK(dims[d] == cases[i][3 + d], "%d nodes: dimension %d is %d", cases[i][0], d, dims[d]);
    }
    int fixed[3] = {0, 3, 0};
    OK(MPI_Dims_create(24, 3, fixed));
    CHECK(fixed[0] == 4 && fixed[1] == 3 && fixed[2] == 2, "%d %d %d", fixed[0], fixed[1], fixed[2]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int bad[2] = {5, 0};
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(24, 2, bad));
}

static int rank_of(int nd, const int* dims, const int* coords) {
    int r = 0;
    for (int i = 0; i < nd; i++) r = r * dims[i] + coords[i];
    return r;
}

// The neighbour `step` away along dimension d, by arithmetic.
static int expected_neighbour(int nd, const int* dims, const int* periods, const int* coords, int d, int step) {
    int c[8];
    memcpy(c, coords, sizeof(int) * (size_t)nd);
    c[d] += step;
    if (c[d] < 0 || c[d] >= dims[d]) {
        if (!periods[d]) return MPI_PROC_NULL;
        c[d] = ((c[d] % dims[d]) + dims[d]) % dims[d];
    }
    return rank_of(nd, dims, c);
}

static void neighbourhood(MPI_Comm grid, int nd, const int* dims, const int* periods, const int* coords) {
    int me, out[16], in[16], all[16], own;
    MPI_Comm_rank(grid, &me);
    for (int i = 0; i < 2 * nd; i++) out[i] = me * 100 + i, in[i] = all[i] = -1;
    own = me;
    MPI_Request r[2];
    OK(MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid, &r[0]));
    OK(MPI_Ineighbor_allgather(&own, 1, MPI_INT, all, 1, MPI_INT, grid, &r[1]));
    OK(MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * nd; i++) {
        int from = expected_neighbour(nd, dims, periods, coords, i / 2, i % 2 == 0 ? -1 : 1);
        // What the lower neighbour sent upwards arrives from below.
        CHECK(in[i] == (from == MPI_PROC_NULL ? -1 : from * 100 + (i ^ 1)), "alltoall: from %d in slot %d: %d", from, i, in[i]);
        CHECK(all[i] == (from == MPI_PROC_NULL ? -1 : from), "allgather: slot %d: %d", i, all[i]);
    }
}

static void one_grid(int nd, const int* dims, const int* periods) {
    MPI_Comm grid, copy;
    int places = 1, status, got_nd, d[8], p[8], c[8], me, back;
    for (int i = 0; i < nd; i++) places *= dims[i];
    OK(MPI_Cart_create(MPI_COMM_WORLD, nd, dims, periods, 0, &grid));
    CHECK((grid == MPI_COMM_NULL) == (rank >= places), "who is in the grid");
    if (grid == MPI_COMM_NULL) return;
    OK(MPI_Comm_dup(grid, &copy));
    MPI_Comm_free(&grid);
    OK(MPI_Topo_test(copy, &status));
    CHECK(status == MPI_CART, "a duplicate has topology %d", status);
    OK(MPI_Cartdim_get(copy, &got_nd));
    OK(MPI_Cart_get(copy, 8, d, p, c));
    MPI_Comm_rank(copy, &me);
    CHECK(got_nd == nd && rank_of(nd, dims, c) == me, "coordinates of %d", me);
    OK(MPI_Cart_rank(copy, c, &back));
    CHECK(back == me, "rank of the coordinates");
    for (int i = 0; i < nd; i++) {
        CHECK(d[i] == dims[i] && p[i] == periods[i], "dimension %d", i);
        for (int step = -3; step <= 3; step++) {
            int source, dest;
            OK(MPI_Cart_shift(copy, i, step, &source, &dest));
            CHECK(dest == expected_neighbour(nd, dims, periods, c, i, step), "shift of %d in dimension %d", step, i);
            CHECK(source == expected_neighbour(nd, dims, periods, c, i, -step), "shift of %d in dimension %d: source", step, i);
        }
    }
    neighbourhood(copy, nd, dims, periods, c);
    for (int mask = 0; mask < 1 << nd; mask++) {
        int remain[8], kept[8], n = 0, where;
        MPI_Comm slice;
        for (int i = 0; i < nd; i++) {
            remain[i] = mask >> i & 1;
            if (remain[i]) kept[n++] = i;
        }
        OK(MPI_Cart_sub(copy, remain, &slice));
        int sd[8], sp[8], sc[8], dims_kept[8];
        OK(MPI_Cart_get(slice, 8, sd, sp, sc));
        MPI_Comm_rank(slice, &where);
        for (int i = 0; i < n; i++) {
            CHECK(sd[i] == dims[kept[i]] && sp[i] == periods[kept[i]] && sc[i] == c[kept[i]], "slice %d", mask);
            dims_kept[i] = sd[i];
        }
        CHECK(where == rank_of(n, dims_kept, sc), "rank in slice %d", mask);
        MPI_Comm_free(&slice);
    }
    MPI_Comm_free(&copy);
}

// A ring with a chord from everybody to process 0.
static void graphs(void) {
    int* index = malloc(sizeof(int) * (size_t)size);
    int* edges = malloc(sizeof(int) * (size_t)size * 3);
    int n = 0, nodes, nedges, count, list[3];
    for (int i = 0; i < size; i++) {
        edges[n++] = (i + 1) % size;
        edges[n++] = (i + size - 1) % size;
        index[i] = n;
    }
    MPI_Comm graph;
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &graph));
    OK(MPI_Graphdims_get(graph, &nodes, &nedges));
    CHECK(nodes == size && nedges == n, "%d nodes, %d edges", nodes, nedges);
    OK(MPI_Graph_neighbors_count(graph, rank, &count));
    OK(MPI_Graph_neighbors(graph, rank, count, list));
    CHECK(count == 2 && list[0] == (rank + 1) % size && list[1] == (rank + size - 1) % size, "neighbours of %d", rank);
    int in[2] = {-1, -1};
    OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, graph));
    CHECK(in[0] == list[0] && in[1] == list[1], "%d and %d arrived", in[0], in[1]);
    MPI_Comm_free(&graph);
    free(index);
    free(edges);
}

// Random edges, each named by a random process that all know of; some twice.
static void distributed(void) {
    enum { most = 200 };
    int from[most], to[most], weight[most], namer[most], n = 1 + (int)below(&state, 40);
    for (int i = 0; i < n; i++) {
        from[i] = (int)below(&state, (uint32_t)size);
        to[i] = (int)below(&state, (uint32_t)size);
        weight[i] = (int)below(&state, 9);
        namer[i] = (int)below(&state, (uint32_t)size);
    }
    int sources[most], degrees[most], destinations[most], weights[most], k = 0;
    for (int i = 0; i < n; i++)
        if (namer[i] == rank) sources[k] = from[i], degrees[k] = 1, destinations[k] = to[i], weights[k++] = weight[i];
    MPI_Comm graph, adjacent;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, k, sources, degrees, destinations, weights, MPI_INFO_NULL, 0, &graph));
    int in, out, weighted;
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    int s[most], sw[most], d[most], dw[most];
    OK(MPI_Dist_graph_neighbors(graph, in, s, sw, out, d, dw));
    long want_in = 0, want_out = 0, sum_in = 0, sum_out = 0;
    int in_count = 0, out_count = 0;
    for (int i = 0; i < n; i++) {
        if (to[i] == rank) in_count++, want_in += from[i] * 1000 + weight[i];
        if (from[i] == rank) out_count++, want_out += to[i] * 1000 + weight[i];
    }
    for (int i = 0; i < in; i++) sum_in += s[i] * 1000 + sw[i];
    for (int i = 0; i < out; i++) sum_out += d[i] * 1000 + dw[i];
    CHECK(weighted && in == in_count && out == out_count && sum_in == want_in && sum_out == want_out, "edges of %d", rank);

    // The same graph, told by its ends; then every edge carries a message of its own length.
    int* volatile unweighted = MPI_UNWEIGHTED;   // compilers warn of small constants as addresses
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, s, unweighted, out, d, unweighted, MPI_INFO_NULL, 0, &adjacent));
    OK(MPI_Dist_graph_neighbors_count(adjacent, &in_count, &out_count, &weighted));
    CHECK(!weighted && in_count == in && out_count == out, "the adjacent form differs");
    int send[most * 8], recv[most * 8], scounts[most], rcounts[most], sdispls[most], rdispls[most];
    for (int i = 0; i < out; i++) {
        scounts[i] = (rank * 3 + d[i]) % 5;
        sdispls[i] = i * 8;
        for (int j = 0; j < 8; j++) send[i * 8 + j] = rank * 10000 + d[i] * 100 + j;
    }
    for (int i = 0; i < in; i++) rcounts[i] = (s[i] * 3 + rank) % 5, rdispls[i] = i * 8;
    memset(recv, -1, sizeof recv);
    OK(MPI_Neighbor_alltoallv(send, scounts, sdispls, MPI_INT, recv, rcounts, rdispls, MPI_INT, adjacent));
    for (int i = 0; i < in; i++)
        for (int j = 0; j < 8; j++) CHECK(recv[i * 8 + j] == (j < rcounts[i] ? s[i] * 10000 + rank * 100 + j : -1), "edge %d from %d", i, s[i]);
    MPI_Comm_free(&adjacent);
    MPI_Comm_free(&graph);
}

// No dimensions, no edges, no nodes: all of these are allowed.
static void least(int reorder) {
    MPI_Comm comm;
    int status, n, in, out, weighted, none = 0;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, &none, &none, reorder, &comm));
    CHECK((comm != MPI_COMM_NULL) == (rank == 0) || (reorder && comm != MPI_COMM_NULL), "a grid of no dimensions has one place");
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_size(comm, &n));
        OK(MPI_Cartdim_get(comm, &status));
        CHECK(n == 1 && status == 0, "%d places in %d dimensions", n, status);
        MPI_Comm_free(&comm);
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, &none, &none, reorder, &comm));
    CHECK(comm == MPI_COMM_NULL, "a graph without nodes");
    int index[1] = {0};
    OK(MPI_Graph_create(MPI_COMM_WORLD, 1, index, &none, reorder, &comm));
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Graph_neighbors_count(comm, 0, &n));
        CHECK(n == 0, "%d neighbours", n);
        MPI_Comm_free(&comm);
    }
    int* volatile empty = MPI_WEIGHTS_EMPTY;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, &none, empty, 0, &none, empty, MPI_INFO_NULL, reorder, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted, "%d in, %d out", in, out);
    OK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, &n, 1, MPI_INT, comm));
    MPI_Comm_free(&comm);
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, &none, &none, &none, empty, MPI_INFO_NULL, reorder, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted, "%d in, %d out", in, out);
    OK(MPI_Topo_test(comm, &status));
    CHECK(status == MPI_DIST_GRAPH, "%d", status);
    MPI_Comm_free(&comm);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &status));
    CHECK(status == MPI_UNDEFINED, "%d", status);
}

static void wrong(void) {
    MPI_Comm comm = MPI_COMM_WORLD, grid, half, inter;
    int dims[1] = {size + 1}, periods[1] = {0}, n, one = 1, index[1] = {1}, edge[1] = {5}, negative[1] = {-1};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, index, edge, 1, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, size + 1, index, edge, 1, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &rank, negative, MPI_INFO_NULL, 1, &comm));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &n));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(MPI_COMM_WORLD, 0, &n));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(&rank, 1, MPI_INT, &n, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK(comm == MPI_COMM_WORLD, "a failed call wrote its output");
    dims[0] = size;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(grid, 0, &n));
    FAILS(MPI_ERR_RANK, MPI_Cart_coords(grid, size, 1, &n));
    if (size > 1) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter));
        dims[0] = 1;
        FAILS(MPI_ERR_COMM, MPI_Cart_create(inter, 1, dims, periods, 1, &comm));
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    MPI_Comm_free(&grid);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    factors();
    for (int nd = 1; nd <= 4; nd++) {
        for (int i = 0; i < 6; i++) {
            int dims[4] = {0, 0, 0, 0}, periods[4];
            int used = 1 + (int)below(&state, (uint32_t)size);
            OK(MPI_Dims_create(used, nd, dims));
            for (int d = 0; d < nd; d++) periods[d] = (int)below(&state, 2);
            one_grid(nd, dims, periods);
        }
    }
    graphs();
    for (int i = 0; i < 20; i++) distributed();
    least(0);
    least(1);
    wrong();
    return finish();
}
