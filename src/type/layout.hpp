// How a datatype is built and how its bytes lie: the constructor's call, its shape for walks by element, and the
// flattened program that pack and unpack run. Private to type/. Immutable once the type is constructed; no lock.
#pragma once
#include "type/type.hpp"

namespace weft::type {

// One run of bytes of a list, at `offset` from the element's origin; `start` is its place in the packed form.
struct Run {
    int64_t offset, start, bytes;
};

struct Node;

// One member of a sequence.
struct Part {
    int64_t offset, start;
    const Node* child;
};

// The program: a tree of loops over runs. The packed form is the order in which a walk meets the bytes.
struct Node {
    enum Op : uint8_t {
        empty,
        run,      // `block` bytes
        strided,  // `count` blocks of `block` bytes, `stride` apart
        loop,     // `count` times `child`, `stride` apart
        runs,     // `count` entries of `list`; `block` bytes each, or 0 where they differ
        parts,    // `count` entries of `members`
    };
    Op op;
    uint16_t depth;      // of the tree below, which bounds the recursion
    int64_t offset;      // added to the origin
    int64_t bytes;       // in the packed form
    int64_t count;
    int64_t stride;
    int64_t block;
    union {
        const Node* child;
        const Run* list;
        const Part* members;
    };
};

// A block of a list-like type map: `length` elements of `child` one extent apart.
struct Block {
    int64_t offset, length;
    const Type* child;
};

enum class Combiner : int32_t {
    named = 101, dup, contiguous, vector, hvector, indexed, hindexed, indexed_block, hindexed_block, structure,
    subarray, darray, f90_real, f90_complex, f90_integer, resized, value_index,
};

// The arguments of the constructor call, as envelope and contents tell them.
struct Contents {
    Combiner combiner = Combiner::named;
    bool large = false;            // the `_c` constructor
    int64_t n_ints = 0, n_addresses = 0, n_counts = 0, n_types = 0;
    int32_t* ints = nullptr;
    int64_t* addresses = nullptr;  // or the large counts, never both
    const Type** types = nullptr;  // each held by a reference
};

// The type map by element, for what must know basic elements: `count` blocks of `length` children, `stride` apart; or a
// list of blocks.
struct Shape {
    enum Form : uint8_t { pair, repeat, list } form = repeat;
    int64_t offset = 0, count = 0, length = 0, stride = 0;
    const Type* child = nullptr;
    Block* blocks = nullptr;
};

struct Layout {
    Node root{};
    Shape shape;
    Contents contents;
    int32_t depth = 1;         // of types in types
    int64_t elements = 0;      // basic elements in one element
    int32_t uniform = 0;       // bytes of each where all are the same, else 0
    const Type* inner = nullptr;   // subarray and darray: the type they were composed from; a reference
    void* memory = nullptr;        // the block that runs, parts and nodes lie in
};

}  // namespace weft::type
