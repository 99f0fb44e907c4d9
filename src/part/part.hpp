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
#include "op/op.hpp"
#include "p2p/p2p.hpp"
#include "part/channel.hpp"
#include "type/type.hpp"

namespace weft::part {

extern WEFT_HIDDEN constinit const obj::RequestOps ops;

// `each`: the first partition's buffer, its count that of one partition. Local: nothing waits for the other side.
Err psend_init(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
Err precv_init(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
// Collectives of equal partitions: `each` is the result's first one. The same calls in the same order on all ranks; local, too.
Err pbcast_init(Process&, Comm&, Buffer each, int partitions, int root, obj::Info*, Request** out);
Err pallreduce_init(Process&, Comm&, const void* send, Buffer each, int partitions, const op::Op&, obj::Info*, Request** out);
// Any thread, on different partitions at once.
Err pready(Process&, int partition, Request&);
Err pready_range(Process&, int low, int high, Request&);
Err pready_list(Process&, int n, const int* partitions, Request&);
// Any thread.
Err parrived(Process&, Request&, int partition, bool* flag);

// Sender, after its mark, when the channel may be gone: wakes threads of this rank that wait for the send, and the receiver to which `polled`
// belongs, if it has just stopped polling.
WEFT_COLD void wake(Process&, const std::atomic<uint32_t>* polled);

// Copies a partition to where the receiver finds it, in place or staged, and marks it. False: nothing happened, as the partition does not
// exist or is marked already, the receiver must be asked first or may have to be woken, or, if `small`, it has more than a line of bytes.
// Once the mark is stored another thread may complete the request and free it, or start it again: the channel is not read after that.
template <bool small>
WEFT_INLINE bool put_at_once(Process& p, Channel& c, int partition) {
    if (WEFT_UNLIKELY(static_cast<uint32_t>(partition) >= (small ? c.small_made : c.ready_made))) return false;
    if (WEFT_UNLIKELY(c.gate->load(std::memory_order_acquire) != c.epoch)) return false;  // pairs with start_epoch()
    const std::atomic<uint32_t>* const polled = c.polled;
    if (WEFT_UNLIKELY(polled->load(std::memory_order_relaxed) == 0)) return false;
    const auto i = static_cast<uint32_t>(partition);
    std::atomic<uint32_t>& mark = mark_at(c.row, c.stride, i);
    if (WEFT_CHECKS && WEFT_UNLIKELY((mark.load(std::memory_order_relaxed) ^ c.mark) < 4)) return false;  // of the same epoch
    const uint64_t n = c.bytes;
    char* const to = c.into + c.pitch * i;
    const char* const from = c.from + n * i;
    if (small) copy_small(to, from, n);
    else memcpy(to, from, n);
    mark.store(c.mark, std::memory_order_release);  // pairs with is_taken(), parrived_at_once()
    // The receiver that clears `polled` fences for this rank, too: see Shm::notify(). Likewise a thread that goes to sleep: Lane::unguarded.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (WEFT_UNLIKELY(polled->load(std::memory_order_relaxed) == 0) || WEFT_UNLIKELY(p.lane->sleepers.load(std::memory_order_relaxed) != 0))
        wake(p, polled);
    return true;
}

// MPI_Pready of a small partition: <= 60 instructions for 8 bytes, no lock, no read-modify-write. False: take the slow path.
WEFT_INLINE bool pready_at_once(Process& p, int partition, Request& r) {
    return WEFT_LIKELY(r.protocol == obj::Protocol::partitioned) && put_at_once<true>(p, *static_cast<Channel*>(r.ext), partition);
}

// MPI_Parrived where both sides divide alike and nothing is left to copy: <= 25 instructions. False: take the slow path.
WEFT_INLINE bool parrived_at_once(Process&, Request& r, int partition, bool* flag) {
    if (WEFT_UNLIKELY(r.protocol != obj::Protocol::partitioned)) return false;
    Channel& c = *static_cast<Channel*>(r.ext);
    // Acquire: pairs with open_epoch(), post_messages().
    if (WEFT_UNLIKELY(static_cast<uint32_t>(partition) >= c.look_made.load(std::memory_order_acquire))) return false;
    if (mark_at(c.row, c.stride, static_cast<uint32_t>(partition)).load(std::memory_order_acquire) != c.mark) return false;
    return *flag = true;
}

}  // namespace weft::part
