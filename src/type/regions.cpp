// Where the bytes of a buffer lie, piece by piece; and copies from any layout to any other.
#include <string.h>

#include "type/flatten.hpp"
#include "type/type.hpp"

namespace weft::type {

namespace {

// Collects pieces of memory, joining those that touch, until the array or the wanted bytes are full.
struct Collector {
    Region* out;
    int max;
    int64_t left;
    int n = 0;
    int64_t covered = 0;

    // False: no more is wanted.
    bool add(char* at, int64_t bytes) {
        if (bytes > left) bytes = left;
        if (n > 0 && out[n - 1].at + out[n - 1].bytes == at)
            out[n - 1].bytes += bytes;
        else if (n == max)
            return false;
        else
            out[n++] = {at, bytes};
        covered += bytes;
        left -= bytes;
        return left > 0;
    }
};

// The pieces of a node from its byte `from` on.
bool collect(const Node& n, char* user, int64_t from, Collector& c) {
    user += n.offset;
    switch (n.op) {
    case Node::empty: return true;
    case Node::run: return c.add(user + from, n.block - from);
    case Node::strided: {
        int64_t i = from / n.block, skip = from - i * n.block;
        for (; i < n.count; i++, skip = 0)
            if (!c.add(user + i * n.stride + skip, n.block - skip)) return false;
        return true;
    }
    case Node::loop: {
        int64_t i = from / n.child->bytes, skip = from - i * n.child->bytes;
        for (; i < n.count; i++, skip = 0)
            if (!collect(*n.child, user + i * n.stride, skip, c)) return false;
        return true;
    }
    case Node::runs: {
        int64_t i = entry_at(n.list, n.count, from), skip = from - n.list[i].start;
        for (; i < n.count; i++, skip = 0)
            if (!c.add(user + n.list[i].offset + skip, n.list[i].bytes - skip)) return false;
        return true;
    }
    case Node::parts: {
        int64_t i = entry_at(n.members, n.count, from), skip = from - n.members[i].start;
        for (; i < n.count; i++, skip = 0)
            if (!collect(*n.members[i].child, user + n.members[i].offset, skip, c)) return false;
        return true;
    }
    }
    return true;
}

}  // namespace

int regions(const Buffer& b, int64_t from, int64_t bytes, Region* out, int max, int64_t* covered) {
    *covered = 0;
    if (bytes <= 0) return 0;
    Collector c{out, max, bytes};
    Node root = root_of(*b.type);
    collect(loop_over(root, b.count, b.type->extent), static_cast<char*>(b.base), from, c);
    *covered = c.covered;
    return c.n;
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
