// Every op on every type, in every instruction set this machine has, against plain scalar loops.
#include <gtest/gtest.h>

#include <climits>
#include <complex>
#include <cstring>
#include <random>
#include <vector>

#include "op/kernels.hpp"
#include "op/predefined.hpp"
#include "type/build.hpp"
#include "type/predefined.hpp"

namespace weft::op {
namespace {

using type::Type;
using Rng = std::mt19937_64;

const Type& type_at(int id) { return *type::predefined_at(id); }

template <class T> struct Tag { using type = T; };

// Calls f(Tag<C type>) for a named scalar type, by ABI number.
template <class F>
void with_c_type(int id, F f) {
    switch (id) {
    case 0x208: return f(Tag<short>{});
    case 0x209: return f(Tag<int>{});
    case 0x20a: return f(Tag<long>{});
    case 0x20b: return f(Tag<long long>{});
    case 0x20c: return f(Tag<unsigned short>{});
    case 0x20d: return f(Tag<unsigned>{});
    case 0x20e: return f(Tag<unsigned long>{});
    case 0x20f: return f(Tag<unsigned long long>{});
    case 0x240: case 0x244: return f(Tag<signed char>{});
    case 0x241: case 0x245: return f(Tag<unsigned char>{});
    case 0x248: return f(Tag<int16_t>{});
    case 0x249: return f(Tag<uint16_t>{});
    case 0x250: return f(Tag<int32_t>{});
    case 0x251: return f(Tag<uint32_t>{});
    case 0x258: case 0x201: case 0x202: case 0x203: return f(Tag<int64_t>{});
    case 0x259: return f(Tag<uint64_t>{});
    case 0x210: return f(Tag<float>{});
    case 0x214: return f(Tag<double>{});
    case 0x220: return f(Tag<long double>{});
    case 0x212: case 0x213: return f(Tag<std::complex<float>>{});
    case 0x216: case 0x217: return f(Tag<std::complex<double>>{});
    case 0x224: case 0x225: return f(Tag<std::complex<long double>>{});
    case 0x238: case 0x239: return f(Tag<bool>{});
    case 0x243: case 0x21e: return f(Tag<char>{});
    case 0x247: return f(Tag<std::byte>{});
    }
}

template <class T> constexpr bool is_complex = false;
template <class T> constexpr bool is_complex<std::complex<T>> = true;

template <class T> T random_value(Rng& r) {
    if constexpr (std::is_same_v<T, bool>) return r() & 1;
    else if constexpr (is_complex<T>) return T(static_cast<int>(r() % 41) - 20, static_cast<int>(r() % 41) - 20);
    else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(static_cast<int64_t>(r() % 2001) - 1000) / 8;
    else return r() % 3 == 0 ? T{} : static_cast<T>(r());
}

enum class Wants { result, undefined };

// What the standard says, one element at a time.
template <class T> Wants oracle(Code c, T a, T b, T* out) {
    constexpr bool integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
    constexpr bool real = std::is_floating_point_v<T>, byte = std::is_same_v<T, std::byte>, truth = std::is_same_v<T, bool>;
    switch (c) {
    case Code::sum:
        if constexpr (integer) { *out = static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); return Wants::result; }
        if constexpr (real || is_complex<T>) { *out = a + b; return Wants::result; }
        break;
    case Code::prod:
        if constexpr (integer) { *out = static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); return Wants::result; }
        if constexpr (real) { *out = a * b; return Wants::result; }
        if constexpr (is_complex<T>) {
            *out = T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
            return Wants::result;
        }
        break;
    case Code::min: if constexpr (integer || real) { *out = std::min(a, b); return Wants::result; } break;
    case Code::max: if constexpr (integer || real) { *out = std::max(a, b); return Wants::result; } break;
    case Code::band: if constexpr (integer || byte) { *out = static_cast<T>(a & b); return Wants::result; } break;
    case Code::bor: if constexpr (integer || byte) { *out = static_cast<T>(a | b); return Wants::result; } break;
    case Code::bxor: if constexpr (integer || byte) { *out = static_cast<T>(a ^ b); return Wants::result; } break;
    case Code::land: if constexpr (integer || truth) { *out = a && b; return Wants::result; } break;
    case Code::lor: if constexpr (integer || truth) { *out = a || b; return Wants::result; } break;
    case Code::lxor: if constexpr (integer || truth) { *out = !a != !b; return Wants::result; } break;
    case Code::replace: *out = a; return Wants::result;
    case Code::no_op: *out = b; return Wants::result;
    default: break;
    }
    return Wants::undefined;
}

template <class T> bool same(T a, T b) {
    if constexpr (is_complex<T>) return a == b;
    else return a == b;
}

// `n` elements at an address with no alignment at all.
template <class T> struct Odd {
    std::vector<char> memory;
    explicit Odd(size_t n) : memory(n * sizeof(T) + 1) {}
    char* data() { return memory.data() + 1; }
    void set(size_t i, T v) { memcpy(data() + i * sizeof(T), &v, sizeof v); }
    T get(size_t i) { T v; memcpy(&v, data() + i * sizeof(T), sizeof v); return v; }
};

template <class F>
void check_scalar(Code c, const Type& t, Rng& r, F run) {
    with_c_type(t.id, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{64}, size_t{133}}) {
            Odd<T> in(n), inout(n);
            std::vector<T> want(n);
            for (size_t i = 0; i < n; i++) {
                T a = random_value<T>(r), b = random_value<T>(r), out{};
                ASSERT_EQ(oracle(c, a, b, &out), Wants::result);
                want[i] = out;
                in.set(i, a);
                inout.set(i, b);
            }
            run(in.data(), inout.data(), static_cast<int64_t>(n));
            for (size_t i = 0; i < n; i++) ASSERT_TRUE(same(inout.get(i), static_cast<T>(want[i]))) << type::name_of(t) << " " << static_cast<int>(c) << " at " << i;
        }
    });
}

Wants wanted(Code c, int id) {
    Wants w = Wants::undefined;
    with_c_type(id, [&](auto tag) {
        typename decltype(tag)::type x{}, out{};
        w = oracle(c, x, x, &out);
    });
    return w;
}

bool has_c_type(int id) {
    bool yes = false;
    with_c_type(id, [&](auto) { yes = true; });
    return yes;
}

TEST(Ops, EveryOpOnEveryScalarType) {
    Rng r(3);
    int defined = 0;
    for (const Row& row : rows) {
        const Op& op = *predefined_at(row.id);
        ASSERT_EQ(op.code, row.code);
        for (const type::Row& tr : type::rows) {
            const Type& t = type_at(tr.id);
            if (!has_c_type(tr.id)) continue;
            if (wanted(row.code, tr.id) == Wants::undefined) {
                EXPECT_EQ(check(op, t), Err::op) << row.name << " " << tr.name;
                char x[64] = {};
                EXPECT_EQ(apply(op, x, x + 32, 1, t), Err::op);
                continue;
            }
            defined++;
            EXPECT_EQ(check(op, t), Err::ok) << row.name << " " << tr.name;
            check_scalar(row.code, t, r, [&](const void* a, void* b, int64_t n) { ASSERT_EQ(apply(op, a, b, n, t), Err::ok); });
        }
    }
    EXPECT_GT(defined, 250);
}

TEST(Ops, EveryInstructionSetGivesTheSame) {
    Rng r(4);
    for (const Kernels* k : {&kernels_v2, &kernels_avx2, &kernels_avx512}) {
        if (!can_run(*k)) continue;
        for (int c = 0; c < static_cast<int>(Code::minloc); c++) {
            for (const type::Row& tr : type::rows) {
                const Type& t = type_at(tr.id);
                if (!has_c_type(tr.id) || wanted(static_cast<Code>(c), tr.id) == Wants::undefined) continue;
                Kernel f = k->at[c][static_cast<int>(t.elem)];
                ASSERT_NE(f, nullptr) << k->name << " " << tr.name;
                check_scalar(static_cast<Code>(c), t, r, [&](const void* a, void* b, int64_t n) { f(a, b, n); });
            }
        }
    }
}

// Results do not depend on the processor: products of doubles that a fused multiply-add would round differently.
TEST(Ops, ComplexProductsAreNotFused) {
    Rng r(5);
    std::uniform_real_distribution<double> d(-1, 1);
    const size_t n = 257;
    std::vector<std::complex<double>> a(n), b(n), want(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = {d(r), d(r)};
        b[i] = {d(r), d(r)};
        volatile double rr = a[i].real() * b[i].real(), ii = a[i].imag() * b[i].imag();
        volatile double ri = a[i].real() * b[i].imag(), ir = a[i].imag() * b[i].real();
        want[i] = {rr - ii, ri + ir};
    }
    for (const Kernels* k : {&kernels_v2, &kernels_avx2, &kernels_avx512}) {
        if (!can_run(*k)) continue;
        auto got = b;
        k->at[static_cast<int>(Code::prod)][static_cast<int>(type::Elem::cf64)](a.data(), got.data(), n);
        EXPECT_EQ(memcmp(got.data(), want.data(), n * sizeof want[0]), 0) << k->name;
    }
}

#ifdef __FLT16_MANT_DIG__
// Fortran's REAL*2: every result is that of float, rounded once.
TEST(Ops, HalfPrecision) {
    Rng r(8);
    for (const Kernels* k : {&kernels_v2, &kernels_avx2, &kernels_avx512}) {
        if (!can_run(*k)) continue;
        auto run = [&](Code c, auto expected) {
            std::vector<_Float16> a(77), b(77);
            std::vector<float> want(77);
            for (size_t i = 0; i < 77; i++) {
                a[i] = static_cast<_Float16>(static_cast<float>(static_cast<int>(r() % 4001) - 2000) / 16);
                b[i] = static_cast<_Float16>(static_cast<float>(static_cast<int>(r() % 4001) - 2000) / 16);
                want[i] = static_cast<float>(static_cast<_Float16>(expected(static_cast<float>(a[i]), static_cast<float>(b[i]))));
            }
            k->at[static_cast<int>(c)][static_cast<int>(type::Elem::f16)](a.data(), b.data(), 77);
            for (size_t i = 0; i < 77; i++) EXPECT_EQ(static_cast<float>(b[i]), want[i]) << k->name;
        };
        run(Code::sum, [](float x, float y) { return x + y; });
        run(Code::prod, [](float x, float y) { return x * y; });
        run(Code::min, [](float x, float y) { return std::min(x, y); });
        run(Code::max, [](float x, float y) { return std::max(x, y); });
    }
}
#endif

// Fortran's truth values: any bit pattern but that of .FALSE. is true, and the result is an operand wherever it can be.
template <class T>
void check_logicals(type::Elem e, T no, std::vector<T> values) {
    values.push_back(no);
    constexpr size_t n = 37;   // enough for vectors and a rest
    for (const Kernels* k : {&kernels_v2, &kernels_avx2, &kernels_avx512}) {
        if (!can_run(*k)) continue;
        for (T x : values) {
            for (T y : values) {
                auto run = [&](Code c) {
                    std::vector<T> a(n, x), b(n, y);
                    k->at[static_cast<int>(c)][static_cast<int>(e)](a.data(), b.data(), n);
                    EXPECT_TRUE(b[0] == no || b[0] == x || b[0] == y);
                    for (T each : b) EXPECT_TRUE(each == b[0]);
                    return b[0] != no;
                };
                EXPECT_EQ(run(Code::land), x != no && y != no) << k->name;
                EXPECT_EQ(run(Code::lor), x != no || y != no) << k->name;
                EXPECT_EQ(run(Code::lxor), (x != no) != (y != no)) << k->name;
            }
        }
    }
}

template <class T>
void check_all_logicals(T no, T yes) {
    check_logicals<int8_t>(type::Elem::l8, static_cast<int8_t>(no), {static_cast<int8_t>(yes)});
    check_logicals<int16_t>(type::Elem::l16, static_cast<int16_t>(no), {static_cast<int16_t>(yes)});
    check_logicals<int32_t>(type::Elem::l32, static_cast<int32_t>(no), {static_cast<int32_t>(yes), 77});
    check_logicals<int64_t>(type::Elem::l64, static_cast<int64_t>(no), {static_cast<int64_t>(yes), int64_t{1} << 40});
    check_logicals<__int128>(type::Elem::l128, static_cast<__int128>(no), {static_cast<__int128>(yes), static_cast<__int128>(1) << 100});
}

TEST(Ops, FortranLogicalsKeepTheirPatterns) {
    check_all_logicals<int32_t>(0, 1);
    check_all_logicals<int32_t>(0, -1);
    for (auto [no, yes] : {std::pair{-1, 0}, {1, 0}, {6, 9}}) {
        set_fortran_false(&no, sizeof no);
        check_all_logicals<int32_t>(no, yes);
    }
    const int8_t small = -3;
    set_fortran_false(&small, 1);
    check_all_logicals<int32_t>(-3, 5);
    const int none = 0;
    set_fortran_false(&none, sizeof none);
}

template <class V, class I>
void check_pair(const Type& t, Rng& r) {
    struct P { V value; I index; };
    ASSERT_EQ(static_cast<int64_t>(sizeof(P)), t.extent);
    for (Code c : {Code::minloc, Code::maxloc}) {
        std::vector<P> a(50), b(50), want(50);
        for (size_t i = 0; i < 50; i++) {
            a[i].value = static_cast<V>(r() % 4);
            b[i].value = static_cast<V>(r() % 4);
            a[i].index = static_cast<I>(r() % 100);
            b[i].index = static_cast<I>(r() % 100);
            bool first = c == Code::minloc ? a[i].value < b[i].value : a[i].value > b[i].value;
            want[i] = first ? a[i] : b[i];
            if (a[i].value == b[i].value) want[i].index = std::min(a[i].index, b[i].index);
        }
        ASSERT_EQ(apply(predefined_op(c), a.data(), b.data(), 50, t), Err::ok);
        for (size_t i = 0; i < 50; i++) {
            EXPECT_EQ(b[i].value, want[i].value);
            EXPECT_EQ(b[i].index, want[i].index);
        }
    }
    EXPECT_EQ(check(predefined_op(Code::sum), t), Err::op);
}

TEST(Ops, PairsNamedAndUnnamed) {
    Rng r(6);
    check_pair<float, int>(type_at(0x228), r);
    check_pair<double, int>(type_at(0x229), r);
    check_pair<long, int>(type_at(0x22a), r);
    check_pair<int, int>(type_at(0x22b), r);
    check_pair<short, int>(type_at(0x22c), r);
    check_pair<long double, int>(type_at(0x22d), r);
    const int values[] = {0x208, 0x209, 0x20a, 0x210, 0x214, 0x220, 0x241, 0x259}, indices[] = {0x240, 0x249, 0x251, 0x259, 0x201};
    for (int v : values) {
        for (int i : indices) {
            const Type *t = nullptr, *again = nullptr;
            ASSERT_EQ(type::value_index(type_at(v), type_at(i), &t), Err::ok);
            ASSERT_NE(t, nullptr);
            ASSERT_EQ(type::value_index(type_at(v), type_at(i), &again), Err::ok);
            EXPECT_EQ(t, again);
            with_c_type(v, [&](auto value) {
                with_c_type(i, [&](auto index) {
                    using V = typename decltype(value)::type;
                    using I = typename decltype(index)::type;
                    if constexpr (std::is_arithmetic_v<V> && !std::is_same_v<V, bool> && std::is_integral_v<I> && !std::is_same_v<I, bool>)
                        check_pair<V, I>(*t, r);
                });
            });
        }
    }
    const Type* t = nullptr;
    ASSERT_EQ(type::value_index(type_at(0x210), type_at(0x210), &t), Err::ok);
    EXPECT_EQ(t, nullptr);
    ASSERT_EQ(type::value_index(type_at(0x214), type_at(0x209), &t), Err::ok);
    EXPECT_EQ(t, &type_at(0x229));
    EXPECT_EQ(check(predefined_op(Code::minloc), type_at(0x209)), Err::op);
}

TEST(Ops, DerivedTypesAndWideCharactersAreRefused) {
    Type* t;
    ASSERT_EQ(type::contiguous(type::Width::classic, 2, type_at(0x209), &t), Err::ok);
    EXPECT_EQ(check(predefined_op(Code::sum), *t), Err::op);
    EXPECT_EQ(check(predefined_op(Code::replace), *t), Err::op);
    type::release(*t);
    for (int id : {0x23c, 0x207})
        for (Code c : {Code::sum, Code::max, Code::band, Code::land}) EXPECT_EQ(check(predefined_op(c), type_at(id)), Err::op);
}

struct Seen {
    std::vector<int64_t> counts;
    std::vector<intptr_t> in, inout;
    void* handle;
} seen;

void classic(void* in, void* inout, int* len, void** handle) {
    seen.counts.push_back(*len);
    seen.in.push_back(reinterpret_cast<intptr_t>(in));
    seen.inout.push_back(reinterpret_cast<intptr_t>(inout));
    seen.handle = *handle;
}
void large(void* in, void* inout, int64_t* len, void** handle) {
    seen.counts.push_back(*len);
    seen.handle = *handle;
    for (int64_t i = 0; i < *len; i++) static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}

TEST(Ops, UserFunctionsGetTheirCountsAndHandles) {
    Op* op;
    Type *nothing, *empty;   // nothing is touched, so the count may be any
    ASSERT_EQ(type::contiguous(type::Width::classic, 0, type_at(0x209), &nothing), Err::ok);
    ASSERT_EQ(type::resized(type::Width::classic, *nothing, 0, 16, &empty), Err::ok);
    ASSERT_EQ(create(reinterpret_cast<void*>(classic), true, false, &op), Err::ok);
    EXPECT_TRUE(op->is(Op::commutative));
    seen = {};
    char x[8] = {}, y[8] = {};
    ASSERT_EQ(apply(*op, x, y, int64_t{INT_MAX} * 2 + 5, *empty), Err::ok);
    EXPECT_EQ(seen.counts, (std::vector<int64_t>{INT_MAX, INT_MAX, 5}));
    EXPECT_EQ(seen.handle, empty);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQ(seen.in[i], reinterpret_cast<intptr_t>(x) + static_cast<intptr_t>(i) * INT_MAX * 16);
        EXPECT_EQ(seen.inout[i], reinterpret_cast<intptr_t>(y) + static_cast<intptr_t>(i) * INT_MAX * 16);
    }
    seen = {};
    ASSERT_EQ(apply(*op, x, y, 0, *empty), Err::ok);
    EXPECT_TRUE(seen.counts.empty());
    release(*op);
    EXPECT_EQ(op->kind, Kind::dead);
    type::release(*empty);
    type::release(*nothing);

    ASSERT_EQ(create(reinterpret_cast<void*>(large), false, true, &op), Err::ok);
    EXPECT_FALSE(op->is(Op::commutative));
    int a[] = {10, 20, 30}, b[] = {1, 2, 3};
    ASSERT_EQ(apply(*op, a, b, 3, type_at(0x209)), Err::ok);
    EXPECT_EQ(b[0], 9);
    EXPECT_EQ(b[2], 27);
    EXPECT_EQ(seen.handle, reinterpret_cast<void*>(uintptr_t{0x209}));
    release(*op);
    EXPECT_EQ(create(nullptr, true, false, &op), Err::arg);
}

}  // namespace
}  // namespace weft::op
