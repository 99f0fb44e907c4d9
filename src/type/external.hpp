// The portable form of data, "external32": big endian, with the standard's sizes, no padding between elements.
// For obj/ and io/. Reads types only; no lock.
#pragma once
#include "type/type.hpp"

namespace weft::type {

// Bytes that `count` elements take; -1 where that is beyond 63 bits.
int64_t external_size(const Type& t, int64_t count);
// Whole buffers. Err::value_too_large where a number does not fit the portable form (a long beyond 32 bits).
Err pack_external(const Buffer& b, void* to);
Err unpack_external(const Buffer& b, const void* from);

}  // namespace weft::type
