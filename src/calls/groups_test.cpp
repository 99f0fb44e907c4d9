#include "calls/groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "obj/contexts.hpp"
#include "obj/process.hpp"
#include "obj/status.hpp"

using namespace weft;
using namespace weft::obj;
using namespace weft::calls;

namespace {

constexpr int world = 24;

struct Groups : testing::Test {
    Process& p = *static_cast<Process*>(calloc(1, sizeof(Process)));
    std::mt19937 random{7};
    Groups() {
        p.world_rank = 5;
        p.world_size = world;
    }
    std::vector<int> draw() {
        std::vector<int> all(world);
        for (int i = 0; i < world; i++) all[static_cast<size_t>(i)] = i;
        std::shuffle(all.begin(), all.end(), random);
        all.resize(random() % (world + 1));
        if (random() % 3 == 0) std::sort(all.begin(), all.end());
        return all;
    }
    Group* make(const std::vector<int>& ranks) {
        Group* g = nullptr;
        EXPECT_EQ(make_group(p, ranks.data(), static_cast<int>(ranks.size()), nullptr, &g), Err::ok);
        return g;
    }
    static std::vector<int> list(const Group& g) {
        std::vector<int> v;
        for (int i = 0; i < g.size; i++) v.push_back(g.at(i));
        return v;
    }
};

TEST_F(Groups, SetsAgreeWithVectors) {
    for (int round = 0; round < 300; round++) {
        std::vector<int> x = draw(), y = draw();
        Group *a = make(x), *b = make(y), *u = nullptr, *n = nullptr, *d = nullptr;
        EXPECT_EQ(list(*a), x);
        auto mine = std::find(x.begin(), x.end(), 5);
        EXPECT_EQ(a->rank, mine == x.end() ? undefined : static_cast<int>(mine - x.begin()));
        ASSERT_EQ(group_union(p, *a, *b, &u), Err::ok);
        ASSERT_EQ(group_intersection(p, *a, *b, &n), Err::ok);
        ASSERT_EQ(group_difference(p, *a, *b, &d), Err::ok);
        std::set<int> in_x(x.begin(), x.end()), in_y(y.begin(), y.end());
        std::vector<int> want_u = x, want_n, want_d;
        for (int r : y)
            if (in_x.count(r) == 0) want_u.push_back(r);
        for (int r : x) (in_y.count(r) != 0 ? want_n : want_d).push_back(r);
        EXPECT_EQ(list(*u), want_u);
        EXPECT_EQ(list(*n), want_n);
        EXPECT_EQ(list(*d), want_d);
        int compared = 0;
        ASSERT_EQ(group_compare(p, *a, *b, &compared), Err::ok);
        EXPECT_EQ(compared, x == y ? ident : in_x == in_y ? similar : unequal);
        std::vector<int> ask, told(x.size() + 1);
        for (int i = 0; i < static_cast<int>(x.size()); i++) ask.push_back(i);
        ask.push_back(proc_null);
        ASSERT_EQ(group_translate_ranks(p, *a, static_cast<int>(ask.size()), ask.data(), *b, told.data()), Err::ok);
        for (size_t i = 0; i < x.size(); i++) {
            auto at = std::find(y.begin(), y.end(), x[i]);
            EXPECT_EQ(told[i], at == y.end() ? undefined : static_cast<int>(at - y.begin()));
        }
        EXPECT_EQ(told[x.size()], proc_null);
        for (Group* g : {a, b, u, n, d}) release(p, *g);
    }
}

TEST_F(Groups, PickingAndRanges) {
    Group *g = nullptr, *out = nullptr;
    ASSERT_EQ(make_run(p, 10, 8, nullptr, &g), Err::ok);
    const int some[] = {6, 0, 3};
    ASSERT_EQ(group_incl(p, *g, 3, some, &out), Err::ok);
    EXPECT_EQ(list(*out), (std::vector<int>{16, 10, 13}));
    ASSERT_EQ(group_excl(p, *g, 3, some, &out), Err::ok);
    EXPECT_EQ(list(*out), (std::vector<int>{11, 12, 14, 15, 17}));
    const int ranges[][3] = {{6, 2, -2}, {0, 1, 1}};
    ASSERT_EQ(group_range_incl(p, *g, 2, ranges, &out), Err::ok);
    EXPECT_EQ(list(*out), (std::vector<int>{16, 14, 12, 10, 11}));
    ASSERT_EQ(group_range_excl(p, *g, 2, ranges, &out), Err::ok);
    EXPECT_EQ(list(*out), (std::vector<int>{13, 15, 17}));
    ASSERT_EQ(group_incl(p, *g, 0, nullptr, &out), Err::ok);
    EXPECT_EQ(out, &group_empty);
    Group* before = out;
    const int twice[] = {1, 1}, outside[] = {8};
    const int flat[][3] = {{0, 3, 0}}, wide[][3] = {{0, 8, 1}};
    EXPECT_EQ(group_incl(p, *g, 2, twice, &out), Err::rank);
    EXPECT_EQ(group_excl(p, *g, 1, outside, &out), Err::rank);
    EXPECT_EQ(group_range_incl(p, *g, 1, flat, &out), Err::arg);
    EXPECT_EQ(group_range_excl(p, *g, 1, wide, &out), Err::rank);
    EXPECT_EQ(out, before) << "an output was written by a call that failed";
}

TEST_F(Groups, FreedGroupsAreDeadAndUsedAgain) {
    Group *a = nullptr, *b = nullptr;
    ASSERT_EQ(make_run(p, 0, 3, nullptr, &a), Err::ok);
    Group* old = a;
    retain(*a);
    ASSERT_EQ(group_free(p, &a), Err::ok);
    EXPECT_EQ(a, nullptr);
    EXPECT_EQ(old->kind, Kind::group) << "somebody still holds it";
    release(p, *old);
    EXPECT_EQ(old->kind, Kind::dead);
    ASSERT_EQ(make_run(p, 0, 3, nullptr, &b), Err::ok);
    EXPECT_EQ(b, old);
}

TEST(Contexts, AreUniqueAndComeBackLast) {
    // 2^20 ranks leave 10 bits to each: fresh ones first, then what was given back, oldest first.
    Contexts mine, other;
    mine.open(1, 1 << 20);
    other.open(2, 1 << 20);
    std::set<uint32_t> seen{mine.reserved(0, Contexts::of_world), mine.reserved(1, Contexts::of_self),
                            mine.reserved(2, Contexts::of_self), mine.reserved(0, Contexts::of_universe)};
    EXPECT_EQ(seen.size(), 4u);
    std::vector<uint32_t> taken;
    uint32_t c = 0;
    for (int i = 0; i < 1024 - 3; i++)
        for (Contexts* x : {&mine, &other}) {
            ASSERT_EQ(x->take(&c), Err::ok);
            EXPECT_EQ(Contexts::of_messages(c), c);
            EXPECT_TRUE(seen.insert(c).second) << c;
            if (x == &mine) taken.push_back(c);
        }
    EXPECT_EQ(mine.take(&c), Err::no_mem);
    other.give(taken[0]);   // not the owner's: ignored
    mine.give(taken[7]);
    mine.give(taken[3]);
    ASSERT_EQ(mine.take(&c), Err::ok);
    EXPECT_EQ(c, taken[7]);
    ASSERT_EQ(mine.take(&c), Err::ok);
    EXPECT_EQ(c, taken[3]);
    EXPECT_EQ(mine.take(&c), Err::no_mem);
    EXPECT_EQ(other.take(&c), Err::no_mem);
    mine.close();
    other.close();
}

}  // namespace
