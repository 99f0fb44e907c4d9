// The basic elements of a buffer, in the order of its packed form, as runs. For floors above type/ that apply operations to elements, or
// name them to another process. Reads committed types only; no lock.
#pragma once
#include "type/type.hpp"

namespace weft::type {

// `count` elements of `type`, a named type or a pair, one extent apart, the first `offset` bytes from the start of the buffer.
struct ElementRun {
    int64_t offset, count;
    const Type* type;
};

// Gives the elements of `count` times `t` to `take`, in as few runs as neighbours allow. Stops when `take` returns false.
using TakeRun = bool(void* context, const ElementRun&);
void each_run(const Type& t, int64_t count, TakeRun* take, void* context);
template <class Take>
void each_run(const Type& t, int64_t count, Take&& take) {
    each_run(t, count, [](void* context, const ElementRun& run) { return (*static_cast<Take*>(context))(run); }, &take);
}

// A number that stands for such a type in every process, and the type; null where the number stands for none.
int32_t number_of(const Type& element);
const Type* element_with(int32_t number);

}  // namespace weft::type
