// Building the program of a datatype from the programs of its parts, in a normal form: runs that touch are one run, evenly
// spaced runs are strided, short lists are spelled out. Private to type/; a layout under construction has one owner, so no lock.
#pragma once
#include "type/layout.hpp"

namespace weft::type {

// The program of one element of `t`.
inline Node root_of(const Type& t) {
    if (t.layout) return t.layout->root;
    return {t.size ? Node::run : Node::empty, 1, t.true_lb, t.size, 1, 0, t.size, {nullptr}};
}

// The entry of a list of runs or parts that holds byte `from` of the packed form: the last that starts at or before it.
template <class Entry>
int64_t entry_at(const Entry* list, int64_t count, int64_t from) {
    int64_t low = 0, high = count;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        (list[middle].start <= from ? low : high) = middle;
    }
    return low;
}

// `count` times `child`, `stride` apart, where that needs no memory: `child` must outlive the result.
Node loop_over(const Node& child, int64_t count, int64_t stride);
// Runs of bytes it would be if spelled out, at most `limit`.
int64_t leaves(const Node& n, int64_t limit);

// The program of `l.shape`, in memory that belongs to `l`. Err::no_mem.
Err flatten(Layout& l);
// Memory that lives as long as `l`; null when there is none.
void* layout_memory(Layout& l, int64_t bytes);
void free_layout_memory(Layout& l);

}  // namespace weft::type
