// The socket wire: AF_UNIX SOCK_SEQPACKET, for ranks of one machine (and one network namespace) that cannot share memory.
// Included by lane/ and above, and by wire/shm. Ends belong to one lane and are touched under its guard, except peek(),
// sleep(), sleep_end(), wake() and wake_self(), which any thread may call.
//
// - Every rank listens at an abstract name made of the job's key and its rank, so nothing is left on disk after a crash.
// - Each direction has a connection of its own, made when its writer needs it. With one writer and one reader each, two ranks that
//   connect to each other at the same time need no agreement. The first datagram holds the job's secret and the rank; both ends
//   check that the other belongs to the same user. The writer may send as soon as the listener exists: there is no handshake.
// - A cell and its chunk are one datagram, in one buffer: one send(), one recv().
// - reserve() returns a cell only while the kernel is certain to take it, so a committed message needs no further progress by its
//   sender. Only this rank writes to the socket, so the kernel's count of unread bytes grows by its own sends alone, and is read
//   rarely (`room`): two system calls in 120 messages. If the kernel refuses all the same (it has no memory, or counts more per
//   datagram), the datagram waits here, and poll() tries again.
// - A message that the sink refuses is kept, one per peer. Nothing behind it is read, so the kernel's buffer fills and its sender
//   has to wait.
// - poll() reads the sockets that delivered messages last (`active_`) without asking the kernel which are readable; the others are
//   watched by epoll, which is read every few microseconds. Edge-triggered, so a rank that leaves messages unread can still sleep.
#pragma once
#include <cstring>

#include "base/list.hpp"
#include "os/clock.hpp"
#include "wire/wire.hpp"

namespace weft::wire::sock {

inline constexpr uint32_t largest_chunk = 32 * 1024;

// Random bytes that all ranks of a job share.
struct Key {
    unsigned char name[16];    // visible in /proc/net/unix
    unsigned char secret[16];
};

struct Sock {
    static constexpr uint8_t can = 0;
    // One datagram: the header and h.bytes of payload, or the whole cell and its chunk.
    struct Datagram {
        Cell cell;
        char chunk[largest_chunk];
    };
    // The sending end to one peer. With the pointer in `in` 40 bytes: the cost of a peer that is never talked to.
    struct Out {
        int32_t fd;              // -1: not connected
        int32_t room;            // bytes that the kernel is certain to take; at 0 reserve() calls make_room()
        uint32_t waiting_bytes;  // committed, but refused by the kernel; 0: none
        bool held;               // sends are queued for this peer, so reserve() returns null
        bool over_credit;        // as the reader reported last
        bool retry;              // the last connect() failed: the peer does not listen yet, or its backlog is full
        bool full;               // the last reserve() found no room
        bool watched;            // epoll reports when there is room
        bool gone;               // the peer has closed its end
        Datagram* waiting;
    };
    // The receiving end from one peer. In `active_` while it may have messages.
    struct In : Link {
        int fd;                  // -1: the connection has ended
        int peer;                // -1 until the first datagram, which names the rank, has come
        uint32_t kept_bytes;     // of the message that the sink refused; 0: none
        bool active;
        bool over, reported;       // whether the peer is over its credit; what was reported to it last
        In* next_in;             // in all_in_
        Datagram kept;           // memory that is touched only when needed
    };

    // Err::other, with the reason, where the system denies a socket or the name is taken.
    Err open(const Key& key, int ranks, int me);
    // For a rank that sleeps here for shared memory, too: from now on others may wake it by wake(). Errors as open().
    Err accept_wakes();
    // Datagrams that still wait (unsent()) are lost.
    void close();

    // All peers share one buffer: commit or discard a cell before reserving the next.
    Cell* reserve(int peer) {
        return WEFT_LIKELY(out[peer].room > 0) || make_room(peer) ? &sending_->cell : nullptr;
    }
    // `bytes` <= chunk_limit.
    char* reserve_bulk(int, size_t bytes, BulkRef* ref) {
        *ref = BulkRef{};
        ref->bytes = static_cast<uint32_t>(bytes);
        return sending_->chunk;
    }
    void commit(int peer, Cell*, const Header&);
    void discard(int, Cell*) {}
    // Whether `cells` cells with a chunk of up to `chunk` bytes each are certain to fit now. Reserves nothing.
    bool has_room(int peer, uint32_t cells, size_t chunk);

    // While held, reserve() returns null for `peer`, so that new sends queue behind those that already wait.
    void hold(int peer) {
        out[peer].held = true;
        out[peer].room = 0;
    }
    void unhold(int peer) { out[peer].held = false; }

    // Credit. The reader writes a byte back on the connection. The writer reads it whenever it measures its room again, at the latest
    // after 128 KiB, and while over credit at each within_credit().
    void tell_over_credit(int peer, bool over);
    bool within_credit(int peer);

    // Delivers what has arrived: at most one message of each peer.
    template <class S>
    bool poll(S&& sink) {
        const uint64_t now = os::cycles();
        if (active_.empty() || now - events_read_ >= between_reads) read_events(now);
        bool moved = false;
        Link* before = nullptr;
        for (Link *n = active_.head, *next; n != nullptr; n = next) {
            next = n->next;
            In& i = *static_cast<In*>(n);
            const bool delivered = deliver(i, sink);
            if (delivered) last_ = &i;
            moved |= delivered;
            if (delivered || i.kept_bytes != 0 || (&i == last_ && i.fd >= 0)) before = n;
            else leave(i, before);
        }
        if (WEFT_UNLIKELY(unsent_ != 0)) moved |= send_waiting();
        after_poll(moved);
        return moved;
    }
    // Whether any message may be there. Any thread.
    bool peek() const;
    // Readable when poll() may find something new: for sleeping on it together with other descriptors.
    int descriptor() const { return watcher_; }

    // Sleeping, for any number of threads. The caller calls sleep_prepare() under the guard, polls once more, calls sleep() if the poll
    // found nothing, and sleep_end() in any case. sleep() ends at a message, at room where reserve() found none, and at wake_self().
    uint32_t sleep_prepare();
    void sleep(uint32_t seen, uint32_t timeout_us);
    void sleep_end() { asleep_.fetch_sub(1, std::memory_order_seq_cst); }
    // Wakes the threads of `peer` that sleep at its sockets, if it accepts that. Both have called accept_wakes().
    void wake(int peer) const;
    // Wakes the threads of this process that sleep here.
    void wake_self() const;

    uint64_t cells_sent = 0;   // committed
    // Whether the kernel has yet to take committed messages; the owner polls until this is false before it closes the wire.
    bool unsent() const { return unsent_ != 0; }
    // Whether `peer` has closed one of its ends: it has finalised or died.
    bool gone(int peer) const { return out[peer].gone || (in[peer] != nullptr && in[peer]->fd < 0); }
    // Err::other, with the reason, if the system has denied something that the wire needs; the wire keeps trying.
    Err check() const;

    int ranks = 0, me = 0;
    uint32_t chunk_limit = 0;   // largest_chunk, less where the system allows no buffer for that
    Out* out = nullptr;
    In** in = nullptr;          // null entry: that peer has not connected

    // The most that the kernel counts for a datagram: its bytes rounded up to a power of two, and the kernel's header.
    static constexpr int64_t cost(size_t bytes) { return 2 * static_cast<int64_t>(bytes) + 1024; }

private:
    static constexpr uint64_t between_reads = 16384;   // cycles: 3 to 8 us
    static constexpr int32_t room_at_once = 128 * 1024;

    template <class S>
    bool deliver(In& i, S&& sink) {
        const bool again = i.kept_bytes != 0;
        if (!again && !receive(i)) return false;
        Datagram& d = again ? i.kept : *arrived_;
        const uint64_t word = d.cell.word.load(std::memory_order_relaxed);
        if (!sink.take(word, d.cell)) {
            const Header h = d.cell.header(word);
            if (!sink.arrive(i.peer, h, d.cell.payload, (h.flags & has_bulk) != 0 ? d.chunk : nullptr)) {
                if (!again) keep(i);
                return false;
            }
        }
        if (again) drop_kept(i);
        if (WEFT_UNLIKELY(i.over != i.reported)) send_credit(i);
        return true;
    }
    bool receive(In& i);
    bool identify(In& i, int64_t bytes);
    void end(In& i);
    void leave(In& i, Link* before);
    WEFT_COLD void keep(In& i);
    void drop_kept(In& i);
    void send_credit(In& i);
    void read_events(uint64_t now);
    WEFT_COLD void accept_all();
    void admit(int fd);
    void activate(In& i);
    void after_poll(bool moved);

    WEFT_COLD bool try_connect(int peer);
    bool connect(int peer, Out& o);
    bool make_room(int peer);
    int64_t free_bytes(const Out& o) const;
    void read_credit(Out& o);
    bool send_waiting();
    void drop_out(Out& o);
    bool denied(const char* what);

    Key key_{};
    int listener_ = -1, watcher_ = -1, event_ = -1;
    int wakes_ = -1;                     // of accept_wakes(); anyone on the machine may write to it, so it means no more than "look again"
    int64_t buffer_ = 0;                 // of each sending socket
    Datagram* sending_ = nullptr;
    Datagram* arrived_ = nullptr;
    uint32_t arrived_bytes_ = 0;
    Fifo active_;
    In* last_ = nullptr;                 // delivered the last message; stays active
    In* all_in_ = nullptr;
    uint64_t events_read_ = 0;                 // when epoll was read last, in cycles
    int unsent_ = 0, kept_ = 0;          // peers with a datagram that waits; with a message that the sink refused
    bool accept_due_ = false;          // connections wait to be accepted
    const char* denied_ = nullptr;       // what the system denied
    int why_ = 0;                        // its errno
    std::atomic<int> retries_{0};        // peers with Out::retry
    std::atomic<int> asleep_{0};
    std::atomic<bool> more_{false};      // a poll may find something that epoll will not report again
};

static_assert(Wire<Sock>);
static_assert(sizeof(Sock::Out) + sizeof(Sock::In*) <= 40);

}  // namespace weft::wire::sock
