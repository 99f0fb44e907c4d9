// Cartesian topologies.
#include <cstring>

#include "base/scratch.hpp"
#include "comm/comm.hpp"
#include "obj/status.hpp"
#include "topo/remap.hpp"
#include "topo/topo.hpp"

namespace weft::topo {

namespace {

using obj::proc_null;
using obj::undefined;

// A view of an attached grid.
struct Grid {
    int32_t ndims;
    const int32_t *dims, *periods, *coords;
    explicit Grid(const Topology& t)
        : ndims(t.ndims), dims(t.ints()), periods(dims + ndims), coords(periods + ndims) {}
};

Err grid_of(const Comm& c, const Topology** t) {
    *t = static_cast<const Topology*>(c.topology);
    if (*t != nullptr && (*t)->kind == Topology::cart) return Err::ok;
    return fail(Err::topology, "the communicator has no Cartesian topology");
}

Err no_array(const char* name) { return fail(Err::arg, "%s is a null pointer", name); }

// The number of places in the grid, or an error.
Err places(int ndims, const int* dims, int32_t limit, int32_t* out) {
    if (ndims < 0) return fail(Err::dims, "the number of dimensions, %d, is negative", ndims);
    int64_t total = 1;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] <= 0) return fail(Err::dims, "dimension %d has extent %d", i, dims[i]);
        total *= dims[i];
        if (total > limit)
            return fail(Err::dims, "the grid has more than the %d places of the communicator", limit);
    }
    *out = static_cast<int32_t>(total);
    return Err::ok;
}

void coords_of(int32_t ndims, const int32_t* dims, int32_t rank, int32_t* coords) {
    for (int32_t i = ndims - 1; i >= 0; i--) {
        coords[i] = rank % dims[i];
        rank /= dims[i];
    }
}

// Rank of the coordinates; those of periodic dimensions wrap. proc_null outside the grid.
int32_t rank_at(const Grid& g, const int32_t* coords) {
    int64_t rank = 0;
    for (int32_t i = 0; i < g.ndims; i++) {
        int64_t x = coords[i], n = g.dims[i];
        if (x < 0 || x >= n) {
            if (g.periods[i] == 0) return proc_null;
            x = (x % n + n) % n;
        }
        rank = rank * n + x;
    }
    return static_cast<int32_t>(rank);
}

// An edge from every place to the next in each dimension. At most one per place and dimension.
int64_t edges_of(int32_t ndims, const int* dims, const int* periods, int32_t size, Edge* edges) {
    int64_t n = 0;
    int32_t stride = size;
    for (int32_t d = 0; d < ndims; d++) {
        stride /= dims[d];
        for (int32_t r = 0; r < size; r++) {
            bool last = r / stride % dims[d] == dims[d] - 1;
            if (!last) edges[n++] = {r, r + stride, 1};
            else if (periods[d] != 0) edges[n++] = {r, r - (dims[d] - 1) * stride, 1};
        }
    }
    return n;
}

// The rank `steps` away from `rank`, the caller's, along one dimension.
int32_t shifted(int32_t rank, const Grid& g, int32_t direction, int64_t steps) {
    int64_t n = g.dims[direction], x = g.coords[direction] + steps, stride = 1;
    if (x < 0 || x >= n) {
        if (g.periods[direction] == 0) return proc_null;
        x = (x % n + n) % n;
    }
    for (int32_t i = direction + 1; i < g.ndims; i++) stride *= g.dims[i];
    return static_cast<int32_t>(rank + (x - g.coords[direction]) * stride);
}

// A communicator of `group`, the calling process's grid attached.
Err attach(Process& p, Comm& c, obj::Group& group, int ndims, const int* dims, const int* periods, int32_t tag,
           Comm** out) {
    Comm* made = nullptr;
    WEFT_TRY(comm::create_over(p, c, group, tag, &made));
    if (made != nullptr) {
        Topology* t = obj::make_topology(Topology::cart, 5 * int64_t{ndims});
        if (t == nullptr) {
            obj::release(*made);
            return fail(Err::no_mem, "no memory for the topology");
        }
        t->ndims = ndims;
        for (int i = 0; i < ndims; i++) {
            t->ints()[i] = dims[i];
            t->ints()[ndims + i] = periods[i] != 0;
        }
        coords_of(ndims, t->ints(), made->rank, t->ints() + 2 * ndims);
        for (int i = 0; i < 2 * ndims; i++) t->ints()[3 * ndims + i] = shifted(made->rank, Grid(*t), i / 2, i % 2 == 0 ? -1 : 1);
        made->topology = t;
    }
    *out = made;
    return Err::ok;
}

}  // namespace

Err cart_create(Process& p, Comm& c, int ndims, const int* dims, const int* periods, int reorder, Comm** out) {
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator");
    WEFT_TRY(comm::check_processes(c));
    int32_t size = 0, tag = comm::take_tag(c);
    WEFT_TRY(places(ndims, dims, c.size, &size));
    Scratch<Edge> edges(int64_t{size} * ndims);
    if (!edges) return fail(Err::no_mem, "no memory for the edges of the grid");
    int64_t n = reorder != 0 ? edges_of(ndims, dims, periods, size, edges.get()) : 0;
    obj::Group* group = nullptr;
    WEFT_TRY(arrange(p, c, reorder != 0, edges.get(), n, size, &group));
    Err e = attach(p, c, *group, ndims, dims, periods, tag, out);
    obj::release(p, *group);
    return e;
}

// Which slice a process is in follows from its coordinates, so the groups need no message.
Err cart_sub(Process& p, Comm& c, const int* remain_dims, Comm** out) {
    const Topology* t = nullptr;
    WEFT_TRY(grid_of(c, &t));
    Grid g(*t);
    if (remain_dims == nullptr && g.ndims > 0) return no_array("remain_dims");
    int32_t tag = comm::take_tag(c), kept = 0;
    auto* ints = static_cast<int32_t*>(malloc((static_cast<size_t>(c.size) + 4 * static_cast<size_t>(g.ndims) + 1) * 4));
    if (ints == nullptr) return fail(Err::no_mem, "no memory for a slice of the grid");
    int32_t *dims = ints, *periods = dims + g.ndims, *coords = periods + g.ndims, *members = coords + g.ndims;
    for (int32_t i = 0; i < g.ndims; i++) {
        if (remain_dims[i] == 0) continue;
        dims[kept] = g.dims[i];
        periods[kept++] = g.periods[i];
    }
    int32_t n = 0;
    for (int32_t r = 0; r < c.size; r++) {
        coords_of(g.ndims, g.dims, r, coords);
        bool same = true;
        for (int32_t i = 0; i < g.ndims && same; i++) same = remain_dims[i] != 0 || coords[i] == g.coords[i];
        if (same) members[n++] = c.group->at(r);
    }
    obj::Group* group = nullptr;
    Err e = obj::make_group(p, members, n, c.session, &group);
    if (e == Err::ok) {
        e = attach(p, c, *group, kept, dims, periods, tag, out);
        obj::release(p, *group);
    }
    free(ints);
    return e;
}

Err topo_test(Process&, Comm& c, int* status) {
    *status = c.topology == nullptr ? undefined : static_cast<const Topology*>(c.topology)->kind;
    return Err::ok;
}

Err cartdim_get(Process&, Comm& c, int* ndims) {
    const Topology* t = nullptr;
    WEFT_TRY(grid_of(c, &t));
    *ndims = t->ndims;
    return Err::ok;
}

Err cart_get(Process&, Comm& c, int maxdims, int* dims, int* periods, int* coords) {
    const Topology* t = nullptr;
    WEFT_TRY(grid_of(c, &t));
    Grid g(*t);
    if (maxdims < g.ndims) return fail(Err::arg, "room for %d of %d dimensions", maxdims, g.ndims);
    for (int32_t i = 0; i < g.ndims; i++) {
        dims[i] = g.dims[i];
        periods[i] = g.periods[i];
        coords[i] = g.coords[i];
    }
    return Err::ok;
}

Err cart_rank(Process&, Comm& c, const int* coords, int* rank) {
    const Topology* t = nullptr;
    WEFT_TRY(grid_of(c, &t));
    Grid g(*t);
    if (coords == nullptr && g.ndims > 0) return no_array("coords");
    int32_t r = rank_at(g, coords);
    if (r == proc_null) return fail(Err::arg, "the coordinates lie outside a dimension that is not periodic");
    *rank = r;
    return Err::ok;
}

Err cart_coords(Process&, Comm& c, int rank, int maxdims, int* coords) {
    const Topology* t = nullptr;
    WEFT_TRY(grid_of(c, &t));
    if (rank < 0 || rank >= c.size) return fail(Err::rank, "rank %d is not in the communicator of %d", rank, c.size);
    if (maxdims < t->ndims) return fail(Err::arg, "room for %d of %d dimensions", maxdims, t->ndims);
    coords_of(t->ndims, t->ints(), rank, coords);
    return Err::ok;
}

Err cart_shift(Process&, Comm& c, int direction, int disp, int* source, int* dest) {
    const Topology* t = nullptr;
    WEFT_TRY(grid_of(c, &t));
    Grid g(*t);
    if (direction < 0 || direction >= g.ndims) return fail(Err::arg, "direction %d of %d dimensions", direction, g.ndims);
    *source = shifted(c.rank, g, direction, -int64_t{disp});
    *dest = shifted(c.rank, g, direction, disp);
    return Err::ok;
}

Err cart_map(Process& p, Comm& c, int ndims, const int* dims, const int* periods, int* newrank) {
    int32_t size = 0;
    if (c.is_inter()) return fail(Err::comm, "the communicator is an intercommunicator");
    WEFT_TRY(places(ndims, dims, c.size, &size));
    Scratch<Edge> edges(int64_t{size} * ndims);
    if (!edges) return fail(Err::no_mem, "no memory for the edges of the grid");
    return arranged_rank(p, c, edges.get(), edges_of(ndims, dims, periods, size, edges.get()), size, newrank);
}

}  // namespace weft::topo
