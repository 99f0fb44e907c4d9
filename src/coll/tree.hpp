// A binomial tree over a team, whose members count from the root on. Included by coll/ and part/; plain arithmetic.
#pragma once
#include <cstdint>

namespace weft::coll {

// The parent of v is v without its lowest set bit; below v lie v .. v + reach() - 1.
struct Tree {
    int32_t rank, root, size;  // real rank, real root
    int32_t me() const { return static_cast<int32_t>((static_cast<int64_t>(rank) - root + size) % size); }
    int32_t real(int64_t v) const { return static_cast<int32_t>((v + root) % size); }
    // The first power of two above all of v's children.
    int64_t reach() const {
        int64_t v = me(), mask = 1;
        while (mask < size && (v & mask) == 0) mask *= 2;
        return mask;
    }
    int32_t parent() const { return real(me() & (me() - 1)); }
    // The end of the `width` members from v on.
    int64_t end(int64_t v, int64_t width) const { return v + width < size ? v + width : size; }
};

}  // namespace weft::coll
