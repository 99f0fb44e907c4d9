// Subarrays and distributed arrays, composed from vectors and structures and then given the bounds of the whole array.
#include "type/builder.hpp"

namespace weft::type {

namespace {

// A type under construction: replaced by the next one out, and released at the end.
class Step {
public:
    explicit Step(const Type& old) : t_(&old) { retain(old); }
    ~Step() { release(*t_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    const Type& type() const { return *t_; }
    // Takes over the caller's reference to `next`.
    void replace(const Type* next) {
        release(*t_);
        t_ = next;
    }
    // `count` of them, `stride` bytes apart.
    Err repeat(int64_t count, int64_t stride) {
        Type* next;
        WEFT_TRY(hvector(Width::large, count, 1, stride, *t_, &next));
        replace(next);
        return Err::ok;
    }

private:
    const Type* t_;
};

Err too_big() { return fail(Err::arg, "the array is larger than 2^63 bytes"); }

// Gives the composed type, from `offset` on, the bounds of the array. The builder has recorded the call.
Err finish_array(Builder& b, const Type& inner, int64_t offset, int64_t array_bytes, Type** out) {
    retain(inner);
    b.layout().inner = &inner;
    b.shape() = {Shape::repeat, offset, 1, 1, 0, &inner, nullptr};
    b.set_bounds(0, array_bytes);
    return b.finish(out);
}

// The k-th dimension from the inside: the last one in C, the first in Fortran.
int inner_dim(int32_t order, int ndims, int k) { return order == static_cast<int32_t>(Order::c) ? ndims - 1 - k : k; }

Err check_order(int32_t order, int ndims) {
    if (order != static_cast<int32_t>(Order::c) && order != static_cast<int32_t>(Order::fortran))
        return fail(Err::arg, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    return ndims > 0 ? Err::ok : fail(Err::arg, "an array of %d dimensions", ndims);
}

}  // namespace

Err subarray(Width w, int ndims, Counts sizes, Counts subsizes, Counts starts, int32_t order, const Type& old, Type** out) {
    WEFT_TRY(check_order(order, ndims));
    for (int d = 0; d < ndims; d++) {
        if (sizes[d] < 1 || subsizes[d] < 1 || subsizes[d] > sizes[d])
            return fail(Err::arg, "dimension %d: a subsize of %lld does not fit a size of %lld", d,
                        static_cast<long long>(subsizes[d]), static_cast<long long>(sizes[d]));
        if (starts[d] < 0 || starts[d] > sizes[d] - subsizes[d])
            return fail(Err::arg, "dimension %d: a subarray starting at %lld leaves the array", d, static_cast<long long>(starts[d]));
    }
    Builder b;
    WEFT_TRY(b.start(Combiner::subarray, w, 2 + 3 * int64_t{ndims}, 3 * int64_t{ndims}, 1));
    b.add_int(ndims);
    for (int d = 0; d < ndims; d++) b.add_count(sizes[d]);
    for (int d = 0; d < ndims; d++) b.add_count(subsizes[d]);
    for (int d = 0; d < ndims; d++) b.add_count(starts[d]);
    b.add_int(order);
    WEFT_TRY(b.add_type(old));
    Step step(old);
    int64_t stride = old.extent, offset = 0, skip;
    for (int k = 0; k < ndims; k++) {
        int d = inner_dim(order, ndims, k);
        WEFT_TRY(step.repeat(subsizes[d], stride));
        if (!multiply(starts[d], stride, &skip) || __builtin_add_overflow(offset, skip, &offset)) return too_big();
        if (!multiply(stride, sizes[d], &stride)) return too_big();
    }
    return finish_array(b, step.type(), offset, stride, out);
}

namespace {

// The share of one coordinate in one dimension: `blocks` full blocks of `length`, `apart` elements apart, then `rest`.
struct Share {
    int64_t start, blocks, length, apart, rest;
};

Err share_of(const Grid& g, int d, int64_t size, int coordinate, Share* s) {
    int64_t p = g.psizes[d], darg = g.dargs[d];
    bool given = darg != default_darg;
    switch (static_cast<Distribution>(g.distributions[d])) {
    case Distribution::none:
        if (p != 1) return fail(Err::arg, "dimension %d is not distributed but has %d processes", d, g.psizes[d]);
        *s = {0, 1, size, size, 0};
        return Err::ok;
    case Distribution::block: {
        int64_t block = given ? darg : (size + p - 1) / p;
        if (block <= 0 || static_cast<__int128>(block) * p < size)
            return fail(Err::arg, "dimension %d: blocks of %lld do not cover %lld elements", d, static_cast<long long>(block),
                        static_cast<long long>(size));
        __int128 start = static_cast<__int128>(block) * coordinate;
        int64_t left = start >= size ? 0 : size - static_cast<int64_t>(start);
        *s = {left > 0 ? static_cast<int64_t>(start) : 0, 1, left < block ? left : block, 0, 0};
        return Err::ok;
    }
    case Distribution::cyclic: {
        int64_t block = given ? darg : 1;
        if (block <= 0) return fail(Err::arg, "dimension %d: blocks of %lld", d, static_cast<long long>(block));
        __int128 start = static_cast<__int128>(block) * coordinate, apart = static_cast<__int128>(block) * p;
        if (start >= size) {
            *s = {0, 0, 0, 0, 0};
            return Err::ok;
        }
        int64_t first = static_cast<int64_t>(start), left = size - first;
        int64_t step = apart > size ? size : static_cast<int64_t>(apart);   // one block at most where it is more
        int64_t blocks = left / step, rest = left % step;
        if (apart > size) blocks = 0, rest = left;
        if (rest >= block) blocks++, rest = 0;
        *s = {first, blocks, block, step, rest};
        return Err::ok;
    }
    }
    return fail(Err::arg, "dimension %d: distribution %d is unknown", d, g.distributions[d]);
}

// One dimension further out: from the type of one index to that of this process's share of them.
Err distribute(Step& step, const Share& s, int64_t stride) {
    Step one(step.type());
    WEFT_TRY(step.repeat(s.length, stride));
    int64_t apart, behind;
    if (!multiply(s.apart, stride, &apart) || !multiply(s.blocks, apart, &behind)) return too_big();
    WEFT_TRY(step.repeat(s.blocks, apart));
    if (s.rest == 0) return Err::ok;
    WEFT_TRY(one.repeat(s.rest, stride));
    const int64_t lengths[] = {1, 1}, displacements[] = {0, behind};
    const Type* both[] = {&step.type(), &one.type()};
    Type* next;
    WEFT_TRY(structure(Width::large, 2, lengths, displacements, both, &next));
    step.replace(next);
    return Err::ok;
}

Err check_grid(const Grid& g, Counts gsizes) {
    WEFT_TRY(check_order(g.order, g.ndims));
    int64_t processes = 1;
    for (int d = 0; d < g.ndims; d++) {
        if (gsizes[d] < 1) return fail(Err::arg, "dimension %d has a size of %lld", d, static_cast<long long>(gsizes[d]));
        if (g.psizes[d] < 1) return fail(Err::arg, "dimension %d has %d processes", d, g.psizes[d]);
        if (!multiply(processes, g.psizes[d], &processes)) processes = -1;
    }
    if (processes != g.size) return fail(Err::arg, "the process grid has %lld places, not %d", static_cast<long long>(processes), g.size);
    if (g.rank < 0 || g.rank >= g.size) return fail(Err::arg, "rank %d of %d", g.rank, g.size);
    return Err::ok;
}

}  // namespace

Err darray(Width w, const Grid& g, Counts gsizes, const Type& old, Type** out) {
    WEFT_TRY(check_grid(g, gsizes));
    Builder b;
    WEFT_TRY(b.start(Combiner::darray, w, 4 + 4 * int64_t{g.ndims}, g.ndims, 1));
    for (int v : {g.size, g.rank, g.ndims}) b.add_int(v);
    for (int d = 0; d < g.ndims; d++) b.add_count(gsizes[d]);
    for (const int32_t* a : {g.distributions, g.dargs, g.psizes})
        for (int d = 0; d < g.ndims; d++) b.add_int(a[d]);
    b.add_int(g.order);
    WEFT_TRY(b.add_type(old));
    Step step(old);
    int64_t stride = old.extent, offset = 0, skip;
    for (int k = 0; k < g.ndims; k++) {
        int d = inner_dim(g.order, g.ndims, k);
        int processes_behind = 1;   // the grid of processes is row-major whatever the order of the array
        for (int e = d + 1; e < g.ndims; e++) processes_behind *= g.psizes[e];
        Share s{};
        WEFT_TRY(share_of(g, d, gsizes[d], g.rank / processes_behind % g.psizes[d], &s));
        WEFT_TRY(distribute(step, s, stride));
        if (!multiply(s.start, stride, &skip) || __builtin_add_overflow(offset, skip, &offset)) return too_big();
        if (!multiply(stride, gsizes[d], &stride)) return too_big();
    }
    return finish_array(b, step.type(), offset, stride, out);
}

}  // namespace weft::type
