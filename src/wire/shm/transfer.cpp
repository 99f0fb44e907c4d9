#include "wire/shm/transfer.hpp"

#include <cerrno>

#include "os/memory.hpp"

namespace weft::wire::shm {

// Block of a CMA get. Small enough to leave blocks for the sender should it call MPI, large enough to hide the system call
// (about a microsecond).
static constexpr uint64_t reading_block = 256 * 1024;

static void clear(Transfer& t, Transfer::Side side) {
    t.left.by[side].store(0, std::memory_order_relaxed);
    t.arrived.by[side].store(0, std::memory_order_relaxed);
    t.given_back[side].at.store(0, std::memory_order_relaxed);
    t.given_back[side].end.store(0, std::memory_order_relaxed);
}

void offer(Transfer& t, const void* from, uint64_t bytes) {
    t.from = reinterpret_cast<uint64_t>(from);
    t.bytes = bytes;
    t.to = 0;
    t.limit = 0;
    t.receiver_done.store(0, std::memory_order_relaxed);
    t.fault.store(Transfer::none, std::memory_order_relaxed);
    t.claimed.store(0, std::memory_order_relaxed);
    t.refused.store(0, std::memory_order_relaxed);
    clear(t, Transfer::sender);
    t.state.store(Transfer::offered, std::memory_order_relaxed);  // published by the RTS that carries the index
}

void accept(Transfer& t, void* to, uint64_t limit, uint32_t block) {
    t.to = reinterpret_cast<uint64_t>(to);
    t.limit = limit;
    t.block = block;
    clear(t, Transfer::receiver);
    t.state.store(Transfer::accepted, std::memory_order_release);  // pairs with accepted()
}

// Which buffer made a copy fail with EFAULT. The system call does not tell, so this reads one byte of the sender's buffer by itself
// (from this process if this is the sender, else from the peer): if that works, the receiver's buffer is at fault.
static Transfer::Fault fault_of(int pid, Transfer::Side side, uint64_t from) {
    char byte;
    const int owner = side == Transfer::sender ? os::process_id() : pid;
    return os::read_process(owner, &byte, from, 1) == 1 ? Transfer::receivers_buffer : Transfer::senders_buffer;
}

static void give_back(Transfer& t, Transfer::Side side, uint64_t at, uint64_t end) {
    t.given_back[side].at.store(at, std::memory_order_relaxed);
    t.given_back[side].end.store(end, std::memory_order_release);  // pairs with take_back()
    t.refused.store(1, std::memory_order_relaxed);
}

bool take_back(Transfer& t, uint64_t block, uint64_t* at, uint64_t* bytes) {
    for (Transfer::GivenBack& g : t.given_back) {
        const uint64_t end = g.end.load(std::memory_order_acquire);  // pairs with give_back()
        *at = g.at.load(std::memory_order_relaxed);
        if (*at >= end) continue;
        *bytes = end - *at < block ? end - *at : block;
        g.at.store(*at + *bytes, std::memory_order_relaxed);
        return true;
    }
    return false;
}

uint64_t attach_block(Transfer& t, int pid, Transfer::Side side) {
    const uint64_t block = t.block != 0 ? t.block : reading_block;
    const uint64_t at = claim(t, block);
    if (at >= t.limit) return 0;
    uint64_t n = t.limit - at < block ? t.limit - at : block;
    for (uint64_t done = 0; done < n;) {
        const uint64_t from = t.from + at + done, to = t.to + at + done;
        const int64_t k = side == Transfer::sender ? os::write_process(pid, to, reinterpret_cast<const void*>(from), n - done)
                                                   : os::read_process(pid, reinterpret_cast<void*>(to), from, n - done);
        if (k <= 0) {
            if (k == -EFAULT) {
                t.fault.store(fault_of(pid, side, from), std::memory_order_relaxed);
                break;  // the whole block counts as copied, so that both sides complete and report the fault
            }
            give_back(t, side, at + done, at + n);
            n = done;
            break;
        }
        done += static_cast<uint64_t>(k);
    }
    add_copied(t.left.by[side], n);     // pairs with all_left()
    add_copied(t.arrived.by[side], n);  // pairs with all_arrived()
    return n;
}

bool can_attach(int pid, uint64_t address) {
    char byte;
    return os::read_process(pid, &byte, address, 1) == 1;
}

}  // namespace weft::wire::shm
