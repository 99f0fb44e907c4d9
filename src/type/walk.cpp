// What must know basic elements: counting them in a number of bytes, and the bytes of a number of them.
#include "type/builder.hpp"
#include "type/elem.hpp"

namespace weft::type {

namespace {

// Elements in the first `bytes` (not more than one whole list) of a list of blocks.
int64_t elements_in_blocks(const Shape& s, int64_t bytes) {
    int64_t n = 0;
    for (int64_t i = 0; i < s.count && bytes > 0; i++) {
        const Block& b = s.blocks[i];
        int64_t block_bytes = b.length * b.child->size;
        int64_t here = bytes < block_bytes ? bytes : block_bytes, k = elements(*b.child, here);
        if (k < 0) return -1;
        n += k;
        bytes -= here;
    }
    return n;
}

}  // namespace

int64_t elements(const Type& t, int64_t bytes) {
    if (bytes == 0) return 0;
    if (t.size == 0) return -1;
    if (int32_t u = uniform_of(t)) return bytes % u == 0 ? bytes / u : -1;
    int64_t whole = bytes / t.size, rest = bytes % t.size, n = whole * elements_of(t), k = 0;
    if (rest == 0) return n;
    if (t.is_pair())
        k = rest == size_of(t.elem) ? 1 : -1;
    else
        k = t.layout->shape.form == Shape::repeat ? elements(*t.layout->shape.child, rest) : elements_in_blocks(t.layout->shape, rest);
    return k < 0 ? -1 : n + k;
}

int64_t element_bytes(const Type& t, int64_t count) {
    int64_t bytes;
    if (count == 0) return 0;
    if (t.size == 0) return -1;
    if (int32_t u = uniform_of(t)) return multiply(count, u, &bytes) ? bytes : -1;
    int64_t in_one = elements_of(t), rest = count % in_one;
    if (!multiply(count / in_one, t.size, &bytes)) return -1;
    if (rest == 0) return bytes;
    if (t.is_pair()) return bytes + size_of(t.elem);
    const Shape& s = t.layout->shape;
    if (s.form == Shape::repeat) return bytes + element_bytes(*s.child, rest);
    for (int64_t i = 0; rest > 0; i++) {
        const Block& b = s.blocks[i];
        int64_t in_block = b.length * elements_of(*b.child), here = rest < in_block ? rest : in_block;
        bytes += element_bytes(*b.child, here);
        rest -= here;
    }
    return bytes;
}

}  // namespace weft::type
