// Sizes and alignments of the kinds of basic elements, as C lays them out here. Private to type/ and op/; no lock.
#pragma once
#include "type/type.hpp"

namespace weft::type {

// Bytes, and bytes of the part that alignment and byte order go by (a complex number is two of them).
struct ElemSize {
    uint8_t size, part;
};

constexpr ElemSize elem_size(Elem e) {
    switch (e) {
    case Elem::i8: case Elem::u8: case Elem::boolean: case Elem::l8: case Elem::byte: case Elem::character:
    case Elem::packed: return {1, 1};
    case Elem::i16: case Elem::u16: case Elem::f16: case Elem::l16: return {2, 2};
    case Elem::i32: case Elem::u32: case Elem::f32: case Elem::l32: case Elem::wide: return {4, 4};
    case Elem::i64: case Elem::u64: case Elem::f64: case Elem::l64: return {8, 8};
    case Elem::i128: case Elem::f80: case Elem::f128: case Elem::l128: return {16, 16};
    case Elem::cf16: return {4, 2};
    case Elem::cf32: return {8, 4};
    case Elem::cf64: return {16, 8};
    case Elem::cf80: case Elem::cf128: return {32, 16};
    case Elem::none: break;
    }
    return {0, 1};
}
constexpr int size_of(Elem e) { return elem_size(e).size; }
constexpr int align_of(Elem e) { return elem_size(e).part; }

// C's layout of struct { value; index; }.
struct PairLayout {
    int at, span, extent, align;   // of the index; up to the last byte; with the padding behind; of the struct
};
constexpr PairLayout pair_layout(Elem value, Elem index) {
    auto up = [](int n, int a) { return (n + a - 1) / a * a; };
    int at = up(size_of(value), align_of(index));
    int span = at + size_of(index);
    int align = align_of(value) > align_of(index) ? align_of(value) : align_of(index);
    return {at, span, up(span, align), align};
}

}  // namespace weft::type
