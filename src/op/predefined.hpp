// The predefined operations: one constant-initialised array, in the order of their ABI numbers. Any floor above type/
// may include this; obj/ makes handles of it. Never written; no lock.
#pragma once
#include "base/numbered.hpp"
#include "handle_numbers.hpp"
#include "op/op.hpp"

namespace weft::op {

struct Row {
    int16_t id;
    Code code;
    const char* name;
};
inline constexpr Row rows[] = {
    {number::op_sum, Code::sum, "MPI_SUM"}, {number::op_min, Code::min, "MPI_MIN"},
    {number::op_max, Code::max, "MPI_MAX"}, {number::op_prod, Code::prod, "MPI_PROD"},
    {number::op_band, Code::band, "MPI_BAND"}, {number::op_bor, Code::bor, "MPI_BOR"},
    {number::op_bxor, Code::bxor, "MPI_BXOR"}, {number::op_land, Code::land, "MPI_LAND"},
    {number::op_lor, Code::lor, "MPI_LOR"}, {number::op_lxor, Code::lxor, "MPI_LXOR"},
    {number::op_minloc, Code::minloc, "MPI_MINLOC"}, {number::op_maxloc, Code::maxloc, "MPI_MAXLOC"},
    {number::op_replace, Code::replace, "MPI_REPLACE"}, {number::op_no_op, Code::no_op, "MPI_NO_OP"},
};
inline constexpr int n_rows = sizeof rows / sizeof rows[0];
// predefined[0] is the bad handle and [1] the null handle (neither of Kind::op); predefined[i + 2] belongs to rows[i].
inline constexpr int n_predefined = n_rows + 2;
inline constexpr int null_id = number::op_null, ids_end = 64;

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
