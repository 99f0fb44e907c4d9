// The board of a partitioned message between two ranks that share memory: what both write and read while partitions move. The sender
// makes it in its part of the node's shared heap and names it in its setup; the receiver answers by stores. Included by part/ alone.
// Lock-free, no call waits, and no partition is marked by a read-modify-write.
//
// Epochs count the starts of a request, from 1, modulo 2^30; both sides count their own. A partition's mark is the epoch for which it is
// ready, and where its data are: in place, in the receiver's buffer; or staged, in the board: in an area, or behind the mark, in its line.
// The receiver turns the mark of a staged partition into that of one in place when it has copied it. There are two rows of marks and two
// staging areas, for odd and for even epochs, so the sender may be an epoch ahead of the receiver.
// Invariant: the sender writes to a row or an area for epoch e only while `done` >= e - 2, and to the receiver's buffer only while
// `open` == e. So a mark that the receiver has not seen is never overwritten, and neither are data that it has not taken. The receiver
// writes to a mark once an epoch, after the sender has stored it and before `done` == e: so it never replaces one of a later epoch.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::part {

enum class Where : uint32_t { nowhere, in_place, staged };

inline uint32_t mark_of(uint32_t epoch, Where where) { return epoch << 2 | static_cast<uint32_t>(where); }

struct Board {
    // What the receiver says of its buffer, once: its data go to `to`; it has none that the sender can write to; it cannot use the board.
    enum Offer : uint32_t { unknown, in_place, only_staged, messages };

    // Written by the receiver.
    alignas(64) std::atomic<uint32_t> open;   // the epoch that it has started last
    std::atomic<uint32_t> done;               // the epoch that it has completed last
    std::atomic<uint32_t> offer;              // Offer; with release after `to`
    std::atomic<uint32_t> closed;             // 1: it uses the board no more
    uint64_t to;                              // address of its buffer's first byte
    alignas(64) std::atomic<uint32_t> awaited;  // the partition without which it cannot go on; read only while it does not poll

    // Written by the sender, before it names the board.
    alignas(64) std::atomic<uint32_t> made;   // `mark_of_boards`, with release after all else
    int32_t partitions;
    uint32_t stride;                          // bytes from one mark to the next
    int64_t bytes;                            // of one partition
    uint64_t row_bytes;                       // of each row
    uint64_t area_bytes;                      // of each staging area; 0: there are none, or partitions are staged behind their marks
    uint64_t pitch;                           // bytes from one staged partition to the next; 0: none is staged
    Board* next;                              // the sender's list of boards that the receiver has not closed

    static constexpr uint32_t line = 64, mark_of_boards = 0x72616f42;

    static size_t row_size(int32_t partitions, uint32_t stride) { return (static_cast<size_t>(partitions) * stride + 63) / 64 * 64; }
    static size_t size(int32_t partitions, uint32_t stride, uint64_t area) { return sizeof(Board) + 2 * row_size(partitions, stride) + 2 * area; }

    char* row(uint32_t epoch) { return reinterpret_cast<char*>(this + 1) + (epoch & 1) * row_bytes; }
    // Where the first partition is staged, if any are.
    char* area(uint32_t epoch) {
        return area_bytes == 0 ? row(epoch) + sizeof(uint32_t) : reinterpret_cast<char*>(this + 1) + 2 * row_bytes + (epoch & 1) * area_bytes;
    }

    // Sender: whether it may write to the row and the area of `epoch`. Acquire: pairs with end_epoch().
    bool has_room(uint32_t epoch) const { return epoch - done.load(std::memory_order_acquire) <= 2; }
    // Receiver: its buffer may be written to from now on. Release: pairs with the sender's acquire of `open`.
    void start_epoch(uint32_t epoch) { open.store(epoch, std::memory_order_release); }
    // Receiver: has read all marks and areas of `epoch`.
    void end_epoch(uint32_t epoch) { done.store(epoch, std::memory_order_release); }
    static constexpr uint32_t any = UINT32_MAX;
    // Receiver: says which partition it waits for, or `any`. Its next look at that one's mark must come after this. An exchange: it comes before
    // the sender's is_awaited(), which then returns true; or after it, and then that look sees the mark.
    void await(uint32_t partition) { awaited.exchange(partition, std::memory_order_acq_rel); }
    // Sender, after its mark, if the receiver does not poll.
    bool is_awaited(uint32_t partition) {
        const uint32_t seen = awaited.fetch_add(0, std::memory_order_acq_rel);
        return seen == partition || seen == any;
    }
};

// A partition's mark in a row.
WEFT_INLINE std::atomic<uint32_t>& mark_at(char* row, uint64_t stride, uint64_t i) {
    return *reinterpret_cast<std::atomic<uint32_t>*>(row + i * stride);
}

}  // namespace weft::part
