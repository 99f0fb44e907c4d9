// Which algorithm a collective takes: by operation, number of members, bytes, and whose the members' CPUs are. Included by coll/ and by
// comm/, which reads a process's table when it starts. Tables are constant once they are read; no lock. Every member asks with the same
// values, of the same table, and gets the same answer.
#pragma once
#include <cstdint>

#include "base/err.hpp"

namespace weft::obj { struct Process; }

namespace weft::coll {

// Values of WEFT_COLL.
enum class Forced : uint8_t { no, messages, lines, stages };

enum class Operation : uint8_t { barrier, bcast, reduce, allreduce, allgather, alltoall, gather, scatter, reduce_scatter, scan };
inline constexpr int n_operations = 10;

// The first two need an area (coll/area.hpp), the others are made of messages.
enum class Algorithm : uint8_t { lines, stages, linear, binomial, knomial, chain, ring, doubling, halving, bruck, dissemination, pairwise, tree };
inline constexpr int n_algorithms = 13;

// A set of algorithms.
using Algorithms = uint32_t;
template <class... A> constexpr Algorithms set_of(A... a) { return ((Algorithms{1} << static_cast<int>(a)) | ...); }
// Those that an operation has.
Algorithms algorithms_of(Operation);

// Whose the members' CPUs are: each has one of its own; the same, and readers claim lines (wire/shm/claim.hpp); they outnumber them; not
// known, as there is no area.
enum class Cpus : uint8_t { own, own_claiming, shared, unknown };

// Bytes of the whole vector; of one member's block (of the largest, where they differ) for gather and allgather, of all that a member
// sends for alltoall, that the root sends for scatter. A barrier has one.
struct Rule {   // a row of the table
    Operation operation;
    int32_t least_members, most_members;
    Cpus cpus;             // unknown: whosever; own: also for own_claiming
    int64_t least, most;   // bytes
    Algorithm algorithm;
};

inline constexpr int32_t most_rows = 512;
// The rows of each operation follow each other; the first that fits decides.
struct Table {
    int32_t begin[n_operations + 1];
    Rule rows[most_rows];
};

// The table of a process: as shipped, changed by WEFT_COLL, WEFT_COLL_FORCE and the file that WEFT_COLL_TABLE names.
const Table& table_of(const obj::Process&);
// Reads the latter two, once per start: p.coll_table is set where they say something. Errors: what is wrong, where, and what is allowed.
Err read_table(obj::Process&);
void free_table(obj::Process&);

// Of the algorithms `among`, which all members can use here, the one to take.
Algorithm choose(const Table&, Operation, int32_t members, Cpus, int64_t bytes, Algorithms among);
// The bytes up to which a blocking call goes by lines; -1: it never does.
int64_t most_by_lines(const Table&, Operation, int32_t members, Cpus);

// Makes a table of what is forced (of at most one algorithm for each operation; n_algorithms: none), then `n` rows of a file, then those
// shipped. False: there are too many.
bool compose(Table&, Forced ways, const uint8_t (&forced)[n_operations], const Rule* rows, int32_t n);
// Rows out of text: lines of `operation members cpus bytes algorithm`; whatever follows a # is a comment. `origin` names the text in errors.
Err parse_rows(const char* origin, const char* text, Rule* rows, int32_t* n);
// operation=algorithm,... into `forced`.
Err parse_forced(const char* origin, const char* text, uint8_t (&forced)[n_operations]);

}  // namespace weft::coll
