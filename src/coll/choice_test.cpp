// The table of algorithms: what its rows mean, and what is wrong with text that is none.
#include "coll/choice.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>

#include "base/err.hpp"
#include "obj/process.hpp"

using namespace weft;
using namespace weft::coll;
using A = Algorithm;
using O = Operation;

namespace {

constexpr Algorithms all = ~Algorithms{0};

struct Made {
    std::unique_ptr<Table> table{new Table{}};
    Err e = Err::ok;
    explicit Made(const char* text, const char* force = "", Forced ways = Forced::no) {
        Rule rows[most_rows];
        int32_t n = 0;
        uint8_t forced[n_operations];
        memset(forced, n_algorithms, sizeof forced);
        e = parse_rows("a file", text, rows, &n);
        if (e == Err::ok) e = parse_forced("a variable", force, forced);
        if (e == Err::ok && !compose(*table, ways, forced, rows, n)) e = Err::no_mem;
    }
    A at(O o, int32_t members, Cpus cpus, int64_t bytes, Algorithms among = all) const { return choose(*table, o, members, cpus, bytes, among); }
};

TEST(Choice, TheFirstRowThatFitsDecides) {
    const Made m("bcast 3-8 any 1K-64K knomial # a comment\n\nbcast any shared any linear\n");
    ASSERT_EQ(m.e, Err::ok) << fail_text();
    EXPECT_EQ(m.at(O::bcast, 3, Cpus::own, 1024), A::knomial);
    EXPECT_EQ(m.at(O::bcast, 8, Cpus::shared, 64 * 1024), A::knomial);
    EXPECT_EQ(m.at(O::bcast, 9, Cpus::shared, 1024), A::linear);
    EXPECT_EQ(m.at(O::bcast, 9, Cpus::own, 1024), A::lines);
    EXPECT_EQ(m.at(O::bcast, 2, Cpus::own_claiming, 100'000, all & ~set_of(A::lines)), A::binomial);
    EXPECT_EQ(m.at(O::bcast, 5, Cpus::unknown, 100'000), A::ring);
    EXPECT_EQ(m.at(O::allreduce, 2, Cpus::own_claiming, 16 * 1024), A::stages);
    EXPECT_EQ(m.at(O::allreduce, 2, Cpus::own, 16 * 1024), A::doubling);
}

TEST(Choice, LinesServeUpToTheFirstRowBeforeThem) {
    EXPECT_EQ(most_by_lines(*Made("").table, O::bcast, 8, Cpus::own), 4096);
    EXPECT_EQ(most_by_lines(*Made("bcast any any 65- binomial").table, O::bcast, 8, Cpus::own), 64);
    EXPECT_EQ(most_by_lines(*Made("bcast any any 0-64 binomial").table, O::bcast, 8, Cpus::own), -1);
    EXPECT_EQ(most_by_lines(*Made("bcast any any 0-1K lines").table, O::bcast, 8, Cpus::own), 1024);
    EXPECT_EQ(most_by_lines(*Made("", "", Forced::stages).table, O::bcast, 8, Cpus::own), -1);
}

TEST(Choice, WhatIsForcedIsTakenWhereItCanBe) {
    const Made m("allreduce any any any stages", "allreduce=ring,bcast=stages");
    ASSERT_EQ(m.e, Err::ok) << fail_text();
    EXPECT_EQ(m.at(O::allreduce, 2, Cpus::shared, 8), A::ring);
    EXPECT_EQ(m.at(O::allreduce, 2, Cpus::shared, 8, all & ~set_of(A::ring)), A::doubling);
    EXPECT_EQ(m.at(O::bcast, 2, Cpus::own, 8), A::stages);
    EXPECT_EQ(m.at(O::barrier, 2, Cpus::own, 1), A::lines);
}

TEST(Choice, ThereIsAlwaysAnAlgorithmMadeOfMessages) {
    const Made by_messages("", "", Forced::messages);
    for (int o = 0; o < n_operations; o++)
        for (int32_t members : {1, 2, 64, 1000})
            for (int64_t bytes : {int64_t{0}, int64_t{1}, INT64_MAX}) {
                const A a = by_messages.at(static_cast<O>(o), members, Cpus::unknown, bytes);
                EXPECT_NE(set_of(a) & algorithms_of(static_cast<O>(o)) & ~set_of(A::lines, A::stages), 0u);
            }
}

TEST(Choice, BadTextIsAnErrorThatNamesTheLineAndWhatIsAllowed) {
    const char* bad[][2] = {{"\nbcast any any any\n", "line 2"}, {"dance any any any ring", "operations"}, {"bcast 3..8 any any ring", "3-8"},
                            {"bcast any mine any ring", "claiming"}, {"bcast any any 4Q ring", "0-4K"}, {"bcast any any 8-4 ring", "0-4K"},
                            {"bcast any any any bruck", "knomial"}, {"bcast any any 0-8K lines", "4K"}, {"bcast any any any ring ring", "too many"}};
    for (auto& [text, told] : bad) {
        EXPECT_EQ(Made(text).e, Err::arg) << text;
        EXPECT_NE(strstr(fail_text(), told), nullptr) << fail_text();
        EXPECT_NE(strstr(fail_text(), "a file"), nullptr) << fail_text();
    }
    for (const char* text : {"bcast", "bcast=", "=ring", "bcast=bruck", "dance=ring", "bcast=ring,,"}) EXPECT_EQ(Made("", text).e, Err::arg) << text;
}

}  // namespace
