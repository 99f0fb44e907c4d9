#include "type/flatten.hpp"

#include <stdlib.h>

namespace weft::type {

namespace {

constexpr int64_t always_spell = 64;   // lists of so few runs are spelled out whatever they come from
constexpr Node nothing{Node::empty, 1, 0, 0, 0, 0, 0, {nullptr}};

struct MemoryLink {
    MemoryLink* next;
    int64_t unused_;   // keeps what follows aligned to 16
};

}  // namespace

void* layout_memory(Layout& l, int64_t bytes) {
    auto* m = static_cast<MemoryLink*>(malloc(sizeof(MemoryLink) + static_cast<size_t>(bytes)));
    if (!m) return nullptr;
    m->next = static_cast<MemoryLink*>(l.memory);
    l.memory = m;
    return m + 1;
}

void free_layout_memory(Layout& l) {
    for (auto* m = static_cast<MemoryLink*>(l.memory); m;) {
        MemoryLink* next = m->next;
        free(m);
        m = next;
    }
    l.memory = nullptr;
}

Node loop_over(const Node& child, int64_t count, int64_t stride) {
    if (count <= 0 || child.bytes == 0) return nothing;
    if (count == 1) return child;
    Node n = child;
    n.bytes = child.bytes * count;
    if (child.op == Node::run && stride == child.block) {
        n.block = n.bytes;
    } else if (child.op == Node::run) {
        n.op = Node::strided;
        n.count = count;
        n.stride = stride;
    } else if ((child.op == Node::strided || child.op == Node::loop) && stride == child.count * child.stride) {
        n.count = child.count * count;
    } else {
        n = {Node::loop, static_cast<uint16_t>(child.depth + 1), 0, n.bytes, count, stride, 0, {&child}};
    }
    return n;
}

int64_t leaves(const Node& n, int64_t limit) {
    int64_t k = 0;
    switch (n.op) {
    case Node::empty: return 0;
    case Node::run: return 1;
    case Node::strided:
    case Node::runs: k = n.count; break;
    case Node::loop:
        k = leaves(*n.child, limit);
        k = n.count > limit / k ? limit : k * n.count;
        break;
    case Node::parts:
        for (int64_t i = 0; i < n.count && k < limit; i++) k += leaves(*n.members[i].child, limit);
        break;
    }
    return k < limit ? k : limit;
}

namespace {

// Collects runs in packed order, joining those that touch.
struct Runs {
    Run* list;
    int64_t count = 0, bytes = 0;

    void add(int64_t offset, int64_t n) {
        if (count > 0 && list[count - 1].offset + list[count - 1].bytes == offset)
            list[count - 1].bytes += n;
        else
            list[count++] = {offset, bytes, n};
        bytes += n;
    }

    void add(const Node& n, int64_t origin) {
        origin += n.offset;
        switch (n.op) {
        case Node::empty: break;
        case Node::run: add(origin, n.block); break;
        case Node::strided:
            for (int64_t i = 0; i < n.count; i++) add(origin + i * n.stride, n.block);
            break;
        case Node::loop:
            for (int64_t i = 0; i < n.count; i++) add(*n.child, origin + i * n.stride);
            break;
        case Node::runs:
            for (int64_t i = 0; i < n.count; i++) add(origin + n.list[i].offset, n.list[i].bytes);
            break;
        case Node::parts:
            for (int64_t i = 0; i < n.count; i++) add(*n.members[i].child, origin + n.members[i].offset);
            break;
        }
    }

    Node node() const {
        if (count == 0) return nothing;
        if (count == 1) return {Node::run, 1, list[0].offset, bytes, 1, 0, bytes, {nullptr}};
        int64_t stride = list[1].offset - list[0].offset, block = list[0].bytes;
        bool equal = true, even = true;
        for (int64_t i = 1; i < count && equal; i++) {
            equal = list[i].bytes == block;
            even = even && list[i].offset - list[i - 1].offset == stride;
        }
        if (equal && even) return {Node::strided, 1, list[0].offset, bytes, count, stride, block, {nullptr}};
        Node n{Node::runs, 1, 0, bytes, count, 0, equal ? block : 0, {nullptr}};
        n.list = list;
        return n;
    }
};

Node* keep(Layout& l, const Node& n) {
    auto* p = static_cast<Node*>(layout_memory(l, sizeof(Node)));
    if (p) *p = n;
    return p;
}

// loop_over in the layout's own memory, so that the result may outlive `child`.
Err loop_in(Layout& l, const Node& child, int64_t count, int64_t stride, Node* out) {
    Node n = loop_over(child, count, stride);
    if (n.op == Node::loop && n.child == &child) {
        n.child = keep(l, child);
        if (!n.child) return fail(Err::no_mem, "no memory for a datatype");
    }
    *out = n;
    return Err::ok;
}

// Blocks of one child, all of one length and evenly spaced.
bool is_even(const Shape& s) {
    for (int64_t i = 1; i < s.count; i++) {
        const Block &a = s.blocks[i - 1], &b = s.blocks[i];
        if (a.child != b.child || a.length != b.length) return false;
        if (i > 1 && b.offset - a.offset != s.blocks[1].offset - s.blocks[0].offset) return false;
    }
    return s.count > 0;
}

Err flatten_even(Layout& l, const Block& first, int64_t count, int64_t stride) {
    Node block, all;
    WEFT_TRY(loop_in(l, root_of(*first.child), first.length, first.child->extent, &block));
    WEFT_TRY(loop_in(l, block, count, stride, &all));
    if (all.op != Node::empty) all.offset += first.offset;
    l.root = all;
    return Err::ok;
}

// Runs of the whole list if spelled out, at most `limit`.
int64_t list_leaves(const Shape& s, int64_t limit) {
    int64_t k = 0;
    for (int64_t i = 0; i < s.count && k < limit; i++) {
        const Block& b = s.blocks[i];
        if (b.length == 0) continue;
        Node child = root_of(*b.child);
        k += leaves(loop_over(child, b.length, b.child->extent), limit);
    }
    return k;
}

Err spell_out(Layout& l, int64_t capacity) {
    if (capacity == 0) {
        l.root = nothing;
        return Err::ok;
    }
    Runs runs{static_cast<Run*>(layout_memory(l, capacity * static_cast<int64_t>(sizeof(Run))))};
    if (!runs.list) return fail(Err::no_mem, "no memory for a datatype of %lld runs", static_cast<long long>(capacity));
    for (int64_t i = 0; i < l.shape.count; i++) {
        const Block& b = l.shape.blocks[i];
        Node child = root_of(*b.child);
        runs.add(loop_over(child, b.length, b.child->extent), b.offset);
    }
    l.root = runs.node();
    return Err::ok;
}

Err flatten_parts(Layout& l) {
    const Shape& s = l.shape;
    auto* parts = static_cast<Part*>(layout_memory(l, s.count * static_cast<int64_t>(sizeof(Part))));
    if (!parts) return fail(Err::no_mem, "no memory for a datatype of %lld blocks", static_cast<long long>(s.count));
    int64_t n = 0, start = 0;
    int depth = 0;
    const Node* shared = nullptr;
    const Block* last = nullptr;
    for (int64_t i = 0; i < s.count; i++) {
        const Block& b = s.blocks[i];
        if (b.length == 0 || b.child->size == 0) continue;
        if (!last || last->child != b.child || last->length != b.length) {
            Node node;
            WEFT_TRY(loop_in(l, root_of(*b.child), b.length, b.child->extent, &node));
            shared = keep(l, node);
            if (!shared) return fail(Err::no_mem, "no memory for a datatype");
            last = &b;
        }
        parts[n++] = {b.offset, start, shared};
        start += shared->bytes;
        depth = shared->depth > depth ? shared->depth : depth;
    }
    if (n == 1) {
        l.root = *parts[0].child;
        l.root.offset += parts[0].offset;
        return Err::ok;
    }
    l.root = {Node::parts, static_cast<uint16_t>(depth + 1), 0, start, n, 0, 0, {nullptr}};
    l.root.members = parts;
    return Err::ok;
}

}  // namespace

Err flatten(Layout& l) {
    const Shape& s = l.shape;
    if (s.form == Shape::repeat) return flatten_even(l, {s.offset, s.length, s.child}, s.count, s.stride);
    if (is_even(s)) {
        int64_t stride = s.count > 1 ? s.blocks[1].offset - s.blocks[0].offset : 0;
        return flatten_even(l, s.blocks[0], s.count, stride);
    }
    // Spelled out, a list costs 24 bytes for each run: worth it unless a few blocks are long patterns.
    int64_t limit = 4 * s.count > always_spell ? 4 * s.count : always_spell;
    int64_t k = list_leaves(s, limit + 1);
    return k <= limit ? spell_out(l, k) : flatten_parts(l);
}

}  // namespace weft::type
