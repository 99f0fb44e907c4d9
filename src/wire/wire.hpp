// What every wire is: a way to move cells (a cache line of header and payload) and chunks of bulk bytes, in order, from one
// process to another. Wires know nothing of matching: a header's fields are carried, not read. Included by lane/ and p2p/.
// A wire's sending and receiving ends belong to one lane and are touched under its guard.
#pragma once
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/err.hpp"

namespace weft::wire {

inline constexpr int inline_bytes = 48;  // payload that shares the header's cache line
inline constexpr uint8_t has_bulk = 0x80;   // header flag: payload starts with a BulkRef

// The header, as its sender gives it and its receiver gets it.
struct Header {
    uint8_t kind;      // of message; the protocol's
    uint8_t bytes;     // payload bytes in the cell
    uint8_t flags;     // the protocol's, but for has_bulk
    int32_t source;
    int32_t tag;
    uint32_t context;
};

// Where a chunk lies.
struct BulkRef {
    uint32_t offset;      // from where the sender's chunks begin
    uint32_t bytes;
};

// The line that travels. `word` publishes it: written last with release, and read first with acquire; its lowest byte is
// the turn, which differs from what the same line held one lap ago, so that the reader need not clear anything.
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

// What a poll hands upward. `take` is offered the raw cell first and may say no to all but the case it is made for.
// `arrive` returns false to leave the message where it is (it is offered again at the next poll).
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
    w.discard(peer, cell);                                          // gives up both
    { w.poll(sink) } -> std::same_as<bool>;                         // true when something moved
};

}  // namespace weft::wire
