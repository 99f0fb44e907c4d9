#include "p2p/p2p.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <sys/mman.h>

#include "os/clock.hpp"
#include "p2p/ranks_test.hpp"
#include "wire/shm/transfer.hpp"

using namespace weft;
using namespace weft::test;
using obj::Status;
using obj::ThreadLevel;
using p2p::Envelope;
using p2p::Mode;
using p2p::Request;

namespace {

// What message number `n` from `from` to `to` holds.
void fill(std::vector<char>& v, int from, int to, int n) {
    unsigned x = static_cast<unsigned>(from) * 7919u + static_cast<unsigned>(to) * 104729u + static_cast<unsigned>(n) * 1299709u;
    for (char& c : v) c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
}

// Sizes on both sides of every protocol's limit.
const size_t sizes[] = {0, 1, 8, 40, 41, 48, 49, 1000, 8192, 8193, 65536, 65537, 300000, 1 << 20};

TEST(P2p, EverySizeAndModeArrives) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        const int peer = 1 - p.world_rank;
        int n = 0;
        for (size_t size : sizes)
            for (Mode m : {Mode::standard, Mode::synchronous, Mode::ready})
                for (bool posted : {true, false}) {
                    ++n;
                    std::vector<char> data(size), want(size);
                    if (p.world_rank == 0) {
                        fill(data, 0, 1, n);
                        if (posted) {
                            ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {peer, 99}, nullptr), Err::ok);
                        }
                        ASSERT_EQ(p2p::send(p, p.world, bytes(data.data(), size), {peer, n}, m), Err::ok);
                    } else {
                        fill(want, 0, 1, n);
                        Request* r = nullptr;
                        if (posted) {
                            ASSERT_EQ(p2p::irecv(p, p.world, bytes(data.data(), size), {peer, n}, &r), Err::ok);
                            ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {peer, 99}, Mode::standard), Err::ok);
                        } else {
                            ASSERT_EQ(p2p::probe(p, p.world, {peer, n}, nullptr), Err::ok);
                            ASSERT_EQ(p2p::irecv(p, p.world, bytes(data.data(), size), {obj::any_source, obj::any_tag}, &r), Err::ok);
                        }
                        p2p::wait(p, *r);
                        Status s{};
                        ASSERT_EQ(p2p::finish(p, *r, &s), Err::ok);
                        ASSERT_EQ(s.source, 0);
                        ASSERT_EQ(s.tag, n);
                        ASSERT_EQ(s.bytes, static_cast<int64_t>(size));
                        ASSERT_EQ(data, want) << "size " << size << (posted ? ", posted" : ", unexpected");
                    }
                }
    });
}

TEST(P2p, TruncationKeepsTheRestIntact) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        const int peer = 1 - p.world_rank;
        for (size_t size : {size_t{48}, size_t{5000}, size_t{200000}}) {
            std::vector<char> data(size + 64, 'x'), sent(size);
            fill(sent, 0, 1, 1);
            if (p.world_rank == 0) {
                ASSERT_EQ(p2p::send(p, p.world, bytes(sent.data(), size), {peer, 1}, Mode::standard), Err::ok);
                ASSERT_EQ(p2p::send(p, p.world, bytes(sent.data(), size), {peer, 2}, Mode::standard), Err::ok);
            } else {
                Status s{};
                EXPECT_EQ(p2p::recv(p, p.world, bytes(data.data(), size / 2), {peer, 1}, &s), Err::truncate);
                EXPECT_EQ(memcmp(data.data(), sent.data(), size / 2), 0);
                for (size_t i = size / 2; i < data.size(); ++i) ASSERT_EQ(data[i], 'x');
                EXPECT_EQ(p2p::recv(p, p.world, bytes(data.data(), size), {peer, 2}, &s), Err::ok);
                EXPECT_EQ(s.bytes, static_cast<int64_t>(size));
            }
        }
    });
}

TEST(P2p, SynchronousSendWaitsForItsMatch) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        const int peer = 1 - p.world_rank;
        for (size_t size : {size_t{8}, size_t{5000}, size_t{200000}}) {
            std::vector<char> data(size);
            if (p.world_rank == 0) {
                Request* r = nullptr;
                ASSERT_EQ(p2p::isend(p, p.world, bytes(data.data(), size), {peer, 1}, Mode::synchronous, &r), Err::ok);
                for (int i = 0; i < 200; ++i) ASSERT_FALSE(p2p::test(p, *r)) << "complete before it was matched";
                ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {peer, 2}, Mode::standard), Err::ok);
                p2p::wait(p, *r);
                ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            } else {
                ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {peer, 2}, nullptr), Err::ok);
                ASSERT_EQ(p2p::recv(p, p.world, bytes(data.data(), size), {peer, 1}, nullptr), Err::ok);
            }
            barrier(p);
        }
    });
}

// Large messages to this rank by split CMA, or all that may be eager eagerly. Known to all when it returns.
void choose(Process& p, bool split_cma) {
    p.lane->limits.split_cma = split_cma;
    p.lane->want_eager(split_cma ? lane::rendezvous_min - 1 : INT32_MAX);
    barrier(p);
}

// A message of middling size is offered where its receiver gains by that; what is not one run of bytes never is.
TEST(P2p, OfMiddlingSizesTheReceiverDecides) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        const int peer = 1 - p.world_rank;
        const lane::Counters& n = p.lane->counters;
        std::vector<char> data(100'000);
        auto exchange = [&] {
            if (p.world_rank == 0) ASSERT_EQ(p2p::send(p, p.world, bytes(data.data(), data.size()), {peer, 0}, Mode::standard), Err::ok);
            else ASSERT_EQ(p2p::recv(p, p.world, bytes(data.data(), data.size()), {peer, 0}, nullptr), Err::ok);
        };
        choose(p, true);
        fill(data, 0, 1, 3 + p.world_rank);
        std::vector<char> want(data.size());
        fill(want, 0, 1, 3);
        exchange();
        EXPECT_EQ(data, want);
        EXPECT_EQ(n.sent_large, p.world_rank == 0 ? 1u : 0u);
        choose(p, false);
        const uint64_t eager = n.sent_eager;
        exchange();
        EXPECT_EQ(n.sent_large, p.world_rank == 0 ? 1u : 0u);
        EXPECT_EQ(n.sent_eager, eager + (p.world_rank == 0 ? 1u : 0u));
        EXPECT_EQ(data, want);
    });
}

// Whichever mover is chosen, what comes is what was sent.
TEST(P2p, EveryWayCarriesTheSame) {
    for (const bool split_cma : {false, true}) {
        run_ranks(2, ThreadLevel::single, [&](Process& p) {
            const int peer = 1 - p.world_rank;
            choose(p, split_cma);
            for (int round = 0; round < 30; ++round) {
                const int count = round % 3 == 0 ? 5 : 1;
                std::vector<std::vector<char>> out, in, want;
                std::vector<Request*> r(2 * static_cast<size_t>(count));
                for (int i = 0; i < count; ++i) {
                    const size_t size = (size_t{40'000} << (round % 7)) + static_cast<size_t>(i) * 4097;
                    out.emplace_back(size);
                    in.emplace_back(size);
                    want.emplace_back(size);
                    fill(out.back(), p.world_rank, peer, round + i);
                    fill(want.back(), peer, p.world_rank, round + i);
                    ASSERT_EQ(p2p::irecv(p, p.world, bytes(in.back().data(), size), {peer, i}, &r[2 * i]), Err::ok);
                    ASSERT_EQ(p2p::isend(p, p.world, bytes(out.back().data(), size), {peer, i}, Mode::standard, &r[2 * i + 1]), Err::ok);
                }
                for (Request* one : r) {
                    p2p::wait(p, *one);
                    ASSERT_EQ(p2p::finish(p, *one, nullptr), Err::ok);
                }
                EXPECT_EQ(in, want) << round;
            }
        });
    }
}

// A copy that the kernel refuses on the way is finished by a pipelined copy, whichever side was refused.
TEST(P2p, AMoverThatIsRefusedIsReplaced) {
    std::vector<char> probe(1);
    if (!wire::shm::can_cma(os::process_id(), reinterpret_cast<uint64_t>(probe.data()))) GTEST_SKIP() << "cross-memory attach is denied here";
    for (const int refused : {0, 1, 2})   // the sender, the receiver, both
        run_ranks(2, ThreadLevel::single, [refused](Process& p) {
            constexpr size_t size = 3'000'001;
            choose(p, true);
            for (const int round : {0, 1, 2}) {
                std::vector<char> data(size), want(size);
                fill(want, 0, 1, round);
                if (p.world_rank == 0) ASSERT_EQ(p2p::send(p, p.world, bytes(want.data(), size), {1, 1}, Mode::standard), Err::ok);
                else ASSERT_EQ(p2p::recv(p, p.world, bytes(data.data(), size), {0, 1}, nullptr), Err::ok);
                EXPECT_TRUE(p.world_rank == 0 || data == want) << round;
                barrier(p);
                // After the first one this rank's peer seems to be nobody.
                if (refused == 2 || refused == p.world_rank) p.lane->shm.mailbox(1 - p.world_rank)->pid.store(0x7fffffff);
                barrier(p);
            }
        });
}

// Where only the receive's buffer is bad the send is as good as any, and the receive says why.
TEST(P2p, AnUnwritableBufferIsItsOwnersError) {
    constexpr size_t size = 4 << 20;
    std::vector<char> probe(1);
    if (!wire::shm::can_cma(os::process_id(), reinterpret_cast<uint64_t>(probe.data()))) GTEST_SKIP() << "cross-memory attach is denied here";
    char* const place = static_cast<char*>(mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(place, MAP_FAILED);
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        choose(p, true);
        std::vector<char> data(size);
        for (bool blocking : {true, false}) {
            Request* r = nullptr;
            Err err;
            if (p.world_rank == 0) {
                err = p2p::send(p, p.world, bytes(data.data(), size), {1, 1}, Mode::standard);
            } else if (blocking) {
                err = p2p::recv(p, p.world, bytes(place, size), {0, 1}, nullptr);
            } else {
                ASSERT_EQ(p2p::irecv(p, p.world, bytes(place, size), {0, 1}, &r), Err::ok);
                p2p::wait(p, *r);
                err = p2p::finish(p, *r, nullptr);
            }
            EXPECT_EQ(err, p.world_rank == 0 ? Err::ok : Err::buffer);
            if (err == Err::buffer) { EXPECT_STREQ(fail_text(), "the buffer of a message from rank 0 with tag 1 cannot be written"); }
        }
    });
    munmap(place, size);
}

// The first chunk is matched while the others still wait for room in the ring.
TEST(P2p, SynchronousSendOutlivesItsMatch) {
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        const int peer = 1 - p.world_rank;
        p.lane->limits.eager_max = 4 << 20;
        choose(p, false);
        for (size_t size : {size_t{2 << 20}, size_t{96}}) {  // the second takes the request of the first
            std::vector<char> data(size), want(size);
            fill(want, 0, 1, 5);
            Request* r = nullptr;
            if (p.world_rank == 0) {
                ASSERT_EQ(p2p::isend(p, p.world, bytes(want.data(), size), {peer, 1}, Mode::synchronous, &r), Err::ok);
            } else {
                ASSERT_EQ(p2p::irecv(p, p.world, bytes(data.data(), size), {peer, 1}, &r), Err::ok);
            }
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            EXPECT_TRUE(p.world_rank == 0 || data == want) << size;
        }
    });
}

// More large messages in flight than there are shared descriptors, and a small one behind them that is wanted first: the others
// are answered by a CTS.
TEST(P2p, DescriptorsMayRunOut) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        const int peer = 1 - p.world_rank;
        constexpr int many = wire::shm::transfers_per_rank + 50;
        const size_t size = 70000;
        p.lane->limits.eager_max = 65536;
        std::vector<std::vector<char>> data(many, std::vector<char>(size));
        std::vector<Request*> r(many);
        char last = 7;
        if (p.world_rank == 0) {
            for (int i = 0; i < many; ++i) {
                fill(data[i], 0, 1, i);
                ASSERT_EQ(p2p::isend(p, p.world, bytes(data[i].data(), size), {peer, i}, Mode::standard, &r[i]), Err::ok);
            }
            ASSERT_EQ(p2p::send(p, p.world, bytes(&last, 1), {peer, many}, Mode::standard), Err::ok);
        } else {
            ASSERT_EQ(p2p::recv(p, p.world, bytes(&last, 1), {peer, many}, nullptr), Err::ok);
            for (int i = many - 1; i >= 0; --i)
                ASSERT_EQ(p2p::irecv(p, p.world, bytes(data[i].data(), size), {peer, i}, &r[i]), Err::ok);
        }
        for (int i = 0; i < many; ++i) {
            p2p::wait(p, *r[i]);
            ASSERT_EQ(p2p::finish(p, *r[i], nullptr), Err::ok);
        }
        if (p.world_rank == 1)
            for (int i = 0; i < many; ++i) {
                std::vector<char> want(size);
                fill(want, 0, 1, i);
                ASSERT_EQ(data[i], want) << i;
            }
    });
}

// Cells of an upper floor arrive once, whole, and in order with messages.
TEST(P2p, CellsOfUpperFloorsArriveInOrder) {
    static std::atomic<int> next;
    next = 0;
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        constexpr int many = 500, n = 3;
        if (p.world_rank == 1)
            p2p::register_arrival(p, n, [](Process&, lane::LaneGuard&, int peer, const wire::Header& h, const char* payload, const char*) {
                int value = -1;
                memcpy(&value, payload, sizeof value);
                EXPECT_EQ(peer, 0);
                EXPECT_EQ(static_cast<size_t>(h.bytes), sizeof value);
                EXPECT_EQ(value, next++);
            });
        barrier(p);
        for (int i = 0; i < many; ++i) {
            if (p.world_rank == 0) {
                p2p::progress_until(p, [&] {
                    lane::LaneGuard g(*p.lane);
                    return p2p::send_upper(g, 1, n, &i, sizeof i);
                });
                ASSERT_EQ(p2p::send(p, p.world, bytes(&i, 4), {1, 0}, Mode::standard), Err::ok);
            } else {
                int value = -1;
                ASSERT_EQ(p2p::recv(p, p.world, bytes(&value, 4), {0, 0}, nullptr), Err::ok);
                ASSERT_EQ(value, i);
                ASSERT_GT(next.load(), i);   // the cell before it has come
            }
        }
    });
}

// A control message that names nothing, or more than there is, ends the job with a reason.
TEST(P2p, DamagedControlMessagesEndTheJob) {
    const auto sends = [](uint8_t kind, auto content) {
        run_ranks(2, ThreadLevel::single, [&](Process& p) {
            if (p.world_rank == 0) {
                lane::LaneGuard g(*p.lane);
                wire::Cell* c = p.lane->reserve(1);
                memcpy(c->payload, &content, sizeof content);
                p.lane->commit(1, c, wire::Header{kind, sizeof content, 0, 0, 0, 0});
            } else {
                for (;;) p2p::progress(p);
            }
            for (;;) p2p::progress(p);
        });
    };
    const auto ended = testing::ExitedWithCode(static_cast<int>(Err::other));
    EXPECT_EXIT(sends(p2p::cts, p2p::Cts{uint64_t{1} << 32, 0, 8}), ended, "rank 0 has sent a CTS that fits nothing");
    EXPECT_EXIT(sends(p2p::ssend_ack, p2p::SsendAck{77}), ended, "an SSEND_ACK that fits nothing");
    EXPECT_EXIT(sends(p2p::rndv_data, p2p::RndvData{{0, 64}, 0, 0}), ended, "data that fits nothing");
}

// Unasked messages beyond the credit stay with the sender, and still every receive is served.
TEST(P2p, CreditHoldsBackAndGivesWay) {
    run_ranks(3, ThreadLevel::single, [](Process& p) {
        p.lane->limits.credit = 20000;
        constexpr int many = 3000;
        int value = -1;
        if (p.world_rank == 0) {
            std::vector<Request*> r(many);
            std::vector<int> data(many);
            for (int i = 0; i < many; ++i) {
                data[i] = i;
                ASSERT_EQ(p2p::isend(p, p.world, ints(&data[i], 1), {1, 0}, Mode::standard, &r[i]), Err::ok);
            }
            ASSERT_EQ(p2p::send(p, p.world, ints(&value, 1), {2, 1}, Mode::standard), Err::ok);
            for (int i = 0; i < many; ++i) {
                p2p::wait(p, *r[i]);
                ASSERT_EQ(p2p::finish(p, *r[i], nullptr), Err::ok);
            }
        } else if (p.world_rank == 1) {
            // Waiting for rank 2 alone, which waits for rank 0: what rank 0 sends here meanwhile is bounded.
            ASSERT_EQ(p2p::recv(p, p.world, ints(&value, 1), {2, 1}, nullptr), Err::ok);
            EXPECT_LE(p.lane->peers[0].unexpected_bytes, 20000);
            for (int i = 0; i < many; ++i) {
                ASSERT_EQ(p2p::recv(p, p.world, ints(&value, 1), {0, 0}, nullptr), Err::ok);
                ASSERT_EQ(value, i);
            }
        } else {
            ASSERT_EQ(p2p::recv(p, p.world, ints(&value, 1), {0, 1}, nullptr), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, ints(&value, 1), {1, 1}, Mode::standard), Err::ok);
        }
    });
}

// A large message whose pieces lie behind unasked ones beyond the credit: waiting for it drains them.
TEST(P2p, CreditGivesWayToALargeMessage) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        p.lane->limits.credit = 2000;
        p.lane->limits.cma = false;
        const int peer = 1 - p.world_rank;
        constexpr int many = 2000;
        std::vector<char> data(1 << 20);
        std::vector<Request*> small(many);
        Request* large = nullptr;
        int value = 7;
        if (p.world_rank == 0) {
            ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {peer, 3}, nullptr), Err::ok);
            ASSERT_EQ(p2p::isend(p, p.world, bytes(data.data(), data.size()), {peer, 1}, Mode::standard, &large), Err::ok);
            for (Request*& r : small)
                ASSERT_EQ(p2p::isend(p, p.world, ints(&value, 1), {peer, 2}, Mode::standard, &r), Err::ok);
        } else {
            ASSERT_EQ(p2p::irecv(p, p.world, bytes(data.data(), data.size()), {peer, 1}, &large), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {peer, 3}, Mode::standard), Err::ok);
        }
        p2p::wait(p, *large);
        ASSERT_EQ(p2p::finish(p, *large, nullptr), Err::ok);
        for (int i = 0; i < many; ++i) {
            if (p.world_rank == 0) {
                p2p::wait(p, *small[i]);
                ASSERT_EQ(p2p::finish(p, *small[i], nullptr), Err::ok);
            } else {
                ASSERT_EQ(p2p::recv(p, p.world, ints(&value, 1), {peer, 2}, nullptr), Err::ok);
            }
        }
    });
}

TEST(P2p, SelfNobodyAndCancel) {
    run_ranks(1, ThreadLevel::single, [](Process& p) {
        for (size_t size : sizes) {
            std::vector<char> a(size), b(size);
            fill(a, 0, 0, 1);
            Request* r = nullptr;
            ASSERT_EQ(p2p::isend(p, p.self, bytes(a.data(), size), {0, 3}, Mode::standard, &r), Err::ok);
            ASSERT_EQ(p2p::recv(p, p.self, bytes(b.data(), size), {obj::any_source, 3}, nullptr), Err::ok);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            ASSERT_EQ(a, b);
            ASSERT_EQ(p2p::sendrecv(p, p.world, bytes(a.data(), size), {0, 4}, bytes(b.data(), size), {0, 4}, nullptr), Err::ok);
        }
        Status s{};
        ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {obj::proc_null, 1}, &s), Err::ok);
        EXPECT_EQ(s.source, obj::proc_null);
        EXPECT_EQ(s.tag, obj::any_tag);
        ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {obj::proc_null, 1}, Mode::synchronous), Err::ok);
        Request* r = nullptr;
        ASSERT_EQ(p2p::irecv(p, p.world, bytes(nullptr, 0), {0, 5}, &r), Err::ok);
        ASSERT_EQ(p2p::cancel(p, &r), Err::ok);
        p2p::wait(p, *r);
        ASSERT_EQ(p2p::finish(p, *r, &s), Err::ok);
        EXPECT_EQ(s.cancelled, 1);
    });
}

// What waits may take what it finds (MPI_Waitsome, MPI_Mprobe), so its answer is final, wherever in the loop it was given:
// also at the last look before sleeping, which comes after some thirty rounds here.
TEST(P2p, WaitingStopsAtTheFirstYes) {
    run_ranks(2, ThreadLevel::single, [](Process& p) {
        p.lane->limits.spin_polls = 1;
        p.lane->limits.sleep_ns = 0;
        for (int yes_at = 1; yes_at < 40; ++yes_at) {
            int calls = 0;
            p2p::progress_until(p, [&] { return ++calls >= yes_at; });
            EXPECT_EQ(calls, yes_at);
        }
    });
}

// Ranks that sleep whenever nothing is there are woken by everything that one may wait for: messages, room in a full ring,
// an accepted transfer, its last block. A lost wake-up shows as a sleep that ends by its time-out.
void sleep_through_nothing(bool split_cma) {
    constexpr uint32_t longest_us = 20'000'000;
    const uint64_t start = os::now_ns();
    run_ranks(2, ThreadLevel::single, [split_cma](Process& p) {
        p.lane->limits.spin_polls = 1;
        p.lane->limits.sleep_ns = 0;
        p.lane->limits.longest_sleep_us = longest_us;
        choose(p, split_cma);
        std::vector<char> buffer(1 << 20);
        const int other = 1 - p.world_rank;
        for (const size_t size : {8ul, 3000ul, 100'000ul, size_t{1} << 20})
            for (int i = 0; i < 60; ++i)
                for (const int sender : {0, 1}) {
                    const auto b = bytes(buffer.data(), size);
                    const Err e = sender == p.world_rank ? p2p::send(p, p.world, b, {other, 1}, Mode::standard)
                                                         : p2p::recv(p, p.world, b, {other, 1}, nullptr);
                    ASSERT_EQ(e, Err::ok);
                }
        for (int i = 0; i < 5000; ++i) {
            const auto b = bytes(buffer.data(), i % 16 == 0 ? 30'000 : 16);
            const Err e = p.world_rank == 0 ? p2p::send(p, p.world, b, {1, 2}, Mode::standard)
                                            : p2p::recv(p, p.world, b, {0, 2}, nullptr);
            ASSERT_EQ(e, Err::ok);
        }
        EXPECT_GT(p.lane->counters.sleeps, 0u);
    });
    EXPECT_LT(os::now_ns() - start, uint64_t{longest_us} * 1000) << "a sleep ended by its time-out";
}
TEST(P2p, NoWakeUpIsLostInPipelinedCopies) { sleep_through_nothing(false); }
TEST(P2p, NoWakeUpIsLostInSplitCma) { sleep_through_nothing(true); }

// A CPU that was taken away for long is wanted by somebody else: from then on a wait is a short spin and a sleep.
TEST(P2p, BesideOthersAWaitIsShort) {
    auto l = std::make_unique<lane::Lane>();
    lane::Peer self{};
    ASSERT_EQ(l->open(&self, 1, 0, nullptr, false), Err::ok);
    l->limits.spin_polls = 50;
    l->limits.sleep_ns = uint64_t{3600} * 1'000'000'000;
    lane::Idler first(*l);
    EXPECT_EQ(first.idle(), lane::Idler::Step::poll);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(first.idle(), lane::Idler::Step::poll);
    EXPECT_TRUE(lane::Idler::is_disturbed(*l, os::now_ns()));
    l->disturbed_until = UINT64_MAX;  // however slow this machine is
    lane::Idler second(*l);
    int looks = 0;
    while (second.idle() != lane::Idler::Step::sleep) ++looks;
    EXPECT_GE(looks, 49);
    l->close();
}

// In how many of 30 tries yields of 6 ms make a wait suspect a neighbour, where ranks share so many CPUs.
static int times_disturbed(uint32_t cpus) {
    int disturbed = 0;
    for (int tries = 0; tries < 30; ++tries) {
        auto l = std::make_unique<lane::Lane>();
        lane::Peer self{};
        EXPECT_EQ(l->open(&self, 1, 0, nullptr, false), Err::ok);
        l->limits.shared_cpus = true;
        l->limits.node_cpus = cpus;
        l->limits.spin_polls = 1;
        l->limits.sleep_ns = uint64_t{3600} * 1'000'000'000;
        lane::Idler idler(*l);
        for (int i = 0; i < 5; ++i) {
            (void)idler.idle();
            std::this_thread::sleep_for(std::chrono::milliseconds(6));
        }
        (void)idler.idle();
        disturbed += lane::Idler::is_disturbed(*l, os::now_ns());
        l->close();
    }
    return disturbed;
}

// A yield that took long is no sign of a neighbour if the ranks had all of their CPUs meanwhile: here one of none, and less than one of a
// thousand. On a slow machine a try may see nothing.
TEST(P2p, AYieldToFellowsIsNoNeighbour) {
    EXPECT_EQ(times_disturbed(0), 0);
    EXPECT_GT(times_disturbed(1000), 0);
}

// Who waits for a rank that is away yields after each look; while it seems to have a CPU, the wait stays for some looks, but not for ever.
TEST(P2p, AWaitStaysWhileItsPartnerSeemsToRun) {
    std::atomic<int> step{0};
    const auto reach = [&](int n) {
        step.store(n);
        while (step.load() == n) std::this_thread::yield();
    };
    run_ranks(2, ThreadLevel::single, [&](Process& p) {
        if (p.world_rank == 1) {
            while (step.load() != 1) std::this_thread::yield();
            p.lane->shm.leave_cpu();
            reach(2);
            p.lane->shm.have_cpu();
            return;
        }
        const int partner = p.world.routes[1].index;
        p.lane->limits.shared_cpus = true;
        lane::Rest rest(*p.lane);
        lane::Idler::yield(*p.lane);   // a turn begins
        int looks = 0;
        for (; rest.yields() == 0; ++looks) rest.between_looks(partner);
        EXPECT_GT(looks, 1) << "it gave its CPU away at once";
        rest.between_looks(partner);
        EXPECT_EQ(rest.yields(), 2u) << "it waited again for one that was interrupted";
        reach(1);
        for (looks = 0; looks < 10; ++looks) rest.between_looks(partner);
        EXPECT_EQ(rest.yields(), 12u) << "it waited for one that has no CPU";
        step.store(3);
    });
}

// Threads that outnumber CPUs sleep after a few looks more; those that do not, look on.
TEST(P2p, AmongManyWaitingThreadsAWaitIsShort) {
    auto l = std::make_unique<lane::Lane>();
    lane::Peer self{};
    ASSERT_EQ(l->open(&self, 1, 0, nullptr, false), Err::ok);
    l->threads = true;
    l->limits.spin_polls = 50;
    l->limits.sleep_ns = uint64_t{3600} * 1'000'000'000;
    lane::Idler idler(*l);
    for (int i = 0; i < 1000; ++i)   // a neighbour of this test ends them early, too
        EXPECT_TRUE(idler.idle(false) != lane::Idler::Step::sleep || lane::Idler::is_disturbed(*l, os::now_ns()));
    int looks = 0;
    while (idler.idle(true) != lane::Idler::Step::sleep) ++looks;
    EXPECT_LT(looks, 1000);
    l->close();
}

// More pairs of threads than CPUs: all come to their end, and nobody is counted as waiting then.
TEST(P2p, ManyWaitingThreadsTakeTurns) {
    constexpr int pairs = 12, rounds = 200;
    run_ranks(2, ThreadLevel::multiple, [](Process& p) {
        std::vector<std::thread> threads;
        for (int i = 0; i < pairs; ++i)
            threads.emplace_back([&p, i] {
                adopt(p);
                const Envelope e{1 - p.world_rank, i};
                for (int word = 0; word < rounds; ++word) {
                    int got = -1;
                    if (p.world_rank == 0) { ASSERT_EQ(p2p::send(p, p.world, ints(&word, 1), e, Mode::standard), Err::ok); }
                    ASSERT_EQ(p2p::recv(p, p.world, ints(&got, 1), e, nullptr), Err::ok);
                    ASSERT_EQ(got, word);
                    if (p.world_rank == 1) { ASSERT_EQ(p2p::send(p, p.world, ints(&word, 1), e, Mode::standard), Err::ok); }
                }
            });
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(p.waiting.load(), 0u);
    });
}

// Every pair of ranks, several tags, random sizes, receives by name or by wildcard, in an order of the receiver's own:
// within a (source, tag) the sender's order holds. With `threads`, each rank does it from two threads at once, which
// use tags of their own.
void storm(int ranks, ThreadLevel level, int threads, int rounds, unsigned seed, int64_t credit = 4 << 20) {
    run_ranks(ranks, level, [=](Process& p) {
        p.lane->limits.credit = credit;
        auto half = [&](int thread) {
            adopt(p);
            const int tags = 3;
            std::mt19937 random(seed + static_cast<unsigned>(thread));  // the same in all ranks: who sends what
            struct Plan { int tag; size_t size; int n; };
            std::vector<std::vector<std::vector<Plan>>> plan(ranks, std::vector<std::vector<Plan>>(ranks));
            for (int from = 0; from < ranks; ++from)
                for (int to = 0; to < ranks; ++to)
                    for (int n = 0; n < rounds; ++n)
                        plan[from][to].push_back({thread * tags + static_cast<int>(random() % tags),
                                                  sizes[random() % 13] + random() % 3, n});
            std::mt19937 own(seed * 31 + static_cast<unsigned>(p.world_rank * 7 + thread));
            std::vector<std::vector<char>> buffers;
            std::vector<Request*> sends;
            const int me = p.world_rank;
            // Sends, peers interleaved.
            std::vector<size_t> next(ranks, 0);
            for (int left = ranks * rounds; left > 0;) {
                const int to = static_cast<int>(own() % ranks);
                if (next[to] == plan[me][to].size()) continue;
                const Plan& m = plan[me][to][next[to]++];
                buffers.emplace_back(m.size);
                fill(buffers.back(), me, to, m.n + 1000 * thread);
                Request* r = nullptr;
                ASSERT_EQ(p2p::isend(p, p.world, bytes(buffers.back().data(), m.size), {to, m.tag},
                                     own() % 5 == 0 ? Mode::synchronous : Mode::standard, &r), Err::ok);
                sends.push_back(r);
                --left;
            }
            // Receives: pick a (source, tag) that has something left, and take its oldest.
            std::map<std::pair<int, int>, std::vector<Plan>> expected;
            for (int from = 0; from < ranks; ++from)
                for (const Plan& m : plan[from][me]) expected[{from, m.tag}].push_back(m);
            std::map<std::pair<int, int>, size_t> taken;
            for (int left = ranks * rounds; left > 0; --left) {
                auto it = expected.begin();
                std::advance(it, own() % expected.size());
                const auto key = it->first;
                // A wildcard on the source may give any source; it is restricted by the tag to this thread.
                const bool wild = own() % 3 == 0;
                std::vector<char> got(1 << 21);
                Status s{};
                ASSERT_EQ(p2p::recv(p, p.world, bytes(got.data(), got.size()), {wild ? obj::any_source : key.first, key.second}, &s), Err::ok);
                const std::pair<int, int> k{s.source, s.tag};
                ASSERT_TRUE(expected.count(k));
                const Plan m = expected[k][taken[k]++];
                if (taken[k] == expected[k].size()) expected.erase(k);
                ASSERT_EQ(s.bytes, static_cast<int64_t>(m.size));
                std::vector<char> want(m.size);
                fill(want, s.source, me, m.n + 1000 * thread);
                got.resize(m.size);
                ASSERT_EQ(got, want);
            }
            for (Request* r : sends) {
                p2p::wait(p, *r);
                ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            }
        };
        std::vector<std::thread> others;
        for (int t = 1; t < threads; ++t) others.emplace_back(half, t);
        half(0);
        for (auto& t : others) t.join();
    });
}

TEST(P2p, StormOfTwo) { storm(2, ThreadLevel::single, 1, 60, 1); }
TEST(P2p, StormOfFour) { storm(4, ThreadLevel::single, 1, 25, 2); }
TEST(P2p, StormWithThreads) { storm(2, ThreadLevel::multiple, 2, 30, 3); }
TEST(P2p, StormWithManyThreads) { storm(3, ThreadLevel::multiple, 3, 12, 4); }
TEST(P2p, StormWithoutCredit) { storm(3, ThreadLevel::single, 1, 40, 5, 0); }
TEST(P2p, StormWithLittleCredit) { storm(3, ThreadLevel::multiple, 2, 25, 6, 3000); }

// Beyond the credit the receiver of a wildcard takes everything, but then no blocking send ends before its match: what is kept is the
// credit, a ring, and one message. When it has been received, sends are free again.
TEST(P2p, AWildcardKeepsWithinBounds) {
    std::atomic<bool> bounded{false};
    run_ranks(3, ThreadLevel::single, [&](Process& p) {
        constexpr int many = 5000;
        constexpr int64_t credit = 20000;
        p.lane->limits.credit = credit;
        int value = -1;
        if (p.world_rank == 0) {
            for (int i = 0; i < many; ++i)
                ASSERT_EQ(p2p::send(p, p.world, ints(&i, 1), {1, 0}, Mode::standard), Err::ok);
            EXPECT_TRUE(bounded) << "all has been sent while the receiver wanted something else";
            ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {1, 3}, nullptr), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, ints(&value, 1), {1, 4}, Mode::standard), Err::ok);
            EXPECT_TRUE(p.lane->shm.within_credit(1));
        } else if (p.world_rank == 1) {
            Request* r = nullptr;
            ASSERT_EQ(p2p::irecv(p, p.world, ints(&value, 1), {obj::any_source, 1}, &r), Err::ok);
            const lane::PeerState& from = *p.lane->make_peer(0);
            while (!from.over_credit) p2p::progress(p);
            for (int i = 0; i < 20000; ++i) {
                p2p::progress(p);
                if (i % 100 == 0) std::this_thread::yield();
            }
            EXPECT_LE(from.unexpected_bytes, credit + 66 * static_cast<int64_t>(sizeof(lane::Unexpected) + sizeof value));
            bounded = true;
            ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {2, 2}, Mode::standard), Err::ok);
            p2p::wait(p, *r);
            ASSERT_EQ(p2p::finish(p, *r, nullptr), Err::ok);
            for (int i = 0; i < many; ++i) {
                ASSERT_EQ(p2p::recv(p, p.world, ints(&value, 1), {0, 0}, nullptr), Err::ok);
                ASSERT_EQ(value, i);
            }
            EXPECT_FALSE(from.over_credit);
            ASSERT_EQ(p2p::send(p, p.world, bytes(nullptr, 0), {0, 3}, Mode::standard), Err::ok);
            ASSERT_EQ(p2p::recv(p, p.world, ints(&value, 1), {0, 4}, nullptr), Err::ok);
        } else {
            ASSERT_EQ(p2p::recv(p, p.world, bytes(nullptr, 0), {1, 2}, nullptr), Err::ok);
            ASSERT_EQ(p2p::send(p, p.world, ints(&value, 1), {1, 1}, Mode::standard), Err::ok);
        }
    });
}

}  // namespace
