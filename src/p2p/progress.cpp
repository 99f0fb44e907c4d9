#include "p2p/progress.hpp"

#include <cstring>

#include "boot/boot.hpp"
#include "os/clock.hpp"
#include "p2p/arrivals.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

bool poll_lane(LaneGuard& g, Process& p) {
    Lane& l = g.lane;
    bool moved = false;
    if (l.any()) moved = l.poll(Arrivals{g, p});
    if (WEFT_UNLIKELY(l.work.load(std::memory_order_relaxed) != 0)) {
        moved |= push_pending(g);
        moved |= move_transfers(g, moved);
    }
    return moved;
}

void poll_for(Process& p, Lane& l, const Request& r, int index, bool seen, bool sole) {
    if (!l.shm.is_connected(index)) return;   // the first message rings the doorbell
    wire::shm::Shm::In& in = l.shm.from(index);
    Next next;
    const auto done = [&] { return r.done(); };
    const bool rests = l.limits.shared_cpus && sole && !lane::Idler::is_disturbed(l, os::now_ns());
    const auto comes = [&] {
        constexpr uint32_t yields = 32;
        lane::Rest rest(l);
        return rests ? comes_within(p, l, in, UINT32_MAX, &next, [&] { return r.done() || rest.yields() == yields; },
                                    [&] { rest.between_looks(index); })
                     : comes_within(p, l, in, l.limits.spin_polls, &next, done);
    };
    // Other rings are not polled meanwhile, so this stops after as many messages as a ring holds.
    for (uint32_t messages = 0; messages < wire::shm::ring_cells && !r.done() && (seen || comes()); ++messages) {
        LaneGuard g(l);
        seen = false;
        if (!l.shm.poll_from<1>(in, Arrivals{g, p})) return;
    }
}

namespace {

// With several threads the guard is taken only if there may be something to do, so that waiting threads do not contend for it.
bool may_move(const Lane& l) { return l.work.load(std::memory_order_relaxed) != 0 || l.peek(); }

bool poll_shared(Process& p, Lane& l) {
    if (!may_move(l)) return false;
    LaneGuard g(l);
    return poll_lane(g, p);
}

// One round for a lane that is not the caller's: who has its guard looks after it.
bool poll_other(Process& p, Lane& l) {
    if (!may_move(l) || !l.lock.seems_free() || !l.lock.try_lock()) return false;
    LaneGuard g(l, lane::locked);
    return poll_lane(g, p);
}

WEFT_COLD bool poll_all(Process& p) {
    bool moved = poll_shared(p, *p.lane);
    obj::each_lane(p, [&](Lane& l) { moved |= &l != p.lane && poll_other(p, l); });
    return moved;
}

// Whether a round that follows `failed` ones is for all lanes.
bool is_for_all(const Process& p, uint64_t failed) {
    const auto policy = static_cast<Policy>(p.progress_policy);
    return policy == Policy::global || (policy == Policy::hybrid && failed % rounds_at_home == rounds_at_home - 1);
}

bool run_hooks(Process& p) {
    bool moved = false;
    const int n = p.hook_count.load(std::memory_order_acquire);
    for (int i = 0; i < n; ++i) moved |= p.hooks[i](p);
    return moved;
}

// A thread's nonblocking calls since one of them last moved something.
struct Polling {
    static constexpr uint32_t per_look = 64;   // polls per reading of the clock, which costs as much as a poll
    uint32_t polls;
    bool told;
    uint64_t since_ns, listened_ns;   // 0: not begun
};
thread_local constinit Polling polling{};

WEFT_COLD void listen(Process& p) {
    const uint64_t now = os::now_ns();
    if (polling.since_ns == 0) polling.since_ns = polling.listened_ns = now;
    if (polling.told || now - polling.listened_ns < lane::Idler::listen_ns) return;
    polling.listened_ns = now;
    polling.told = tell_if_asked(p, now - polling.since_ns, nullptr, true);
}

}  // namespace

bool progress(Process& p) { return progress(p, nullptr, 0); }

bool progress(Process& p, Lane* home, uint64_t failed) {
    Lane& l = *p.lane;
    bool moved = false;
    if (WEFT_LIKELY(!l.threads)) {
        LaneGuard g(l);
        moved = poll_lane(g, p);
    } else if (home == nullptr || is_for_all(p, failed)) {
        moved = poll_all(p);
    } else {
        moved = poll_shared(p, *home);
    }
    if (WEFT_UNLIKELY(p.hook_work.load(std::memory_order_relaxed) != 0)) moved |= run_hooks(p);
    return moved;
}

bool progress_once(Process& p, Lane* home) {
    if (progress(p, home, polling.polls)) {
        polling.since_ns = 0;
        return true;
    }
    if (WEFT_UNLIKELY(++polling.polls % Polling::per_look == 0)) listen(p);
    return false;
}

int lanes_to_watch(Process& p, Home home, Lane** to, uint32_t* timeout_us) {
    const bool alone = home.alone && p.lane_count > 1;
    const uint64_t now = alone ? os::now_ns() : 0;
    int n = 0;
    obj::each_lane(p, [&](Lane& l) {
        if (alone && &l != home.lane) {
            if (static_cast<Policy>(p.progress_policy) == Policy::lane || l.watchers.load(std::memory_order_relaxed) != 0) return;
            if (l.services.load(std::memory_order_relaxed) == 0 && !l.is_quiet(now)) {
                *timeout_us = Lane::quiet_ns / 1000;
                return;
            }
        }
        to[n++] = &l;
    });
    return n;
}

void check_wires(Process& p) {
    if (p.lane->sock == nullptr) return;
    LaneGuard g(*p.lane);
    if (const Err e = p.lane->sock->check(); e != Err::ok) boot::abort(p.job, static_cast<int>(e), fail_text());
}

void register_arrival(Process& p, int n, Process::Arrival* arrival) {
    LaneGuard g(*p.lane);
    p.arrivals[n] = arrival;
}

bool send_upper(LaneGuard& g, int peer, int n, const void* payload, int bytes) {
    Lane& l = g.lane;
    wire::Cell* c = l.peers[peer].pending.empty() ? l.reserve(peer) : nullptr;
    if (c == nullptr) return false;
    memcpy(c->payload, payload, static_cast<size_t>(bytes));
    ++l.counters.other_cells;
    l.commit(peer, c, wire::Header{static_cast<uint8_t>(first_upper_kind + n), static_cast<uint8_t>(bytes), 0, 0, 0, 0});
    return true;
}

void register_hook(Process& p, bool (*hook)(Process&)) {
    LaneGuard g(*p.lane);
    const int n = p.hook_count.load(std::memory_order_relaxed);
    for (int i = 0; i < n; ++i)
        if (p.hooks[i] == hook) return;
    if (n == Process::max_hooks) __builtin_trap();  // one per upper layer, so a mistake in the library
    p.hooks[n] = hook;
    p.hook_count.store(n + 1, std::memory_order_release);  // pairs with progress()
}

}  // namespace weft::p2p
