// Which core's cache owns the lines of a ring from one lap to the next. On some processors a store to a line that this core
// wrote last, and another core has read since, waits for that core before the next such store begins. There the reader claims
// each line it has read by storing one byte to it: then the writer's stores fetch the lines ahead, many at once, and copies
// through a ring are three to five times as fast (docs/experiments/006-taking-lines.md). Elsewhere it is one store too many.
// Owned by the reading end of one lane, and touched under its guard. Source: lane/machine.hpp says where it is done.
#pragma once
#include <cstddef>

namespace weft::wire::shm {

struct Claim {
    bool on;     // lines that have been read are claimed
    bool wide;   // the processor has AVX2

    void start(bool claim);
    // memcpy that claims the lines it reads.
    void copy(void* to, const void* from, size_t bytes) const;
    // The same past the caches (see weft::copy_past_caches); claims lines only where that is on.
    void copy_past_caches(void* to, const void* from, size_t bytes) const;
};

}  // namespace weft::wire::shm
