#include "p2p/arrivals.hpp"

#include <cstdlib>
#include <cstring>

#include "p2p/given.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

using wire::Header;

bool Arrivals::arrive(int peer, const Header& h, const char* payload, const char* chunk) {
    switch (h.kind) {
    case eager: return arrive_eager(peer, h, payload);
    case eager_first: return arrive_first(peer, h, payload, chunk);
    case eager_next: arrive_fragment(peer, chunk, read<wire::BulkRef>(payload).bytes); return true;
    case rts: return arrive_rts(peer, h, payload);
    case cts: arrive_cts(g, peer, read<Cts>(payload)); return true;
    case rndv_data: arrive_data(g, peer, read<RndvData>(payload), chunk); return true;
    case ssend_ack: arrive_ssend_ack(peer, payload); return true;
    case given: return arrive_buffer(peer, h, payload);
    }
    if (const int n = h.kind - first_upper_kind; n >= 0 && n < upper_kinds && p.arrivals[n] != nullptr) p.arrivals[n](p, g, peer, h, payload, chunk);
    return true;
}

// Whether an unexpected message has to stay in its wire, because the peer's credit is used up and nothing must drain the wire.
bool Arrivals::must_stay(int peer, int64_t bytes) {
    const int64_t kept = g.lane.peers[peer].unexpected_bytes + static_cast<int64_t>(sizeof(Unexpected));
    return WEFT_UNLIKELY(kept + bytes > g.lane.limits.credit) && !drains_beyond_credit(peer);
}

// Whether to keep a message beyond the credit. If so, tells its sender, whose further sends then complete only when they are matched:
// what arrives after that is bounded by what the sender's program has pending.
bool Arrivals::drains_beyond_credit(int peer) {
    if (!must_drain(g, peer)) return false;
    if (lane::PeerState& from = state_of(g, peer); !from.over_credit) {
        from.over_credit = true;
        g.lane.tell_over_credit(peer, true);
    }
    return true;
}

// Out of memory for an unexpected message. It stays in its wire until its receive is posted; if this rank waits for something that may
// lie behind it, the job ends. Returns false, which arrive() passes on.
bool Arrivals::stay_without_memory(int peer, int64_t bytes) {
    if (must_drain(g, peer)) out_of_memory(bytes, peer);
    return false;
}

bool Arrivals::arrive_eager(int peer, const Header& h, const char* payload) {
    Request* r = match_posted(g, h);
    const bool ack = (h.flags & wants_ack) != 0;
    const int skip = ack ? ack_bytes : 0;
    const int64_t bytes = h.bytes - skip;
    const uint64_t send = ack ? read<uint64_t>(payload) : 0;
    if (r != nullptr) {
        const int64_t n = set_matched(g, *r, h, bytes);
        store(*r, 0, payload + skip, n);
        if (ack) send_ssend_ack(g, peer, send);
        complete(g, *r, n);
        return true;
    }
    if (must_stay(peer, bytes)) return false;
    Unexpected* u = add_unexpected(g, peer, h, bytes, false);
    if (u == nullptr) return stay_without_memory(peer, bytes);
    memcpy(u->small, payload + skip, static_cast<size_t>(bytes));
    u->ready = 1;
    u->sync = ack;
    u->send = send;
    return true;
}

// Keeps the first fragment of an unexpected message. False: it stays in its wire.
bool Arrivals::keep_first(int peer, const Header& h, const EagerFirst& f) {
    if (must_stay(peer, f.bytes)) return false;
    auto* data = static_cast<char*>(malloc(static_cast<size_t>(f.bytes)));
    Unexpected* u = data != nullptr ? add_unexpected(g, peer, h, f.bytes, false) : nullptr;
    if (u == nullptr) {
        free(data);
        return stay_without_memory(peer, f.bytes);
    }
    u->data = data;
    u->sync = (h.flags & wants_ack) != 0;
    u->send = f.send;
    g.lane.peers[peer].open = nullptr;
    g.lane.peers[peer].open_unexpected = u;
    return true;
}

bool Arrivals::arrive_first(int peer, const Header& h, const char* payload, const char* chunk) {
    const EagerFirst f = read<EagerFirst>(payload);
    if (WEFT_LIKELY(f.ref.bytes == f.bytes && (h.flags & wants_ack) == 0)) {   // all of it
        if (Request* r = take_plain(h.context, h.source, h.tag, f.bytes); WEFT_LIKELY(r != nullptr)) {
            g.lane.shm.copy_out(r->buf, chunk, f.ref.bytes);
            complete_plain(*r, f.bytes);
            return true;
        }
    }
    if (Request* r = match_posted(g, h); r != nullptr) {
        set_matched(g, *r, h, f.bytes);
        lane::PeerState& from = state_of(g, peer);
        from.open = r;
        from.open_unexpected = nullptr;
        from.open_send = (h.flags & wants_ack) != 0 ? f.send : 0;
    } else if (!keep_first(peer, h, f)) {
        return false;
    }
    lane::PeerState& from = g.lane.peers[peer];
    from.open_at = 0;
    from.open_bytes = f.bytes;
    arrive_fragment(peer, chunk, f.ref.bytes);
    return true;
}

// The next fragment of the message that is arriving from `peer`.
void Arrivals::arrive_fragment(int peer, const char* chunk, uint32_t bytes) {
    lane::PeerState& from = g.lane.peers[peer];
    if (from.open != nullptr) store_chunk(g.lane, *static_cast<Request*>(from.open), from.open_at, chunk, bytes);
    else g.lane.shm.copy_out(from.open_unexpected->data + from.open_at, chunk, bytes);
    from.open_at += bytes;
    if (from.open_at >= from.open_bytes) end_fragments(peer);
}

// An SSEND_ACK is sent after the last fragment: until then the sender still reads its buffer.
void Arrivals::end_fragments(int peer) {
    lane::PeerState& from = g.lane.peers[peer];
    if (from.open != nullptr) {
        auto& r = *static_cast<Request*>(from.open);
        from.open = nullptr;
        if (from.open_send != 0) send_ssend_ack(g, peer, from.open_send);
        complete(g, r, received(r, from.open_bytes));
        return;
    }
    Unexpected* u = from.open_unexpected;
    from.open_unexpected = nullptr;
    u->ready = 1;
    if (u->receive != nullptr) take_unexpected(g, *static_cast<Request*>(u->receive), *u);
}

bool Arrivals::arrive_rts(int peer, const Header& h, const char* payload) {
    const Rts o = read<Rts>(payload);
    if (Request* r = match_posted(g, h); r != nullptr) {
        accept_rts(g, *r, peer, o, set_matched(g, *r, h, o.bytes));
        return true;
    }
    if (must_stay(peer, 0)) return false;
    Unexpected* u = add_unexpected(g, peer, h, o.bytes, true);
    if (u == nullptr) return stay_without_memory(peer, o.bytes);
    u->send = o.send;
    u->transfer = o.transfer;
    return true;
}

bool Arrivals::arrive_buffer(int peer, const Header& h, const char* payload) {
    const Given q = read<Given>(payload);
    if (WEFT_UNLIKELY(!g.lane.owned.is_shared(q.address, q.bytes))) damaged(peer, "the address of a buffer");
    bool stays = false;
    return arrive_given(g, peer, h, q, [&] { return !(stays = must_stay(peer, 0)); }) || (!stays && stay_without_memory(peer, 0));
}

void Arrivals::arrive_ssend_ack(int peer, const char* payload) {
    auto* r = static_cast<Request*>(g.lane.send_ids.take(read<SsendAck>(payload).send));
    if (WEFT_UNLIKELY(r == nullptr)) damaged(peer, "an SSEND_ACK");
    --g.lane.peers[peer].awaiting;
    complete(g, *r, buffer_of(*r).bytes());
}

}  // namespace weft::p2p
