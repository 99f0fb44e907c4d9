#include "heap/segment.hpp"

#include "base/spin.hpp"
#include "heap/replaced.hpp"
#include "os/memory.hpp"
#include "os/shared_file.hpp"

namespace weft::heap {
namespace {

// The slices of this process: those that malloc allocates from where it is replaced; those of an earlier start; or new ones, in `fd`
// behind the wires' part. Null where the heap is not shared, or with other ranks than now.
Slices* find_slices(int fd, uint64_t offset, int ranks, int me, bool fixed, bool* malloc_shares) {
    const Replaced malloc = replaced_malloc();
    *malloc_shares = malloc.slices != nullptr;
    Slices* const s = malloc.slices != nullptr ? malloc.slices : &own_slices;
    if (s == &own_slices && fixed && !malloc.job_shares) s->map(fd, offset, Geometry::of(ranks, 1), me);
    return s->base != nullptr && s->geometry.ranks == ranks && s->me == me && !s->forked ? s : nullptr;
}

#if WEFT_THREADS_PRESET

// Ranks that are threads use one mapping of the wires' part: ThreadSanitizer tells words by their addresses, so through two mappings it
// would not see what a store in one and a load in the other put in order.
// Invariant: `at` is mapped exactly while `users` is not 0. Where the table is full a rank has a mapping of its own.
struct WiresMapping {
    uint64_t file;
    size_t bytes;
    char* at;
    int users;
};
WiresMapping mappings[8];
Spin mappings_lock;   // held during the system's calls: only tests have ranks that are threads

char* map_wires(int fd, size_t bytes) {
    const uint64_t file = os::file_number(fd);
    SpinGuard guard(mappings_lock);
    WiresMapping* unused = nullptr;
    for (WiresMapping& m : mappings) {
        if (m.users == 0) unused = &m;
        else if (m.file == file && m.bytes == bytes) {
            ++m.users;
            return m.at;
        }
    }
    auto* const at = static_cast<char*>(os::map_shared(fd, 0, bytes, nullptr));
    if (at != nullptr && unused != nullptr) *unused = {file, bytes, at, 1};
    return at;
}

void unmap_wires(char* at, size_t bytes) {
    SpinGuard guard(mappings_lock);
    for (WiresMapping& m : mappings)
        if (m.users != 0 && m.at == at && --m.users != 0) return;
    os::unmap(at, bytes);
}

#else

char* map_wires(int fd, size_t bytes) { return static_cast<char*>(os::map_shared(fd, 0, bytes, nullptr)); }
void unmap_wires(char* at, size_t bytes) { os::unmap(at, bytes); }

#endif

}  // namespace

Err Segment::map(int file, int node_ranks, int node_rank, size_t bytes_for_wires, bool fixed, bool bounded) {
    fd = file;
    ranks = node_ranks;
    me = node_rank;
    const size_t lines_at = (bytes_for_wires + line - 1) / line * line;
    wires_bytes = (lines_at + static_cast<size_t>(ranks) * line + os::page_bytes - 1) / os::page_bytes * os::page_bytes;
    if (bounded) {
        fixed = false;
        if (!os::allocate(fd, wires_bytes))
            return fail(Err::no_mem, "%d ranks share %zu KiB of memory, and /dev/shm has no more than %zu KiB for it; make it larger "
                        "(docker run --shm-size), allow memfd_create, which needs none of it, or set WEFT_WIRE=sock", ranks, wires_bytes >> 10,
                        static_cast<size_t>(os::room(fd)) >> 10);
    } else if (!os::grow(fd, wires_bytes)) {
        return fail(Err::no_mem, "cannot grow the node's shared segment to %zu bytes (see ulimit -f)", wires_bytes);
    }
    if (fixed) wires = static_cast<char*>(os::map_shared(fd, 0, wires_bytes, reinterpret_cast<char*>(base_address)));
    if (wires == nullptr) wires = map_wires(fd, wires_bytes);
    if (wires == nullptr) {
        unmap();
        return fail(Err::no_mem, "cannot map the node's shared segment (%zu bytes; see ulimit -v)", wires_bytes);
    }
    lines = wires + lines_at;
    // A forked child must not read the parent's rings; its heap memory it must still find.
    os::dont_fork(wires, wires_bytes);
    os::dont_dump(wires, wires_bytes);
    heap = find_slices(fd, wires_bytes, ranks, me, fixed && !os::under_valgrind(), &malloc_shares);
    if (heap == nullptr) return Err::ok;
    heap->tell_mapped();
    slices = heap->base;
    shift = heap->geometry.shift;
    large_bytes = heap->geometry.large_bytes();
    same_address = true;
    return Err::ok;
}

void Segment::unmap() {
    if (wires != nullptr) unmap_wires(wires, wires_bytes);
    *this = Segment{};
}

}  // namespace weft::heap
