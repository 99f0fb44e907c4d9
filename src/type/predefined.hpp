// The predefined datatypes: one constant-initialised array, in the order of their ABI numbers. Any floor above base/
// may include this; obj/ makes the table of handles from it. No lock: only set_fortran_sizes writes, once, before use.
#pragma once
#include "base/numbered.hpp"
#include "handle_numbers.hpp"
#include "type/type.hpp"

namespace weft::type {

// Which Fortran type's size decides this one's; `sized` types carry it in their name, but a compiler may lack them.
enum class Fortran : uint8_t {
    no, sized, logical, integer, real, double_precision, complex, double_complex,
    two_real, two_double_precision, two_integer,
};

struct Row {
    int16_t id;
    const char* name;
    Elem elem, index;         // index: pairs only
    uint8_t size, extent, align;
    uint8_t external;         // bytes in "external32"
    Fortran fortran;
};

// What the compiler knows of each. Fortran's types are as compilers make them by default, until set_fortran_sizes.
inline constexpr Row rows[] = {
    {number::type_aint, "MPI_AINT", Elem::i64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_count, "MPI_COUNT", Elem::i64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_offset, "MPI_OFFSET", Elem::i64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_packed, "MPI_PACKED", Elem::packed, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_short, "MPI_SHORT", Elem::i16, Elem::none, 2, 2, 2, 2, Fortran::no},
    {number::type_int, "MPI_INT", Elem::i32, Elem::none, 4, 4, 4, 4, Fortran::no},
    {number::type_long, "MPI_LONG", Elem::i64, Elem::none, 8, 8, 8, 4, Fortran::no},
    {number::type_long_long, "MPI_LONG_LONG", Elem::i64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_unsigned_short, "MPI_UNSIGNED_SHORT", Elem::u16, Elem::none, 2, 2, 2, 2, Fortran::no},
    {number::type_unsigned, "MPI_UNSIGNED", Elem::u32, Elem::none, 4, 4, 4, 4, Fortran::no},
    {number::type_unsigned_long, "MPI_UNSIGNED_LONG", Elem::u64, Elem::none, 8, 8, 8, 4, Fortran::no},
    {number::type_unsigned_long_long, "MPI_UNSIGNED_LONG_LONG", Elem::u64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_float, "MPI_FLOAT", Elem::f32, Elem::none, 4, 4, 4, 4, Fortran::no},
    {number::type_c_float_complex, "MPI_C_FLOAT_COMPLEX", Elem::cf32, Elem::none, 8, 8, 4, 8, Fortran::no},
    {number::type_cxx_float_complex, "MPI_CXX_FLOAT_COMPLEX", Elem::cf32, Elem::none, 8, 8, 4, 8, Fortran::no},
    {number::type_double, "MPI_DOUBLE", Elem::f64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_c_double_complex, "MPI_C_DOUBLE_COMPLEX", Elem::cf64, Elem::none, 16, 16, 8, 16, Fortran::no},
    {number::type_cxx_double_complex, "MPI_CXX_DOUBLE_COMPLEX", Elem::cf64, Elem::none, 16, 16, 8, 16, Fortran::no},
    {number::type_logical, "MPI_LOGICAL", Elem::l32, Elem::none, 4, 4, 4, 4, Fortran::logical},
    {number::type_integer, "MPI_INTEGER", Elem::i32, Elem::none, 4, 4, 4, 4, Fortran::integer},
    {number::type_real, "MPI_REAL", Elem::f32, Elem::none, 4, 4, 4, 4, Fortran::real},
    {number::type_complex, "MPI_COMPLEX", Elem::cf32, Elem::none, 8, 8, 4, 8, Fortran::complex},
    {number::type_double_precision, "MPI_DOUBLE_PRECISION", Elem::f64, Elem::none, 8, 8, 8, 8, Fortran::double_precision},
    {number::type_double_complex, "MPI_DOUBLE_COMPLEX", Elem::cf64, Elem::none, 16, 16, 8, 16, Fortran::double_complex},
    {number::type_character, "MPI_CHARACTER", Elem::character, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_long_double, "MPI_LONG_DOUBLE", Elem::f80, Elem::none, 16, 16, 16, 16, Fortran::no},
    {number::type_c_long_double_complex, "MPI_C_LONG_DOUBLE_COMPLEX", Elem::cf80, Elem::none, 32, 32, 16, 32, Fortran::no},
    {number::type_cxx_long_double_complex, "MPI_CXX_LONG_DOUBLE_COMPLEX", Elem::cf80, Elem::none, 32, 32, 16, 32, Fortran::no},
    {number::type_float_int, "MPI_FLOAT_INT", Elem::f32, Elem::i32, 8, 8, 4, 8, Fortran::no},
    {number::type_double_int, "MPI_DOUBLE_INT", Elem::f64, Elem::i32, 12, 16, 8, 12, Fortran::no},
    {number::type_long_int, "MPI_LONG_INT", Elem::i64, Elem::i32, 12, 16, 8, 8, Fortran::no},
    {number::type_2int, "MPI_2INT", Elem::i32, Elem::i32, 8, 8, 4, 8, Fortran::no},
    {number::type_short_int, "MPI_SHORT_INT", Elem::i16, Elem::i32, 6, 8, 4, 6, Fortran::no},
    {number::type_long_double_int, "MPI_LONG_DOUBLE_INT", Elem::f80, Elem::i32, 20, 32, 16, 20, Fortran::no},
    {number::type_2real, "MPI_2REAL", Elem::f32, Elem::f32, 8, 8, 4, 8, Fortran::two_real},
    {number::type_2double_precision, "MPI_2DOUBLE_PRECISION", Elem::f64, Elem::f64, 16, 16, 8, 16, Fortran::two_double_precision},
    {number::type_2integer, "MPI_2INTEGER", Elem::i32, Elem::i32, 8, 8, 4, 8, Fortran::two_integer},
    {number::type_c_bool, "MPI_C_BOOL", Elem::boolean, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_cxx_bool, "MPI_CXX_BOOL", Elem::boolean, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_wchar, "MPI_WCHAR", Elem::wide, Elem::none, 4, 4, 4, 2, Fortran::no},
    {number::type_int8_t, "MPI_INT8_T", Elem::i8, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_uint8_t, "MPI_UINT8_T", Elem::u8, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_char, "MPI_CHAR", Elem::character, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_signed_char, "MPI_SIGNED_CHAR", Elem::i8, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_unsigned_char, "MPI_UNSIGNED_CHAR", Elem::u8, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_byte, "MPI_BYTE", Elem::byte, Elem::none, 1, 1, 1, 1, Fortran::no},
    {number::type_int16_t, "MPI_INT16_T", Elem::i16, Elem::none, 2, 2, 2, 2, Fortran::no},
    {number::type_uint16_t, "MPI_UINT16_T", Elem::u16, Elem::none, 2, 2, 2, 2, Fortran::no},
    {number::type_int32_t, "MPI_INT32_T", Elem::i32, Elem::none, 4, 4, 4, 4, Fortran::no},
    {number::type_uint32_t, "MPI_UINT32_T", Elem::u32, Elem::none, 4, 4, 4, 4, Fortran::no},
    {number::type_int64_t, "MPI_INT64_T", Elem::i64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_uint64_t, "MPI_UINT64_T", Elem::u64, Elem::none, 8, 8, 8, 8, Fortran::no},
    {number::type_logical1, "MPI_LOGICAL1", Elem::l8, Elem::none, 1, 1, 1, 1, Fortran::sized},
    {number::type_integer1, "MPI_INTEGER1", Elem::i8, Elem::none, 1, 1, 1, 1, Fortran::sized},
    {number::type_logical2, "MPI_LOGICAL2", Elem::l16, Elem::none, 2, 2, 2, 2, Fortran::sized},
    {number::type_integer2, "MPI_INTEGER2", Elem::i16, Elem::none, 2, 2, 2, 2, Fortran::sized},
    {number::type_real2, "MPI_REAL2", Elem::f16, Elem::none, 2, 2, 2, 2, Fortran::sized},
    {number::type_logical4, "MPI_LOGICAL4", Elem::l32, Elem::none, 4, 4, 4, 4, Fortran::sized},
    {number::type_integer4, "MPI_INTEGER4", Elem::i32, Elem::none, 4, 4, 4, 4, Fortran::sized},
    {number::type_real4, "MPI_REAL4", Elem::f32, Elem::none, 4, 4, 4, 4, Fortran::sized},
    {number::type_complex4, "MPI_COMPLEX4", Elem::cf16, Elem::none, 4, 4, 2, 4, Fortran::sized},
    {number::type_logical8, "MPI_LOGICAL8", Elem::l64, Elem::none, 8, 8, 8, 8, Fortran::sized},
    {number::type_integer8, "MPI_INTEGER8", Elem::i64, Elem::none, 8, 8, 8, 8, Fortran::sized},
    {number::type_real8, "MPI_REAL8", Elem::f64, Elem::none, 8, 8, 8, 8, Fortran::sized},
    {number::type_complex8, "MPI_COMPLEX8", Elem::cf32, Elem::none, 8, 8, 4, 8, Fortran::sized},
    {number::type_logical16, "MPI_LOGICAL16", Elem::l128, Elem::none, 16, 16, 16, 16, Fortran::sized},
    {number::type_integer16, "MPI_INTEGER16", Elem::i128, Elem::none, 16, 16, 16, 16, Fortran::sized},
    {number::type_real16, "MPI_REAL16", Elem::f128, Elem::none, 16, 16, 16, 16, Fortran::sized},
    {number::type_complex16, "MPI_COMPLEX16", Elem::cf64, Elem::none, 16, 16, 8, 16, Fortran::sized},
    {number::type_complex32, "MPI_COMPLEX32", Elem::cf128, Elem::none, 32, 32, 16, 32, Fortran::sized},
};
inline constexpr int n_rows = sizeof rows / sizeof rows[0];

// predefined[0] is the bad handle and [1] the null handle (neither of Kind::type); predefined[i + 2] belongs to rows[i].
inline constexpr int n_predefined = n_rows + 2;
inline constexpr int null_id = number::type_null, ids_end = 0x300;
struct Table {
    Type at[n_predefined];
    Type& operator[](int i) { return at[i]; }
};
extern WEFT_HIDDEN Table predefined;

namespace detail {
inline constexpr auto places = places_by_number<null_id, ids_end>(rows);
}  // namespace detail

// Where the type with this ABI number stands in predefined[]; 0, the bad handle, where there is none.
constexpr int predefined_index(int abi_value) { return place_of<null_id>(detail::places, abi_value); }
inline const Type* predefined_at(int abi_value) { return &predefined[predefined_index(abi_value)]; }
inline const Type& byte_type() { return *predefined_at(number::type_byte); }
inline Buffer bytes_at(void* base, int64_t n) { return {base, n, &byte_type()}; }

namespace detail {
// The row of a type that the compiler sees to be this very one of the table (link-time optimisation), and whose facts
// never change; null for all others, at no cost.
WEFT_INLINE const Row* known_row(const Type& t) {
    const uintptr_t i = (reinterpret_cast<uintptr_t>(&t) - reinterpret_cast<uintptr_t>(predefined.at)) / sizeof(Type) - 2;
    if (!__builtin_constant_p(i) || i >= n_rows) return nullptr;
    return rows[i].fortran == Fortran::no ? &rows[i] : nullptr;
}
}  // namespace detail

// What the shortest paths ask of a type: constants, where the compiler knows it.
WEFT_INLINE bool is_dense(const Type& t) {
    const Row* r = detail::known_row(t);
    return r != nullptr ? r->size == r->extent : t.is(Type::dense);
}
WEFT_INLINE int64_t bytes_of(const Buffer& b) {
    const Row* r = detail::known_row(*b.type);
    return b.count * (r != nullptr ? r->size : b.type->size);
}

// The row of a named predefined type; null for every other type.
inline const Row* row_of(const Type& t) {
    return t.is(Type::named) ? &rows[&t - predefined.at - 2] : nullptr;
}
// The name a predefined type starts with, or "".
const char* name_of(const Type& t);

// The sizes of Fortran's types, as a Fortran layer tells them. 0: this compiler lacks it; untold: as it was.
struct FortranSizes {
    static constexpr int32_t untold = -1;
    int32_t logical, integer, real, double_precision;
    int32_t (*supported)(const Row& sized, void* arg);   // is this LOGICALn, INTEGERn, REALn, COMPLEXn there? 1, 0 or untold
    void* arg;
};
// Gives the Fortran types other sizes and meanings. Err::arg, and nothing changed, for a size no type can have.
Err set_fortran_sizes(const FortranSizes& sizes);

}  // namespace weft::type
