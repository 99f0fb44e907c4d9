// A request: one cache line, whatever the operation. Owned by the lane that made it, whose number is in its head; every field but `state` is touched
// under that lane's guard, or by the owner alone before it is posted. `state` may be loaded by any thread: complete is
// stored with release after all results, and loaded with acquire (pairs in Request::done).
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"
#include "base/list.hpp"
#include "base/object.hpp"
#include "obj/status.hpp"
#include "type/type.hpp"

namespace weft::obj {

struct Comm;
struct Request;

// Bits of a tag in a collective context that count calls; what the others mean is known to coll/ and part/.
inline constexpr int32_t collective_number = (1 << 27) - 1;
// The tag of MPI_Finalize's barrier there; no collective uses it.
inline constexpr int32_t finalize_tag = INT32_MAX;

// What a request that is not a plain send or receive can do: persistent, generalized, schedule (collective), partitioned.
// One table per kind of request; all entries are called with no lock held.
struct RequestOps {
    const char* name;
    Err (*start)(Request&);                 // persistent kinds; null: not startable
    bool (*poll)(Request&);                 // makes progress, true when complete; null: lane progress is enough
    Err (*finish)(Request&, Status&);       // fills the status on completion; null: the fields below say it all
    Err (*cancel)(Request&);                // null: not cancellable
    void (*free)(Request&);                 // releases `ext`
    bool free_active = false;               // `free` also lets go of an active one; else it is freed when it completes
    void (*wait)(Request&) = nullptr;       // until it is complete, with an empty status; null: by progress and `poll`
};

// How a message travels. p2p::choose() chooses it, once. In a receive it is `queued`, in a take that has its buffer `given`.
enum class Protocol : uint8_t {
    queued,                 // not chosen yet: other sends wait for the peer
    nobody, null_wire,      // these and the next two may need no request
    inlined, eager,
    inlined_ack, eager_ack, // complete when the SSEND_ACK comes
    rendezvous,
    self, self_kept,        // to this rank itself: copied at once; stays in the user's buffer until it is received
    bad,                    // no such rank
    cts, ssend_ack,         // control messages
    given,                  // the address of a buffer in the node's shared heap
    partitioned,            // none: a request whose `ops` are those of partitioned messages
};

struct Request : Object, Link {  // Link: of whichever queue it is on
    enum State : uint32_t { pending = 0, complete = 1, inactive = 2 };
    enum Flag : uint16_t {
        coll = 1,         // matches in the communicator's collective context (added to Comm::context)
        nomatch = 2,      // matches in that of messages without source and tag (likewise added)
        special = 4,      // `ops` and `ext` are in use instead of the buffer
        orphan = 8,       // MPI_Request_free was called while active: free on completion
        cancelled = 16,
        is_recv = 32,
        sync = 64,        // synchronous mode
        counted = 256,    // holds a reference on `type`
        generalized = 512, // `free` leaves what the user's function returned in rank_
        holds_comm = 1024, // holds a reference on `comm`
        flat = 2048,      // the buffer is `count` bytes of memory: `type` is that of bytes
        persistent = 128, // completion makes it inactive; only MPI_Request_free frees it
        takes = 8192,     // a receive that gets its buffer with its message: see wants_buffer()
        frees = 16384,    // a send whose buffer is freed when it completes, as it was given away
        numbered = 4096,  // a posted receive with a wildcard, or posted while one was: see order()
        shared = 32768,   // the lane's ever-complete request: never freed
    };
    static constexpr uint16_t contexts = coll | nomatch;
    std::atomic<uint32_t> state;  // State; while it is pending, its order among posted receives in the other bits
    uint16_t flags;
    Protocol protocol;    // of a send; see p2p/send.cpp
    uint8_t error;        // Err of the operation
    Comm* comm;           // for matching and for the error handler; null: MPI_COMM_SELF's
    union {
        struct {          // a plain send or receive
            void* buf;
            int64_t count;             // elements while active; bytes once complete
            const type::Type* type;
            int32_t rank;              // peer in comm, or any_source; the source once complete
            int32_t tag;
        };
        struct {          // a control message: identities of the other side's record and this one's
            uint64_t to, from;
            int64_t limit;
        };
        struct {          // special
            const RequestOps* ops;
            void* ext;                 // owned by `ops`
            int64_t bytes_;            // with rank and tag: the status, where ops->finish is null
            int32_t rank_, tag_;
        };
    };

    // Flags, protocol and error in one word (and one load). A plain receive needs nothing but its block freed.
    static constexpr uint32_t protocol_bits = 0xff0000;
    uint32_t nature() const {
        return flags | static_cast<uint32_t>(protocol) << 16 | static_cast<uint32_t>(error) << 24;
    }
    bool is_plain_receive() const { return (nature() & ~uint32_t{coll | flat}) == is_recv; }
    // Nor does what these need come before they are freed; their message is copied as it is.
    bool receives_plainly() const {
        return (nature() & ~uint32_t{coll | persistent | holds_comm}) == (is_recv | uint32_t{flat});
    }

    // Of a take: whether it has no buffer yet, and `buf` is the address of the user's pointer. Then its protocol becomes `given`; flags
    // do not change while it is pending, because those who wait read them without the guard.
    bool wants_buffer() const { return (flags & takes) != 0 && protocol != Protocol::given; }

    bool done() const { return (state.load(std::memory_order_acquire) & state_bits) != pending; }

    // When it was posted, where it is numbered: the lower, the earlier. 0: before all that are.
    static constexpr uint32_t state_bits = 3, order_shift = 2, last_order = UINT32_MAX >> order_shift;
    uint32_t order() const { return state.load(std::memory_order_relaxed) >> order_shift; }
    void set_order(uint32_t n) { state.store(n << order_shift | pending, std::memory_order_relaxed); }
};
// MPI_REQUEST_NULL's sentinel: never pending, never freed.
extern WEFT_HIDDEN Request null_request;

// Whose error handler serves the next error that this thread's call reports: for calls that learn it late, because they
// complete requests of several communicators.
void blame(const Comm* comm);
const Comm* take_blamed();

static_assert(sizeof(Request) == 64, "10^6 pending sends are held to 64 MB");

}  // namespace weft::obj
