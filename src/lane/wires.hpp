// A lane's wires behind one interface. Each peer is reached by one wire, which carries all its envelopes, so order needs no sequence
// numbers. Every choice tests shared memory first, and the short paths use `shm` directly, by the peer's index there. Included by
// lane.hpp; all under the lane's guard, except what the wires themselves allow without it.
#pragma once
#include "lane/peer.hpp"
#include "wire/shm/shm.hpp"
#include "wire/sock/sock.hpp"

namespace weft::lane {

struct Wires {
    Peer* table = nullptr;                // the process's peers
    wire::shm::Shm shm;
    wire::sock::Sock* sock = nullptr;     // null: every peer shares memory

    Peer& peer(int number) const { return table[number]; }
    // Whether the peer's wire has this capability.
    bool can(int number, wire::Can c) const { return ((peer(number).wire == Peer::shm ? shm.can : sock->can) & c) != 0; }
    bool any() const { return shm.ranks > 1 || sock != nullptr; }
    bool both() const { return shm.ranks > 1 && sock != nullptr; }

    // Calls `f` with the peer's wire and its index there.
    template <class F>
    WEFT_INLINE auto at(int number, F&& f) {
        const Peer& p = peer(number);
        return WEFT_LIKELY(p.wire == Peer::shm) ? f(shm, p.index) : f(*sock, p.index);
    }

    wire::Cell* reserve(int to) { return at(to, [](auto& w, int i) { return w.reserve(i); }); }
    char* reserve_bulk(int to, size_t bytes, wire::BulkRef* ref) { return at(to, [=](auto& w, int i) { return w.reserve_bulk(i, bytes, ref); }); }
    void commit(int to, wire::Cell* c, const wire::Header& h) { at(to, [&](auto& w, int i) { w.commit(i, c, h); }); }
    void discard(int to, wire::Cell* c) { at(to, [=](auto& w, int i) { w.discard(i, c); }); }
    bool has_room(int to, uint32_t cells, size_t chunk) { return at(to, [=](auto& w, int i) { return w.has_room(i, cells, chunk); }); }
    void hold(int to) { at(to, [](auto& w, int i) { w.hold(i); }); }
    void unhold(int to) { at(to, [](auto& w, int i) { w.unhold(i); }); }
    bool within_credit(int to) { return at(to, [](auto& w, int i) { return w.within_credit(i); }); }
    void tell_over_credit(int to, bool over) { at(to, [=](auto& w, int i) { w.tell_over_credit(i, over); }); }
    // The largest chunk to a peer, in bytes.
    int64_t largest_chunk(int to) const { return peer(to).wire == Peer::shm ? shm.chunk_limit : sock->chunk_limit; }

    // These mean something to shared memory alone.
    void written(int to, const char* chunk, size_t bytes) {
        if (can(to, wire::shared_memory)) shm.written(peer(to).index, chunk, bytes);
    }
    // Call after a store to shared memory that the peer may be waiting for.
    void notify(int to) {
        if (can(to, wire::shared_memory)) shm.notify(peer(to).index);
    }
    // Wakes the peer if it sleeps, for a store that it looks for by other means than a ring (see Shm::rouse). Any thread.
    void rouse(int to) const {
        if (can(to, wire::shared_memory)) shm.rouse(peer(to).index);
    }
    // Size up to which messages to the peer are better sent eagerly. Without shared descriptors all are: a rendezvous saves no copy.
    uint32_t eager_wanted_by(int to) const { return can(to, wire::shared_descriptors) ? shm.eager_wanted_by(peer(to).index) : INT32_MAX; }
    wire::shm::Transfer* transfer(int sender, uint32_t i) const { return shm.transfer(peer(sender).index, i); }
    int pid(int number) const { return shm.pid(peer(number).index); }
    // CPU time of this process and of those that share its memory.
    uint64_t ran_ns() const;

    template <class S>
    bool poll(S&& sink) {
        bool moved = shm.ranks > 1 && shm.poll(sink);
        if (WEFT_UNLIKELY(sock != nullptr)) moved |= sock->poll(sink);
        return moved;
    }
    // Whether any message may be there. Any thread.
    bool peek() const { return shm.peek() || (sock != nullptr && sock->peek()); }

    // Sleeping, as on each wire. A thread cannot sleep on a futex and a file descriptor at once: with both wires a sleep takes 1 ms.
    struct Seen { uint32_t shm, sock; };
    Seen sleep_prepare() { return {shm.ranks > 1 ? shm.sleep_prepare() : 0, sock != nullptr ? sock->sleep_prepare() : 0}; }
    void sleep(Seen seen, uint32_t timeout_us) {
        constexpr uint32_t with_both_us = 1000;
        if (shm.ranks > 1) shm.sleep(seen.shm, both() && timeout_us > with_both_us ? with_both_us : timeout_us);
        else sock->sleep(seen.sock, timeout_us);
    }
    void wake() {
        if (shm.ranks > 1) shm.wake();
        if (sock != nullptr) sock->wake();
    }
    void wake_self() {
        if (shm.ranks > 1) shm.wake_self();
        if (sock != nullptr) sock->wake_self();
    }
};

}  // namespace weft::lane
