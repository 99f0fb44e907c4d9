// Which way a collective takes: by operation, number of members, whether they share CPUs, and bytes. Included by coll/ alone.
// One table (coll/choice.cpp), constant; no lock. Every member asks with the same values and gets the same answer.
#pragma once
#include <cstdint>

namespace weft::coll {

// Values of WEFT_COLL.
enum class Forced : uint8_t { no, messages, lines, stages };

enum class Operation : uint8_t { barrier, bcast, reduce, allreduce, allgather, alltoall, gather, scatter, reduce_scatter, scan };
inline constexpr int n_operations = 10;

// With an area: up to `lines_most` bytes by lines and slots, from `stages_least` to `stages_most` by staging memory, else by messages.
// Bytes of the whole vector; of one member's block (of the largest, where they differ) for gather and allgather, of all that a member
// sends for alltoall, that the root sends for scatter. -1: never.
// `small_staged`: nonblocking and persistent calls, which have no lines, use staging memory for what would go by lines.
struct Limits {
    int64_t lines_most, stages_least, stages_most;
    bool small_staged = false;
    bool lines(int64_t bytes) const { return bytes > 0 && bytes <= lines_most; }
    bool stages(int64_t bytes) const { return (small_staged && lines(bytes)) || (bytes > 0 && bytes >= stages_least && bytes <= stages_most); }
};
// Whose the members' CPUs are: each has one of its own; the same, and readers claim lines (wire/shm/claim.hpp); they outnumber them.
enum class Cpus : uint8_t { own, own_claiming, shared };
Limits limits_for(Operation, int32_t members, Cpus, Forced);

}  // namespace weft::coll
