// Which way large messages come to this lane: in pieces through a ring, or in halves, straight from buffer to buffer
// (wire/shm/transfer.hpp). Which is the faster differs by a factor of two between machines, either way, by size, and by whether
// one message moves or many. So each gets trials, by time. Included by lane/lane.hpp; touched under the lane's guard.
//
// What is timed is a *busy time*: from a transfer's acceptance while none is under way to the end of the last, or of `enough`
// bytes. All that is accepted meanwhile goes one way. Transfers that leave meanwhile belong to it: in an exchange a side may
// serve one direction first, and the time of the other alone says how it was served, not which way is faster.
#pragma once
#include <cstdint>

#include "wire/shm/transfer.hpp"

namespace weft::lane {

// Which of two ways is the faster: each gets a few trials, fewer where one takes half as long again as the other, and the better
// one all the rest. Some in a row go the same way, as the first ones find the caches as the other way leaves them; a long one
// counts for half of the row.
struct Contest {
    static constexpr uint32_t in_a_row = 5, trials = 2 * in_a_row, few = in_a_row;
    static constexpr uint64_t long_bytes = 8 << 20;
    uint32_t tried[2];        // pieces, halves
    uint64_t best[2];         // least ns per MiB so far

    bool over() const {
        const uint32_t least = tried[0] < tried[1] ? tried[0] : tried[1];
        return least >= trials || (least >= few && (best[0] > best[1] + best[1] / 2 || best[1] > best[0] + best[0] / 2));
    }
    // The way of the next one.
    bool halves() const { return over() ? best[1] < best[0] : tried[1] / in_a_row < tried[0] / in_a_row; }
    // Whether halves are known to gain more than asking costs: a tenth of a message alone, nothing in a crowd.
    bool asking_pays(bool alone) const { return over() && best[1] + (alone ? best[1] / 8 : 0) < best[0]; }
    void report(bool by_halves, uint64_t bytes, uint64_t ns) {
        const uint64_t rate = (ns << 20) / bytes;
        uint32_t& n = tried[by_halves];
        if (n == 0 || rate < best[by_halves]) best[by_halves] = rate;
        n += bytes < long_bytes ? 1 : (in_a_row + 1) / 2;
    }
};

class Ways {
public:
    enum Choice : uint8_t { automatic, pieces, halves };  // WEFT_LARGE

    // Messages are told apart by their binary order of size: 64 KiB and more, 128 KiB and more, ..., 8 MiB and more.
    static constexpr int least_log2 = 16, sizes = 8;
    static constexpr uint64_t least = uint64_t{1} << least_log2;
    static int size_of(uint64_t bytes) {
        if (bytes < least) return 0;
        const int n = 63 - __builtin_clzl(bytes) - least_log2;
        return n < sizes ? n : sizes - 1;
    }

    void start(Choice choice);

    // A transfer that both sides can copy is accepted; `crowd`: others of this lane, of either direction, are under way. What
    // each side is to claim at once; none: pieces.
    wire::shm::Blocks begin(uint64_t bytes, bool crowd, uint64_t now_ns);
    // It has ended; `waited`: this side had to, after its last block; `leaving`: others that this lane sends are accepted and not
    // over. True when unasked() has changed.
    bool end(const wire::shm::Transfer&, bool waited, bool crowd, bool leaving, uint64_t now_ns);
    // The last of those is over. The clock is read only where sent_last() would use it.
    bool waits_for_leaving() const { return busy_ && under_way_ == 0; }
    bool sent_last(uint64_t now_ns) { return conclude(now_ns); }

    // Of which sizes messages need not be offered: a bit each. Bits are never taken back, so that a message may be sent in parts.
    uint32_t unasked() const { return unasked_; }
    void never_ask() { unasked_ = UINT32_MAX; }

    static constexpr uint64_t enough = 32 << 20;
    static constexpr uint64_t most_alone = 512 * 1024, most_in_crowd = 256 * 1024;  // bytes that both claim, or either, at once
    static constexpr uint32_t least_share = 8, most_share = 56;                     // of 64

private:
    void balance(const wire::shm::Transfer&, bool waited);
    bool conclude(uint64_t now_ns);

    struct Size {
        Contest alone, crowd;
        bool crowded;       // which of them the last busy time belonged to
        uint8_t share;      // what the receiver claims first of a transfer alone, of 64
    };

    Size size_[sizes];
    uint32_t under_way_;
    uint32_t unasked_;
    Choice choice_;
    bool busy_, halves_, crowd_;   // a busy time is on; its way; whether of several transfers
    int now_;                      // its size, that of its first transfer
    uint64_t since_ns_, ended_;    // its beginning; bytes that have come its way
};

}  // namespace weft::lane
