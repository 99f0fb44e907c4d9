// An array of integers as a caller of either form of a function gave it: int, or 64 bits wide (MPI_Count, MPI_Aint).
// Any floor from obj/ upwards may include this; a view, it owns nothing. No lock.
#pragma once
#include <cstdint>

namespace weft::obj {

struct Ints {
    const void* data;
    bool wide;

    Ints from(int64_t i) const {
        return {static_cast<const char*>(data) + i * (wide ? 8 : 4), wide};
    }
    int64_t operator[](int64_t i) const {
        return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
    }
};

}  // namespace weft::obj
