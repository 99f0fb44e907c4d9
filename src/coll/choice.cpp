#include "coll/choice.hpp"

#include "coll/area.hpp"

namespace weft::coll {

namespace {

constexpr int64_t none = -1, no_end = INT64_MAX, slot = Layout::slot_bytes, KiB = 1024;
constexpr int32_t any = INT32_MAX;

struct Row {
    Operation operation;
    int32_t most_members;
    Cpus cpus;             // own: also for own_claiming, after rows for that
    Limits limits;         // lines up to; stages from, to
};

// The first row that fits decides. docs/collectives.md has the measurements; what they do not cover stays with messages.
constexpr Row table[] = {
    {Operation::barrier, any, Cpus::own, {0, no_end, none}},
    {Operation::barrier, any, Cpus::shared, {0, no_end, none}},
    {Operation::bcast, any, Cpus::own, {slot, no_end, none}},
    {Operation::bcast, any, Cpus::shared, {slot, slot + 1, no_end}},
    {Operation::reduce, any, Cpus::own, {slot, no_end, none}},
    {Operation::reduce, any, Cpus::shared, {slot, slot + 1, no_end}},
    {Operation::allreduce, 2, Cpus::own_claiming, {slot, 16 * KiB, no_end}},
    {Operation::allreduce, any, Cpus::own, {slot, 256 * KiB, no_end}},
    {Operation::allreduce, any, Cpus::shared, {slot, slot + 1, no_end}},
    {Operation::allgather, 2, Cpus::own_claiming, {slot, 16 * KiB, no_end}},
    {Operation::allgather, any, Cpus::own, {slot, no_end, none}},
    {Operation::allgather, any, Cpus::shared, {slot, slot + 1, 128 * KiB}},
    {Operation::alltoall, 2, Cpus::own_claiming, {slot, 16 * KiB, no_end}},
    {Operation::alltoall, any, Cpus::own, {slot, no_end, none}},
    {Operation::alltoall, any, Cpus::shared, {slot, slot + 1, 1024 * KiB}},
};

}  // namespace

Limits limits_for(Operation op, int32_t members, Cpus cpus, Forced forced) {
    for (const Row& r : table) {
        if (r.operation != op || members > r.most_members || (cpus != r.cpus && (cpus != Cpus::own_claiming || r.cpus != Cpus::own))) continue;
        if (forced == Forced::no || op == Operation::barrier) return r.limits;
        return forced == Forced::lines ? Limits{slot, no_end, none} : Limits{none, 0, no_end};
    }
    return {none, no_end, none};
}

}  // namespace weft::coll
