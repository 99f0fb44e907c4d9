// The protocol on the wire: kinds of cells and their payloads. Included by p2p/ only.
//
//   eager, inline      eager
//   eager, fragments   eager_first, eager_next ...     fragments of one message are consecutive on their wire
//   rendezvous         rts, then rndv_data             where both sides share the descriptor, the CTS is a store to it
//                      rts, cts, rndv_data             where they do not
//   ownership          given                           the buffer's address; answered with `ssend_ack` if it names a request
//   synchronous        any of the above; the receiver answers an eager one with `ssend_ack` when it is matched and has arrived
//
// A record of the other side is named by its identity (lane/ids.hpp).
#pragma once
#include <cstdint>
#include <cstring>
#include <new>

#include "obj/process.hpp"
#include "wire/wire.hpp"

namespace weft::p2p {

enum CellKind : uint8_t { eager = 1, eager_first, eager_next, rts, cts, rndv_data, ssend_ack, given };

// Kinds of upper layers' messages (windows, partitions), dispatched by Process::arrivals; see progress.hpp.
inline constexpr uint8_t first_upper_kind = 16, upper_kinds = obj::Process::max_arrivals;

inline constexpr int ack_bytes = 8;
enum HeaderFlags : uint8_t { wants_ack = 1 };  // synchronous: 8 bytes of identity precede the payload (eager), or EagerFirst holds it

struct EagerFirst {
    wire::BulkRef ref;        // this fragment; the others follow on the same wire
    int64_t bytes;            // of the whole message
    uint64_t send;            // the sender's request, for the SSEND_ACK; 0: none is due
};
struct Rts {
    int64_t bytes;
    uint64_t send;            // the sender's record
    uint32_t transfer;        // index among the sender's shared descriptors, or Unexpected::no_transfer
    uint32_t unused_;
};
struct Cts {
    uint64_t send;            // the sender's record
    uint64_t receive;         // the receiver's
    int64_t limit;            // bytes to send: no more than the receive buffer holds
};
struct RndvData {
    wire::BulkRef ref;
    uint64_t receive;         // the receiver's record
    uint64_t at;              // offset in the message
};
struct SsendAck {
    uint64_t send;
};
struct Given {
    uint64_t address;         // of the buffer, in the node's shared heap; of one that this rank gives itself, anywhere
    int64_t bytes;            // of the message
    uint64_t send;            // the sender's request, for the SSEND_ACK; 0: none is due
};
// Writes a payload to a cell, field by field. A memcpy() would load 16 bytes at once of what smaller stores have just written: the processor
// forwards no such loads, but waits until those stores are done, and with them all before them, as those to a chunk whose lines come from
// another core (docs/experiments/030-forwarding.md).
template <class T>
WEFT_INLINE void write(wire::Cell* c, const T& q) { new (c->payload) T(q); }
// The same; returns the header to commit it with.
template <class T>
WEFT_INLINE wire::Header put(wire::Cell* c, CellKind kind, const T& q) {
    write(c, q);
    return wire::Header{kind, sizeof q, 0, 0, 0, 0};
}
template <class T>
T read(const char* payload) {
    T t;
    memcpy(&t, payload, sizeof t);
    return t;
}
static_assert(sizeof(EagerFirst) <= wire::inline_bytes && sizeof(Rts) <= wire::inline_bytes && sizeof(Cts) <= wire::inline_bytes &&
              sizeof(RndvData) <= wire::inline_bytes && sizeof(Given) <= wire::inline_bytes);

}  // namespace weft::p2p
