#include "heap/segment.hpp"

#include "os/memory.hpp"
#include "os/shared_file.hpp"

namespace weft::heap {

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
    } else if (!os::grow(fd, wires_bytes + slices_bytes())) {
        // A file size limit: the wires still work, heap sharing does not.
        fixed = false;
        if (!os::grow(fd, wires_bytes))
            return fail(Err::no_mem, "cannot grow the node's shared segment to %zu bytes (see ulimit -f)", wires_bytes);
    }
    if (fixed) {
        auto* at = reinterpret_cast<char*>(base_address);
        wires = static_cast<char*>(os::map_shared(fd, 0, wires_bytes, at));
        // The address of the slices must not depend on how large the wires' part is made by this version.
        constexpr uint64_t heap_at = base_address + (1ull << 40);
        slices = static_cast<char*>(os::map_shared(fd, wires_bytes, slices_bytes(), reinterpret_cast<char*>(heap_at)));
        same_address = slices != nullptr;
    }
    if (wires == nullptr) wires = static_cast<char*>(os::map_shared(fd, 0, wires_bytes, nullptr));
    if (wires == nullptr) {
        unmap();
        return fail(Err::no_mem, "cannot map the node's shared segment (%zu bytes; see ulimit -v)", wires_bytes);
    }
    lines = wires + lines_at;
    // A forked child must not read the parent's rings; its heap memory it must still find.
    os::dont_fork(wires, wires_bytes);
    os::dont_dump(wires, wires_bytes);
    if (slices != nullptr) os::dont_dump(slices, slices_bytes());
    return Err::ok;
}

void Segment::unmap() {
    if (wires != nullptr) os::unmap(wires, wires_bytes);
    if (slices != nullptr) os::unmap(slices, slices_bytes());
    *this = Segment{};
}

}  // namespace weft::heap
