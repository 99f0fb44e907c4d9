// Which way of copying is faster on this processor: a rule by its maker and family, from the measurements in
// docs/experiments/002, 006 and 008; control variables override it. Included by obj/ and lane/; no lock.
#pragma once

namespace weft::lane {

struct Machine {
    bool claims_lines;   // it is faster if the reader claims the cache lines it has read
    bool split_cma;      // split CMA is faster than a pipelined copy, from lane::rendezvous_min on
};

// AMD: the pipelined copy is faster at every size; Zen to Zen 4 need claimed lines for that.
// All others: split CMA is faster, and claiming a line costs more than it gains.
Machine know_machine();

}  // namespace weft::lane
