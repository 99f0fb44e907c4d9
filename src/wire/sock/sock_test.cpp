// What the socket wire does beyond the contract (contract_test.cpp): connections, back pressure, credit, sleep, peers that end.
#include "wire/sock/sock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "os/process.hpp"
#include "os/socket.hpp"
#include "os/spin.hpp"

using namespace weft;
using wire::BulkRef;
using wire::Cell;
using wire::Header;
using wire::sock::Key;
using wire::sock::Sock;

namespace {

// Far beyond what any wait below takes on a busy machine.
constexpr uint64_t patience_ns = 30'000'000'000;
constexpr uint32_t long_us = 20'000'000;

Key make_key() {
    Key k;
    EXPECT_TRUE(os::random_bytes(&k, sizeof k));
    return k;
}

std::string name_of(const Key& k, int rank) {
    std::string name = "weft-";
    char digits[3];
    for (unsigned char c : k.name) {
        snprintf(digits, sizeof digits, "%02x", c);
        name += digits;
    }
    return name + "-" + std::to_string(rank);
}

struct Job {
    explicit Job(int ranks) : all(static_cast<size_t>(ranks)) {
        for (int r = 0; r < ranks; ++r) EXPECT_EQ((*this)[r].open(key, ranks, r), Err::ok);
    }
    ~Job() {
        for (Sock& s : all)
            if (s.ranks != 0) s.close();
    }
    Sock& operator[](int r) { return all[static_cast<size_t>(r)]; }
    Key key = make_key();
    std::vector<Sock> all;
};

// Messages are numbers, in the tag; `bulk` bytes of that number's low byte follow.
bool send(Sock& s, int peer, int number, size_t bulk = 0) {
    Cell* c = s.reserve(peer);
    if (c == nullptr) return false;
    Header h{1, 0, 0, s.me, number, 7};
    if (bulk != 0) {
        BulkRef ref;
        char* to = s.reserve_bulk(peer, bulk, &ref);
        memset(to, number & 0xff, bulk);
        memcpy(c->payload, &ref, sizeof ref);
        h.bytes = sizeof ref;
        h.flags = wire::has_bulk;
    }
    s.commit(peer, c, h);
    return true;
}

struct Got {
    int peer, number;
};
struct Sink {
    std::vector<Got>* got;
    bool accept = true;
    int refused_peer = -1;
    bool take(uint64_t, const Cell&) { return false; }
    bool arrive(int peer, const Header& h, const char* payload, const char* bulk) {
        if (!accept || peer == refused_peer) return false;
        EXPECT_EQ(h.source, peer);
        EXPECT_EQ(h.context, 7u);
        if ((h.flags & wire::has_bulk) != 0) {
            BulkRef ref;
            memcpy(&ref, payload, sizeof ref);
            EXPECT_TRUE(std::all_of(bulk, bulk + ref.bytes, [&](char c) { return c == static_cast<char>(h.tag & 0xff); }));
        }
        got->push_back({peer, h.tag});
        return true;
    }
};

// Polls until `n` messages are there in all.
void poll_until(Sock& s, std::vector<Got>& got, size_t n) {
    const uint64_t end = os::now_ns() + patience_ns;
    while (got.size() < n && os::now_ns() < end) s.poll(Sink{&got});
    ASSERT_EQ(got.size(), n);
}

void expect_in_order(const std::vector<Got>& got) {
    std::vector<int> next(64, 0);
    for (const Got& g : got) ASSERT_EQ(g.number, next[static_cast<size_t>(g.peer)]++);
}

// Sends from 0 on until there is no room; how many.
int fill(Sock& s, int peer, size_t bulk = 0) {
    int n = 0;
    while (n < 1'000'000 && send(s, peer, n, bulk)) ++n;
    EXPECT_LT(n, 1'000'000);
    return n;
}

void drain(Sock& s, std::vector<Got>& got) {
    while (s.poll(Sink{&got})) {}
}

TEST(Sock, TwoThatCallEachOtherAtOnce) {
    Job j(2);
    std::vector<Got> got[2];
    ASSERT_TRUE(send(j[0], 1, 0));
    ASSERT_TRUE(send(j[1], 0, 0));
    for (int i = 1; i < 100; ++i)
        for (int r = 0; r < 2; ++r) {
            j[r].poll(Sink{&got[r]});
            ASSERT_TRUE(send(j[r], 1 - r, i));
        }
    for (int r = 0; r < 2; ++r) {
        poll_until(j[r], got[r], 100);
        expect_in_order(got[r]);
        EXPECT_EQ(j[r].check(), Err::ok);
    }
}

TEST(Sock, ManyTalkToMany) {
    constexpr int ranks = 12, each = 50;
    Job j(ranks);
    std::vector<Got> got[ranks];
    for (int i = 0; i < each; ++i)
        for (int r = 0; r < ranks; ++r)
            for (int to = 0; to < ranks; ++to)
                if (to != r)
                    while (!send(j[r], to, i, i % 5 == 0 ? 5000 : 0)) j[to].poll(Sink{&got[to]});
    for (int r = 0; r < ranks; ++r) {
        poll_until(j[r], got[r], each * (ranks - 1));
        expect_in_order(got[r]);
    }
}

TEST(Sock, APeerThatDoesNotListenYetIsCalledAgain) {
    const Key key = make_key();
    Sock a, b;
    ASSERT_EQ(a.open(key, 2, 0), Err::ok);
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(send(a, 1, 0));
    a.sleep_prepare();
    const uint64_t start = os::now_ns();
    a.sleep(0, long_us);  // it looks again by itself
    EXPECT_LT(os::now_ns() - start, uint64_t{long_us} * 1000 / 5);
    a.sleep_end();
    ASSERT_EQ(b.open(key, 2, 1), Err::ok);
    ASSERT_TRUE(send(a, 1, 0));
    EXPECT_EQ(a.check(), Err::ok);
    std::vector<Got> got;
    poll_until(b, got, 1);
    a.close();
    b.close();
}

TEST(Sock, ARefusedMessageStaysAndHoldsBackWhatIsBehind) {
    Job j(3);
    std::vector<Got> got;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(send(j[0], 2, i, i == 0 ? wire::sock::largest_chunk : 0));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(send(j[1], 2, i));
    const uint64_t end = os::now_ns() + patience_ns;
    while (got.size() < 20 && os::now_ns() < end) j[2].poll(Sink{&got, true, 0});  // the other peer's messages pass
    ASSERT_EQ(got.size(), 20u);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(j[2].poll(Sink{&got, true, 0}));
    EXPECT_TRUE(j[2].peek());
    poll_until(j[2], got, 40);
    expect_in_order(got);
    EXPECT_FALSE(j[2].poll(Sink{&got}));
    EXPECT_FALSE(j[2].peek());
}

TEST(Sock, AFloodEndsWithAgainLaterAndLosesNothing) {
    for (const size_t bulk : {size_t{0}, size_t{1}, size_t{5000}, size_t{wire::sock::largest_chunk}}) {
        Job j(2);
        std::vector<Got> got;
        int sent = fill(j[0], 1, bulk);
        EXPECT_GE(sent, bulk > 8192 ? 4 : 16);
        EXPECT_FALSE(j[0].has_room(1, 1, 0));
        EXPECT_FALSE(j[0].unsent()) << "what was committed needs nothing more from its sender";
        for (int i = 0, polls = 3 * sent; i < polls; ++i) {
            j[1].poll(Sink{&got, i % 3 != 0});
            while (send(j[0], 1, sent, bulk)) ++sent;
        }
        EXPECT_FALSE(j[0].unsent());
        drain(j[1], got);
        ASSERT_EQ(got.size(), static_cast<size_t>(sent));
        expect_in_order(got);
    }
}

TEST(Sock, RoomThatIsPromisedIsThere) {
    Job j(2);
    std::vector<Got> got;
    int sent = 0, promises = 0;
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        const uint32_t cells = 1 + random() % 4;
        const size_t chunk = 1 + random() % wire::sock::largest_chunk;
        if (!j[0].has_room(1, cells, chunk)) {
            j[1].poll(Sink{&got});
            continue;
        }
        ++promises;
        for (uint32_t k = 0; k < cells; ++k) ASSERT_TRUE(send(j[0], 1, sent++, chunk));
        ASSERT_FALSE(j[0].unsent());
    }
    EXPECT_GT(promises, 100);
    drain(j[1], got);
    ASSERT_EQ(got.size(), static_cast<size_t>(sent));
    expect_in_order(got);
}

TEST(Sock, WhileHeldThereIsNoRoom) {
    Job j(2);
    j[0].hold(1);
    EXPECT_EQ(j[0].reserve(1), nullptr);
    j[0].unhold(1);
    ASSERT_TRUE(send(j[0], 1, 0));
    j[0].hold(1);
    EXPECT_EQ(j[0].reserve(1), nullptr);
    EXPECT_FALSE(j[0].has_room(1, 1, 1));
    j[0].unhold(1);
    ASSERT_TRUE(send(j[0], 1, 1));
    std::vector<Got> got;
    poll_until(j[1], got, 2);
    expect_in_order(got);
}

// A kernel that allows less than it says: what was committed waits, in order, and goes by poll() alone.
TEST(Sock, WhatTheKernelRefusesIsSentLater) {
    Job j(2);
    std::vector<Got> got, none;
    int sent = 0;
    EXPECT_FALSE(j[0].peek());
    ASSERT_TRUE(send(j[0], 1, sent++));
    const int less = 1;  // the kernel makes it its least
    ASSERT_EQ(setsockopt(j[0].out[1].fd, SOL_SOCKET, SO_SNDBUF, &less, sizeof less), 0);
    for (int round = 0; round < 50; ++round) {
        while (sent < 1'000'000 && send(j[0], 1, sent, 100)) ++sent;
        ASSERT_TRUE(j[0].unsent());
        EXPECT_TRUE(j[0].peek());
        EXPECT_FALSE(j[0].has_room(1, 1, 0));
        const uint64_t end = os::now_ns() + patience_ns;
        while (j[0].unsent() && os::now_ns() < end) {
            j[1].poll(Sink{&got});
            j[0].poll(Sink{&none});
        }
        ASSERT_FALSE(j[0].unsent());
    }
    drain(j[1], got);
    ASSERT_EQ(got.size(), static_cast<size_t>(sent));
    expect_in_order(got);
}

TEST(Sock, OverCreditIsToldWithoutTheOthersPoll) {
    Job j(2);
    std::vector<Got> got;
    EXPECT_TRUE(j[0].within_credit(1));
    j[1].tell_over_credit(0, false);  // has never called: nobody to tell
    ASSERT_TRUE(send(j[0], 1, 0));
    poll_until(j[1], got, 1);
    for (int round = 0; round < 3; ++round) {
        j[1].tell_over_credit(0, true);
        int more = 0;  // rank 0 never polls: it hears before its room is used up
        while (more < 1000 && j[0].within_credit(1)) {
            while (!send(j[0], 1, static_cast<int>(got.size()))) {}
            poll_until(j[1], got, got.size() + 1);
            ++more;
        }
        EXPECT_LE(more, 130);
        ASSERT_TRUE(send(j[0], 1, static_cast<int>(got.size()))) << "over credit it may still send";
        poll_until(j[1], got, got.size() + 1);
        j[1].tell_over_credit(0, false);
        EXPECT_TRUE(j[0].within_credit(1));
    }
    // Changed more often than the way back has room for, while nobody listens: the last word arrives, with the next message.
    for (int i = 0; i <= 2000; ++i) j[1].tell_over_credit(0, i % 2 == 0);
    EXPECT_FALSE(j[1].in[0]->reported);
    (void)j[0].within_credit(1);
    for (int i = 0; i < 300; ++i) {
        ASSERT_TRUE(send(j[0], 1, static_cast<int>(got.size())));
        poll_until(j[1], got, got.size() + 1);
    }
    EXPECT_FALSE(j[0].within_credit(1));
}

// ---- peers that end

TEST(Sock, WhatAPeerSentBeforeItEndedArrives) {
    Job j(2);
    std::vector<Got> got;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(j[1], 0, i));
    ASSERT_TRUE(send(j[0], 1, 0));
    poll_until(j[0], got, 1);
    j[0].tell_over_credit(1, true);  // left unread there: the kernel then says ECONNRESET here, too
    EXPECT_FALSE(j[0].gone(1));
    j[1].close();
    poll_until(j[0], got, 10);
    expect_in_order(got);
    const uint64_t end = os::now_ns() + patience_ns;
    while (!j[0].gone(1) && os::now_ns() < end) EXPECT_FALSE(j[0].poll(Sink{&got}));
    EXPECT_TRUE(j[0].gone(1));
    // Nothing keeps the other awake any more.
    j[0].sleep_prepare();
    EXPECT_FALSE(j[0].poll(Sink{&got}));
    EXPECT_FALSE(os::has_news(j[0].descriptor()));
    j[0].sleep_end();
    EXPECT_FALSE(j[0].peek());
}

TEST(Sock, WhatAPeerSentArrivesThoughItEndedBeforeItsCallWasAnswered) {
    Job j(2);
    std::vector<Got> got;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(j[1], 0, i, i == 5 ? wire::sock::largest_chunk : 0));
    j[1].close();
    poll_until(j[0], got, 10);
    expect_in_order(got);
    const uint64_t end = os::now_ns() + patience_ns;
    while (!j[0].gone(1) && os::now_ns() < end) EXPECT_FALSE(j[0].poll(Sink{&got}));
    EXPECT_TRUE(j[0].gone(1));
}

TEST(Sock, SendingToAPeerThatEndedIsNoSignal) {
    Job j(2);
    ASSERT_TRUE(send(j[0], 1, 0));
    j[1].close();
    for (int i = 1; i < 1000 && !j[0].gone(1); ++i) (void)send(j[0], 1, i);
    EXPECT_TRUE(j[0].gone(1));
    EXPECT_EQ(j[0].out[1].fd, -1);
    EXPECT_EQ(j[0].reserve(1), nullptr);
    EXPECT_FALSE(j[0].has_room(1, 1, 1));
    EXPECT_FALSE(j[0].unsent());
    j[0].hold(1);
    j[0].unhold(1);
    (void)j[0].within_credit(1);
    EXPECT_EQ(j[0].reserve(1), nullptr);
}

TEST(Sock, AKilledProcessIsGone) {
    const Key key = make_key();
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        Sock s;
        if (s.open(key, 2, 1) != Err::ok || write(ready[1], "x", 1) != 1) _exit(1);
        while (!send(s, 0, 0)) os::yield_cpu();
        for (;;) pause();
    }
    char c;
    ASSERT_EQ(read(ready[0], &c, 1), 1);
    close(ready[0]);
    close(ready[1]);
    Sock a;
    ASSERT_EQ(a.open(key, 2, 0), Err::ok);
    std::vector<Got> got;
    poll_until(a, got, 1);
    ASSERT_TRUE(send(a, 1, 0));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const uint64_t end = os::now_ns() + patience_ns;
    while (!a.gone(1) && os::now_ns() < end) EXPECT_FALSE(a.poll(Sink{&got}));
    EXPECT_TRUE(a.gone(1));
    a.close();
}

// ---- who may call

struct Hello {
    unsigned char secret[16];
    int32_t rank;
};

// Whether somebody who calls rank 0 of `j` and says this is taken in.
bool taken_in(Job& j, const void* hello, size_t bytes) {
    int s = os::connect_abstract(name_of(j.key, 0).c_str());
    EXPECT_GE(s, 0);
    EXPECT_EQ(os::send_now(s, hello, bytes), os::Sent::whole);
    std::vector<Got> got;
    const uint64_t end = os::now_ns() + patience_ns;
    bool closed = false;
    while (!closed && j[0].in[1] == nullptr && os::now_ns() < end) {
        j[0].poll(Sink{&got});
        char c;
        closed = os::receive_now(s, &c, 1) < 0;
    }
    os::close_fd(&s);
    return j[0].in[1] != nullptr;
}

TEST(Sock, OnlyWhoKnowsTheSecretIsTakenIn) {
    Job j(2);
    Hello good{{}, 1};
    memcpy(good.secret, j.key.secret, sizeof good.secret);
    Hello bad = good;
    bad.secret[15] ^= 1;
    EXPECT_FALSE(taken_in(j, &bad, sizeof bad));
    for (const int32_t rank : {-1, 2, INT32_MAX, INT32_MIN}) {
        bad = good;
        bad.rank = rank;
        EXPECT_FALSE(taken_in(j, &bad, sizeof bad)) << rank;
    }
    EXPECT_FALSE(taken_in(j, &good, sizeof good - 1));
    const std::string longer(sizeof good + 1, 'x');
    EXPECT_FALSE(taken_in(j, longer.data(), longer.size()));
    EXPECT_TRUE(taken_in(j, &good, sizeof good));
    EXPECT_EQ(j[0].check(), Err::ok);
}

TEST(Sock, ASecondCallOfOneRankIsRefused) {
    Job j(2);
    ASSERT_TRUE(send(j[1], 0, 0));
    std::vector<Got> got;
    poll_until(j[0], got, 1);
    Hello again{{}, 1};
    memcpy(again.secret, j.key.secret, sizeof again.secret);
    int s = os::connect_abstract(name_of(j.key, 0).c_str());
    ASSERT_GE(s, 0);
    ASSERT_EQ(os::send_now(s, &again, sizeof again), os::Sent::whole);
    char c;
    const uint64_t end = os::now_ns() + patience_ns;
    while (os::receive_now(s, &c, 1) == 0 && os::now_ns() < end) j[0].poll(Sink{&got});
    EXPECT_LT(os::receive_now(s, &c, 1), 0);
    os::close_fd(&s);
    ASSERT_TRUE(send(j[1], 0, 1));
    poll_until(j[0], got, 2);
}

// Something else than messages from a rank ends its connection, and harms nothing else.
void expect_end(const std::string& nonsense) {
    Job j(2);
    Hello good{{}, 1};
    memcpy(good.secret, j.key.secret, sizeof good.secret);
    int s = os::connect_abstract(name_of(j.key, 0).c_str());
    ASSERT_GE(s, 0);
    ASSERT_EQ(os::send_now(s, &good, sizeof good), os::Sent::whole);
    ASSERT_EQ(os::send_now(s, nonsense.data(), nonsense.size()), os::Sent::whole);
    std::vector<Got> got;
    const uint64_t end = os::now_ns() + patience_ns;
    while (!j[0].gone(1) && os::now_ns() < end) EXPECT_FALSE(j[0].poll(Sink{&got}));
    EXPECT_TRUE(j[0].gone(1));
    EXPECT_TRUE(got.empty());
    os::close_fd(&s);
}
TEST(Sock, NonsenseEndsTheConnection) {
    const auto message = [](uint8_t bytes, uint8_t flags, uint32_t bulk, size_t size) {
        Cell c{};
        BulkRef ref{};
        ref.bytes = bulk;
        memcpy(c.payload, &ref, sizeof ref);
        c.word.store(Cell::pack(Header{1, bytes, flags, 1, 0, 7}));
        c.context = 7;
        std::string text(size, 'x');
        memcpy(text.data(), static_cast<const void*>(&c), std::min(size, sizeof c));
        return text;
    };
    expect_end("short");
    expect_end(message(8, 0, 0, 23));
    expect_end(message(8, 0, 0, 25));
    expect_end(message(49, 0, 0, 16 + 49));
    expect_end(message(sizeof(BulkRef), wire::has_bulk, 100, 64 + 99));
    expect_end(message(sizeof(BulkRef), wire::has_bulk, wire::sock::largest_chunk + 1, 64 + wire::sock::largest_chunk + 1));
}

// In a child: there this process may become somebody else. 0: refused; 1: taken in; 2: this process cannot be two users.
int call_as_other_user(Job& j) {
    const pid_t child = fork();
    EXPECT_GE(child, 0);
    if (child == 0) {
        Hello good{{}, 1};
        memcpy(good.secret, j.key.secret, sizeof good.secret);
        if (setresuid(65534, 65534, 65534) != 0) _exit(2);
        int s = os::connect_abstract(name_of(j.key, 0).c_str());
        if (s < 0) _exit(0);
        (void)os::send_now(s, &good, sizeof good);
        char c;
        for (;;) {
            if (os::receive_now(s, &c, 1) < 0) _exit(0);
            os::yield_cpu();
        }
    }
    std::vector<Got> got;
    int status = 0;
    pid_t ended = 0;
    while (j[0].in[1] == nullptr && (ended = waitpid(child, &status, WNOHANG)) == 0) j[0].poll(Sink{&got});
    if (ended == child) return WEXITSTATUS(status);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return 1;
}

TEST(Sock, AnotherUserIsRefusedEvenWithTheSecret) {
    Job j(2);
    const int outcome = call_as_other_user(j);
    if (outcome == 2) GTEST_SKIP() << "needs the right to become another user";
    EXPECT_EQ(outcome, 0);
}

TEST(Sock, AnotherUsersListenerGetsNothing) {
    const Key key = make_key();
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool other = setresuid(65534, 65534, 65534) == 0;
        const int s = other ? os::listen_abstract(name_of(key, 1).c_str()) : -1;
        if (write(ready[1], s >= 0 ? "x" : "-", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char c = 0;
    EXPECT_EQ(read(ready[0], &c, 1), 1);
    if (c == 'x') {
        Sock a;
        EXPECT_EQ(a.open(key, 2, 0), Err::ok);
        EXPECT_FALSE(send(a, 1, 0));
        EXPECT_EQ(a.check(), Err::other);
        EXPECT_NE(strstr(fail_text(), "another user"), nullptr) << fail_text();
        a.close();
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ready[0]);
    close(ready[1]);
    if (c != 'x') GTEST_SKIP() << "needs the right to become another user";
}

TEST(Sock, ATakenNameIsAnError) {
    const Key key = make_key();
    Sock a, b;
    ASSERT_EQ(a.open(key, 2, 0), Err::ok);
    EXPECT_EQ(b.open(key, 2, 0), Err::other);
    b.close();
    a.close();
}

// The limit of open files is raised as far as it may be; beyond that the wire says what it lacks.
TEST(Sock, DescriptorsRunOut) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        constexpr int ranks = 8;
        const Key key = make_key();
        Sock all[ranks];
        for (int r = 0; r < ranks; ++r)
            if (all[r].open(key, ranks, r) != Err::ok) _exit(1);
        const int next = dup(0);
        close(next);
        rlimit limit{static_cast<rlim_t>(next), static_cast<rlim_t>(next) + 6};
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(2);
        for (int to = 1; to <= 6; ++to)
            if (!send(all[0], to, 0) || all[0].check() != Err::ok) _exit(3);  // by the limit that was raised
        if (send(all[0], 7, 0) || all[0].check() != Err::other) _exit(4);
        if (strstr(fail_text(), strerror(EMFILE)) == nullptr) _exit(5);
        std::vector<Got> got;
        (void)all[1].poll(Sink{&got});
        if (!got.empty() || all[1].check() != Err::other) _exit(6);
        all[0].close();  // makes room
        const uint64_t end = os::now_ns() + patience_ns;
        while (got.empty() && os::now_ns() < end) all[1].poll(Sink{&got});
        _exit(got.size() == 1 ? 0 : 7);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Sock, NothingIsInheritedByPrograms) {
    Job j(2);
    ASSERT_TRUE(send(j[0], 1, 0));
    std::vector<Got> got;
    poll_until(j[1], got, 1);
    const int fds[] = {j[0].out[1].fd, j[1].in[0]->fd, j[0].descriptor()};
    for (const int fd : fds) EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

// ---- sleeping

// Litmus: no message is slept through, however the two meet. A lost wake-up shows as a sleep that ends by its time-out.
TEST(Sock, NoWakeUpIsLost) {
    Job j(2);
    constexpr int rounds = 3000;
    std::atomic<int> seen{0};
    std::thread sender([&] {
        std::mt19937 random(5);
        for (int i = 0; i < rounds; ++i) {
            while (seen.load() != i) os::yield_cpu();
            for (unsigned spin = random() % 3000; spin > 0; --spin) __builtin_ia32_pause();
            while (!send(j[0], 1, i)) os::yield_cpu();
        }
    });
    std::vector<Got> got;
    uint64_t longest_ns = 0;
    while (got.size() < rounds) {
        const uint64_t start = os::now_ns();
        const uint32_t word = j[1].sleep_prepare();
        if (!j[1].poll(Sink{&got})) j[1].sleep(word, long_us);
        j[1].sleep_end();
        longest_ns = std::max(longest_ns, os::now_ns() - start);
        j[1].poll(Sink{&got});
        seen.store(static_cast<int>(got.size()));
    }
    sender.join();
    EXPECT_LT(longest_ns, uint64_t{long_us} * 1000) << "a sleep ended by its time-out";
    expect_in_order(got);
}

TEST(Sock, RoomWakesWhoWaitsForIt) {
    Job j(2);
    std::vector<Got> got, none;
    int sent = fill(j[0], 1);
    for (int round = 0; round < 20; ++round) {
        std::thread reader([&] {
            for (int spin = 0; spin < round * 100; ++spin) __builtin_ia32_pause();
            drain(j[1], got);
        });
        const uint64_t start = os::now_ns();
        const uint32_t word = j[0].sleep_prepare();
        if (!j[0].poll(Sink{&none}) && j[0].reserve(1) == nullptr) j[0].sleep(word, long_us);
        j[0].sleep_end();
        EXPECT_LT(os::now_ns() - start, uint64_t{long_us} * 1000) << "a sleep ended by its time-out";
        reader.join();
        ASSERT_NE(j[0].reserve(1), nullptr);
        while (send(j[0], 1, sent)) ++sent;
    }
    drain(j[1], got);
    EXPECT_EQ(got.size(), static_cast<size_t>(sent));
    // With room there is nothing to wake for, however much the other reads.
    ASSERT_TRUE(send(j[0], 1, sent));
    const uint32_t word = j[0].sleep_prepare();
    EXPECT_FALSE(j[0].poll(Sink{&none}));
    drain(j[1], got);
    EXPECT_FALSE(os::has_news(j[0].descriptor()));
    j[0].sleep(word, 1);
    j[0].sleep_end();
}

TEST(Sock, WhatIsLeftDoesNotKeepAwakeAndWhatComesDoes) {
    Job j(2);
    std::vector<Got> got;
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(send(j[0], 1, i));
    EXPECT_FALSE(j[1].poll(Sink{&got, false}));  // accepts the connection
    for (int round = 5; round < 10; ++round) {
        const uint32_t word = j[1].sleep_prepare();
        EXPECT_FALSE(j[1].poll(Sink{&got, false}));
        EXPECT_FALSE(os::has_news(j[1].descriptor()));
        ASSERT_TRUE(send(j[0], 1, round));
        EXPECT_TRUE(os::has_news(j[1].descriptor()));
        j[1].sleep(word, long_us);  // returns at once
        j[1].sleep_end();
    }
    poll_until(j[1], got, 10);
    expect_in_order(got);
}

// A thread that polls learns from the watcher what a sleeper would have been woken by; it may leave with some of it unread.
TEST(Sock, WhatAnotherThreadLeavesUnreadWakesTheSleeper) {
    Job j(2);
    std::vector<Got> got;
    ASSERT_TRUE(send(j[0], 1, 0));
    poll_until(j[1], got, 1);
    const uint32_t word = j[1].sleep_prepare();
    ASSERT_TRUE(send(j[0], 1, 1));
    ASSERT_TRUE(send(j[0], 1, 2));
    EXPECT_TRUE(j[1].poll(Sink{&got}));  // the other thread's
    EXPECT_FALSE(os::has_news(j[1].descriptor()));
    const uint64_t start = os::now_ns();
    j[1].sleep(word, long_us);
    EXPECT_LT(os::now_ns() - start, uint64_t{long_us} * 1000);
    j[1].sleep_end();
    poll_until(j[1], got, 3);
}

TEST(Sock, AWakeIsForThoseWhoSleepThen) {
    Job j(2);
    j[0].wake_self();
    const uint32_t word = j[0].sleep_prepare();
    const uint64_t start = os::now_ns();
    j[0].sleep(word, 50'000);
    EXPECT_GT(os::now_ns() - start, 10'000'000u);
    j[0].wake_self();
    j[0].sleep(word, long_us);
    j[0].sleep_end();
    EXPECT_LT(os::now_ns() - start, uint64_t{long_us} * 1000);
}

TEST(Sock, AnotherRankWakesWhoSleepsHere) {
    Job j(2);
    for (int r = 0; r < 2; ++r) ASSERT_EQ(j[r].accept_wakes(), Err::ok);
    j[1].wake(0);
    const uint32_t word = j[0].sleep_prepare();
    const uint64_t start = os::now_ns();
    j[0].sleep(word, 50'000);   // that was before
    EXPECT_GT(os::now_ns() - start, 10'000'000u);
    for (int i = 0; i < 1000; ++i) j[1].wake(0);
    j[0].sleep(word, long_us);
    j[0].sleep_end();
    EXPECT_LT(os::now_ns() - start, uint64_t{long_us} * 1000);
    j[1].close();
    j[0].wake(1);   // nobody
}

// All threads that sleep are woken, whenever each of them began to.
TEST(Sock, AnotherThreadWakesAllSleepers) {
    Job j(2);
    constexpr int sleepers = 3, rounds = 200;
    std::atomic<int> asleep{0}, done{0};
    os::SpinLock guard;
    std::vector<Got> got;
    std::atomic<int> round{0};
    std::vector<std::thread> threads;
    std::atomic<uint64_t> longest_ns{0};
    for (int t = 0; t < sleepers; ++t)
        threads.emplace_back([&] {
            for (int r = 1; r <= rounds; ++r) {
                while (round.load() < r) {
                    guard.lock();
                    const uint32_t word = j[0].sleep_prepare();
                    guard.unlock();
                    asleep.fetch_add(1);
                    const uint64_t start = os::now_ns();
                    if (round.load() < r) j[0].sleep(word, long_us);
                    const uint64_t took = os::now_ns() - start;
                    if (took > longest_ns.load()) longest_ns.store(took);
                    j[0].sleep_end();
                }
                done.fetch_add(1);
            }
        });
    for (int r = 1; r <= rounds; ++r) {
        while (asleep.load() == 0) os::yield_cpu();
        asleep.store(0);
        round.store(r);
        j[0].wake_self();
        while (done.load() < r * sleepers) os::yield_cpu();
    }
    for (std::thread& t : threads) t.join();
    EXPECT_LT(longest_ns.load(), uint64_t{long_us} * 1000) << "a sleep ended by its time-out";
}

// ---- both ends at once

TEST(Sock, ConcurrentStreamIsWholeAndInOrder) {
    Job j(2);
    constexpr int messages = 30000;
    std::vector<Got> got[2];
    const auto side = [&](int r) {
        std::mt19937 random(static_cast<unsigned>(r));
        int sent = 0;
        const uint64_t end = os::now_ns() + 4 * patience_ns;
        while ((sent < messages || got[r].size() < messages) && os::now_ns() < end) {
            bool moved = j[r].peek() && j[r].poll(Sink{&got[r], random() % 16 != 0});
            if (sent < messages && send(j[r], 1 - r, sent, random() % 8 == 0 ? 1 + random() % wire::sock::largest_chunk : 0)) {
                ++sent;
                moved = true;
            }
            if (!moved) os::yield_cpu();
        }
    };
    std::thread other(side, 1);
    side(0);
    other.join();
    for (const auto& g : got) {
        ASSERT_EQ(g.size(), static_cast<size_t>(messages));
        expect_in_order(g);
    }
}

}  // namespace
