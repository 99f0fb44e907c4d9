// What a process says when it touches memory that it must not touch, before it ends as it would anyway. heap/ includes this.
#pragma once
#include <cstdint>

namespace weft::os {

// Called in the handler of SIGSEGV: which address was touched, and by which instruction. False: it knows nothing of that address.
using Explain = bool(void* context, uintptr_t address, uintptr_t instruction);
// From now on `explain` is asked at each such signal; then the signal does what it did before. Null: nobody is asked.
void explain_faults(Explain* explain, void* context);

}  // namespace weft::os
