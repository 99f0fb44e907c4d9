// Reduction operations: predefined kernels for every type they are defined for, and the user's own functions.
// Any floor above type/ may include this. Ops are immutable; only the reference count changes (atomic). User functions
// run inside apply(): no caller may hold a lock.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/err.hpp"
#include "base/object.hpp"
#include "type/type.hpp"

namespace weft::op {

enum class Code : uint8_t { sum, min, max, prod, band, bor, bxor, land, lor, lxor, minloc, maxloc, replace, no_op, user };
inline constexpr int n_codes = static_cast<int>(Code::user);

struct Op : Object {
    enum Flag : uint32_t {
        predefined = 1,    // never freed, never counted
        commutative = 2,
        large = 4,         // a user function that takes its count by MPI_Count
    };
    uint32_t flags;
    Code code;
    std::atomic<int32_t> refs;
    void* function;        // the user's

    bool is(Flag f) const { return (flags & f) != 0; }
};

// MPI_User_function and MPI_User_function_c; the last argument points at the type's handle.
using UserFunction = void (*)(void* in, void* inout, int32_t* count, void** type);
using UserFunctionLarge = void (*)(void* in, void* inout, int64_t* count, void** type);

// Err::op where this op is not defined on this type. Collectives ask before they begin.
Err check(const Op& op, const type::Type& t);
// inout[i] = in[i] op inout[i] for `count` elements, which must not overlap.
Err apply(const Op& op, const void* in, void* inout, int64_t count, const type::Type& t);

Err create(void* function, bool commutes, bool large, Op** out);
inline void retain(const Op& op) {
    if (!op.is(Op::predefined)) const_cast<Op&>(op).refs.fetch_add(1, std::memory_order_relaxed);
}
void release(const Op& op);   // frees at zero

// The predefined ops, in the order of their ABI numbers: [0] is the bad handle and [1] MPI_OP_NULL.
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
inline constexpr int n_predefined = n_rows + 2;
inline constexpr int null_id = 32, ids_end = 64;

struct Table {
    Op at[n_predefined];
    Op& operator[](int i) { return at[i]; }
};
extern Table predefined;

constexpr int predefined_index(int abi_value) {
    if (abi_value == null_id) return 1;
    for (int i = 0; i < n_rows; i++)
        if (rows[i].id == abi_value) return i + 2;
    return 0;
}
inline const Op* predefined_at(int abi_value) { return &predefined[predefined_index(abi_value)]; }
inline const Op& predefined_op(Code c) { return predefined[2 + static_cast<int>(c)]; }
const char* name_of(const Op& op);   // "" for a user's

// Which instruction set the kernels use: "x86-64-v2", "avx2" or "avx512".
const char* isa_name();

}  // namespace weft::op
