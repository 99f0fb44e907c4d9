// Partitioned communication: a message whose sender's threads mark its partitions ready one by one; both sides may divide the buffer
// differently. Ranks that share memory copy a partition when it is marked, into the receiver's buffer or a staging area; between others
// partitions are messages. Included by the bindings. No lock is held by callers; MPI_Pready takes none on a board (board.hpp).
#pragma once
#include <cstdint>

#include "base/copy.hpp"
#include "base/err.hpp"
#include "lane/lane.hpp"
#include "obj/comm.hpp"
#include "obj/ints.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"
#include "p2p/p2p.hpp"
#include "part/channel.hpp"
#include "type/type.hpp"

namespace weft::obj { struct Info; }

namespace weft::part {

extern WEFT_HIDDEN constinit const obj::RequestOps ops;

// `each`: the first partition's buffer, its count that of one partition. Local: nothing waits for the other side.
Err psend_init(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
Err precv_init(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
// Any thread, on different partitions at once.
Err pready(Process&, int partition, Request&);
Err pready_range(Process&, int low, int high, Request&);
Err pready_list(Process&, int n, const int* partitions, Request&);
// Any thread.
Err parrived(Process&, Request&, int partition, bool* flag);

// Sender, after its mark: wakes the receiver if it waits for this partition.
WEFT_COLD void wake_receiver(Channel&, int partition);
// Sender: a mark has been stored. A receiver that does not poll is woken; so is a thread of this rank that sleeps in a wait for the send.
WEFT_INLINE void mark_is_stored(Channel& c, int partition) {
    // The receiver that clears `polled` fences for this rank, too: see Shm::notify().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (WEFT_UNLIKELY(c.polled->load(std::memory_order_relaxed) == 0)) wake_receiver(c, partition);
    // Likewise a thread that goes to sleep: see Lane::unguarded.
    lane::wake_sleepers(*c.process->lane);
}

// MPI_Pready where a partition can be copied and marked, in place or staged: <= 60 instructions for 8 bytes, no lock, no
// read-modify-write. False: nothing happened, take the slow path.
WEFT_INLINE bool pready_at_once(Process&, int partition, Request& r) {
    if (WEFT_UNLIKELY(r.ops != &ops)) return false;
    Channel& c = *static_cast<Channel*>(r.ext);
    if (WEFT_UNLIKELY(static_cast<uint32_t>(partition) >= static_cast<uint32_t>(c.ready_made))) return false;
    if (WEFT_UNLIKELY(c.gate->load(std::memory_order_acquire) != c.epoch)) return false;  // pairs with start_epoch()
    std::atomic<uint32_t>& mark = mark_at(c.row, c.stride, partition);
    // Marked twice: the slow path says so.
    if (WEFT_CHECKS && WEFT_UNLIKELY(mark.load(std::memory_order_relaxed) >> 2 == c.mark >> 2)) return false;
    const int64_t at = c.bytes * partition;
    const auto n = static_cast<size_t>(c.bytes);
    if (n <= Board::line) copy_small(c.into + at, c.from + at, n);
    else memcpy(c.into + at, c.from + at, n);
    mark.store(c.mark, std::memory_order_release);  // pairs with is_taken(), parrived_at_once()
    mark_is_stored(c, partition);
    return true;
}

// MPI_Parrived where both sides divide alike: <= 25 instructions where no copy is left to do. False: take the slow path.
WEFT_INLINE bool parrived_at_once(Process&, Request& r, int partition, bool* flag) {
    if (WEFT_UNLIKELY(r.ops != &ops)) return false;
    Channel& c = *static_cast<Channel*>(r.ext);
    // Acquire: pairs with open_epoch(), post_messages().
    if (WEFT_UNLIKELY(static_cast<uint32_t>(partition) >= static_cast<uint32_t>(c.look_made.load(std::memory_order_acquire)))) return false;
    const uint32_t mark = mark_at(c.row, c.stride, partition).load(std::memory_order_acquire);
    if (mark == c.mark) return *flag = true;
    return mark == mark_of(c.epoch, Where::staged) && (*flag = land(c, partition));
}

}  // namespace weft::part
