// Matching against the naive list: random posts, arrivals, cancels and probes, with wildcards among them, through tables that grow
// and shrink, where numbers run out, and where there is no memory for tables.
#include "p2p/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace weft::test { extern thread_local bool none_left; }   // memory_test.cpp

using namespace weft;
using namespace weft::p2p;

namespace {

struct Shape {
    int contexts, sources, tags;
    int wild_percent;        // of each: any source, any tag
    int depth;               // posts and arrivals prevail in turns, so that queues become about as long
    int memory_percent = 100;  // of the time there is memory for tables
    uint32_t first_order = 0;
};

struct Posted {
    Request* r;
    uint32_t context;
    int32_t rank, tag;
};
struct Arrived {
    Unexpected* u;
    wire::Header h;
};

bool fits(int32_t rank, int32_t tag, uint32_t context, const wire::Header& h) {
    return context == h.context && (rank == obj::any_source || rank == h.source) && (tag == obj::any_tag || tag == h.tag);
}

class Oracle {
public:
    explicit Oracle(const Shape& shape, unsigned seed) : shape_(shape), random_(seed), peers_(static_cast<size_t>(shape.sources)),
                                                   lane_(std::make_unique<Lane>()) {
        EXPECT_EQ(lane_->open(peers_.data(), shape.sources, 0, nullptr, false), Err::ok);
        lane_->limits.credit = INT64_MAX;
        lane_->posted_order = shape.first_order;
        routes_.resize(static_cast<size_t>(shape.sources));
        for (int i = 0; i < shape.sources; ++i) routes_[static_cast<size_t>(i)].peer = i;
        comms_.resize(static_cast<size_t>(shape.contexts + 1) / 2);
        for (size_t i = 0; i < comms_.size(); ++i) {
            comms_[i] = std::make_unique<obj::Comm>();
            comms_[i]->context = static_cast<uint32_t>(2 * i);
            comms_[i]->routes = routes_.data();
        }
    }
    ~Oracle() {
        while (!posted_.empty()) cancel(posted_.size() - 1);
        while (!arrived_.empty()) take(0);
        EXPECT_EQ(lane_->posted_count, 0u);
        EXPECT_EQ(lane_->wildcards, 0u);
        EXPECT_EQ(lane_->unexpected_count.load(), 0u);
        EXPECT_EQ(lane_->unexpected.buckets, lane_->unexpected_first);
        EXPECT_EQ(match_posted(*guard_, header()), nullptr);
        EXPECT_EQ(lane_->posted.buckets, lane_->posted_first);
        for (const Fifo& f : lane_->posted_first) EXPECT_TRUE(f.empty());
        lane_->close();
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            const int turn = i / shape_.depth % 4;   // receives ahead, drained; messages ahead, drained
            if (i % 100 == 0) test::none_left = roll(100) >= shape_.memory_percent;
            const int what = roll(100);
            const bool before = lane_->unexpected.by_wildcards;
            if (what < 5) cancel_one();
            else if (what < 12) probe();
            else if (what < (turn == 0 || turn == 3 ? 90 : 30)) receive();
            else arrive();
            if (roll(64) == 0) check_peer();
            longest_posted = std::max(longest_posted, lane_->posted.mask + 1);
            longest_unexpected = std::max(longest_unexpected, lane_->unexpected.mask + 1);
            gave_up |= before && !lane_->unexpected.by_wildcards && !arrived_.empty();
            wild_index |= lane_->unexpected.by_wildcards;
        }
    }

    uint32_t longest_posted = 0, longest_unexpected = 0;
    bool wild_index = false, renumbered = false, gave_up = false;

private:
    int roll(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    wire::Header header() {
        return {eager, 8, 0, roll(shape_.sources), roll(shape_.tags), static_cast<uint32_t>(roll(shape_.contexts))};
    }
    Posted key() {
        const wire::Header h = header();
        return {nullptr, h.context, roll(100) < shape_.wild_percent ? obj::any_source : h.source,
                roll(100) < shape_.wild_percent ? obj::any_tag : h.tag};
    }
    Unexpected* expected(const Posted& q) const {
        for (const Arrived& a : arrived_)
            if (fits(q.rank, q.tag, q.context, a.h)) return a.u;
        return nullptr;
    }

    void receive() {
        Posted q = key();
        Unexpected* u = find_unexpected(*guard_, q.context, q.rank, q.tag);
        ASSERT_EQ(u, expected(q));
        if (u != nullptr) {
            take(static_cast<size_t>(std::find_if(arrived_.begin(), arrived_.end(), [&](auto& a) { return a.u == u; }) - arrived_.begin()));
            return;
        }
        q.r = new Request{};
        q.r->flags = static_cast<uint16_t>(Request::is_recv | Request::flat | (q.context & 1));
        q.r->comm = comms_[q.context / 2].get();
        q.r->buf = buffer_;
        q.r->count = 8;
        q.r->rank = q.rank;
        q.r->tag = q.tag;
        const uint32_t before = lane_->posted_order;
        post(*guard_, *q.r);
        renumbered |= lane_->posted_order < before && lane_->posted_count > 1;
        posted_.push_back(q);
        EXPECT_FALSE(q.r->done());
    }

    void arrive() {
        const wire::Header h = header();
        const auto want = std::find_if(posted_.begin(), posted_.end(), [&](auto& q) { return fits(q.rank, q.tag, q.context, h); });
        Request* got = nullptr;
        // The short paths say yes or leave it to the long one.
        if (const int way = roll(3); way == 0) {
            wire::Cell cell{};
            cell.tag = h.tag;
            cell.context = h.context;
            if (Arrivals{*guard_, *process_}.take(wire::Cell::pack(h), cell)) {
                ASSERT_TRUE(want != posted_.end() && want->r->done());
                got = want->r;
            }
        } else if (way == 1 && want != posted_.end() && want->r->receives_plainly() && unlink_behind(*guard_, *want->r)) {
            --lane_->posted_count;
            got = want->r;
        }
        if (got == nullptr) got = match_posted(*guard_, h);
        ASSERT_EQ(got, want == posted_.end() ? nullptr : want->r) << h.context << " " << h.source << " " << h.tag;
        if (got != nullptr) {
            EXPECT_EQ(got->flags & Request::numbered, 0);
            delete got;
            posted_.erase(want);
            return;
        }
        Unexpected* u = add_unexpected(*guard_, h.source, h, 8, false);
        ASSERT_NE(u, nullptr);
        arrived_.push_back({u, h});
    }

    void probe() {
        const Posted q = key();
        ASSERT_EQ(find_unexpected(*guard_, q.context, q.rank, q.tag), expected(q));
    }

    void cancel_one() {
        if (!posted_.empty()) cancel(random_() % posted_.size());
    }
    void cancel(size_t i) {
        const Posted q = posted_[i];
        posted_.erase(posted_.begin() + static_cast<ptrdiff_t>(i));
        EXPECT_TRUE(unpost(*guard_, *q.r));
        EXPECT_EQ(q.r->flags & Request::numbered, 0);
        EXPECT_FALSE(unpost(*guard_, *q.r));
        delete q.r;
    }
    void take(size_t i) {
        unlink_unexpected(*guard_, *arrived_[i].u);
        free_unexpected(*guard_, *arrived_[i].u);
        arrived_.erase(arrived_.begin() + static_cast<ptrdiff_t>(i));
    }

    void check_peer() {
        const int peer = roll(shape_.sources);
        bool want = posted_.size() > Lane::first_buckets;
        for (const Posted& q : posted_) want |= q.rank == obj::any_source || q.rank == peer;
        ASSERT_EQ(receives_from(*guard_, peer), want);
    }

    Shape shape_;
    std::mt19937 random_;
    char buffer_[8];
    std::unique_ptr<Process> process_ = std::make_unique<Process>();
    std::vector<obj::Route> routes_;
    std::vector<std::unique_ptr<obj::Comm>> comms_;
    std::vector<lane::Peer> peers_;
    std::unique_ptr<Lane> lane_;
    std::unique_ptr<LaneGuard> guard_ = std::make_unique<LaneGuard>(*lane_);
    std::vector<Posted> posted_;
    std::vector<Arrived> arrived_;
};

// What must have been met on the way, with every seed.
enum Met : unsigned { long_tables = 1, wild_index = 2, renumbering = 4, gave_up = 8 };

void agree(const Shape& shape, int steps, unsigned met) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
        Oracle o(shape, seed);
        o.run(steps);
        test::none_left = false;
        const unsigned seen = (std::min(o.longest_posted, o.longest_unexpected) > Lane::first_buckets ? long_tables : 0u) |
                              (o.wild_index ? wild_index : 0u) | (o.renumbered ? renumbering : 0u) |
                              (o.gave_up ? gave_up : 0u);
        if (shape.memory_percent != 0) EXPECT_EQ(seen & met, met);
        else EXPECT_EQ(std::max(o.longest_posted, o.longest_unexpected), Lane::first_buckets);
    }
}

TEST(Match, FewKeys) { agree({4, 3, 3, 20, 20}, 20000, 0); }
TEST(Match, NoWildcards) { agree({3, 5, 1000, 0, 1000}, 12000, long_tables); }
TEST(Match, AFewWildcards) { agree({3, 5, 1000, 2, 1000}, 12000, long_tables | wild_index); }
TEST(Match, ManyWildcards) { agree({6, 40, 40, 40, 1500}, 16000, long_tables | wild_index); }
TEST(Match, ManySourcesAndOneTag) { agree({2, 3000, 1, 1, 1000}, 12000, long_tables | wild_index); }
TEST(Match, WithoutMemoryForTables) { agree({3, 5, 1000, 2, 1000, 0}, 8000, 0); }
TEST(Match, WithMemoryNowAndThen) { agree({3, 5, 1000, 2, 1000, 50}, 12000, long_tables | wild_index | gave_up); }
TEST(Match, NumbersRunOut) {
    agree({3, 5, 300, 5, 1000, 100, Request::last_order - 500}, 8000, long_tables | wild_index | renumbering);
}

// Receives of the same key are served in the order they were posted, however deep, and whatever the tables do meanwhile.
TEST(Match, TheSameKeyStaysInOrder) {
    Lane l;
    lane::Peer peers[2]{};
    ASSERT_EQ(l.open(peers, 2, 0, nullptr, false), Err::ok);
    {
        LaneGuard g(l);
        obj::Comm c{};
        std::vector<Request> all(20000);
        for (size_t i = 0; i < all.size(); ++i) {
            all[i].comm = &c;
            all[i].tag = i % 2 == 0 ? 0 : static_cast<int32_t>(i);
            post(g, all[i]);
        }
        uint32_t longest = 0;
        for (size_t i = 0; i < all.size(); ++i) {
            Request& r = all[i % 2 == 0 ? i : all.size() - i];   // the others from the last to the first
            ASSERT_EQ(match_posted(g, {1, 0, 0, 0, r.tag, 0}), &r);
            longest = std::max(longest, l.posted.mask + 1);
        }
        EXPECT_GT(longest, all.size());
        EXPECT_EQ(match_posted(g, {1, 0, 0, 0, 0, 0}), nullptr);
    }
    l.close();
}

// Few consecutive or strided keys, or combinations of them, share a bucket.
TEST(Match, KeysSpreadOverTheBuckets) {
    auto longest = [](uint32_t contexts, int sources, int tags, int shift) {
        const auto n = static_cast<uint32_t>(sources) * contexts * static_cast<uint32_t>(tags);
        std::map<uint32_t, int> in;
        int most = 0;
        for (uint32_t c = 0; c < contexts; ++c)
            for (int s = 0; s < sources; ++s)
                for (int t = 0; t < tags; ++t) most = std::max(most, ++in[lane::hash_of(c, s, t << shift) & (std::bit_ceil(2 * n) - 1)]);
        return most;
    };
    for (int n : {30, 1000, 30000})
        for (int shift : {0, 3, 8, 12, 15}) EXPECT_LE(longest(1, 1, n, shift), 8) << n << " tags << " << shift;
    EXPECT_LE(longest(1, 30000, 1, 0), 8);
    EXPECT_LE(longest(1, 150, 200, 0), 8);
    EXPECT_LE(longest(16, 40, 40, 0), 8);
    EXPECT_LE(longest(64, 64, 4, 16), 8);
}

}  // namespace
