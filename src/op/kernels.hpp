// The tables of reduction kernels, one for each instruction set. Private to op/; read-only, no lock.
#pragma once
#include <cstdint>

#include "op/op.hpp"

namespace weft::op {

inline constexpr int n_elems = static_cast<int>(type::Elem::packed) + 1;

// A null entry: the op is not defined on these elements.
struct Kernels {
    const char* name;
    Kernel at[static_cast<int>(Code::minloc)][n_elems];
};
extern const Kernels kernels_v2, kernels_avx2, kernels_avx512;

// MINLOC and MAXLOC on pairs; null where there is no such pair.
Kernel pair_kernel(Code c, type::Elem value, type::Elem index);

// Fortran's .FALSE., as an integer of 128 bits (of which smaller logicals take the lower ones), low half first. Relaxed.
extern WEFT_HIDDEN uint64_t fortran_false[2];

// The best table this processor can run, found once.
const Kernels& best_kernels();
bool can_run(const Kernels& k);

}  // namespace weft::op
