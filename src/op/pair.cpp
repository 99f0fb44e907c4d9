// MINLOC and MAXLOC: a value and where it stands; of equal values the lower index wins.
#include <stddef.h>
#include <string.h>

#include "op/kernels.hpp"

namespace weft::op {

namespace {

using type::Elem;

template <class V, class I>
struct Pair {
    V value;
    I index;
};

template <class T>
T load(const char* p) {
    T v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Users' buffers may lie at any address; padding is left alone.
template <bool Min, class V, class I>
void pair_loop(const void* in, void* inout, int64_t count) {
    using P = Pair<V, I>;
    constexpr size_t at = offsetof(P, index);
    auto* a = static_cast<const char*>(in);
    auto* b = static_cast<char*>(inout);
    for (int64_t i = 0; i < count; i++, a += sizeof(Pair<V, I>), b += sizeof(Pair<V, I>)) {
        V x = load<V>(a), y = load<V>(b);
        I p = load<I>(a + at), q = load<I>(b + at);
        bool take = Min ? x < y : x > y;
        if (take) memcpy(b, &x, sizeof x);
        if (take || (x == y && p < q)) memcpy(b + at, &p, sizeof p);
    }
}

template <class V, class I>
Kernel pick(Code c) {
    return c == Code::minloc ? pair_loop<true, V, I> : pair_loop<false, V, I>;
}

template <class V>
Kernel with_value(Code c, Elem index) {
    switch (index) {
    case Elem::i8: return pick<V, int8_t>(c);
    case Elem::u8: return pick<V, uint8_t>(c);
    case Elem::i16: return pick<V, int16_t>(c);
    case Elem::u16: return pick<V, uint16_t>(c);
    case Elem::i32: return pick<V, int32_t>(c);
    case Elem::u32: return pick<V, uint32_t>(c);
    case Elem::i64: return pick<V, int64_t>(c);
    case Elem::u64: return pick<V, uint64_t>(c);
    default: return nullptr;
    }
}

}  // namespace

Kernel pair_kernel(Code c, Elem value, Elem index) {
    if (value == Elem::f32 && index == Elem::f32) return pick<float, float>(c);        // Fortran's pairs of reals
    if (value == Elem::f64 && index == Elem::f64) return pick<double, double>(c);
    if (value == Elem::f128 && index == Elem::f128) return pick<__float128, __float128>(c);
    if (value == Elem::i128 && index == Elem::i128) return pick<__int128, __int128>(c);
    switch (value) {
    case Elem::i8: return with_value<int8_t>(c, index);
    case Elem::u8: return with_value<uint8_t>(c, index);
    case Elem::i16: return with_value<int16_t>(c, index);
    case Elem::u16: return with_value<uint16_t>(c, index);
    case Elem::i32: return with_value<int32_t>(c, index);
    case Elem::u32: return with_value<uint32_t>(c, index);
    case Elem::i64: return with_value<int64_t>(c, index);
    case Elem::u64: return with_value<uint64_t>(c, index);
    case Elem::f32: return with_value<float>(c, index);
    case Elem::f64: return with_value<double>(c, index);
    case Elem::f80: return with_value<long double>(c, index);
    default: return nullptr;
    }
}

}  // namespace weft::op
