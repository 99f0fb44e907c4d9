// Making datatypes: every constructor of the standard with 64-bit counts, and what its envelope and contents tell later.
// For obj/ (the calls) and for floors that build types of their own. Thread-safe: only the pool of types is shared.
#pragma once
#include "type/layout.hpp"
#include "type/type.hpp"

namespace weft::type {

// Which of the two forms of a constructor was called; envelope and contents differ by it.
enum class Width : uint8_t { classic, large };

// An array of counts as either form of a constructor takes them.
class Counts {
public:
    Counts(const int32_t* p) : p_(p), wide_(false) {}
    Counts(const int64_t* p) : p_(p), wide_(true) {}
    Counts(const void* p, bool wide) : p_(p), wide_(wide) {}
    int64_t operator[](int64_t i) const {
        return wide_ ? static_cast<const int64_t*>(p_)[i] : static_cast<const int32_t*>(p_)[i];
    }

private:
    const void* p_;
    bool wide_;
};

enum class Order : int32_t { c = 12, fortran = 15 };
enum class Distribution : int32_t { none = 16, block = 17, cyclic = 18 };
inline constexpr int32_t default_darg = 19;
enum class TypeClass : int32_t { logical = 191, integer = 192, real = 193, complex = 194 };
inline constexpr int32_t unspecified = -32766;   // precision or range of create_f90_*

// Each makes a new, uncommitted type with one reference (the caller's), and holds references to the old ones.
// Strides and displacements of the h-forms, of structures and of resized are in bytes.
Err contiguous(Width, int64_t count, const Type& old, Type** out);
Err vector(Width, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out);
Err hvector(Width, int64_t count, int64_t length, int64_t stride, const Type& old, Type** out);
Err indexed(Width, int64_t count, Counts lengths, Counts displacements, const Type& old, Type** out);
Err hindexed(Width, int64_t count, Counts lengths, const int64_t* displacements, const Type& old, Type** out);
Err indexed_block(Width, int64_t count, int64_t length, Counts displacements, const Type& old, Type** out);
Err hindexed_block(Width, int64_t count, int64_t length, const int64_t* displacements, const Type& old, Type** out);
Err structure(Width, int64_t count, Counts lengths, const int64_t* displacements, const Type* const* olds, Type** out);
Err subarray(Width, int ndims, Counts sizes, Counts subsizes, Counts starts, int32_t order, const Type& old, Type** out);
Err resized(Width, const Type& old, int64_t lb, int64_t extent, Type** out);
Err dup(const Type& old, Type** out);   // committed if `old` is

struct Grid {
    int size, rank, ndims;
    const int32_t *distributions, *dargs, *psizes;
    int32_t order;
};
Err darray(Width, const Grid&, Counts gsizes, const Type& old, Type** out);

// These give predefined types: committed, never freed, the same for the same arguments.
Err f90_real(int precision, int range, const Type** out);
Err f90_complex(int precision, int range, const Type** out);
Err f90_integer(int range, const Type** out);
Err match_size(int32_t type_class, int size, const Type** out);
// `*out` is null where no such pair exists.
Err value_index(const Type& value, const Type& index, const Type** out);

Err commit(Type& t);

// How a type was made. Named types have Combiner::named and nothing else.
const Contents& contents_of(const Type& t);

}  // namespace weft::type
