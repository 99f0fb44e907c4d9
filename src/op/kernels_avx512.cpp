// The kernels for processors with AVX-512. No fused multiply-add: results are the same on every processor.
#include <atomic>
#include <cstddef>
#include <cstdint>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define WEFT_KERNELS kernels_avx512
#define WEFT_ISA "avx512"
#ifdef __clang__
#define WEFT_NO_FMA   // clang keeps to -ffp-contract=off
#else
#define WEFT_NO_FMA __attribute__((target("no-fma,no-avx512f")))
#endif
#include "op/kernels.inl"
#ifdef __clang__
#pragma clang attribute pop
#endif
