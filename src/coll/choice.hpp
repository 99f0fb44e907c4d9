// Which way a collective takes: by operation, number of members, whether they share CPUs, and bytes. Included by coll/ alone.
// One table (coll/choice.cpp), constant; no lock. Every member asks with the same values and gets the same answer.
#pragma once
#include <cstdint>

namespace weft::coll {

// Values of WEFT_COLL.
enum class Forced : uint8_t { no, messages, lines, stages };

enum class Operation : uint8_t { barrier, bcast, reduce, allreduce, allgather, alltoall };
inline constexpr int n_operations = 6;

// With an area: up to `lines_most` bytes by lines and slots, from `stages_least` to `stages_most` by staging memory, else by messages.
// Bytes of the whole vector; of one member's block for allgather, of all that a member sends for alltoall. -1: never.
struct Limits {
    int64_t lines_most, stages_least, stages_most;
};
// Whose the members' CPUs are: each has one of its own; the same, and readers claim lines (wire/shm/claim.hpp); they outnumber them.
enum class Cpus : uint8_t { own, own_claiming, shared };
Limits limits_for(Operation, int32_t members, Cpus, Forced);

}  // namespace weft::coll
