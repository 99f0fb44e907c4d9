// The predefined operations: one constant-initialised array, in the order of their ABI numbers. Any floor above type/
// may include this; obj/ makes handles of it. Never written; no lock.
#pragma once
#include "base/numbered.hpp"
#include "op/op.hpp"

namespace weft::op {

struct Row {
    int16_t id;
    Code code;
    const char* name;
};
inline constexpr Row rows[] = {
    {33, Code::sum, "MPI_SUM"},       {34, Code::min, "MPI_MIN"},       {35, Code::max, "MPI_MAX"},
    {36, Code::prod, "MPI_PROD"},     {40, Code::band, "MPI_BAND"},     {41, Code::bor, "MPI_BOR"},
    {42, Code::bxor, "MPI_BXOR"},     {48, Code::land, "MPI_LAND"},     {49, Code::lor, "MPI_LOR"},
    {50, Code::lxor, "MPI_LXOR"},     {56, Code::minloc, "MPI_MINLOC"}, {57, Code::maxloc, "MPI_MAXLOC"},
    {60, Code::replace, "MPI_REPLACE"}, {61, Code::no_op, "MPI_NO_OP"},
};
inline constexpr int n_rows = sizeof rows / sizeof rows[0];
// predefined[0] is the bad handle and [1] the null handle (neither of Kind::op); predefined[i + 2] belongs to rows[i].
inline constexpr int n_predefined = n_rows + 2;
inline constexpr int null_id = 32, ids_end = 64;

struct Table {
    Op at[n_predefined];
    Op& operator[](int i) { return at[i]; }
};
extern WEFT_HIDDEN Table predefined;

namespace detail {
inline constexpr auto places = places_by_number<null_id, ids_end>(rows);
}  // namespace detail

constexpr int predefined_index(int abi_value) { return place_of<null_id>(detail::places, abi_value); }
inline const Op* predefined_at(int abi_value) { return &predefined[predefined_index(abi_value)]; }
inline const Op& predefined_op(Code c) { return predefined[2 + static_cast<int>(c)]; }

}  // namespace weft::op
