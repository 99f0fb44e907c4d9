// One constructor call in progress: it records the arguments and the shape, then finish() works out bounds, density and
// program. Private to type/; one owner, no lock but the pool's.
#pragma once
#include "type/build.hpp"

namespace weft::type {

// A Type from the pool, zeroed but for its kind and one reference; null when there is no memory.
Type* take_type();
void give_type(Type* t);

class Builder {
public:
    ~Builder();

    // Room for what contents will tell: integers, addresses or large counts, and types.
    Err start(Combiner c, Width w, int64_t ints, int64_t longs, int64_t types);
    // An argument that is an integer in both forms; a count, large in the `_c` form; an address, a count there.
    void add_int(int64_t v);
    void add_count(int64_t v);
    void add_address(int64_t v);
    Err add_type(const Type& old);

    Err make_blocks(int64_t count);
    Shape& shape() { return layout_->shape; }
    Layout& layout() { return *layout_; }
    Type& type() { return *type_; }
    // Bounds the user said rather than those that follow from the type map.
    void set_bounds(int64_t lb, int64_t extent);

    Err finish(Type** out);

private:
    Err compute_bounds();
    Err compute_depth();

    Type* type_ = nullptr;
    Layout* layout_ = nullptr;
    bool large_ = false;
    bool explicit_ = false;
    int64_t lb_ = 0, extent_ = 0;
};

// Basic elements in one element of a type, and their size where all have the same, else 0.
int64_t elements_of(const Type& t);
int32_t uniform_of(const Type& t);

// a * b; false when it does not fit.
inline bool multiply(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }

}  // namespace weft::type
