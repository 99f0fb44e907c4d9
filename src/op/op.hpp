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
using Kernel = void (*)(const void* in, void* inout, int64_t count);
// What apply() calls, for who combines the same type often. Null for the user's operations, for those that only copy, and where check() fails.
Kernel kernel_of(const Op& op, const type::Type& t);
// The same by any operation.
Err apply(const Op& op, const void* in, void* inout, int64_t count, const type::Type& t);

Err create(void* function, bool commutes, bool large, Op** out);
inline void retain(const Op& op) {
    if (!op.is(Op::predefined)) const_cast<Op&>(op).refs.fetch_add(1, std::memory_order_relaxed);
}
void release(const Op& op);   // frees at zero

// The bit pattern of Fortran's .FALSE., of `bytes` up to 16: any other is true. Logicals of other sizes take it as a signed
// integer. It is 0 until somebody says otherwise.
void set_fortran_false(const void* pattern, int bytes);

const char* name_of(const Op& op);   // "" for a user's

// Which instruction set the kernels use: "x86-64-v2", "avx2" or "avx512".
const char* isa_name();

}  // namespace weft::op
