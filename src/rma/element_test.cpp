// Accumulates on elements, alone and by several threads at once.
#include "rma/element.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <thread>
#include <vector>

#include "op/predefined.hpp"
#include "type/elements.hpp"
#include "type/predefined.hpp"

using namespace weft;
using rma::Elements;
using type::Type;

namespace {

const Type& named(int number) { return *type::predefined_at(number); }
const op::Op& operation(op::Code code) {
    for (const op::Op& o : op::predefined.at)
        if (o.kind == Kind::op && o.code == code) return o;
    return op::predefined.at[0];
}

template <class T> Elements place(T* at, const Type& t, int64_t count = 1) { return {reinterpret_cast<char*>(at), count, &t}; }
template <class T> const char* in(const T& value) { return reinterpret_cast<const char*>(&value); }
template <class T> char* out(T& value) { return reinterpret_cast<char*>(&value); }

struct DoubleInt {
    double value;
    int32_t index;
};

TEST(Elements, OperationsGiveTheOldValue) {
    os::SpinLock lock;
    const Type &i32 = named(number::type_int32_t), &f64 = named(number::type_double);
    int32_t x = 5, old = 0, three = 3;
    rma::accumulate(operation(op::Code::sum), place(&x, i32), in(three), out(old), lock);
    EXPECT_EQ(x, 8);
    EXPECT_EQ(old, 5);
    rma::accumulate(operation(op::Code::replace), place(&x, i32), in(three), out(old), lock);
    EXPECT_EQ(x, 3);
    EXPECT_EQ(old, 8);
    rma::accumulate(operation(op::Code::no_op), place(&x, i32), nullptr, out(old), lock);
    EXPECT_EQ(x, 3);
    EXPECT_EQ(old, 3);
    double row[3] = {1, 2, 3}, by[3] = {4, 1, 5};
    rma::accumulate(operation(op::Code::max), place(row, f64, 3), reinterpret_cast<char*>(by), nullptr, lock);
    EXPECT_EQ(row[0], 4);
    EXPECT_EQ(row[1], 2);
    EXPECT_EQ(row[2], 5);
}

// A pair's padding is not written, and its packed form has none.
TEST(Elements, PairsKeepTheirPadding) {
    os::SpinLock lock;
    const Type& pair = named(number::type_double_int);
    DoubleInt both[2], old{};
    memset(static_cast<void*>(both), 0x55, sizeof both);
    both[0].value = both[1].value = 10;
    both[0].index = both[1].index = 1;
    char packed[12], before[12];
    const double nine = 9;
    const int32_t two = 2;
    memcpy(packed, &nine, 8);
    memcpy(packed + 8, &two, 4);
    rma::accumulate(operation(op::Code::minloc), place(&both[0], pair), packed, before, lock);
    EXPECT_EQ(both[0].value, 9);
    EXPECT_EQ(both[0].index, 2);
    EXPECT_EQ(reinterpret_cast<char*>(both)[15], 0x55);
    memcpy(&old.value, before, 8);
    EXPECT_EQ(old.value, 10);
}

TEST(Elements, AtOddAddresses) {
    os::SpinLock lock;
    char bytes[16] = {};
    int64_t seven = 7, old = -1, now;
    rma::accumulate(operation(op::Code::sum), {bytes + 3, 1, &named(number::type_int64_t)}, in(seven), out(old), lock);
    memcpy(&now, bytes + 3, 8);
    EXPECT_EQ(now, 7);
    EXPECT_EQ(old, 0);
    const int64_t nine = 9;
    rma::compare_and_swap({bytes + 3, 1, &named(number::type_int64_t)}, in(seven), in(nine), out(old), lock);
    memcpy(&now, bytes + 3, 8);
    EXPECT_EQ(now, 9);
    EXPECT_EQ(old, 7);
}

// All threads add 1 to the same elements, some by many at once, some by one. Nothing is lost, and what is read is never half of a sum.
TEST(Elements, ThreadsLoseNothing) {
    constexpr int threads = 4, rounds = 2000, n = 8;
    os::SpinLock lock;
    alignas(64) int64_t row[n] = {};
    alignas(64) double reals[n] = {};
    std::complex<double> sum = 0;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
        all.emplace_back([&] {
            int64_t ones[n];
            double real_ones[n];
            for (int i = 0; i < n; i++) real_ones[i] = static_cast<double>(ones[i] = 1);
            const std::complex<double> both(1, 1);
            for (int i = 0; i < rounds; i++) {
                rma::accumulate(operation(op::Code::sum), place(row, named(number::type_int64_t), n), reinterpret_cast<char*>(ones), nullptr, lock);
                rma::accumulate(operation(op::Code::sum), place(reals, named(number::type_double), n), reinterpret_cast<char*>(real_ones), nullptr, lock);
                rma::accumulate(operation(op::Code::sum), place(&row[i % n], named(number::type_int64_t)), in(ones[0]), nullptr, lock);
                std::complex<double> seen;
                rma::accumulate(operation(op::Code::sum), place(&sum, named(number::type_c_double_complex)), in(both), out(seen), lock);
                EXPECT_EQ(seen.real(), seen.imag());
            }
        });
    for (auto& t : all) t.join();
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        total += row[i];
        EXPECT_EQ(reals[i], threads * rounds);
    }
    EXPECT_EQ(total, int64_t{threads} * rounds * (n + 1));
    EXPECT_EQ(sum.real(), threads * rounds);
}

TEST(Elements, NumbersOfTypes) {
    for (int i = 0; i < type::n_predefined; i++) {
        const Type& t = type::predefined.at[i];
        if (t.kind == Kind::type) { EXPECT_EQ(type::element_with(type::number_of(t)), &t); }
    }
    EXPECT_EQ(type::element_with(0), nullptr);
    EXPECT_EQ(type::element_with(0x2ff), nullptr);
}

}  // namespace
