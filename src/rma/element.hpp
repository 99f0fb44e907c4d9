// Accumulates on the elements of a window's memory, atomically. Used by rma/ alone. No lock is held by callers.
//
// What makes an update atomic depends on the element alone, never on operation, count or call, so that all of them exclude each other:
// integers, characters, logicals and bytes of 1, 2, 4 and 8 bytes, where they are aligned to their size, by one locked instruction or a loop
// around compare-and-swap; all others (real and complex numbers, pairs) under the lock of the target's part of the window. Real
// numbers have no instruction of their own, and a sum of many by vectors under the lock is five times as fast as one by one.
#pragma once
#include <cstring>

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

// The same for one aligned integer. False: it has no instruction for this operation.
template <class U>
WEFT_INLINE bool fetch_integer(op::Code code, char* at, const void* operand, void* before) {
    using Word [[gnu::may_alias]] = U;
    auto* word = reinterpret_cast<Word*>(at);
    const auto value = [=] {
        U v;
        memcpy(&v, operand, sizeof v);
        return v;
    };
    U old;
    if (code == op::Code::sum) old = __atomic_fetch_add(word, value(), __ATOMIC_ACQ_REL);
    else if (code == op::Code::replace) old = __atomic_exchange_n(word, value(), __ATOMIC_ACQ_REL);
    else if (code == op::Code::no_op) old = __atomic_load_n(word, __ATOMIC_ACQUIRE);   // without an operand
    else return false;
    memcpy(before, &old, sizeof old);
    return true;
}
template <class U>
WEFT_INLINE void swap_integer(char* at, const void* expected, const void* desired, void* before) {
    using Word [[gnu::may_alias]] = U;
    U old, fresh;
    memcpy(&old, expected, sizeof old);
    memcpy(&fresh, desired, sizeof fresh);
    (void)__atomic_compare_exchange_n(reinterpret_cast<Word*>(at), &old, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    memcpy(before, &old, sizeof old);
}

}  // namespace weft::rma
