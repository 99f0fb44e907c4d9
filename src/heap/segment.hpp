// The node's one segment of shared memory: a memfd that every rank maps, at the same address wherever the machine
// allows it. First the wires' part (rings and control; absent in forked children), then one heap slice per rank.
// Included by wire/ and above; a Segment is written only while it is mapped or unmapped, so it needs no lock. In the `threads` preset
// the ranks of a process share one mapping of the wires' part; map() and unmap() of each rank may run at once.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "heap/slices.hpp"

namespace weft::heap {

inline constexpr uint64_t base_address = 0x2000'0000'0000;
inline constexpr int slice_shift = 36;   // of a slice with one part and up to 1024 ranks
inline constexpr uint64_t slice_bytes = 1ull << slice_shift;
static_assert(slice_bytes == largest_part_bytes);

struct Segment {
    int fd = -1;
    int ranks = 0, me = 0;
    char* wires = nullptr;      // the wires' part
    size_t wires_bytes = 0;     // with `lines` at the end
    char* lines = nullptr;      // a cache line for each rank: see returned()
    Slices* heap = nullptr;     // this process's slices; null where the heap cannot be shared
    char* slices = nullptr;     // their first; rank i's is slice(i)
    uint64_t large_bytes = 0;   // that follow them: blocks for which no slice has room (heap/large.hpp)
    int shift = slice_shift;    // a slice has 1 << shift bytes
    bool same_address = false;  // pointers into `slices` mean the same in every rank that shares_heap()
    bool malloc_shares = false; // malloc is replaced: what it returns is in the slice, too

    // Maps `fd` (ownership stays with the caller). `fixed` asks for the common address; without it, or where the address is
    // taken, the wires' part lands anywhere and the heap is not shared. Of a bounded file (os/shared_file.hpp) the wires' part
    // is allocated, and the heap is not shared. The slices of an earlier time of this process stay in use.
    Err map(int file, int node_ranks, int node_rank, size_t bytes_for_wires, bool fixed, bool bounded = false);
    void unmap();   // the slices stay

    char* slice(int rank) const { return slices + (static_cast<uint64_t>(rank) << shift); }
    uint64_t slices_bytes() const { return static_cast<uint64_t>(ranks) << shift; }
    uint64_t shared_bytes() const { return slices_bytes() + large_bytes; }
    bool in_heap(const void* p) const {
        return static_cast<uint64_t>(static_cast<const char*>(p) - slices) < shared_bytes() && slices != nullptr;
    }
    // Of an address in a slice.
    int owner(const void* p) const { return static_cast<int>((static_cast<const char*>(p) - slices) >> shift); }
    // Whether a pointer into that rank's slice may be followed here, and one into this rank's there. Ask when a message has come from
    // it: before, it may not have started.
    bool shares_heap(int rank) const { return heap != nullptr && heap->shared_with(rank); }
    // Where the other ranks of the node put the buffers of that rank that they free (heap/owned.hpp). Any rank.
    Returned& returned(int rank) const { return *reinterpret_cast<Returned*>(lines + static_cast<size_t>(rank) * line); }
    static constexpr size_t line = 64;
};

}  // namespace weft::heap
