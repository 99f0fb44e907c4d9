#include "coll/choice.hpp"

#include "coll/area.hpp"
#include "obj/process.hpp"

namespace weft::coll {

namespace {

using A = Algorithm;
using O = Operation;
constexpr int64_t slot = Layout::slot_bytes, KiB = 1024, no_end = INT64_MAX;
constexpr int32_t any = INT32_MAX;
constexpr Cpus whose = Cpus::unknown;

// docs/collectives.md has the measurements. The last row of an operation can always be used.
constexpr Rule shipped[] = {
    {O::barrier, 1, any, whose, 0, slot, A::lines},
    {O::barrier, 1, any, Cpus::shared, 0, no_end, A::stages},
    {O::barrier, 1, any, whose, 0, no_end, A::dissemination},
    {O::bcast, 1, any, whose, 0, slot, A::lines},
    {O::bcast, 1, any, Cpus::shared, 0, no_end, A::stages},
    {O::bcast, 3, any, whose, 64 * KiB, no_end, A::ring},
    {O::bcast, 1, any, whose, 0, no_end, A::binomial},
    {O::reduce, 1, any, whose, 0, slot, A::lines},
    {O::reduce, 1, any, Cpus::shared, 0, no_end, A::stages},
    {O::reduce, 1, any, whose, 0, no_end, A::binomial},
    {O::allreduce, 1, any, whose, 0, slot, A::lines},
    {O::allreduce, 1, any, Cpus::shared, 0, no_end, A::stages},
    {O::allreduce, 2, 2, Cpus::own_claiming, 16 * KiB, no_end, A::stages},
    {O::allreduce, 1, any, Cpus::own, 256 * KiB, no_end, A::stages},
    {O::allreduce, 3, any, whose, 16 * KiB, no_end, A::ring},
    {O::allreduce, 1, any, whose, 0, no_end, A::doubling},
    {O::allgather, 1, any, whose, 0, slot, A::lines},
    {O::allgather, 1, any, Cpus::shared, 0, 128 * KiB, A::stages},
    {O::allgather, 2, 2, Cpus::own_claiming, 16 * KiB, no_end, A::stages},
    {O::allgather, 1, any, whose, 0, no_end, A::doubling},
    {O::allgather, 1, any, whose, 0, no_end, A::ring},
    {O::alltoall, 1, any, whose, 0, slot, A::lines},
    {O::alltoall, 1, any, Cpus::shared, 0, 1024 * KiB, A::stages},
    {O::alltoall, 2, 2, Cpus::own_claiming, 16 * KiB, no_end, A::stages},
    {O::alltoall, 1, any, whose, 0, no_end, A::pairwise},
    {O::gather, 1, any, whose, 0, slot, A::lines},
    {O::gather, 1, any, Cpus::shared, 0, slot, A::stages},
    {O::gather, 5, any, whose, 0, KiB, A::binomial},
    {O::gather, 1, any, whose, 0, no_end, A::linear},
    {O::scatter, 1, any, whose, 0, slot, A::lines},
    {O::scatter, 1, any, Cpus::shared, 0, 512 * KiB, A::stages},
    {O::scatter, 5, 8, whose, 0, 8 * KiB, A::binomial},
    {O::scatter, 9, 32, whose, 0, 32 * KiB, A::binomial},
    {O::scatter, 33, any, whose, 0, 128 * KiB, A::binomial},
    {O::scatter, 1, any, whose, 0, no_end, A::linear},
    {O::reduce_scatter, 1, any, whose, 0, slot, A::lines},
    {O::reduce_scatter, 1, any, Cpus::shared, 0, 1024 * KiB, A::stages},
    {O::reduce_scatter, 1, any, whose, 0, no_end, A::pairwise},
    {O::reduce_scatter, 1, any, whose, 0, no_end, A::tree},
    {O::scan, 1, any, whose, 0, slot, A::lines},
    {O::scan, 1, any, Cpus::shared, slot + 1, no_end, A::stages},
    {O::scan, 1, any, whose, 0, no_end, A::doubling},
};

constexpr Algorithms by_area = set_of(A::lines, A::stages);

constexpr bool append(Table& t, int32_t& n, const Rule& r) {
    if (n == most_rows) return false;
    t.rows[n++] = r;
    return true;
}

// What is forced on `o`; true where rows that need an area are not looked at any more.
constexpr bool append_forced(Table& t, int32_t& n, O o, Forced ways, uint8_t algorithm) {
    if (algorithm < n_algorithms) {
        append(t, n, {o, 1, any, whose, 0, algorithm == static_cast<uint8_t>(A::lines) ? slot : no_end, static_cast<A>(algorithm)});
        return true;
    }
    if (ways == Forced::lines) {
        append(t, n, {o, 1, any, whose, 0, slot, A::lines});
        append(t, n, {o, 1, any, whose, 0, slot, A::stages});
    }
    if (ways == Forced::stages) append(t, n, {o, 1, any, whose, 0, no_end, A::stages});
    return ways != Forced::no;
}

constexpr bool compose_from(Table& t, Forced ways, const uint8_t* forced, const Rule* rows, int32_t count) {
    int32_t n = 0;
    for (int i = 0; i < n_operations; i++) {
        const O o = static_cast<O>(i);
        t.begin[i] = n;
        if (n + 2 > most_rows) return false;
        const bool messages = append_forced(t, n, o, ways, forced[i]);
        for (int32_t j = 0; j < count; j++)
            if (rows[j].operation == o && !(messages && (set_of(rows[j].algorithm) & by_area) != 0) && !append(t, n, rows[j])) return false;
        for (const Rule& r : shipped)
            if (r.operation == o && !(messages && (set_of(r.algorithm) & by_area) != 0) && !append(t, n, r)) return false;
    }
    t.begin[n_operations] = n;
    return true;
}

constexpr Table made_for(Forced ways) {
    Table t{};
    uint8_t forced[n_operations] = {};
    for (uint8_t& f : forced) f = n_algorithms;
    compose_from(t, ways, forced, nullptr, 0);
    return t;
}

constexpr Table as_shipped[] = {made_for(Forced::no), made_for(Forced::messages), made_for(Forced::lines), made_for(Forced::stages)};

bool fits(const Rule& r, int32_t members, Cpus cpus) {
    const bool theirs = r.cpus == whose || r.cpus == cpus || (r.cpus == Cpus::own && cpus == Cpus::own_claiming);
    return theirs && members >= r.least_members && members <= r.most_members;
}

}  // namespace

Algorithms algorithms_of(Operation o) {
    static constexpr Algorithms of_messages[n_operations] = {
        set_of(A::dissemination, A::tree),                     // barrier
        set_of(A::linear, A::binomial, A::knomial, A::ring),   // bcast
        set_of(A::binomial, A::halving),                       // reduce
        set_of(A::tree, A::doubling, A::halving, A::ring),     // allreduce
        set_of(A::doubling, A::bruck, A::ring),                // allgather
        set_of(A::pairwise, A::bruck),                         // alltoall
        set_of(A::linear, A::binomial),                        // gather
        set_of(A::linear, A::binomial),                        // scatter
        set_of(A::pairwise, A::tree),                          // reduce_scatter
        set_of(A::doubling, A::chain),                         // scan
    };
    return of_messages[static_cast<int>(o)] | by_area;
}

bool compose(Table& t, Forced ways, const uint8_t (&forced)[n_operations], const Rule* rows, int32_t n) {
    return compose_from(t, ways, forced, rows, n);
}

const Table& table_of(const obj::Process& p) { return p.coll_table != nullptr ? *p.coll_table : as_shipped[p.coll_choice]; }

Algorithm choose(const Table& t, Operation o, int32_t members, Cpus cpus, int64_t bytes, Algorithms among) {
    const Rule* r = t.rows + t.begin[static_cast<int>(o)];
    while ((set_of(r->algorithm) & among) == 0 || bytes < r->least || bytes > r->most || !fits(*r, members, cpus)) r++;
    return r->algorithm;
}

int64_t most_by_lines(const Table& t, Operation o, int32_t members, Cpus cpus) {
    int64_t most = slot;
    for (int32_t i = t.begin[static_cast<int>(o)]; i < t.begin[static_cast<int>(o) + 1]; i++) {
        const Rule& r = t.rows[i];
        if (!fits(r, members, cpus)) continue;
        if (r.algorithm == A::lines) return r.most < most ? r.most : most;
        if (r.least <= 1) return -1;
        if (r.least <= most) most = r.least - 1;
    }
    return -1;
}

}  // namespace weft::coll
