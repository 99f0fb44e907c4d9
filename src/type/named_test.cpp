// Predefined types, Fortran's sizes, parametrised kinds, and external32 by bytes written out by hand.
#include <gtest/gtest.h>

#include "type/external.hpp"
#include "type/model_test.hpp"

namespace weft::type::test {
namespace {

const Type& at(int id) { return *predefined_at(id); }

TEST(Named, TableAndHandles) {
    for (int id = 0; id < 0x1000; id++) {
        const Type& t = at(id);
        if (t.kind == Kind::type) {
            EXPECT_EQ(t.id, id);
            EXPECT_STREQ(name_of(t), row_of(t)->name);
            EXPECT_EQ(handle_of(t), reinterpret_cast<void*>(static_cast<uintptr_t>(id)));
            EXPECT_EQ(reinterpret_cast<uintptr_t>(&t) % 64, 0u);
        } else {
            EXPECT_EQ(t.kind, id == 0x200 ? Kind::null_handle : Kind::bad_handle);
        }
    }
    EXPECT_STREQ(name_of(at(0x209)), "MPI_INT");
    EXPECT_EQ(at(0x209).size, static_cast<int64_t>(sizeof(int)));
    EXPECT_EQ(at(0x220).extent, static_cast<int64_t>(sizeof(long double)));
    EXPECT_EQ(at(0x23c).size, static_cast<int64_t>(sizeof(wchar_t)));
    EXPECT_TRUE(at(0x214).is(Type::dense));
}

TEST(Named, PairsAreLaidOutAsInC) {
    struct { int id; int64_t size, extent, span; } want[] = {
        {0x228, 8, 8, 8}, {0x229, 12, 16, 12}, {0x22a, 12, 16, 12}, {0x22b, 8, 8, 8}, {0x22c, 6, 8, 8}, {0x22d, 20, 32, 20}};
    for (auto& w : want) {
        EXPECT_EQ(at(w.id).size, w.size);
        EXPECT_EQ(at(w.id).extent, w.extent);
        EXPECT_EQ(at(w.id).true_extent, w.span);
        EXPECT_EQ(elements(at(w.id), w.size * 3), 6);
    }
    EXPECT_FALSE(at(0x22c).is(Type::contiguous));
    struct ShortInt { short value; int index; } from[2] = {{1, 2}, {3, 4}}, to[2];
    memset(&to, 0x55, sizeof to);
    unsigned char packed[12];
    pack({from, 2, &at(0x22c)}, 0, 12, packed);
    unpack({to, 2, &at(0x22c)}, 0, 12, packed);
    EXPECT_EQ(to[1].value, 3);
    EXPECT_EQ(to[1].index, 4);
    EXPECT_EQ(reinterpret_cast<unsigned char*>(to)[2], 0x55);   // the gap is never written
}

using Bytes = std::vector<unsigned char>;

template <class T>
void expect_external(int id, std::vector<T> values, Bytes want) {
    const Type& t = at(id);
    int64_t n = static_cast<int64_t>(values.size());
    ASSERT_EQ(external_size(t, n), static_cast<int64_t>(want.size())) << name_of(t);
    Bytes got(want.size());
    ASSERT_EQ(pack_external({values.data(), n, &t}, got.data()), Err::ok);
    EXPECT_EQ(got, want) << name_of(t);
    std::vector<T> back(values.size());
    ASSERT_EQ(unpack_external({back.data(), n, &t}, want.data()), Err::ok);
    for (size_t i = 0; i < values.size(); i++) EXPECT_EQ(back[i], values[i]) << name_of(t);
}

TEST(External, ByHand) {
    expect_external<int>(0x209, {1, -2, 0x01020304}, {0, 0, 0, 1, 255, 255, 255, 254, 1, 2, 3, 4});
    expect_external<short>(0x208, {-2}, {255, 254});
    expect_external<long>(0x20a, {-2, 7}, {255, 255, 255, 254, 0, 0, 0, 7});   // four bytes
    expect_external<unsigned long>(0x20e, {0xfffffffful}, {255, 255, 255, 255});
    expect_external<long long>(0x20b, {0x0102030405060708}, {1, 2, 3, 4, 5, 6, 7, 8});
    expect_external<int64_t>(0x201, {-1}, {255, 255, 255, 255, 255, 255, 255, 255});
    expect_external<float>(0x210, {1.0f, -2.5f}, {0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0});
    expect_external<double>(0x214, {1.0, -0.15625}, {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xbf, 0xc4, 0, 0, 0, 0, 0, 0});
    expect_external<wchar_t>(0x23c, {L'A', 0x20ac}, {0, 65, 0x20, 0xac});   // two bytes
    expect_external<char>(0x243, {'w', 'e'}, {'w', 'e'});
    expect_external<unsigned char>(0x238, {1, 0}, {1, 0});
    // 1.5 and -2 in binary128: sign, 15 bits of exponent (bias 16383), 112 of fraction.
    expect_external<long double>(0x220, {1.5L, -2.0L},
                                 {0x3f, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    struct Complex { float re, im; bool operator==(const Complex& o) const { return re == o.re && im == o.im; } };
    expect_external<Complex>(0x212, {{1, -2.5f}}, {0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0});
    struct DoubleInt { double v; int i; bool operator==(const DoubleInt& o) const { return v == o.v && i == o.i; } };
    expect_external<DoubleInt>(0x229, {{1.0, 258}}, {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2});
    struct LongInt { long v; int i; bool operator==(const LongInt& o) const { return v == o.v && i == o.i; } };
    expect_external<LongInt>(0x22a, {{-3, 5}}, {255, 255, 255, 253, 0, 0, 0, 5});
}

TEST(External, WhatDoesNotFitIsAnError) {
    long big = 1l << 31, small = -(1l << 31);
    unsigned char out[8];
    EXPECT_EQ(pack_external({&big, 1, &at(0x20a)}, out), Err::value_too_large);
    EXPECT_EQ(pack_external({&small, 1, &at(0x20a)}, out), Err::ok);
    wchar_t far = 0x1f600;
    EXPECT_EQ(pack_external({&far, 1, &at(0x23c)}, out), Err::value_too_large);
}

// Derived types: the elements of the type map in order, each as when written alone.
TEST(External, RandomTypesAreTheirElements) {
    Generator g(99);
    for (int round = 0; round < 1500; round++) {
        Pair p = g.make(static_cast<int>(pick(g.r, 1, 4)));
        int64_t count = pick(g.r, 0, 3), ext = p.model.extent(), low = 0, high = 1;
        for (int64_t i : {int64_t{0}, count - 1}) {
            low = std::min(low, i * ext + p.model.true_lb());
            high = std::max(high, i * ext + p.model.true_ub());
        }
        std::vector<unsigned char> memory(static_cast<size_t>(high - low));
        for (auto& b : memory) b = 0;   // zeros fit every type
        unsigned char* origin = memory.data() - low;
        for (int64_t i = 0; i < count; i++)
            for (auto& e : p.model.map)
                if (e.basic == 0x209) {
                    int v = static_cast<int>(g.r() % 100000);
                    memcpy(origin + i * ext + e.offset, &v, 4);
                }
        Bytes want;
        bool fits = true;
        for (int64_t i = 0; i < count && fits; i++)
            for (auto& e : p.model.map) {
                const Type& t = at(e.basic);
                Bytes one(static_cast<size_t>(external_size(t, 1)));
                fits = fits && pack_external({origin + i * ext + e.offset, 1, &t}, one.data()) == Err::ok;
                want.insert(want.end(), one.begin(), one.end());
            }
        ASSERT_EQ(external_size(*p.type, count), fits ? static_cast<int64_t>(want.size()) : external_size(*p.type, count)) << p.story;
        Bytes got(static_cast<size_t>(external_size(*p.type, count)));
        ASSERT_EQ(pack_external({origin, count, p.type}, got.data()), fits ? Err::ok : Err::value_too_large) << p.story;
        if (fits) {
            ASSERT_EQ(got, want) << p.story;
        }
        Generator::drop(p);
    }
}

TEST(Named, KindsAndSizes) {
    const Type *t, *again;
    ASSERT_EQ(match_size(193, 8, &t), Err::ok);
    EXPECT_EQ(t, &at(0x2da));
    ASSERT_EQ(match_size(192, 2, &t), Err::ok);
    EXPECT_EQ(t, &at(0x2c9));
    ASSERT_EQ(match_size(194, 16, &t), Err::ok);
    EXPECT_EQ(t, &at(0x2e3));
    EXPECT_EQ(match_size(193, 3, &t), Err::arg);
    EXPECT_EQ(match_size(7, 4, &t), Err::arg);

    ASSERT_EQ(f90_real(15, 307, &t), Err::ok);
    EXPECT_EQ(t->size, 8);
    EXPECT_TRUE(t->is(Type::predefined) && t->is(Type::committed) && t->is(Type::dense));
    ASSERT_EQ(f90_real(15, 307, &again), Err::ok);
    EXPECT_EQ(t, again);
    ASSERT_EQ(f90_real(14, 307, &again), Err::ok);
    EXPECT_NE(t, again);
    const Contents& c = contents_of(*t);
    EXPECT_EQ(c.combiner, Combiner::f90_real);
    ASSERT_EQ(c.n_ints, 2);
    EXPECT_EQ(c.ints[0], 15);
    EXPECT_EQ(c.ints[1], 307);
    ASSERT_EQ(f90_complex(6, unspecified, &t), Err::ok);
    EXPECT_EQ(t->size, 8);
    ASSERT_EQ(f90_integer(9, &t), Err::ok);
    EXPECT_EQ(t->size, 4);
    EXPECT_EQ(contents_of(*t).n_ints, 1);
    EXPECT_EQ(f90_real(40, 10, &t), Err::arg);
    EXPECT_EQ(f90_real(unspecified, unspecified, &t), Err::arg);
    EXPECT_EQ(f90_integer(100, &t), Err::arg);
    double one = 1.0;
    ASSERT_EQ(f90_real(15, 300, &t), Err::ok);
    unsigned char out[8];
    ASSERT_EQ(pack_external({&one, 1, t}, out), Err::ok);
    EXPECT_EQ(out[0], 0x3f);
}

TEST(Named, ValueIndexTellsItsParts) {
    const Type* t;
    ASSERT_EQ(value_index(at(0x214), at(0x259), &t), Err::ok);
    const Contents& c = contents_of(*t);
    EXPECT_EQ(c.combiner, Combiner::value_index);
    ASSERT_EQ(c.n_types, 2);
    EXPECT_EQ(c.types[0], &at(0x214));
    EXPECT_EQ(c.types[1], &at(0x259));
    EXPECT_EQ(c.n_ints + c.n_addresses + c.n_counts, 0);
    EXPECT_EQ(value_index(at(0x200), at(0x209), &t), Err::type);
}

// As compilers make them: a program in C may use them without a Fortran layer.
TEST(Named, FortranTypesHaveTheirDefaultSizes) {
    struct Want { int id, size, align; Elem elem, index; };
    for (const Want& w : {Want{0x218, 4, 4, Elem::l32, Elem::none}, Want{0x219, 4, 4, Elem::i32, Elem::none},
                          Want{0x21a, 4, 4, Elem::f32, Elem::none}, Want{0x21b, 8, 4, Elem::cf32, Elem::none},
                          Want{0x21c, 8, 8, Elem::f64, Elem::none}, Want{0x21d, 16, 8, Elem::cf64, Elem::none},
                          Want{0x230, 8, 4, Elem::f32, Elem::f32}, Want{0x231, 16, 8, Elem::f64, Elem::f64},
                          Want{0x232, 8, 4, Elem::i32, Elem::i32}, Want{0x2c1, 1, 1, Elem::i8, Elem::none},
                          Want{0x2e1, 16, 16, Elem::i128, Elem::none}, Want{0x2eb, 32, 16, Elem::cf128, Elem::none}}) {
        const Type& t = at(w.id);
        EXPECT_TRUE(t.is(Type::committed) && t.is(Type::dense) && !t.is(Type::unsupported)) << name_of(t);
        EXPECT_TRUE(t.size == w.size && t.extent == w.size && t.true_extent == w.size) << name_of(t);
        EXPECT_TRUE(static_cast<int>(t.align) == w.align && t.elem == w.elem && t.index == w.index) << name_of(t);
    }
}

// The last of all: it changes the table for good.
TEST(ZFortran, SizesComeFromAFortranLayer) {
    constexpr int32_t untold = FortranSizes::untold;
    auto supported = [](const Row& r, void*) -> int32_t {
        const std::string name = r.name;
        return name == "MPI_INTEGER16" ? 0 : name == "MPI_INTEGER8" ? untold : 1;
    };
    EXPECT_EQ(set_fortran_sizes({4, 3, 4, 8, supported, nullptr}), Err::arg);
    EXPECT_FALSE(at(0x2e1).is(Type::unsupported));
    ASSERT_EQ(set_fortran_sizes({untold, 8, 4, 0, supported, nullptr}), Err::ok);
    EXPECT_EQ(at(0x218).size, 4);
    EXPECT_EQ(at(0x219).size, 8);
    EXPECT_EQ(at(0x219).elem, Elem::i64);
    EXPECT_EQ(at(0x21b).size, 8);
    EXPECT_EQ(at(0x21b).align, 4u);
    EXPECT_EQ(at(0x232).extent, 16);
    EXPECT_TRUE(at(0x232).is_pair());
    EXPECT_FALSE(at(0x2d1).is(Type::unsupported) || at(0x2d9).is(Type::unsupported));
    for (int missing : {0x2e1, 0x21c, 0x21d, 0x231})
        EXPECT_TRUE(at(missing).is(Type::unsupported) && !at(missing).is(Type::committed)) << missing;
    Type* derived;
    EXPECT_EQ(contiguous(Width::classic, 2, at(0x21c), &derived), Err::type);
    const Type* t;
    ASSERT_EQ(match_size(192, 4, &t), Err::ok);
    EXPECT_EQ(t, &at(0x2d1));
    ASSERT_EQ(value_index(at(0x21a), at(0x21a), &t), Err::ok);
    EXPECT_EQ(t, &at(0x230));
    // An INTEGER of eight bytes is written in four.
    int64_t v = -2;
    unsigned char out[4];
    ASSERT_EQ(external_size(at(0x219), 1), 4);
    ASSERT_EQ(pack_external({&v, 1, &at(0x219)}, out), Err::ok);
    EXPECT_EQ(Bytes(out, out + 4), (Bytes{255, 255, 255, 254}));
}

}  // namespace
}  // namespace weft::type::test
