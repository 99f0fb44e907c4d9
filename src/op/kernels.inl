// The kernels themselves, compiled once for each instruction set: the including file sets the target and WEFT_KERNELS.
// All is in an unnamed namespace and calls nothing outside it, so that no copy for a newer processor is shared.
#include "op/kernels.hpp"

namespace weft::op {
namespace {

using type::Elem;

// C's type for each kind of element, unsigned where wrap-around is wanted; void: no reduction knows it.
template <Elem> struct CType { using T = void; };
template <> struct CType<Elem::i8> { using T = int8_t; };
template <> struct CType<Elem::u8> { using T = uint8_t; };
template <> struct CType<Elem::i16> { using T = int16_t; };
template <> struct CType<Elem::u16> { using T = uint16_t; };
template <> struct CType<Elem::i32> { using T = int32_t; };
template <> struct CType<Elem::u32> { using T = uint32_t; };
template <> struct CType<Elem::i64> { using T = int64_t; };
template <> struct CType<Elem::u64> { using T = uint64_t; };
template <> struct CType<Elem::i128> { using T = __int128; };
#ifdef __FLT16_MANT_DIG__   // gcc 12 on
template <> struct CType<Elem::f16> { using T = _Float16; };
constexpr bool has_half = true;
#else
constexpr bool has_half = false;
#endif
template <> struct CType<Elem::f32> { using T = float; };
template <> struct CType<Elem::f64> { using T = double; };
template <> struct CType<Elem::f80> { using T = long double; };
template <> struct CType<Elem::f128> { using T = __float128; };
template <> struct CType<Elem::boolean> { using T = uint8_t; };
template <> struct CType<Elem::l8> { using T = uint8_t; };
template <> struct CType<Elem::l16> { using T = uint16_t; };
template <> struct CType<Elem::l32> { using T = uint32_t; };
template <> struct CType<Elem::l64> { using T = uint64_t; };
template <> struct CType<Elem::l128> { using T = unsigned __int128; };
template <> struct CType<Elem::byte> { using T = uint8_t; };
template <> struct CType<Elem::character> { using T = char; };

// Arithmetic on integers wraps; narrow ones are computed in 32 bits.
template <class T> struct Wrap { using U = T; };
template <> struct Wrap<int8_t> { using U = uint32_t; };
template <> struct Wrap<uint8_t> { using U = uint32_t; };
template <> struct Wrap<char> { using U = uint32_t; };
template <> struct Wrap<int16_t> { using U = uint32_t; };
template <> struct Wrap<uint16_t> { using U = uint32_t; };
template <> struct Wrap<int32_t> { using U = uint32_t; };
template <> struct Wrap<int64_t> { using U = uint64_t; };
template <> struct Wrap<__int128> { using U = unsigned __int128; };

// The standard leaves characters out, but every library adds them, and benchmarks reduce MPI_CHAR.
constexpr bool is_int(Elem e) { return (e >= Elem::i8 && e <= Elem::i128) || e == Elem::character; }
constexpr bool is_float(Elem e) { return (e >= Elem::f32 && e <= Elem::f128) || (has_half && e == Elem::f16); }
constexpr bool is_complex(Elem e) { return (e >= Elem::cf32 && e <= Elem::cf128) || (has_half && e == Elem::cf16); }
constexpr Elem part_of(Elem e) {   // of a complex number
    return static_cast<Elem>(static_cast<int>(e) - static_cast<int>(Elem::cf16) + static_cast<int>(Elem::f16));
}
static_assert(part_of(Elem::cf128) == Elem::f128);
constexpr bool is_fortran_logical(Elem e) { return e >= Elem::l8 && e <= Elem::l128; }

// The standard's table of which op goes with which type.
constexpr bool is_defined(Code c, Elem e) {
    switch (c) {
    case Code::sum: case Code::prod: return is_int(e) || is_float(e) || is_complex(e);
    case Code::min: case Code::max: return is_int(e) || is_float(e);
    case Code::band: case Code::bor: case Code::bxor: return is_int(e) || e == Elem::byte;
    case Code::land: case Code::lor: case Code::lxor: return is_int(e) || e == Elem::boolean || is_fortran_logical(e);
    default: return false;
    }
}

template <Code C, class T>
inline T combine(T a, T b) {
    using U = typename Wrap<T>::U;
    if constexpr (C == Code::sum) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    if constexpr (C == Code::prod) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    if constexpr (C == Code::min) return a < b ? a : b;
    if constexpr (C == Code::max) return a > b ? a : b;
    if constexpr (C == Code::band) return static_cast<T>(a & b);
    if constexpr (C == Code::bor) return static_cast<T>(a | b);
    if constexpr (C == Code::bxor) return static_cast<T>(a ^ b);
    if constexpr (C == Code::land) return (a != 0) & (b != 0);
    if constexpr (C == Code::lor) return (a != 0) | (b != 0);
    if constexpr (C == Code::lxor) return (a != 0) ^ (b != 0);
}

// Fortran's .TRUE. is 1 for some compilers and -1 for others, and .FALSE. what somebody has told: whatever is not `no` is
// true, and the result is one of the operands wherever it can be.
template <Code C, class T>
inline T combine_logical(T a, T b, T no) {
    if constexpr (C == Code::land) return a != no ? b : a;
    if constexpr (C == Code::lor) return a != no ? a : b;
    if constexpr (C == Code::lxor) return a == no ? b : b == no ? a : no;
}

template <class T>
inline T logical_false() {
    T no = static_cast<T>(__atomic_load_n(&fortran_false[0], __ATOMIC_RELAXED));
    if constexpr (sizeof(T) > 8) no |= static_cast<T>(__atomic_load_n(&fortran_false[1], __ATOMIC_RELAXED)) << 64;
    return no;
}

// Users' buffers may lie at any address and be of any type.
template <class T>
struct Loose {
    typedef T __attribute__((aligned(1), may_alias)) Any;
};

template <Code C, Elem E>
void kernel(const void* in, void* inout, int64_t count) {
    using T = typename CType<E>::T;
    using Any = typename Loose<T>::Any;
    const Any* __restrict a = static_cast<const Any*>(in);
    Any* __restrict b = static_cast<Any*>(inout);
    if constexpr (is_fortran_logical(E)) {
        const T no = logical_false<T>();
        for (int64_t i = 0; i < count; i++) b[i] = combine_logical<C, T>(a[i], b[i], no);
    } else {
        for (int64_t i = 0; i < count; i++) b[i] = combine<C, T>(a[i], b[i]);
    }
}

// Complex numbers: a sum is that of twice as many reals. gcc 12 makes fused operations of this product's pattern even
// where contraction is forbidden, hence the attribute.
template <class T>
WEFT_NO_FMA void complex_product(const void* in, void* inout, int64_t count) {
    using Any = typename Loose<T>::Any;
    const Any* __restrict a = static_cast<const Any*>(in);
    Any* __restrict b = static_cast<Any*>(inout);
    for (int64_t i = 0; i < 2 * count; i += 2) {
        T re = a[i] * b[i] - a[i + 1] * b[i + 1], im = a[i] * b[i + 1] + a[i + 1] * b[i];
        b[i] = re;
        b[i + 1] = im;
    }
}

template <Elem Part>
void complex_sum(const void* in, void* inout, int64_t count) {
    kernel<Code::sum, Part>(in, inout, 2 * count);
}

template <Code C, Elem E>
constexpr Kernel kernel_or_null() {
    if constexpr (is_complex(E) && C == Code::sum)
        return complex_sum<part_of(E)>;
    else if constexpr (is_complex(E) && C == Code::prod)
        return complex_product<typename CType<part_of(E)>::T>;
    else if constexpr (is_defined(C, E))
        return kernel<C, E>;
    else
        return nullptr;
}

template <Code C, int E>
constexpr void fill(Kernels& k) {
    k.at[static_cast<int>(C)][E] = kernel_or_null<C, static_cast<Elem>(E)>();
    if constexpr (E + 1 < n_elems) fill<C, E + 1>(k);
}

template <int C>
constexpr void fill_codes(Kernels& k) {
    fill<static_cast<Code>(C), 0>(k);
    if constexpr (C + 1 < static_cast<int>(Code::minloc)) fill_codes<C + 1>(k);
}

constexpr Kernels make(const char* name) {
    Kernels k{name, {}};
    fill_codes<0>(k);
    return k;
}

}  // namespace

constinit const Kernels WEFT_KERNELS = make(WEFT_ISA);

}  // namespace weft::op
