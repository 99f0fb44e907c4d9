// What is known of the processor: which of two ways to copy is the faster one. A rule by the processor's maker and family, from
// the measurements in docs/experiments/002, 006 and 008; control variables override it. Included by obj/ and lane/; no lock.
#pragma once

namespace weft::lane {

struct Machine {
    bool claims_lines;   // the reader of a ring had better claim the lines it has read
    bool split_cma;      // two halves copied by the kernel beat two copies through a ring, from lane::rendezvous_min on
};

// AMD: two copies through a ring are the faster way at every size; Zen to Zen 4 need claimed lines for it.
// All others: the kernel's copy by both sides at once is, and claiming a line costs more than it gains.
Machine know_machine();

}  // namespace weft::lane
