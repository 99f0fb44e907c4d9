#include "p2p/queue.hpp"

#include <cstdio>
#include <cstring>

#include "boot/boot.hpp"
#include "p2p/eager.hpp"
#include "p2p/progress.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

using type::Buffer;
using wire::Cell;
using wire::Header;

namespace {

// Sends a message from its start, or continues one that stopped between two fragments.
bool push_fresh(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    const Buffer b = buffer_of(r);
    const int64_t bytes = b.bytes();
    // Over the peer's credit a send completes only when it is matched: inline as a synchronous send, all others by rendezvous.
    const bool over_credit = l.peers[peer].sent == 0 && !l.within_credit(peer);
    const bool ack = over_credit || (r.flags & Request::sync) != 0;
    const bool is_inline = bytes + (ack ? 8 : 0) <= l.limits.inline_max;
    if (!is_inline && (over_credit || !is_eager(l, peer, b, bytes))) return push_rts(g, peer, r);
    const Header h{eager, 0, static_cast<uint8_t>(ack ? wants_ack : 0), r.comm->rank, r.tag, context_of(r)};
    Request* const waits = ack ? &r : nullptr;
    if (!(is_inline ? push_inline(g, peer, b, h, waits) : push_fragments(g, peer, b, h, waits, l.peers[peer].sent))) return false;
    if (ack) ++l.peers[peer].awaiting;
    else complete(g, r, bytes);
    return true;
}

bool push_control(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    Header h{};
    if (r.stage == Request::send_cts) {
        const Cts q{r.to, r.from, r.limit};
        memcpy(c->payload, &q, sizeof q);
        h.kind = cts;
        h.bytes = sizeof q;
    } else {
        const SsendAck q{r.to};
        memcpy(c->payload, &q, sizeof q);
        h.kind = ssend_ack;
        h.bytes = sizeof q;
    }
    l.commit(peer, c, h);
    l.control_pool.give(&r);
    return true;
}

// A control message is queued like any send, and stays in order with them.
void send_control(LaneGuard& g, int peer, Request::Stage stage, uint64_t to, uint64_t from, int64_t limit) {
    auto* r = static_cast<Request*>(g.lane.control_pool.take());
    if (r == nullptr) out_of_memory(0, peer);
    memset(static_cast<void*>(r), 0, sizeof *r);
    r->kind = Kind::request;
    r->stage = stage;
    r->to = to;
    r->from = from;
    r->limit = limit;
    push_or_enqueue(g, peer, *r);
}

// Sends what is queued for `peer`, as far as its wire takes it.
bool push_queue(LaneGuard& g, int peer) {
    Lane& l = g.lane;
    Fifo& f = l.peers[peer].pending;
    bool moved = false;
    l.unhold(peer);
    while (!f.empty()) {
        auto* r = static_cast<Request*>(f.head);
        const int64_t before = l.peers[peer].sent;
        Link* next = r->next;            // push() may complete r, and another thread may then free it
        if (!push(g, peer, *r)) {
            moved |= l.peers[peer].sent != before;
            l.hold(peer);
            break;
        }
        f.head = next;
        l.work.fetch_sub(1, std::memory_order_relaxed);
        moved = true;
    }
    return moved;
}

}  // namespace

void out_of_memory(int64_t bytes, int peer) {
    char text[160];
    snprintf(text, sizeof text, "out of memory: none for a message of %ld bytes to or from rank %d of this node (see ulimit -v)",
             static_cast<long>(bytes), peer);
    boot::abort(obj::process->job, static_cast<int>(Err::no_mem), text);
}

void damaged(int peer, const char* what) {
    char text[160];
    snprintf(text, sizeof text, "rank %d of this node has sent %s that fits nothing here: its memory, or this rank's, is damaged", peer, what);
    boot::abort(obj::process->job, static_cast<int>(Err::other), text);
}

uint64_t identity_of(lane::Ids& ids, int peer, void* record) {
    const uint64_t id = ids.put(record);
    if (WEFT_UNLIKELY(id == 0)) out_of_memory(0, peer);
    return id;
}

bool push(LaneGuard& g, int peer, Request& r) {
    return r.stage == Request::fresh ? push_fresh(g, peer, r) : push_control(g, peer, r);
}

bool push_pending(LaneGuard& g) {
    Lane& l = g.lane;
    bool moved = false;
    Link* before = nullptr;
    for (Link *n = l.pending_peers.head, *following; n != nullptr; n = following) {
        following = n->next;
        const auto peer = static_cast<int>(static_cast<lane::Peer*>(n) - l.peers);
        moved |= push_queue(g, peer);
        if (l.peers[peer].pending.empty()) l.pending_peers.remove(n, before);
        else before = n;
    }
    return moved;
}

void enqueue(LaneGuard& g, int peer, Request& r) {
    lane::Peer& to = g.lane.peers[peer];
    if (to.pending.empty()) g.lane.pending_peers.push(&to);
    to.pending.push(&r);
    g.lane.hold(peer);
    g.lane.work.fetch_add(1, std::memory_order_relaxed);
}

void push_or_enqueue(LaneGuard& g, int peer, Request& r) {
    if (!g.lane.peers[peer].pending.empty() || !push(g, peer, r)) enqueue(g, peer, r);
}

void send_ssend_ack(LaneGuard& g, int peer, uint64_t send) { send_control(g, peer, Request::send_ssend_ack, send, 0, 0); }
void send_cts(LaneGuard& g, int peer, uint64_t send, uint64_t receive, int64_t limit) {
    send_control(g, peer, Request::send_cts, send, receive, limit);
}

bool must_drain(LaneGuard& g, int peer) {
    return g.lane.peers[peer].awaiting != 0 || g.lane.looking != 0 || receives_from(g, peer);
}

}  // namespace weft::p2p
