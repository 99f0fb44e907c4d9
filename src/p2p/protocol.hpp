// What travels between the two ends of a message: kinds of cells and their payloads. Included by p2p/ only.
//
//   eager, inline   message
//   eager, bulk     first, more, more ...               chunks of one message are consecutive on their ring
//   large           offer, then pieces                  the acceptance is a store to the transfer, not a message
//   large, when descriptors have run out                offer, please, offer (to that receive), pieces
//   synchronous     any of the above; `matched` answers an eager one, when all of it has come
#pragma once
#include <cstdint>

#include "wire/wire.hpp"

namespace weft::p2p {

enum Cells : uint8_t { message = 1, first, more, offer, please, piece, matched };

enum HeaderFlags : uint8_t { wants_answer = 1 };  // synchronous: payload (message) or `cookie` (first) names the send

struct First {
    wire::BulkRef ref;        // this chunk; the message's `more` cells follow on the same ring
    int64_t bytes;            // of the whole message
    uint64_t cookie;          // the send to answer
};
struct Offer {
    int64_t bytes;
    uint64_t cookie;          // the send
    uint64_t receive;         // the receive it is for, where that has been asked for by `please`; else 0
    uint32_t transfer;        // index among the sender's descriptors, or Unexpected::no_transfer
    uint32_t unused_;
};
struct Please {
    uint64_t cookie;          // the send
    uint64_t receive;
};
struct Piece {
    wire::BulkRef ref;
    uint32_t transfer;
    uint64_t at;              // offset in the message
};
struct Matched {
    uint64_t cookie;          // the send
};
static_assert(sizeof(First) <= wire::inline_bytes && sizeof(Offer) <= wire::inline_bytes && sizeof(Piece) <= wire::inline_bytes);

}  // namespace weft::p2p
