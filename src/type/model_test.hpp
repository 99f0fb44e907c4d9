// An independent model of datatypes for tests: the type map itself, a plain list of basic elements and their offsets.
// Only tests include this. It shares no code with the library beyond the ABI numbers and sizes of basic types.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "type/build.hpp"
#include "type/predefined.hpp"

namespace weft::type::test {

struct Entry {
    int basic;        // ABI number, of no pair
    int64_t offset;
};

struct Basic {
    int id, bytes, align;
};
inline const Basic basics[] = {
    {0x247, 1, 1}, {0x243, 1, 1}, {0x208, 2, 2}, {0x209, 4, 4}, {0x20a, 8, 8}, {0x210, 4, 4},
    {0x214, 8, 8}, {0x259, 8, 8}, {0x216, 16, 8}, {0x220, 16, 16}, {0x238, 1, 1}, {0x249, 2, 2},
};
inline const Basic& basic(int id) {
    return *std::find_if(std::begin(basics), std::end(basics), [&](const Basic& b) { return b.id == id; });
}

struct Model {
    std::vector<Entry> map;
    std::vector<int64_t> lower, upper;   // where bounds were marked

    int64_t size() const {
        int64_t n = 0;
        for (auto& e : map) n += basic(e.basic).bytes;
        return n;
    }
    int64_t true_lb() const {
        int64_t v = map.empty() ? 0 : INT64_MAX;
        for (auto& e : map) v = std::min(v, e.offset);
        return v;
    }
    int64_t true_ub() const {
        int64_t v = map.empty() ? 0 : INT64_MIN;
        for (auto& e : map) v = std::max(v, e.offset + basic(e.basic).bytes);
        return v;
    }
    int align() const {
        int a = 1;
        for (auto& e : map) a = std::max(a, basic(e.basic).align);
        return a;
    }
    int64_t lb() const { return lower.empty() ? true_lb() : *std::min_element(lower.begin(), lower.end()); }
    int64_t ub() const {
        if (!upper.empty()) return *std::max_element(upper.begin(), upper.end());
        int64_t u = true_ub();
        while ((u - lb()) % align() != 0) u++;
        return u;
    }
    int64_t extent() const { return ub() - lb(); }

    void place(const Model& m, int64_t at) {
        for (auto& e : m.map) map.push_back({e.basic, e.offset + at});
        for (auto v : m.lower) lower.push_back(v + at);
        for (auto v : m.upper) upper.push_back(v + at);
    }
    void place_block(const Model& m, int64_t at, int64_t length) {
        for (int64_t i = 0; i < length; i++) place(m, at + i * m.extent());
    }
};

// A library type with its model; `keep` holds references of everything it was made from.
struct Pair {
    Type* type = nullptr;
    Model model;
    bool predefined = false;
    std::string story;
};

using Rng = std::mt19937_64;
inline int64_t pick(Rng& r, int64_t low, int64_t high) { return low + static_cast<int64_t>(r() % static_cast<uint64_t>(high - low + 1)); }

class Generator {
public:
    explicit Generator(uint64_t seed) : r(seed) {}
    Rng r;

    Pair named() {
        static const struct { int id, value, index; int64_t at; } pairs[] = {
            {0x228, 0x210, 0x209, 4}, {0x229, 0x214, 0x209, 8}, {0x22c, 0x208, 0x209, 4}, {0x22d, 0x220, 0x209, 16}};
        Pair p;
        p.predefined = true;
        if (pick(r, 0, 4) == 0) {
            auto& k = pairs[pick(r, 0, 3)];
            p.type = const_cast<Type*>(predefined_at(k.id));
            p.model.map = {{k.value, 0}, {k.index, k.at}};
            p.story = name_of(*p.type);
            return p;
        }
        auto& b = basics[pick(r, 0, std::size(basics) - 1)];
        p.type = const_cast<Type*>(predefined_at(b.id));
        p.model.map = {{b.id, 0}};
        p.story = name_of(*p.type);
        return p;
    }

    // A random type nested at most `depth` deep. The model grows to a few hundred entries.
    Pair make(int depth) {
        if (depth == 0) return named();
        Pair p = derive(depth);
        if (p.model.map.size() <= 1500) return p;
        drop(p);
        return make(depth - 1);
    }
    static void drop(Pair& p) {
        if (!p.predefined) release(*p.type);
    }

private:
    Width width() { return pick(r, 0, 1) ? Width::large : Width::classic; }

    Pair derive(int depth);
    Pair vectors(Pair old);
    Pair lists(Pair old);
    Pair arrays(Pair old);
    Pair structure_of(int depth);
};

// Runs a constructor, drops the old type (the new one holds it), and takes the model.
template <class F>
Pair finish(Pair& old, Model m, std::string story, F build) {
    Pair p;
    p.model = std::move(m);
    p.story = story + "(" + old.story + ")";
    Err e = build(&p.type);
    if (e != Err::ok) throw std::runtime_error(p.story + ": " + fail_text());
    Generator::drop(old);
    return p;
}

inline Pair Generator::vectors(Pair old) {
    int64_t n = pick(r, 0, 4), length = pick(r, 0, 3), stride = pick(r, -4, 6), ext = old.model.extent();
    Model m;
    Width w = width();
    switch (pick(r, 0, 2)) {
    case 0:
        m.place_block(old.model, 0, n);
        return finish(old, m, "contiguous " + std::to_string(n), [&](Type** t) { return contiguous(w, n, *old.type, t); });
    case 1:
        for (int64_t i = 0; i < n; i++) m.place_block(old.model, i * stride * ext, length);
        return finish(old, m, "vector " + std::to_string(n) + "," + std::to_string(length) + "," + std::to_string(stride),
                      [&](Type** t) { return vector(w, n, length, stride, *old.type, t); });
    default:
        stride = pick(r, -40, 60);
        for (int64_t i = 0; i < n; i++) m.place_block(old.model, i * stride, length);
        return finish(old, m, "hvector " + std::to_string(n) + "," + std::to_string(length) + "," + std::to_string(stride),
                      [&](Type** t) { return hvector(w, n, length, stride, *old.type, t); });
    }
}

inline Pair Generator::lists(Pair old) {
    int64_t n = pick(r, 0, 5), ext = old.model.extent(), length = pick(r, 0, 3);
    bool even = pick(r, 0, 3) == 0;
    std::vector<int64_t> lengths, displs, bytes;
    for (int64_t i = 0; i < n; i++) {
        lengths.push_back(even ? length : pick(r, 0, 3));
        displs.push_back(even ? i * 5 - 2 : pick(r, -6, 12));
        bytes.push_back(even ? i * 24 + 8 : pick(r, -50, 90));
    }
    std::vector<int32_t> lengths32(lengths.begin(), lengths.end()), displs32(displs.begin(), displs.end());
    Width w = width();
    bool large = w == Width::large;
    Counts l = large ? Counts(lengths.data()) : Counts(lengths32.data());
    Counts d = large ? Counts(displs.data()) : Counts(displs32.data());
    Model m;
    switch (pick(r, 0, 3)) {
    case 0:
        for (int64_t i = 0; i < n; i++) m.place_block(old.model, displs[i] * ext, lengths[i]);
        return finish(old, m, "indexed", [&](Type** t) { return indexed(w, n, l, d, *old.type, t); });
    case 1:
        for (int64_t i = 0; i < n; i++) m.place_block(old.model, bytes[i], lengths[i]);
        return finish(old, m, "hindexed", [&](Type** t) { return hindexed(w, n, l, bytes.data(), *old.type, t); });
    case 2:
        for (int64_t i = 0; i < n; i++) m.place_block(old.model, displs[i] * ext, length);
        return finish(old, m, "indexed_block", [&](Type** t) { return indexed_block(w, n, length, d, *old.type, t); });
    default:
        for (int64_t i = 0; i < n; i++) m.place_block(old.model, bytes[i], length);
        return finish(old, m, "hindexed_block", [&](Type** t) { return hindexed_block(w, n, length, bytes.data(), *old.type, t); });
    }
}

inline Pair Generator::arrays(Pair old) {
    int ndims = static_cast<int>(pick(r, 1, 3));
    bool fortran = pick(r, 0, 1);
    std::vector<int64_t> size(ndims), sub(ndims), start(ndims);
    std::vector<int32_t> dist(ndims), darg(ndims), psize(ndims), at(ndims);
    bool distributed = pick(r, 0, 1);
    int processes = 1, rank = 0;
    for (int d = 0; d < ndims; d++) {
        size[d] = pick(r, 1, 5);
        sub[d] = pick(r, 1, size[d]);
        start[d] = pick(r, 0, size[d] - sub[d]);
        dist[d] = static_cast<int32_t>(pick(r, 16, 18));
        psize[d] = dist[d] == 16 ? 1 : static_cast<int32_t>(pick(r, 1, 3));
        at[d] = static_cast<int32_t>(pick(r, 0, psize[d] - 1));
        int64_t least = (size[d] + psize[d] - 1) / psize[d];
        darg[d] = pick(r, 0, 1) ? 19 : static_cast<int32_t>(dist[d] == 17 ? pick(r, least, least + 2) : pick(r, 1, 3));
        processes *= psize[d];
        rank = rank * psize[d] + at[d];
    }
    // Which indices of each dimension are in.
    std::vector<std::vector<int64_t>> in(ndims);
    for (int d = 0; d < ndims; d++) {
        for (int64_t i = 0; i < size[d]; i++) {
            bool mine = i >= start[d] && i < start[d] + sub[d];
            if (distributed) {
                int64_t block = darg[d] != 19 ? darg[d] : dist[d] == 17 ? (size[d] + psize[d] - 1) / psize[d] : 1;
                mine = dist[d] == 16 || (dist[d] == 17 ? i / block == at[d] : i / block % psize[d] == at[d]);
            }
            if (mine) in[d].push_back(i);
        }
    }
    Model m;
    int64_t ext = old.model.extent(), all = ext;
    for (auto s : size) all *= s;
    std::vector<size_t> k(ndims, 0);
    bool none = std::any_of(in.begin(), in.end(), [](auto& v) { return v.empty(); });
    auto next = [&] {   // the innermost dimension runs fastest
        for (int j = 0; j < ndims; j++) {
            int d = fortran ? j : ndims - 1 - j;
            if (++k[d] < in[d].size()) return true;
            k[d] = 0;
        }
        return false;
    };
    if (!none) {
        do {
            int64_t linear = 0;
            for (int j = 0; j < ndims; j++) {
                int d = fortran ? ndims - 1 - j : j;
                linear = linear * size[d] + in[d][k[d]];
            }
            m.place(old.model, linear * ext);
        } while (next());
    }
    m.lower = {0};
    m.upper = {all};
    Width w = width();
    std::vector<int32_t> size32(size.begin(), size.end()), sub32(sub.begin(), sub.end()), start32(start.begin(), start.end());
    int32_t order = fortran ? 15 : 12;
    bool large = w == Width::large;
    Counts sizes = large ? Counts(size.data()) : Counts(size32.data());
    if (distributed)
        return finish(old, m, "darray", [&](Type** t) {
            return darray(w, {processes, rank, ndims, dist.data(), darg.data(), psize.data(), order}, sizes, *old.type, t);
        });
    return finish(old, m, "subarray", [&](Type** t) {
        return subarray(w, ndims, sizes, large ? Counts(sub.data()) : Counts(sub32.data()),
                        large ? Counts(start.data()) : Counts(start32.data()), order, *old.type, t);
    });
}

inline Pair Generator::structure_of(int depth) {
    int64_t n = pick(r, 0, 4);
    std::vector<Pair> olds;
    std::vector<const Type*> types;
    std::vector<int64_t> lengths, displs;
    Model m;
    std::string story = "struct{";
    for (int64_t i = 0; i < n; i++) {
        olds.push_back(make(static_cast<int>(pick(r, 0, depth - 1))));
        types.push_back(olds.back().type);
        lengths.push_back(pick(r, 0, 2));
        displs.push_back(pick(r, -60, 200));
        m.place_block(olds.back().model, displs[i], lengths[i]);
        story += olds.back().story + " x" + std::to_string(lengths[i]) + "@" + std::to_string(displs[i]) + ";";
    }
    std::vector<int32_t> lengths32(lengths.begin(), lengths.end());
    Pair none;
    none.predefined = true;
    Width w = width();
    Pair p = finish(none, m, story + "}", [&](Type** t) {
        return structure(w, n, w == Width::large ? Counts(lengths.data()) : Counts(lengths32.data()), displs.data(), types.data(), t);
    });
    for (auto& o : olds) drop(o);
    return p;
}

inline Pair Generator::derive(int depth) {
    int64_t kind = pick(r, 0, 9);
    if (kind >= 8) return structure_of(depth);
    Pair old = make(static_cast<int>(pick(r, 0, depth - 1)));
    if (kind <= 2) return vectors(std::move(old));
    if (kind <= 4) return lists(std::move(old));
    if (kind == 5) return arrays(std::move(old));
    Model m = old.model;
    if (kind == 6) return finish(old, m, "dup", [&](Type** t) { return dup(*old.type, t); });
    int64_t lb = pick(r, -20, 20), extent = pick(r, 0, 3) ? pick(r, 0, 80) : pick(r, -40, 40);
    m.lower = {lb};
    m.upper = {lb + extent};
    Width w = width();
    return finish(old, m, "resized " + std::to_string(lb) + "," + std::to_string(extent),
                  [&](Type** t) { return resized(w, *old.type, lb, extent, t); });
}

}  // namespace weft::type::test
