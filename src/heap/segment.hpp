// The node's one segment of shared memory: a memfd that every rank maps, at the same address wherever the machine
// allows it. First the wires' part (rings and control; absent in forked children), then one heap slice per rank.
// Included by wire/ and above; a Segment is written only while it is mapped or unmapped, so it needs no lock.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::heap {

inline constexpr uint64_t base_address = 0x2000'0000'0000;
inline constexpr uint64_t slice_bytes = 64ull << 30;

struct Segment {
    int fd = -1;
    int ranks = 0, me = 0;
    char* wires = nullptr;      // the wires' part
    size_t wires_bytes = 0;     // with `lines` at the end
    char* lines = nullptr;      // a cache line for each rank: see returned()
    char* slices = nullptr;     // slice i at slices + i * slice_bytes; null where the heap cannot be shared
    bool same_address = false;  // pointers into `slices` mean the same in every rank

    // Maps `fd` (ownership stays with the caller). `fixed` asks for the common address; without it, or where the address is
    // taken, the wires' part lands anywhere and the heap is not shared. Of a bounded file (os/shared_file.hpp) the wires' part
    // is allocated, and the heap is not shared.
    Err map(int file, int node_ranks, int node_rank, size_t bytes_for_wires, bool fixed, bool bounded = false);
    void unmap();

    char* slice(int rank) const { return slices + static_cast<uint64_t>(rank) * slice_bytes; }
    uint64_t slices_bytes() const { return static_cast<uint64_t>(ranks) * slice_bytes; }
    bool in_heap(const void* p) const {
        return static_cast<uint64_t>(static_cast<const char*>(p) - slices) < slices_bytes() && slices != nullptr;
    }
    // Where the other ranks of the node put what they free of that rank's slice (heap/owned.hpp); 0: nothing. Any rank.
    std::atomic<uintptr_t>* returned(int rank) const {
        return reinterpret_cast<std::atomic<uintptr_t>*>(lines + static_cast<size_t>(rank) * line);
    }
    int owner(const void* p) const { return static_cast<int>((static_cast<const char*>(p) - slices) / slice_bytes); }
    static constexpr size_t line = 64;
};

}  // namespace weft::heap
