#include "wire/shm/transfer.hpp"

#include <cerrno>

#include "os/memory.hpp"

namespace weft::wire::shm {

void put_rts(Transfer& t, const void* from) {
    t.from = reinterpret_cast<uint64_t>(from);
    t.receiver_done.store(0, std::memory_order_relaxed);
    t.state.store(Transfer::has_rts, std::memory_order_relaxed);  // published by the RTS that carries the index
}

void put_cts(Transfer& t, void* to, uint64_t limit, Mover mover, uint32_t block) {
    t.to = reinterpret_cast<uint64_t>(to);
    t.limit = limit;
    t.block = block;
    t.fault.store(Transfer::none, std::memory_order_relaxed);
    t.mover.store(mover, std::memory_order_relaxed);
    t.claimed.store(0, std::memory_order_relaxed);
    t.any_refused.store(0, std::memory_order_relaxed);
    for (int side = 0; side < 2; ++side) {
        t.left.by[side].store(0, std::memory_order_relaxed);
        t.arrived.by[side].store(0, std::memory_order_relaxed);
        t.refused[side].at.store(0, std::memory_order_relaxed);
        t.refused[side].end.store(0, std::memory_order_relaxed);
    }
    t.state.store(Transfer::has_cts, std::memory_order_release);  // pairs with has_cts()
}

// Which buffer made a copy fail with EFAULT. The system call does not tell, so this reads one byte of the sender's buffer by itself
// (from this process if this is the sender, else from the peer): if that works, the receiver's buffer is at fault.
static Transfer::Fault fault_of(int pid, Transfer::Side side, uint64_t from) {
    char byte;
    const int owner = side == Transfer::sender ? os::process_id() : pid;
    return os::read_process(owner, &byte, from, 1) == 1 ? Transfer::receivers_buffer : Transfer::senders_buffer;
}

static void refuse(Transfer& t, Transfer::Side side, uint64_t at, uint64_t end) {
    t.refused[side].at.store(at, std::memory_order_relaxed);
    t.refused[side].end.store(end, std::memory_order_release);  // pairs with claim_refused()
    t.any_refused.store(1, std::memory_order_relaxed);
    t.mover.store(Mover::pipelined, std::memory_order_relaxed);
}

bool claim_refused(Transfer& t, uint64_t block, uint64_t* at, uint64_t* bytes) {
    for (Transfer::Refused& r : t.refused) {
        const uint64_t end = r.end.load(std::memory_order_acquire);  // pairs with refuse()
        *at = r.at.load(std::memory_order_relaxed);
        if (*at >= end) continue;
        *bytes = end - *at < block ? end - *at : block;
        r.at.store(*at + *bytes, std::memory_order_relaxed);
        return true;
    }
    return false;
}

uint64_t cma_block(Transfer& t, int pid, Transfer::Side side) {
    const uint64_t at = claim(t, t.block);
    if (at >= t.limit) return 0;
    uint64_t n = t.limit - at < t.block ? t.limit - at : t.block;
    for (uint64_t done = 0; done < n;) {
        const uint64_t from = t.from + at + done, to = t.to + at + done;
        const int64_t k = side == Transfer::sender ? os::write_process(pid, to, reinterpret_cast<const void*>(from), n - done)
                                                   : os::read_process(pid, reinterpret_cast<void*>(to), from, n - done);
        if (k <= 0) {
            if (k == -EFAULT) {
                t.fault.store(fault_of(pid, side, from), std::memory_order_relaxed);
                break;  // the whole block counts as copied, so that both sides complete and report the fault
            }
            refuse(t, side, at + done, at + n);
            n = done;
            break;
        }
        done += static_cast<uint64_t>(k);
    }
    add_copied(t.left.by[side], n);     // pairs with all_left()
    add_copied(t.arrived.by[side], n);  // pairs with all_arrived()
    return n;
}

bool can_cma(int pid, uint64_t address) {
    char byte;
    return os::read_process(pid, &byte, address, 1) == 1;
}

}  // namespace weft::wire::shm
