// The kernels for processors with AVX-512. No fused multiply-add: results are the same on every processor.
#include <atomic>
#include <cstddef>
#include <cstdint>
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define WEFT_KERNELS kernels_avx512
#define WEFT_ISA "avx512"
#define WEFT_NO_FMA __attribute__((target("no-fma,no-avx512f")))
#include "op/kernels.inl"
