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

void offer(Transfer& t, const void* from, uint64_t bytes) {
    t.from = reinterpret_cast<uint64_t>(from);
    t.bytes = bytes;
    t.to = 0;
    t.limit = 0;
    t.receiver_done.store(0, std::memory_order_relaxed);
    t.claimed.store(0, std::memory_order_relaxed);
    t.copied.store(0, std::memory_order_relaxed);
    t.error.store(0, std::memory_order_relaxed);
    t.state.store(Transfer::offered, std::memory_order_relaxed);  // published by the message that carries the index
}

void accept(Transfer& t, void* to, uint64_t limit) {
    t.to = reinterpret_cast<uint64_t>(to);
    t.limit = limit;
    t.state.store(Transfer::copying, std::memory_order_release);  // pairs with started()
}

bool copy_block(Transfer& t, int pid, bool sender) {
    const uint64_t block = block_of(t.limit);
    if (t.claimed.load(std::memory_order_relaxed) >= t.limit) return false;
    const uint64_t at = t.claimed.fetch_add(block, std::memory_order_relaxed);
    if (at >= t.limit) return false;
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
    t.copied.fetch_add(n, std::memory_order_release);  // pairs with finished()
    return true;
}

bool can_attach(int pid, uint64_t address) {
    uint64_t word;
    return os::read_process(pid, &word, address, 1) == 1;
}

}  // namespace weft::wire::shm
