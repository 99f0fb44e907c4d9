// Claiming cache lines: the reader stores one byte to each line of a cell or chunk that it has read, so that its own cache owns it.
// On some processors a store to a line that this core wrote last, and another core has read since, waits for that core before
// the next such store begins. With claimed lines the writer's stores fetch many lines at once, and copies through shared memory
// are three to five times as fast (docs/experiments/006-taking-lines.md). On other processors the store is wasted.
// Included by wire/shm; owned by the reading end of one lane and touched under its guard. lane/machine.hpp says where it is on.
#pragma once
#include <cstddef>

namespace weft::wire::shm {

struct Claim {
    bool on;     // lines that have been read are claimed
    bool wide;   // the processor has AVX2

    void start(bool claim);
    // memcpy that claims the lines it reads.
    void copy(void* to, const void* from, size_t bytes) const;
    // The same with non-temporal stores (weft::copy_past_caches); claims lines only where `on`.
    void copy_past_caches(void* to, const void* from, size_t bytes) const;
};

}  // namespace weft::wire::shm
