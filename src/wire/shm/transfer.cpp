#include "wire/shm/transfer.hpp"

#include "os/memory.hpp"

namespace weft::wire::shm {

// Small enough that both sides get work, large enough that the system call (about a microsecond) does not show.
static uint64_t block_of(uint64_t limit) {
    uint64_t b = (limit / 4 + 4095) & ~uint64_t{4095};
    if (b < 16 * 1024) b = 16 * 1024;
    if (b > 256 * 1024) b = 256 * 1024;
    return b;
}

static void clear(Transfer& t, Transfer::Side side) {
    t.left.by[side].store(0, std::memory_order_relaxed);
    t.arrived.by[side].store(0, std::memory_order_relaxed);
}

void offer(Transfer& t, const void* from, uint64_t bytes) {
    t.from = reinterpret_cast<uint64_t>(from);
    t.bytes = bytes;
    t.to = 0;
    t.limit = 0;
    t.receiver_done.store(0, std::memory_order_relaxed);
    t.error.store(0, std::memory_order_relaxed);
    t.claimed.store(0, std::memory_order_relaxed);
    clear(t, Transfer::sender);
    t.state.store(Transfer::offered, std::memory_order_relaxed);  // published by the message that carries the index
}

void accept(Transfer& t, void* to, uint64_t limit, bool halves) {
    t.to = reinterpret_cast<uint64_t>(to);
    t.limit = limit;
    t.halves = halves;
    clear(t, Transfer::receiver);
    t.state.store(Transfer::accepted, std::memory_order_release);  // pairs with accepted()
}

uint64_t attach_block(Transfer& t, int pid, bool sender) {
    const uint64_t block = block_of(t.limit);
    const uint64_t at = claim(t, block);
    if (at >= t.limit) return 0;
    const uint64_t n = t.limit - at < block ? t.limit - at : block;
    for (uint64_t done = 0; done < n;) {
        const uint64_t from = t.from + at + done, to = t.to + at + done;
        const int64_t k = sender ? os::write_process(pid, to, reinterpret_cast<const void*>(from), n - done)
                                 : os::read_process(pid, reinterpret_cast<void*>(to), from, n - done);
        if (k <= 0) {
            t.error.store(static_cast<uint32_t>(k == 0 ? 5 : -k), std::memory_order_relaxed);
            break;  // the rest counts as copied, so that both sides end and report it
        }
        done += static_cast<uint64_t>(k);
    }
    const Transfer::Side side = sender ? Transfer::sender : Transfer::receiver;
    add_copied(t.left.by[side], n);     // pairs with all_left()
    add_copied(t.arrived.by[side], n);  // pairs with all_arrived()
    return n;
}

bool can_attach(int pid, uint64_t address) {
    char byte;
    return os::read_process(pid, &byte, address, 1) == 1;
}

}  // namespace weft::wire::shm
