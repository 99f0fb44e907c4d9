// The kernels for processors with AVX2. No fused multiply-add: results are the same on every processor.
#include <atomic>
#include <cstddef>
#include <cstdint>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define WEFT_KERNELS kernels_avx2
#define WEFT_ISA "avx2"
#define WEFT_NO_FMA
#include "op/kernels.inl"
#ifdef __clang__
#pragma clang attribute pop
#endif
