// The kernels for every processor this library runs on. (Built with -O3 and without contraction: see src/CMakeLists.txt.)
#include <atomic>
#include <cstddef>
#include <cstdint>
#define WEFT_KERNELS kernels_v2
#define WEFT_ISA "x86-64-v2"
#define WEFT_NO_FMA
#include "op/kernels.inl"
