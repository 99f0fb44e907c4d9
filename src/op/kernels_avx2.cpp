// The kernels for processors with AVX2. No fused multiply-add: results are the same on every processor.
#include <atomic>
#include <cstddef>
#include <cstdint>
#pragma GCC target("avx2")
#define WEFT_KERNELS kernels_avx2
#define WEFT_ISA "avx2"
#define WEFT_NO_FMA
#include "op/kernels.inl"
