// Assertions: what must hold whatever the user does, tested in builds of type Debug and with sanitizers (WEFT_ASSERTIONS), and
// nothing at all in others. Any floor may include this; no lock.
#pragma once
#include "base/err.hpp"

namespace weft {

// Says what does not hold, and where, and ends the process.
[[noreturn]] WEFT_COLD void assertion_failed(const char* what, const char* file, int line);

}  // namespace weft

#if WEFT_ASSERTIONS
#define WEFT_ASSERT(condition) (WEFT_LIKELY(condition) ? (void)0 : ::weft::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define WEFT_ASSERT(condition) ((void)sizeof(!(condition)))   // names stay in use; nothing is evaluated
#endif
