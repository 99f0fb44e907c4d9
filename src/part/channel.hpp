// One side of a partitioned message, and the list of those that progress must drive. Included by part/ alone.
// A channel is driven by whoever holds its `busy`; fields marked "start" change in MPI_Start alone, when no other thread may use the
// request. Engine::lock guards the list, and is a leaf.
#pragma once
#include <atomic>
#include <cstdint>

#include "obj/comm.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"
#include "os/spin.hpp"
#include "p2p/p2p.hpp"
#include "part/board.hpp"
#include "type/type.hpp"

namespace weft::obj { struct Info; }

namespace weft::part {

using obj::Comm;
using obj::Process;
using obj::Request;
using type::Buffer;

// What a sender tells its receiver when it is made, in the order of the init calls.
struct Setup {
    int32_t tag;          // the user's, in full: the envelope has room for less
    int32_t partitions;
    int64_t bytes;        // of one partition
    int32_t first_tag;    // of the internal messages: message i has tag first_tag + i
    int32_t group;        // partitions in each internal message but the last
    Board* board;         // null: by messages
};

// How a channel's partitions travel. `undecided`: there is a board, but the receiver has not said what it can do with it.
enum class Way : uint8_t { undecided, board, messages };

struct Channel {
    // What MPI_Pready and MPI_Parrived read when one load or copy is all there is to do.
    uint32_t ready_made;               // sender, start: partitions that MPI_Pready may copy at once; 0 where it must look further
    uint32_t small_made;               // sender, start: likewise; 0 if they have more than a line of bytes
    std::atomic<uint32_t> look_made;   // receiver: partitions that one mark each tells of; likewise
    uint32_t mark;                     // start: what MPI_Pready stores; of a partition in place
    uint32_t epoch;                    // start
    const std::atomic<uint32_t>* gate; // sender, start: is `epoch` as soon as MPI_Pready may copy
    char* into;                        // sender, start: where to
    uint64_t pitch;                    // sender, start: bytes from one partition to the next there
    char* row;                         // sender: start; receiver: with release of `posted`
    Board* board;
    uint64_t stride;                   // of the row
    const char* from;                  // sender: its own, if it is dense
    uint64_t bytes;                    // of one of its own partitions
    const std::atomic<uint32_t>* polled;  // sender, start: 0 where the receiver must be woken

    Process* process;
    Comm* comm;
    Request* request;                  // null once freed
    Buffer each;
    int32_t partitions, peer, tag;
    bool sending;
    std::atomic<uint32_t> started;     // `epoch`, as a gate that is open
    std::atomic<bool> listed;          // in the engine's list; changed under its lock
    std::atomic<bool> matched;         // receiver: the setup is known
    bool accepted;                     // receiver: and has been answered
    std::atomic<bool> posted;          // receiver: this epoch is open, or its receives are posted
    std::atomic<Way> way;
    Err error, lasting;                // first of this epoch; that no epoch can do without
    Setup setup;
    std::atomic<Request*> setup_request;  // the setup on its way out, or for the next one from this peer
    Setup incoming;                    // ... and where it lands
    std::atomic<bool> active;
    std::atomic<uint8_t> busy;         // whoever holds it may drive the channel
    std::atomic<uint32_t> users;       // sender: threads in put(), for which destroy() waits
    int32_t cursor;                    // all parts before it have left or arrived
    int32_t probe;                     // receiver: the part looked at last besides; of small ones, from which on the line has all marks
    int64_t awaited;                   // receiver: what the board was told last; -1: nothing in this epoch
    bool awaits_any;                   // receiver: whichever partition comes, somebody can go on

    // Sender: 2 x epoch for a partition that is ready but waits for the receiver, plus 1 for one that has left but is not on the board;
    // how many wait.
    std::atomic<uint32_t>* marks;
    std::atomic<int32_t> held;
    // Receiver: the epoch for which a thread has claimed a staged part, to copy it. Whether it has done so, its mark says.
    std::atomic<uint32_t>* landed;

    // By messages.
    Request** requests;                // one per message, under way
    std::atomic<int32_t>* missing;     // sender: partitions of each message that are not marked
    std::atomic<int32_t> marked;       // sender: partitions that are
    int32_t done_parts;                // of this epoch
    char* own_row;                     // receiver: marks of messages
    char* spill;                       // receiver: packed parts that do not map to whole elements

    Channel *previous, *next;          // in the engine's list, in the order of the init calls

    // Whether its partitions travel by a board, as far as is known.
    bool native() const { return board != nullptr && way.load(std::memory_order_relaxed) != Way::messages; }
};

struct Collective;

// Every channel that progress must drive: those whose setup is on its way, or whose partitions are messages or held.
struct Engine {
    os::SpinLock lock;
    Channel *first, *last;
    Collective* collectives;        // all that are active
    Board* boards;                  // of channels that are gone, until their receivers close them
    std::atomic<int32_t> next_tag;
    std::atomic<uint8_t> matching;  // whoever holds it takes setups
    int64_t gather;                 // bytes of a message that gathers partitions; WEFT_POLICY
    bool boards_allowed;            // likewise
    std::atomic<bool> drives_collectives;  // progress does
};

// In the collective context, beside the tags of coll/ (TagSpace there), of which none has both upper bits.
constexpr int32_t setup_space = 3 << 29, data_space = setup_space | 1 << 28, tag_bits = (1 << 28) - 1;
inline int32_t setup_tag(int32_t tag) { return setup_space | ((tag ^ tag >> 28) & tag_bits); }
inline p2p::Envelope envelope(int32_t peer, int32_t tag) { return {peer, tag, Request::coll}; }

inline void note(Channel& c, Err e) {
    if (c.error == Err::ok) c.error = e;
}
inline Err no_memory() { return fail(Err::no_mem, "no memory for a partitioned message"); }

inline bool try_busy(Channel& c) {
    return c.busy.load(std::memory_order_relaxed) == 0 && c.busy.exchange(1, std::memory_order_acquire) == 0;
}
inline void release_busy(Channel& c) { c.busy.store(0, std::memory_order_release); }

// What travels as one: a partition of the sender's on a board, or a message.
inline int32_t messages_of(const Channel& c) { return c.setup.partitions == 0 ? 0 : (c.setup.partitions - 1) / c.setup.group + 1; }
inline int32_t parts_of(const Channel& c) { return c.native() ? c.setup.partitions : messages_of(c); }
inline int64_t part_bytes(const Channel& c) { return c.setup.bytes * (c.native() ? 1 : c.setup.group); }
inline int64_t sent_bytes(const Channel& c) { return c.setup.bytes * c.setup.partitions; }
inline int64_t own_bytes(const Channel& c) { return c.each.bytes() * c.partitions; }
// The receiver's whole buffer, or the sender's.
inline Buffer whole(const Channel& c) { return {c.each.base, c.each.count * c.partitions, c.each.type}; }

// Adds a channel to the list, if it is not there. Any thread.
void append(Engine&, Channel&);

// part.cpp: what collectives are built from. Their tags are their own, below those of users.
Engine* engine_of(Process&);         // null: no memory
Err make_sender(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
Err make_receiver(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, Request** out);
Err mark(Channel&, int32_t partition);         // sender, any thread: it is ready
bool has_arrived(Channel&, int32_t partition);  // receiver, any thread: makes no progress

// collective.cpp: requests of partitioned collectives.
bool is_collective(const Request&);
Err mark_of_collective(Request&, int partition);               // any thread
Err look_at_collective(Request&, int partition, bool* flag);   // any thread

// board.cpp: partitions on a board.
void make_board(Channel&);           // sender: `board` stays null where there can be none
void leave_board(Engine&, Channel&); // either side uses it no more
void accept(Channel&);               // receiver, matched: chooses the way, and says so
void start_board(Channel&);          // sender
void open_epoch(Channel&);           // receiver
bool take_all(Channel&);             // receiver: takes what has come; true when all has
// Receiver, any thread: whether that part is there; copies it out if it is staged, unless another thread does: then it is not there yet.
bool is_taken(Channel&, int32_t part);
// Receiver, any thread whose call on the request keeps it: takes the small parts that have come beside this one, so that looks at them are
// one load.
void take_neighbours(Channel&, int32_t part);
void end_epoch(Channel&);            // receiver
Err put(Channel&, int32_t partition);  // sender, any thread
bool put_all(Channel&);              // sender: puts what was held; true when all have left

// messages.cpp: partitions as messages.
Err make_messages(Channel&);         // either side: room for the requests
void start_messages(Channel&);       // either side
Err send_with_others(Channel&, int32_t partition);  // sender, any thread: the last of a message's partitions sends it
void post_messages(Channel&);        // receiver
bool reap(Channel&);                 // true when all of this epoch's messages are done

// match.cpp: setups.
bool take_setups(Engine&);
bool setup_left(Channel&);

}  // namespace weft::part
