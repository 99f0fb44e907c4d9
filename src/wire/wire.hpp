// The interface of a wire. A wire moves cells (a cache line of header and payload) and chunks of further payload, in order, from
// one process to another. It carries a header's fields and does not match by them. Included by lane/ and p2p/.
// A wire's sending and receiving ends belong to one lane and are touched under its guard.
#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::wire {

inline constexpr int inline_bytes = 48;  // payload that shares the header's cache line
inline constexpr uint8_t has_bulk = 0x80;   // header flag: a chunk belongs to the cell, whose payload starts with a BulkRef

// What a wire can do besides moving cells and chunks; each wire has its own in `can`. Put and get are to come.
enum Can : uint8_t {
    shared_memory = 1,        // its processes see each other's stores
    shared_descriptors = 2,   // and the descriptors of rendezvous (wire/shm/transfer.hpp)
};

// The header of a cell, unpacked.
struct Header {
    uint8_t kind;      // of message, defined by the protocol (p2p/protocol.hpp)
    uint8_t bytes;     // payload bytes in the cell
    uint8_t flags;     // has_bulk; the others are the protocol's
    int32_t source;
    int32_t tag;
    uint32_t context;
};

// Where a chunk lies.
struct BulkRef {
    uint32_t offset;      // shared memory: from the front of the sender's pool. A socket's chunk is in the same datagram: 0
    uint32_t bytes;
};

// One cache line. The sender writes `word` last, with release, which publishes the cell; the receiver reads it first, with acquire.
// Its lowest byte is the turn (the lap number), which differs from that of one lap ago, so the reader need not clear the line.
struct alignas(64) Cell {
    std::atomic<uint64_t> word;  // turn, kind, bytes, flags, source
    int32_t tag;
    uint32_t context;
    char payload[inline_bytes];

    static uint64_t pack(const Header& h) {
        return static_cast<uint64_t>(h.kind) << 8 | static_cast<uint64_t>(h.bytes) << 16 |
               static_cast<uint64_t>(h.flags) << 24 | static_cast<uint64_t>(static_cast<uint32_t>(h.source)) << 32;
    }
    static uint8_t bytes_of(uint64_t w) { return static_cast<uint8_t>(w >> 16); }
    static int32_t source_of(uint64_t w) { return static_cast<int32_t>(w >> 32); }
    Header header(uint64_t w) const {
        return Header{static_cast<uint8_t>(w >> 8), bytes_of(w), static_cast<uint8_t>(w >> 24), source_of(w), tag, context};
    }
};
static_assert(sizeof(Cell) == 64);

// Receives what a poll finds. poll() calls `take` with the raw cell first; false if it is not the one case that `take` handles.
// Then it calls `arrive`; false leaves the message in the wire, and the next poll delivers it again.
template <class S>
concept Sink = requires(S s, int peer, const Header& h, const char* payload, const char* bulk, uint64_t word, const Cell& cell) {
    { s.take(word, cell) } -> std::same_as<bool>;
    { s.arrive(peer, h, payload, bulk) } -> std::same_as<bool>;
};

struct NoSink {
    bool take(uint64_t, const Cell&) { return false; }
    bool arrive(int, const Header&, const char*, const char*) { return true; }
};

template <class W>
concept Wire = requires(W w, int peer, Cell* cell, const Header& h, size_t bytes, BulkRef* ref, NoSink sink) {
    { w.reserve(peer) } -> std::same_as<Cell*>;                     // null: again later
    { w.reserve_bulk(peer, bytes, ref) } -> std::same_as<char*>;    // null: again later; ref goes into the payload
    w.commit(peer, cell, h);                                        // publishes the cell, and the bulk reserved with it
    w.discard(peer, cell);                                          // releases both unsent
    { w.poll(sink) } -> std::same_as<bool>;                         // true when something moved
};

}  // namespace weft::wire
