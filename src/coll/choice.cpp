#include "coll/choice.hpp"

#include "coll/area.hpp"

namespace weft::coll {

namespace {

constexpr int64_t never = INT64_MAX, all_of_slot = Layout::slot_bytes;

struct Row {
    Operation operation;
    int32_t most_members;
    bool crowded;          // the row is for members that outnumber their CPUs
    Limits limits;
};

// The first row that fits decides. docs/collectives.md has the measurements.
constexpr Row table[] = {
    {Operation::barrier, INT32_MAX, false, {0, never}},
    {Operation::barrier, INT32_MAX, true, {0, never}},
    {Operation::bcast, INT32_MAX, false, {all_of_slot, all_of_slot + 1}},
    {Operation::bcast, INT32_MAX, true, {all_of_slot, all_of_slot + 1}},
    {Operation::reduce, INT32_MAX, false, {all_of_slot, all_of_slot + 1}},
    {Operation::reduce, INT32_MAX, true, {all_of_slot, all_of_slot + 1}},
    {Operation::allreduce, INT32_MAX, false, {all_of_slot, all_of_slot + 1}},
    {Operation::allreduce, INT32_MAX, true, {all_of_slot, all_of_slot + 1}},
    {Operation::allgather, INT32_MAX, false, {all_of_slot, all_of_slot + 1}},
    {Operation::allgather, INT32_MAX, true, {all_of_slot, all_of_slot + 1}},
    {Operation::alltoall, INT32_MAX, false, {all_of_slot, all_of_slot + 1}},
    {Operation::alltoall, INT32_MAX, true, {all_of_slot, all_of_slot + 1}},
};

}  // namespace

Limits limits_for(Operation op, int32_t members, bool crowded, Forced forced) {
    for (const Row& r : table) {
        if (r.operation != op || members > r.most_members || crowded != r.crowded) continue;
        if (forced == Forced::lines) return {r.limits.lines_most >= 0 ? all_of_slot : -1, never};
        if (forced == Forced::stages) return {r.limits.stages_least == never ? r.limits.lines_most : -1, r.limits.stages_least == never ? never : 0};
        return r.limits;
    }
    return {-1, never};
}

}  // namespace weft::coll
