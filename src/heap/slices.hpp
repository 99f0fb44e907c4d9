// The slices of the node's heap: one file that every rank maps at the same address, in it a run of addresses per rank, from which this
// process hands out whole units to its allocator. Included by heap/ and by the library that replaces malloc. There is one per process
// (own_slices), mapped once and kept until the process ends, so that a pointer into it outlives MPI's starts and ends.
// Mapping takes a lock of its own, so do take() and give(); what is `const` needs none once map() has said yes in this thread or in
// one that this thread has synchronised with.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"
#include "heap/large.hpp"
#include "heap/returned.hpp"
#include "os/spin.hpp"

namespace weft::heap {

inline constexpr uint64_t heap_address = 0x2100'0000'0000;    // where every rank maps the slices
inline constexpr uint64_t all_slices_bytes = 64ull << 40;     // at most
inline constexpr uint64_t largest_part_bytes = 64ull << 30;
inline constexpr uint64_t most_large_bytes = 8ull << 40;      // of the addresses that follow the slices (large.hpp)
inline constexpr uint64_t room_for_large = 40ull << 40;       // there are some while they and the slices are no more
inline constexpr size_t unit_bytes = 64 << 10;
inline constexpr int parts_of_malloc = 4;   // of a slice where malloc is replaced: for the program and for wrappers that start it

// What begins each part of a slice, in shared memory. Only the part's owner writes it, but for the lists of returned blocks.
struct PartHead {
    alignas(64) Returned blocks;          // of heap::Heap
    alignas(64) Returned memory;          // of malloc
    alignas(64) std::atomic<uint32_t> mapped;   // in the first part of a slice: its rank's MPI process has mapped all of this file
    std::atomic<uint32_t> process;        // who allocates from this part; 0: nobody does
    std::atomic<uint64_t> process_space;  // the inode of its pid namespace
    std::atomic<uint64_t> taken, most_taken;  // bytes that the allocator has, and the most it had
    alignas(64) std::atomic<uint64_t> used[largest_part_bytes / unit_bytes / 64];   // a bit per unit
};

// How the addresses are divided: `1 << shift` bytes for each rank, in `parts` parts, one for each process that may allocate for the
// rank. More than one is for programs that start others before MPI does (wrappers): each process has its own part.
struct Geometry {
    int32_t ranks = 0, parts = 1;
    int shift = 0;

    // As large as they can be. `parts` is a power of two.
    static Geometry of(int ranks, int parts) {
        Geometry g{ranks, parts, 63 - __builtin_clzll(largest_part_bytes * static_cast<uint64_t>(parts))};
        while (g.bytes() > all_slices_bytes) --g.shift;
        return g;
    }
    uint64_t slice_bytes() const { return 1ull << shift; }
    uint64_t part_bytes() const { return slice_bytes() / static_cast<uint64_t>(parts); }
    uint64_t bytes() const { return slice_bytes() * static_cast<uint64_t>(ranks); }
    uint64_t large_bytes() const {
        if (bytes() >= room_for_large) return 0;
        return room_for_large - bytes() < most_large_bytes ? room_for_large - bytes() : most_large_bytes;
    }
    uint64_t mapped_bytes() const { return bytes() + large_bytes(); }
};

struct Slices {
    char* base = nullptr;      // null: the heap is not shared
    uint64_t bytes = 0;        // of all slices
    Geometry geometry;
    int32_t me = 0;
    char* own = nullptr;       // this process's part
    uint64_t own_bytes = 0;
    bool forked = false;       // this process is a forked child: its part is a private copy, and it returns nothing to others

    // Maps the slices at `offset` of the file and claims a part of `rank`'s slice. False where the address is taken, all parts of the
    // rank are, or the kernel denies it; then nothing has changed. A descriptor of the file is kept.
    bool map(int fd, uint64_t offset, const Geometry&, int rank, uint64_t address = heap_address);

    bool contains(const void* p) const { return static_cast<uint64_t>(static_cast<const char*>(p) - base) < bytes; }
    bool is_own(const void* p) const { return static_cast<uint64_t>(static_cast<const char*>(p) - own) < own_bytes; }
    int owner(const void* p) const { return static_cast<int>((static_cast<const char*>(p) - base) >> geometry.shift); }
    char* slice(int rank) const { return base + (static_cast<uint64_t>(rank) << geometry.shift); }
    // Whether that rank's MPI process has this very file at these addresses, as it has told by tell_mapped(). Wrappers do not.
    bool shared_with(int rank) const;
    void tell_mapped();
    PartHead& own_head() const { return *reinterpret_cast<PartHead*>(own); }
    PartHead& head_of(const void* p) const;
    // The same of a large block; null where none begins.
    PartHead* head_of_large(const void* p) const;

    // Whole units of the own part, zeroed, aligned to 32 MiB from 1 MiB on; null when there are not as many in a row.
    void* take(size_t bytes);
    void give(void* p, size_t bytes);
    // Makes pages read as zero and gives their memory back.
    void clear(void* p, size_t bytes);
    // Makes bytes of the own part read as zero, and touches no page that nobody has touched since it was taken.
    void zero(void* p, size_t bytes) const;

    // A block of whole units in the addresses that follow the slices, aligned to `align`; null when there is no room. Zeroed. A forked child
    // shares it with its parent. give_large(): of any process. Of an address where no block begins bytes_of_large() is 0.
    void* take_large(size_t bytes, size_t align);
    void give_large(void* p);
    uint64_t bytes_of_large(const void* p) const;
    bool is_large(const void* p) const { return static_cast<uint64_t>(static_cast<const char*>(p) - base) - bytes < geometry.large_bytes() && base != nullptr; }

    // Around fork(): the child's part becomes a private copy before the parent goes on.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

private:
    LargeHead& large() const { return *reinterpret_cast<LargeHead*>(base + bytes); }
    uint64_t large_unit(const void* p) const { return (static_cast<uint64_t>(static_cast<const char*>(p) - base) - bytes) / unit_bytes; }
    bool claim(int rank);
    void empty_part();
    void copy_part(char* to) const;
    int file() const;
    uint64_t place(const char* p) const { return offset_ + static_cast<uint64_t>(p - base); }
    char* find(uint64_t units, uint64_t align) const;
    void mark(uint64_t first, uint64_t units, bool used);

    os::SpinLock lock_;
    int fd_ = -1;
    uint64_t file_ = 0, offset_ = 0;
    int fork_pipe_[2] = {-1, -1};
};

// This process's.
extern Slices own_slices WEFT_HIDDEN;

}  // namespace weft::heap
