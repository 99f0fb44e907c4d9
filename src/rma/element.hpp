// Accumulates on the elements of a window's memory, atomically. Used by rma/ alone. No lock is held by callers.
//
// What makes an update atomic depends on the element alone, never on operation, count or call, so that all of them exclude each other:
// integers, characters, logicals and bytes of 1, 2, 4 and 8 bytes, where they are aligned to their size, by one locked instruction or a loop
// around compare-and-swap; all others (real and complex numbers, pairs) under the lock of the target's part of the window. Real
// numbers have no instruction of their own, and a sum of many by vectors under the lock is five times as fast as one by one.
#pragma once
#include "op/op.hpp"
#include "os/spin.hpp"
#include "type/type.hpp"

namespace weft::rma {

// `count` elements of `type`, one extent apart.
struct Elements {
    char* at;
    int64_t count;
    const type::Type* type;   // a named type or a pair
};

// element = operand op element for each; `operands` and `before`, the elements' old values (null: not wanted), are packed. Without
// operands, which MPI_NO_OP does not need, it only reads.
void accumulate(const op::Op&, const Elements&, const char* operands, char* before, os::SpinLock& wide);
// Stores `desired` in the one element if it equals `expected`. `before` becomes its old value.
void compare_and_swap(const Elements& one, const char* expected, const char* desired, char* before, os::SpinLock& wide);

}  // namespace weft::rma
