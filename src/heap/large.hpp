// Blocks for which no slice has room: runs of units in the addresses that follow the slices, which belong to all ranks of the node
// together. Every rank has them mapped at the same address, like the slices; memory is taken when it is touched. Included by heap/ alone.
//
// `LargeHead` lies in shared memory, in the first units of these addresses; zero is its valid empty state. take() and give() take its
// lock, which is a leaf; so does owner_of(). A rank that dies with the lock ends the job, and the file goes with it.
// Invariant: `blocks` has the first `count` entries filled, by ascending address, and they do not overlap.
#pragma once
#include <cstddef>
#include <cstdint>

#include "os/spin.hpp"

namespace weft::heap {

struct LargeHead {
    struct Block {
        uint64_t first, units;
        int32_t part;     // whose it is: the number of a part of a slice, counted through all slices
    };
    static constexpr int32_t most = 1024;

    os::SpinLock lock;
    int32_t count;
    Block blocks[most];

    // The first of so many units in a row, below `end`, a multiple of `align`; 0 where there are not as many, or no entry is left.
    uint64_t take(uint64_t units, uint64_t align, uint64_t end, int32_t part);
    // How many units the block that begins there has; 0 if none does.
    uint64_t units_at(uint64_t first);
    // The part whose block begins there; -1 if none does.
    int32_t owner_of(uint64_t first);
    void give(uint64_t first);

private:
    int32_t find(uint64_t first) const;
};

}  // namespace weft::heap
