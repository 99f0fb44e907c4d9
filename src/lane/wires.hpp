// A lane's wires behind one interface. Each peer is reached by one wire, which carries all its envelopes, so order needs no sequence
// numbers. Every choice tests shared memory first, and the short paths use `shm` directly. Included by lane.hpp; all under the
// lane's guard, except what the wires themselves allow without it.
#pragma once
#include "wire/shm/shm.hpp"
#include "wire/sock/sock.hpp"

namespace weft::lane {

struct Wires {
    wire::shm::Shm shm;
    wire::sock::Sock* sock = nullptr;     // null: every peer shares memory
    uint8_t* by_sock = nullptr;           // for each peer 1 or 0; null where `sock` is

    bool on_shm(int peer) const { return WEFT_LIKELY(sock == nullptr) || by_sock[peer] == 0; }
    bool any() const { return shm.ranks > 1 || sock != nullptr; }
    bool both() const { return shm.ranks > 1 && sock != nullptr; }

    wire::Cell* reserve(int peer) { return on_shm(peer) ? shm.reserve(peer) : sock->reserve(peer); }
    char* reserve_bulk(int peer, size_t bytes, wire::BulkRef* ref) {
        return on_shm(peer) ? shm.reserve_bulk(peer, bytes, ref) : sock->reserve_bulk(peer, bytes, ref);
    }
    void commit(int peer, wire::Cell* c, const wire::Header& h) { on_shm(peer) ? shm.commit(peer, c, h) : sock->commit(peer, c, h); }
    void discard(int peer, wire::Cell* c) { on_shm(peer) ? shm.discard(peer, c) : sock->discard(peer, c); }
    void written(int peer, const char* chunk, size_t bytes) {
        if (on_shm(peer)) shm.written(peer, chunk, bytes);
    }
    bool has_room(int peer, uint32_t cells, size_t chunk) {
        return on_shm(peer) ? shm.has_room(peer, cells, chunk) : sock->has_room(peer, cells, chunk);
    }
    void hold(int peer) { on_shm(peer) ? shm.hold(peer) : sock->hold(peer); }
    void unhold(int peer) { on_shm(peer) ? shm.unhold(peer) : sock->unhold(peer); }
    bool within_credit(int peer) { return on_shm(peer) ? shm.within_credit(peer) : sock->within_credit(peer); }
    void tell_over_credit(int peer, bool over) { on_shm(peer) ? shm.tell_over_credit(peer, over) : sock->tell_over_credit(peer, over); }
    // Call after a store to shared memory that `peer` may be waiting for.
    void notify(int peer) {
        if (on_shm(peer)) shm.notify(peer);
    }
    // Size up to which messages to `peer` are better sent eagerly. Over a socket all are: a rendezvous saves no copy.
    uint32_t eager_wanted_by(int peer) const { return on_shm(peer) ? shm.eager_wanted_by(peer) : INT32_MAX; }
    // The largest chunk to `peer`, in bytes.
    int64_t largest_chunk(int peer) const { return on_shm(peer) ? wire::shm::largest_chunk : sock->chunk_limit; }

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
