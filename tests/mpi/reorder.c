// Topologies with `reorder`: whoever gets which rank, the topology is the one that was asked for, its edges are short by
// the hardware, and MPI_Cart_map and MPI_Graph_map foretell the ranks. With the argument `apart` neighbours in
// MPI_COMM_WORLD sit on different packages, so something must move.
#include "check.h"

static int package[64], cache[64];   // of each rank in the world: the lowest rank that shares it, or its own

static void find(const char* uri, int* of) {
    MPI_Info info;
    MPI_Comm part;
    int lowest = rank;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", uri));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, rank, info, &part));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, part));
        MPI_Comm_free(&part);
    }
    OK(MPI_Allgather(&lowest, 1, MPI_INT, of, 1, MPI_INT, MPI_COMM_WORLD));
    MPI_Info_free(&info);
}

// The world's ranks behind those of `comm`, which must all be different. Returns the caller's.
static int world_ranks(MPI_Comm comm, int* world) {
    MPI_Group all, some;
    int n, me, own[64], seen[64] = {0};
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &me));
    for (int i = 0; i < n; i++) own[i] = i;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_group(comm, &some));
    OK(MPI_Group_translate_ranks(some, n, own, all, world));
    for (int i = 0; i < n; i++) CHECK(seen[world[i]]++ == 0, "process %d is there twice", world[i]);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    CHECK(world[me] == rank, "rank %d of the topology is process %d", me, world[me]);
    return me;
}

static int length(int a, int b) { return package[a] != package[b] ? 4 : cache[a] != cache[b] ? 2 : a != b; }

// A grid: told in two ways, and to both map calls.
static void grid(int nd, const int* dims, const int* periods, int must_move) {
    int places = 1, index[64], edges[64 * 6], n = 0, world[64], long_before = 0, long_now = 0, by_cart, by_graph, me;
    MPI_Comm cart, graph, plain;
    for (int i = 0; i < nd; i++) places *= dims[i];
    OK(MPI_Cart_create(MPI_COMM_WORLD, nd, dims, periods, 0, &plain));
    OK(MPI_Cart_create(MPI_COMM_WORLD, nd, dims, periods, 1, &cart));
    OK(MPI_Cart_map(MPI_COMM_WORLD, nd, dims, periods, &by_cart));
    me = cart == MPI_COMM_NULL ? MPI_UNDEFINED : world_ranks(cart, world);
    CHECK(by_cart == me, "MPI_Cart_map says %d, MPI_Cart_create %d", by_cart, me);
    // Its edges, from the grid that kept its ranks.
    if (plain != MPI_COMM_NULL) {
        for (int r = 0; r < places; r++) {
            int coords[6], dest;
            OK(MPI_Cart_coords(plain, r, nd, coords));
            for (int d = 0; d < nd; d++)
                for (int step = -1; step <= 1; step += 2) {
                    int there[6];
                    memcpy(there, coords, sizeof there);
                    there[d] += step;
                    if ((there[d] < 0 || there[d] >= dims[d]) && !periods[d]) continue;
                    OK(MPI_Cart_rank(plain, there, &dest));
                    edges[n++] = dest;
                    if (rank == r) {
                        int up, down;
                        OK(MPI_Cart_shift(plain, d, 1, &down, &up));
                        CHECK((step < 0 ? down : up) == dest, "the plain grid");
                    }
                }
            index[r] = n;
        }
        MPI_Comm_free(&plain);
    }
    OK(MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Bcast(index, places, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Bcast(edges, n, MPI_INT, 0, MPI_COMM_WORLD));
    if (cart != MPI_COMM_NULL) {
        for (int r = 0, i = 0; r < places; r++)
            for (; i < index[r]; i++) long_before += length(r, edges[i]), long_now += length(world[r], world[edges[i]]);
        CHECK(long_now <= long_before, "%d long, from %d", long_now, long_before);
        if (must_move) CHECK(long_now < long_before, "%d long, as before", long_now);
        // Neighbours are those of the new rank, and hear each other.
        int in[12], count = index[me] - (me > 0 ? index[me - 1] : 0), k = 0;
        for (int i = 0; i < 12; i++) in[i] = -1;
        OK(MPI_Neighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, cart));
        for (int i = 0; i < 2 * nd; i++) {
            if (in[i] == -1) continue;
            CHECK(in[i] == edges[index[me] - count + k], "neighbour %d is %d", i, in[i]);
            k++;
        }
        CHECK(k == count, "%d neighbours", k);
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, places, index, edges, 1, &graph));
    OK(MPI_Graph_map(MPI_COMM_WORLD, places, index, edges, &by_graph));
    me = graph == MPI_COMM_NULL ? MPI_UNDEFINED : world_ranks(graph, world);
    CHECK(by_graph == me, "MPI_Graph_map says %d, MPI_Graph_create %d", by_graph, me);
    if (graph != MPI_COMM_NULL) {
        int in[12], count;
        OK(MPI_Graph_neighbors_count(graph, me, &count));
        OK(MPI_Neighbor_allgather(&me, 1, MPI_INT, in, 1, MPI_INT, graph));
        for (int i = 0; i < count; i++) CHECK(in[i] == edges[index[me] - count + i], "neighbour %d is %d", i, in[i]);
        MPI_Comm_free(&graph);
    }
    if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
}

// Heavy pairs in a light ring: 2i and 2i+1 talk much. What node i has for neighbours, told by whoever was rank i.
static void pairs(int adjacent, int must_move) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size, world[64];
    int heavy = rank % 2 == 0 ? right : left, light = rank % 2 == 0 ? left : right;
    int list[2] = {heavy, light}, weights[2] = {100, 1};
    MPI_Comm graph;
    if (adjacent) {
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, list, weights, 2, list, weights, MPI_INFO_NULL, 1, &graph));
    } else {
        int degree = 2;
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, list, weights, MPI_INFO_NULL, 1, &graph));
    }
    int me = world_ranks(graph, world), in, out, weighted, s[2], sw[2], d[2], dw[2], got[2];
    int my_heavy = me % 2 == 0 ? (me + 1) % size : (me + size - 1) % size;
    int my_light = me % 2 == 0 ? (me + size - 1) % size : (me + 1) % size;
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(in == 2 && out == 2 && weighted, "%d in, %d out", in, out);
    OK(MPI_Dist_graph_neighbors(graph, 2, s, sw, 2, d, dw));
    CHECK(d[0] == my_heavy && dw[0] == 100 && d[1] == my_light && dw[1] == 1, "node %d sends to %d and %d", me, d[0], d[1]);
    int first = adjacent || my_heavy <= my_light ? 0 : 1;   // named by the neighbours, in the order of their ranks
    CHECK(s[first] == my_heavy && sw[first] == 100 && s[1 - first] == my_light && sw[1 - first] == 1, "node %d hears %d and %d",
          me, s[0], s[1]);
    OK(MPI_Neighbor_allgather(&me, 1, MPI_INT, got, 1, MPI_INT, graph));
    CHECK(got[0] == s[0] && got[1] == s[1], "node %d heard %d and %d", me, got[0], got[1]);
    int before = 0, now = 0;
    for (int i = 0; i < size; i += 2) before += length(i, (i + 1) % size), now += length(world[i], world[(i + 1) % size]);
    CHECK(now <= before, "%d long, from %d", now, before);
    if (must_move) CHECK(now < before && package[world[me]] == package[world[my_heavy]], "partners on different packages");
    MPI_Comm_free(&graph);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    int apart = argc > 1;
    find("hwloc://Package", package);
    find("hwloc://L3Cache", cache);
    if (apart) CHECK(package[0] != package[1], "the packages of ranks 0 and 1");
    int ring[1] = {size}, flat[2] = {0, 0}, most[2] = {1, size > 1 ? size - 1 : 1}, deep[3] = {0, 0, 0};
    int open[3] = {0, 0, 0}, closed[3] = {1, 1, 1};
    OK(MPI_Dims_create(size, 2, flat));
    OK(MPI_Dims_create(size, 3, deep));
    grid(1, ring, open, apart);
    grid(1, ring, closed, apart);
    grid(2, flat, open, apart);
    grid(2, flat, closed, 0);
    grid(2, most, open, apart);
    grid(3, deep, open, 0);
    if (size > 1 && size % 2 == 0) {
        pairs(0, apart);
        pairs(1, apart);
    }
    return finish();
}
