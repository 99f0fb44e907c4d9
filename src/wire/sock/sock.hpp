// The socket wire: AF_UNIX SOCK_SEQPACKET, for ranks of one machine (and one network namespace) that cannot share memory.
// lane/ and the floors above it may include this. Ends belong to one lane and are touched under its guard, except peek(),
// sleep(), wake() and wake_self(), which any thread may call.
//
// - Every rank listens at an abstract name made of the job's key and its rank: nothing is left on disk, whatever happens.
// - Each direction has a connection of its own, made when its writer needs it: one writer and one reader, as a ring has, so that two
//   ranks that call each other at once have nothing to agree on. A caller says the job's secret and its rank first; both ends
//   check that the other belongs to the same user. It may write as soon as the listener exists: nobody waits for an answer.
// - A cell and its chunk are one datagram, in one buffer: one send(), one recv().
// - A cell is given out only while the kernel surely takes it, so that a message that was committed needs nothing more from its
//   sender. Only this rank writes to the socket, so what the kernel counts against it cannot grow otherwise: asked now and then
//   (`room`), that costs two system calls in 120 messages. Where the kernel refuses all the same (it has no memory, or counts otherwise), the
//   datagram waits here, and poll() tries again.
// - A message that the sink refuses is kept, one per peer; nothing behind it is read, so the kernel's buffer fills and its sender
//   has to wait.
// - poll() reads the sockets that had something last without asking which have (`active_`); the others tell a watcher (epoll),
//   which is asked every few microseconds. Edge-triggered: a rank that leaves messages where they are can still sleep.
#pragma once
#include <cstring>

#include "base/list.hpp"
#include "os/clock.hpp"
#include "wire/wire.hpp"

namespace weft::wire::sock {

inline constexpr uint32_t largest_chunk = 32 * 1024;

// What all ranks of a job know and nobody else does: random bytes.
struct Key {
    unsigned char name[16];    // to be seen in /proc/net/unix
    unsigned char secret[16];
};

struct Sock {
    // What travels: the header and h.bytes of payload, or with bulk the whole cell and the chunk.
    struct Datagram {
        Cell cell;
        char chunk[largest_chunk];
    };
    // The sending end to one peer. 40 bytes with its pointer in `in`: what a peer costs that is never talked to.
    struct Out {
        int32_t fd;              // -1: not connected
        int32_t room;            // bytes that the kernel surely takes; 0 makes reserve() look again
        uint32_t waiting_bytes;  // committed, but refused by the kernel; 0: none
        bool held;               // the owner has queued sends for this peer: reserve() finds nothing
        bool over_credit;        // as the reader said last
        bool calling;            // it did not listen yet at the last call
        bool full;               // the last reserve() found no room
        bool watched;            // the watcher tells of room
        bool gone;               // it has ended
        Datagram* waiting;
    };
    // The receiving end from one peer. On `active_` while messages may be there.
    struct In : Link {
        int fd;                  // -1: the peer has ended
        int peer;                // -1 until it has said who it is
        uint32_t kept_bytes;     // of the message that the sink refused; 0: none
        bool active;
        bool over, told;         // whether the peer is over its credit; what it was told last
        In* next_in;             // of all
        Datagram kept;           // memory that is touched only when needed
    };

    // Err::other, with the reason, where the system denies a socket or the name is taken.
    Err open(const Key& key, int ranks, int me);
    // What unsent() says is lost.
    void close();

    // Cells of one peer and of another are not reserved at the same time.
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
    // Whether `cells` cells with up to `chunk` bytes of bulk each surely fit now. Reserves nothing.
    bool has_room(int peer, uint32_t cells, size_t chunk);

    // While held, reserve() finds nothing for `peer`: sends queue behind those that already wait.
    void hold(int peer) {
        out[peer].held = true;
        out[peer].room = 0;
    }
    void unhold(int peer) { out[peer].held = false; }

    // Credit. The reader writes a byte back on the connection; the writer looks for it whenever it counts its room anew, that is
    // before it has sent 128 KiB more, and while over credit each time it is asked.
    void tell_over_credit(int peer, bool over);
    bool within_credit(int peer);

    // Hands over what has arrived: at most one message of each peer.
    template <class S>
    bool poll(S&& sink) {
        const uint64_t now = os::cycles();
        if (active_.empty() || now - asked_ >= between_asks) ask(now);
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

    // Sleeping, for any number of threads. sleep_prepare(), under the guard; then the caller polls once more, and if that finds nothing
    // calls sleep(), and in any case wake(). What is waited for here: messages, room where reserve() found none, wake_self().
    uint32_t sleep_prepare();
    void sleep(uint32_t seen, uint32_t timeout_us);
    void wake() { asleep_.fetch_sub(1, std::memory_order_seq_cst); }
    // Wakes whoever sleeps here (another thread of this process).
    void wake_self();

    // Whether committed messages wait for the kernel: the owner polls until there are none before it closes.
    bool unsent() const { return unsent_ != 0; }
    // Whether `peer` has closed its ends: it is over, in order or not.
    bool gone(int peer) const { return out[peer].gone || (in[peer] != nullptr && in[peer]->fd < 0); }
    // Err::other, with the reason, when the system has denied something that the wire cannot do without; it goes on trying.
    Err check() const;

    int ranks = 0, me = 0;
    uint32_t chunk_limit = 0;   // largest_chunk, less where the system allows no buffer for that
    Out* out = nullptr;
    In** in = nullptr;          // null: has never called

    // What a datagram counts for in the kernel, at most: its bytes rounded up to a power of two, and the kernel's own.
    static constexpr int64_t cost(size_t bytes) { return 2 * static_cast<int64_t>(bytes) + 1024; }

private:
    static constexpr uint64_t between_asks = 16384;   // cycles: 3 to 8 us
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
        if (WEFT_UNLIKELY(i.over != i.told)) say_credit(i);
        return true;
    }
    bool receive(In& i);
    bool introduce(In& i, int64_t bytes);
    void end(In& i);
    void leave(In& i, Link* before);
    WEFT_COLD void keep(In& i);
    void drop_kept(In& i);
    void say_credit(In& i);
    void ask(uint64_t now);
    WEFT_COLD void accept_all();
    void admit(int fd);
    void activate(In& i);
    void after_poll(bool moved);

    WEFT_COLD bool call(int peer);
    bool connect(int peer, Out& o);
    bool make_room(int peer);
    int64_t free_bytes(const Out& o) const;
    void hear(Out& o);
    bool send_waiting();
    void lose(Out& o);
    bool denied(const char* what);

    Key key_{};
    int listener_ = -1, watcher_ = -1, event_ = -1;
    int64_t buffer_ = 0;                 // of each sending socket
    Datagram* sending_ = nullptr;
    Datagram* arrived_ = nullptr;
    uint32_t arrived_bytes_ = 0;
    Fifo active_;
    In* last_ = nullptr;                 // that a message came from: stays active
    In* all_in_ = nullptr;
    uint64_t asked_ = 0;                 // the watcher, in cycles
    int unsent_ = 0, kept_ = 0;          // peers with such a datagram
    bool callers_wait_ = false;          // accept() was denied
    const char* denied_ = nullptr;       // what
    int why_ = 0;                        // its errno
    std::atomic<int> calling_{0};        // peers that did not listen yet
    std::atomic<int> asleep_{0};
    std::atomic<bool> more_{false};      // a poll would find something that the watcher no longer tells
};

static_assert(Wire<Sock>);
static_assert(sizeof(Sock::Out) + sizeof(Sock::In*) <= 40);

}  // namespace weft::wire::sock
