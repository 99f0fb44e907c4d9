#include "coll/choice.hpp"

#include "coll/area.hpp"

namespace weft::coll {

namespace {

constexpr int64_t none = -1, no_end = INT64_MAX, slot = Layout::slot_bytes, KiB = 1024;
constexpr int32_t any = INT32_MAX;

struct Row {
    Operation operation;
    int32_t most_members;
    bool crowded;          // the row is for members that outnumber their CPUs
    Limits limits;         // lines up to; stages from, to; small ones staged
};

// The first row that fits decides. docs/collectives.md has the measurements; what they do not cover stays with messages.
constexpr Row table[] = {
    {Operation::barrier, any, false, {slot, no_end, none}},
    {Operation::barrier, any, true, {slot, no_end, none, true}},
    {Operation::bcast, any, false, {slot, no_end, none}},
    {Operation::bcast, any, true, {slot, slot + 1, no_end, true}},
    {Operation::reduce, any, false, {slot, no_end, none}},
    {Operation::reduce, any, true, {slot, slot + 1, no_end, true}},
    {Operation::allreduce, any, false, {slot, 256 * KiB, no_end}},
    {Operation::allreduce, any, true, {slot, slot + 1, no_end, true}},
    {Operation::allgather, any, false, {slot, no_end, none}},
    {Operation::allgather, any, true, {slot, slot + 1, 128 * KiB, true}},
    {Operation::alltoall, any, false, {slot, no_end, none}},
    {Operation::alltoall, any, true, {slot, slot + 1, 1024 * KiB, true}},
    {Operation::gather, any, false, {slot, no_end, none}},
    {Operation::gather, any, true, {slot, no_end, none, true}},
    {Operation::scatter, any, false, {slot, no_end, none}},
    {Operation::scatter, any, true, {slot, slot + 1, 512 * KiB, true}},
    {Operation::reduce_scatter, any, false, {slot, no_end, none}},
    {Operation::reduce_scatter, any, true, {slot, slot + 1, 1024 * KiB, true}},
    {Operation::scan, any, false, {slot, no_end, none}},
    {Operation::scan, any, true, {slot, slot + 1, no_end}},
};

}  // namespace

Limits limits_for(Operation op, int32_t members, bool crowded, Forced forced) {
    for (const Row& r : table) {
        if (r.operation != op || members > r.most_members || crowded != r.crowded) continue;
        if (forced == Forced::no || op == Operation::barrier) return r.limits;
        return forced == Forced::lines ? Limits{slot, no_end, none, true} : Limits{none, 0, no_end};
    }
    return {none, no_end, none};
}

}  // namespace weft::coll
