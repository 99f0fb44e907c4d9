#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "type/flatten.hpp"
#include "type/model_test.hpp"

namespace weft::type::test {
namespace {

// Memory for `count` elements wherever their offsets lead, filled with a pattern.
struct Memory {
    std::vector<unsigned char> bytes;
    int64_t base;   // where offset 0 of element 0 is

    Memory(const Model& m, int64_t count, Rng& r) {
        int64_t low = 0, high = 1, ext = m.extent();
        for (int64_t i : {int64_t{0}, count - 1}) {
            low = std::min(low, i * ext + m.true_lb());
            high = std::max(high, i * ext + m.true_ub());
        }
        bytes.resize(static_cast<size_t>(high - low));
        for (auto& b : bytes) b = static_cast<unsigned char>(r());
        base = -low;
    }
    unsigned char* origin() { return bytes.data() + base; }
};

std::vector<unsigned char> packed_by_model(const Model& m, int64_t count, Memory& mem) {
    std::vector<unsigned char> out;
    for (int64_t i = 0; i < count; i++)
        for (auto& e : m.map) {
            auto* p = mem.origin() + i * m.extent() + e.offset;
            out.insert(out.end(), p, p + basic(e.basic).bytes);
        }
    return out;
}

void unpack_by_model(const Model& m, int64_t count, Memory& mem, const std::vector<unsigned char>& data) {
    size_t at = 0;
    for (int64_t i = 0; i < count; i++)
        for (auto& e : m.map) {
            size_t n = static_cast<size_t>(basic(e.basic).bytes);
            memcpy(mem.origin() + i * m.extent() + e.offset, data.data() + at, n);
            at += n;
        }
}

void expect_bounds(const Pair& p) {
    ASSERT_EQ(p.type->size, p.model.size()) << p.story;
    ASSERT_EQ(p.type->lb, p.model.lb()) << p.story;
    ASSERT_EQ(p.type->extent, p.model.extent()) << p.story;
    ASSERT_EQ(p.type->true_lb, p.model.true_lb()) << p.story;
    ASSERT_EQ(p.type->true_extent, p.model.true_ub() - p.model.true_lb()) << p.story;
    ASSERT_EQ(static_cast<int>(p.type->align), p.model.align()) << p.story;
}

// Splits [0, total) at random places and calls f(from, bytes) on every piece.
template <class F>
void split(Rng& r, int64_t total, F f) {
    for (int64_t from = 0; from < total;) {
        int64_t n = std::min(total - from, pick(r, 0, 3) ? pick(r, 1, 40) : pick(r, 1, total));
        f(from, n);
        from += n;
    }
}

void expect_elements(const Pair& p, Rng& r) {
    std::vector<int64_t> ends{0};   // packed size after each basic element of three elements
    for (int i = 0; i < 3; i++)
        for (auto& e : p.model.map) ends.push_back(ends.back() + basic(e.basic).bytes);
    for (int i = 0; i < 8; i++) {
        int64_t bytes = pick(r, 0, ends.back());
        auto it = std::lower_bound(ends.begin(), ends.end(), bytes);
        int64_t want = *it == bytes ? it - ends.begin() : -1;
        ASSERT_EQ(elements(*p.type, bytes), want) << p.story << " " << bytes;
        if (!p.model.map.empty()) {
            int64_t n = pick(r, 0, static_cast<int64_t>(ends.size()) - 1);
            ASSERT_EQ(element_bytes(*p.type, n), ends[static_cast<size_t>(n)]) << p.story << " " << n;
        }
    }
}

TEST(Types, RandomTypesAgreeWithTheirTypeMaps) {
    Generator g(20260101);
    int seen[6] = {};   // every form of program must have been tried
    for (int round = 0; round < 20000; round++) {
        Pair p = g.make(static_cast<int>(pick(g.r, 1, 5)));
        ASSERT_EQ(commit(*p.type), Err::ok);
        seen[root_of(*p.type).op]++;
        expect_bounds(p);
        expect_elements(p, g.r);
        int64_t count = pick(g.r, 0, 4);
        Memory mem(p.model, count, g.r);
        auto want = packed_by_model(p.model, count, mem);
        int64_t total = static_cast<int64_t>(want.size());
        Buffer buffer{mem.origin(), count, p.type};
        ASSERT_EQ(buffer.bytes(), total) << p.story;
        if (buffer.dense() && total > 0) {
            ASSERT_EQ(memcmp(buffer.data(), want.data(), want.size()), 0) << p.story;
        }

        std::vector<unsigned char> got(want.size());
        pack(buffer, 0, total, got.data());
        ASSERT_EQ(got, want) << p.story;
        std::fill(got.begin(), got.end(), 0);
        split(g.r, total, [&](int64_t from, int64_t n) { pack(buffer, from, n, got.data() + from); });
        ASSERT_EQ(got, want) << p.story;

        for (auto& b : want) b = static_cast<unsigned char>(g.r());
        Memory expected = mem;
        unpack_by_model(p.model, count, expected, want);
        Memory whole = mem;
        unpack({whole.origin(), count, p.type}, 0, total, want.data());
        ASSERT_EQ(whole.bytes, expected.bytes) << p.story;
        split(g.r, total, [&](int64_t from, int64_t n) { unpack(buffer, from, n, want.data() + from); });
        ASSERT_EQ(mem.bytes, expected.bytes) << p.story;
        Generator::drop(p);
    }
    for (int op = 0; op < 6; op++) EXPECT_GT(seen[op], 20) << "programs of form " << op;
}

TEST(Types, CopiesBetweenLayouts) {
    Generator g(31);
    int both = 0;
    for (int round = 0; round < 3000; round++) {
        Pair a = g.make(static_cast<int>(pick(g.r, 1, 4))), b = g.make(static_cast<int>(pick(g.r, 1, 4)));
        int64_t counts[] = {pick(g.r, 1, 4), pick(g.r, 1, 4)};
        Memory from(a.model, counts[0], g.r), to(b.model, counts[1], g.r);
        int64_t bytes = std::min(a.model.size() * counts[0], b.model.size() * counts[1]);
        auto packed = packed_by_model(a.model, counts[0], from);
        Memory expected = to;
        auto limited = packed_by_model(b.model, counts[1], to);
        std::copy_n(packed.begin(), bytes, limited.begin());
        unpack({expected.origin(), counts[1], b.type}, 0, bytes, limited.data());
        Buffer source{from.origin(), counts[0], a.type}, target{to.origin(), counts[1], b.type};
        both += !source.dense() && !target.dense() && bytes > 0;
        copy(source, target, bytes);
        ASSERT_EQ(to.bytes, expected.bytes) << a.story << " to " << b.story;
        Generator::drop(a);
        Generator::drop(b);
    }
    EXPECT_GT(both, 300);
}

TEST(Types, LargeSparseTypesNeedNoMemoryForTheirCounts) {
    Type *line, *plane;
    const Type& d = *predefined_at(0x214);
    ASSERT_EQ(vector(Width::large, int64_t{1} << 33, 1, 2, d, &line), Err::ok);
    ASSERT_EQ(hvector(Width::large, int64_t{1} << 10, 1, int64_t{1} << 45, *line, &plane), Err::ok);
    EXPECT_EQ(plane->size, int64_t{1} << 46);
    EXPECT_EQ(plane->true_extent, (((int64_t{1} << 33) - 1) * 16 + 8) + ((int64_t{1} << 10) - 1) * (int64_t{1} << 45));
    EXPECT_EQ(elements(*plane, plane->size), int64_t{1} << 43);
    Type* bad;
    EXPECT_EQ(contiguous(Width::large, INT64_MAX / 4, d, &bad), Err::count);
    EXPECT_EQ(contiguous(Width::classic, -1, d, &bad), Err::count);
    EXPECT_EQ(vector(Width::classic, 1, -1, 1, d, &bad), Err::arg);
    release(*plane);
    release(*line);
}

TEST(Types, FreedTypesReadAsDeadAndPartsLiveOn) {
    Type *inner, *outer;
    const Type& i = *predefined_at(0x209);
    ASSERT_EQ(vector(Width::classic, 3, 1, 2, i, &inner), Err::ok);
    ASSERT_EQ(contiguous(Width::classic, 2, *inner, &outer), Err::ok);
    release(*inner);
    EXPECT_EQ(inner->kind, Kind::type);
    int from[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, to[6] = {};
    pack({from, 1, outer}, 0, 24, to);
    const int want[6] = {0, 2, 4, 5, 7, 9};
    EXPECT_EQ(memcmp(to, want, sizeof want), 0);
    release(*outer);
    EXPECT_EQ(inner->kind, Kind::dead);
    EXPECT_EQ(outer->kind, Kind::dead);
}

// Deep enough for anybody, and beyond that an error rather than an overrun stack.
TEST(Types, NestingHasALimit) {
    std::vector<Type*> chain;
    const Type* old = predefined_at(0x22c);
    Err e = Err::ok;
    for (int i = 0; i < 6000 && e == Err::ok; i++) {
        Type* t = nullptr;
        const int32_t lengths[] = {1, 1};
        const int64_t displacements[] = {0, old->extent + 8};
        const Type* olds[] = {old, predefined_at(0x209)};
        e = structure(Width::classic, 2, lengths, displacements, olds, &t);
        if (e == Err::ok) chain.push_back(t), old = t;
    }
    EXPECT_EQ(e, Err::no_mem);
    ASSERT_GT(chain.size(), 1000u);
    Type* top = chain.back();
    for (Type* t : chain)
        if (t != top) release(*t);
    std::vector<char> memory(static_cast<size_t>(top->extent)), packed(static_cast<size_t>(top->size));
    pack({memory.data(), 1, top}, 1, top->size - 1, packed.data());
    unpack({memory.data(), 1, top}, 1, top->size - 1, packed.data());
    EXPECT_EQ(elements(*top, top->size), static_cast<int64_t>(chain.size()) + 2);
    EXPECT_EQ(elements(*top, 6), 2);
    release(*top);
}

TEST(Types, ThreadsBuildAndFreeAtOnce) {
    std::vector<std::thread> threads;
    Type* shared;
    ASSERT_EQ(vector(Width::classic, 4, 1, 3, *predefined_at(0x209), &shared), Err::ok);
    for (int k = 0; k < 4; k++)
        threads.emplace_back([&, k] {
            for (int i = 0; i < 2000; i++) {
                Type *a, *b;
                const Type *pair, *kind;
                ASSERT_EQ(contiguous(Width::classic, 3, *shared, &a), Err::ok);
                ASSERT_EQ(dup(*a, &b), Err::ok);
                release(*a);
                ASSERT_EQ(b->size, 48);
                release(*b);
                ASSERT_EQ(value_index(*predefined_at(0x214), *predefined_at(0x240 + i % 2), &pair), Err::ok);
                ASSERT_EQ(f90_integer(i % 9 + k, &kind), Err::ok);
            }
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(shared->refs.load(), 1);
    release(*shared);
}

// Builds a type again from its own contents.
Err rebuild(const Type& t, Type** out) {
    const Contents& c = contents_of(t);
    Width w = c.large ? Width::large : Width::classic;
    const int32_t* i = c.ints;
    const int64_t* a = c.addresses;
    auto first = [&](int64_t k) { return c.large ? Counts(a + k) : Counts(i + k); };
    switch (c.combiner) {
    case Combiner::dup: return dup(*c.types[0], out);
    case Combiner::contiguous: return contiguous(w, first(0)[0], *c.types[0], out);
    case Combiner::vector: return vector(w, first(0)[0], first(0)[1], first(0)[2], *c.types[0], out);
    case Combiner::hvector: return hvector(w, first(0)[0], first(0)[1], c.large ? a[2] : a[0], *c.types[0], out);
    case Combiner::indexed: return indexed(w, first(0)[0], first(1), first(1 + first(0)[0]), *c.types[0], out);
    case Combiner::hindexed:
        return hindexed(w, first(0)[0], first(1), c.large ? a + 1 + a[0] : a, *c.types[0], out);
    case Combiner::indexed_block: return indexed_block(w, first(0)[0], first(0)[1], first(2), *c.types[0], out);
    case Combiner::hindexed_block: return hindexed_block(w, first(0)[0], first(0)[1], c.large ? a + 2 : a, *c.types[0], out);
    case Combiner::structure: return structure(w, first(0)[0], first(1), c.large ? a + 1 + a[0] : a, c.types, out);
    case Combiner::subarray: {
        int n = i[0];
        if (c.large) return subarray(w, n, a, a + n, a + 2 * n, i[1], *c.types[0], out);
        return subarray(w, n, i + 1, i + 1 + n, i + 1 + 2 * n, i[1 + 3 * n], *c.types[0], out);
    }
    case Combiner::darray: {
        int n = i[2];
        const int32_t* p = c.large ? i + 3 : i + 3 + n;
        return darray(w, {i[0], i[1], n, p, p + n, p + 2 * n, p[3 * n]}, c.large ? Counts(a) : Counts(i + 3), *c.types[0], out);
    }
    case Combiner::resized: return resized(w, *c.types[0], a[0], a[1], out);
    default: return fail(Err::arg, "a combiner the test does not know");
    }
}

int64_t ints_of(const Contents& c) {   // what the standard says of the classic forms
    int64_t n = c.n_ints > 0 ? c.ints[0] : 0;
    switch (c.combiner) {
    case Combiner::contiguous: return 1;
    case Combiner::vector: return 3;
    case Combiner::hvector: return 2;
    case Combiner::indexed: return 2 * n + 1;
    case Combiner::hindexed: case Combiner::structure: return n + 1;
    case Combiner::indexed_block: return n + 2;
    case Combiner::hindexed_block: return 2;
    case Combiner::subarray: return 3 * n + 2;
    case Combiner::darray: return 4 * c.ints[2] + 4;
    default: return 0;
    }
}

TEST(Types, ContentsRebuildTheType) {
    Generator g(7);
    int large = 0;
    for (int round = 0; round < 2000; round++) {
        Pair p = g.make(3);
        const Contents& c = contents_of(*p.type);
        if (c.combiner == Combiner::named) continue;
        if (c.large) {
            large++;
            EXPECT_EQ(c.n_addresses, 0) << p.story;
        } else {
            EXPECT_EQ(c.n_counts, 0) << p.story;
            EXPECT_EQ(c.n_ints, ints_of(c)) << p.story;
        }
        Pair again;
        ASSERT_EQ(rebuild(*p.type, &again.type), Err::ok) << p.story << fail_text();
        again.model = p.model;
        again.story = "again " + p.story;
        expect_bounds(again);
        const Contents& d = contents_of(*again.type);
        ASSERT_TRUE(c.n_ints == d.n_ints && c.n_counts == d.n_counts && c.n_addresses == d.n_addresses && c.n_types == d.n_types);
        EXPECT_TRUE(std::equal(c.ints, c.ints + c.n_ints, d.ints));
        EXPECT_TRUE(std::equal(c.addresses, c.addresses + c.n_counts + c.n_addresses, d.addresses));
        EXPECT_TRUE(std::equal(c.types, c.types + c.n_types, d.types));
        Generator::drop(again);
        Generator::drop(p);
    }
    EXPECT_GT(large, 100);
}

TEST(Types, ArraysRefuseWhatLeavesThem) {
    const Type& i = *predefined_at(0x209);
    int32_t size[] = {4}, sub[] = {2}, start[] = {3}, zero[] = {0};
    Type* t;
    EXPECT_EQ(subarray(Width::classic, 1, size, sub, start, 12, i, &t), Err::arg);
    EXPECT_EQ(subarray(Width::classic, 1, size, sub, zero, 13, i, &t), Err::arg);
    EXPECT_EQ(subarray(Width::classic, 0, size, sub, zero, 12, i, &t), Err::arg);
    int32_t block[] = {17}, one[] = {1}, two[] = {2};
    EXPECT_EQ(darray(Width::classic, {2, 0, 1, block, one, two, 12}, size, i, &t), Err::arg);
    EXPECT_EQ(darray(Width::classic, {2, 2, 1, block, two, two, 12}, size, i, &t), Err::arg);
    EXPECT_EQ(darray(Width::classic, {3, 0, 1, block, two, two, 12}, size, i, &t), Err::arg);
}

}  // namespace
}  // namespace weft::type::test
