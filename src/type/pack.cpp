// Pack and unpack run a type's program. One template serves both directions: `Out` reads the user's memory.
#include <string.h>

#include "type/flatten.hpp"
#include "type/type.hpp"

namespace weft::type {

namespace {

template <bool Out>
WEFT_INLINE void move(char* user, char* packed, size_t n) {
    if constexpr (Out)
        memcpy(packed, user, n);
    else
        memcpy(user, packed, n);
}

// Blocks whose length the compiler knows become plain loads and stores. Block i lies at user + place(i).
template <bool Out, size_t Block, class Place>
char* blocks_of(char* user, Place place, int64_t count, char* packed) {
    for (int64_t i = 0; i < count; i++) move<Out>(user + place(i), packed + i * static_cast<int64_t>(Block), Block);
    return packed + count * static_cast<int64_t>(Block);
}

template <bool Out, class Place>
char* blocks(char* user, Place place, int64_t block, int64_t count, char* packed) {
    switch (block) {
    case 1: return blocks_of<Out, 1>(user, place, count, packed);
    case 2: return blocks_of<Out, 2>(user, place, count, packed);
    case 4: return blocks_of<Out, 4>(user, place, count, packed);
    case 8: return blocks_of<Out, 8>(user, place, count, packed);
    case 12: return blocks_of<Out, 12>(user, place, count, packed);
    case 16: return blocks_of<Out, 16>(user, place, count, packed);
    case 24: return blocks_of<Out, 24>(user, place, count, packed);
    case 32: return blocks_of<Out, 32>(user, place, count, packed);
    case 64: return blocks_of<Out, 64>(user, place, count, packed);
    }
    for (int64_t i = 0; i < count; i++, packed += block) move<Out>(user + place(i), packed, static_cast<size_t>(block));
    return packed;
}

template <bool Out>
char* strided(char* user, int64_t stride, int64_t block, int64_t count, char* packed) {
    return blocks<Out>(user, [stride](int64_t i) { return i * stride; }, block, count, packed);
}

// One run of a list: short ones without a call.
template <bool Out>
WEFT_INLINE void move_run(char* user, char* packed, int64_t n) {
    switch (n) {
    case 1: return move<Out>(user, packed, 1);
    case 2: return move<Out>(user, packed, 2);
    case 4: return move<Out>(user, packed, 4);
    case 8: return move<Out>(user, packed, 8);
    case 16: return move<Out>(user, packed, 16);
    default: return move<Out>(user, packed, static_cast<size_t>(n));
    }
}

// Whole runs of a list, of `block` bytes each unless that is 0.
template <bool Out>
char* listed(char* user, const Run* list, int64_t count, int64_t block, char* packed) {
    if (block != 0) return blocks<Out>(user, [list](int64_t i) { return list[i].offset; }, block, count, packed);
    for (int64_t i = 0; i < count; i++) {
        move_run<Out>(user + list[i].offset, packed, list[i].bytes);
        packed += list[i].bytes;
    }
    return packed;
}

// A whole node; returns where its packed form ends.
template <bool Out>
char* move_all(const Node& n, char* user, char* packed) {
    user += n.offset;
    switch (n.op) {
    case Node::empty: break;
    case Node::run: move<Out>(user, packed, static_cast<size_t>(n.block)); return packed + n.block;
    case Node::strided: return strided<Out>(user, n.stride, n.block, n.count, packed);
    case Node::loop: {
        const Node& c = *n.child;
        if (c.op == Node::strided) {   // two levels are common enough (subarrays) to save the call
            for (int64_t i = 0; i < n.count; i++)
                packed = strided<Out>(user + i * n.stride + c.offset, c.stride, c.block, c.count, packed);
        } else {
            for (int64_t i = 0; i < n.count; i++) packed = move_all<Out>(c, user + i * n.stride, packed);
        }
        break;
    }
    case Node::runs: return listed<Out>(user, n.list, n.count, n.block, packed);
    case Node::parts:
        for (int64_t i = 0; i < n.count; i++) packed = move_all<Out>(*n.members[i].child, user + n.members[i].offset, packed);
        break;
    }
    return packed;
}

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Bytes [from, from + bytes) of a node.
template <bool Out>
char* move_part(const Node& n, char* user, char* packed, int64_t from, int64_t bytes) {
    if (from == 0 && bytes == n.bytes) return move_all<Out>(n, user, packed);
    user += n.offset;
    switch (n.op) {
    case Node::empty: return packed;
    case Node::run: move<Out>(user + from, packed, static_cast<size_t>(bytes)); return packed + bytes;
    case Node::strided: {
        int64_t i = from / n.block, skip = from - i * n.block;
        if (skip > 0) {
            int64_t m = least(n.block - skip, bytes);
            move<Out>(user + i++ * n.stride + skip, packed, static_cast<size_t>(m));
            packed += m;
            bytes -= m;
        }
        int64_t whole = bytes / n.block;
        packed = strided<Out>(user + i * n.stride, n.stride, n.block, whole, packed);
        bytes -= whole * n.block;
        if (bytes > 0) move<Out>(user + (i + whole) * n.stride, packed, static_cast<size_t>(bytes));
        return packed + bytes;
    }
    case Node::loop: {
        const Node& c = *n.child;
        int64_t i = from / c.bytes, skip = from - i * c.bytes;
        for (; bytes > 0; i++, skip = 0) {
            int64_t m = least(c.bytes - skip, bytes);
            packed = move_part<Out>(c, user + i * n.stride, packed, skip, m);
            bytes -= m;
        }
        return packed;
    }
    case Node::runs: {
        int64_t i = entry_at(n.list, n.count, from), skip = from - n.list[i].start, end = from + bytes;
        if (skip > 0) {
            int64_t m = least(n.list[i].bytes - skip, bytes);
            move<Out>(user + n.list[i++].offset + skip, packed, static_cast<size_t>(m));
            packed += m;
            from += m;
            if (from == end) return packed;
        }
        int64_t last = end == n.bytes ? n.count : entry_at(n.list, n.count, end);
        packed = listed<Out>(user, n.list + i, last - i, n.block, packed);
        if (last == n.count || n.list[last].start == end) return packed;
        int64_t rest = end - n.list[last].start;
        move<Out>(user + n.list[last].offset, packed, static_cast<size_t>(rest));
        return packed + rest;
    }
    case Node::parts:
        for (int64_t i = entry_at(n.members, n.count, from); bytes > 0; i++) {
            const Part& p = n.members[i];
            int64_t skip = from - p.start, m = least(p.child->bytes - skip, bytes);
            packed = move_part<Out>(*p.child, user + p.offset, packed, skip, m);
            from += m;
            bytes -= m;
        }
        return packed;
    }
    return packed;
}

template <bool Out>
void run_program(const Buffer& b, int64_t from, int64_t bytes, char* packed) {
    if (bytes <= 0) return;
    if (b.dense()) return move<Out>(b.data() + from, packed, static_cast<size_t>(bytes));
    // A plain derived type needs no copy of its root: the loop over elements points at it.
    Node own = root_of(*b.type);
    const Node& root = b.type->layout ? b.type->layout->root : own;
    move_part<Out>(loop_over(root, b.count, b.type->extent), static_cast<char*>(b.base), packed, from, bytes);
}

}  // namespace

void pack(const Buffer& b, int64_t from, int64_t bytes, void* to) {
    run_program<true>(b, from, bytes, static_cast<char*>(to));
}

void unpack(const Buffer& b, int64_t from, int64_t bytes, const void* src) {
    run_program<false>(b, from, bytes, static_cast<char*>(const_cast<void*>(src)));
}

void copy(const Buffer& from, const Buffer& to, int64_t bytes) {
    if (bytes <= 0) return;
    if (from.dense() && to.dense()) {
        memmove(to.data(), from.data(), static_cast<size_t>(bytes));
    } else if (from.dense()) {
        unpack(to, 0, bytes, from.data());
    } else if (to.dense()) {
        pack(from, 0, bytes, to.data());
    } else {
        // By way of the first-level cache: cheaper than finding the place in both layouts for every short run.
        char piece[8192];
        for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(sizeof piece)) {
            int64_t n = bytes - at < static_cast<int64_t>(sizeof piece) ? bytes - at : static_cast<int64_t>(sizeof piece);
            pack(from, at, n, piece);
            unpack(to, at, n, piece);
        }
    }
}

}  // namespace weft::type
