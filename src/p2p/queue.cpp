#include "p2p/queue.hpp"

#include <cstdio>
#include <cstring>

#include "boot/boot.hpp"
#include "p2p/eager.hpp"
#include "p2p/given.hpp"
#include "p2p/p2p.hpp"
#include "p2p/rndv.hpp"

namespace weft::p2p {

using wire::Cell;
using wire::Header;

namespace {

bool push_control(LaneGuard& g, int peer, Request& r) {
    Lane& l = g.lane;
    Cell* c = l.reserve(peer);
    if (c == nullptr) return false;
    ++l.counters.other_cells;
    l.commit(peer, c, r.protocol == Protocol::cts ? put(c, cts, Cts{r.to, r.from, r.limit}) : put(c, ssend_ack, SsendAck{r.to}));
    l.control_pool.give(&r);
    return true;
}

// A control message is queued like any send, and stays in order with them.
void send_control(LaneGuard& g, int peer, Protocol protocol, uint64_t to, uint64_t from, int64_t limit) {
    auto* r = static_cast<Request*>(g.lane.control_pool.take());
    if (r == nullptr) out_of_memory(0, peer);
    memset(static_cast<void*>(r), 0, sizeof *r);
    r->kind = Kind::request;
    r->protocol = protocol;
    r->to = to;
    r->from = from;
    r->limit = limit;
    if (!g.lane.peers[peer].pending.empty() || !push_control(g, peer, *r)) enqueue(g, peer, *r);
}

// Sends as much of `r`, the first of its queue, as the wire takes; true when nothing is left.
WEFT_INLINE bool push(LaneGuard& g, int peer, Request& r) {
    switch (r.protocol) {
    case Protocol::rendezvous: return push_rts(g, peer, r);
    case Protocol::given: return push_given(g, peer, r);
    case Protocol::cts:
    case Protocol::ssend_ack: return push_control(g, peer, r);
    default: return push_eager(g, peer, r);
    }
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
        if (r->protocol == Protocol::queued) {
            const type::Buffer b = buffer_of(*r);
            r->protocol = choose(l, r->comm->routes[r->rank], b, b.bytes(), (r->flags & Request::sync) != 0, Call::queue);
        }
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

// For messages. A rank of a unit test is not the library's own process, which then has no table.
int world_rank_of(int peer) { return obj::process->peers != nullptr ? obj::process->peers[peer].world_rank : peer; }

}  // namespace

void out_of_memory(int64_t bytes, int peer) {
    char text[160];
    snprintf(text, sizeof text, "out of memory: none for a message of %ld bytes to or from rank %d (see ulimit -v)",
             static_cast<long>(bytes), world_rank_of(peer));
    boot::abort(obj::process->job, static_cast<int>(Err::no_mem), text);
}

void damaged(int peer, const char* what) {
    char text[160];
    snprintf(text, sizeof text, "rank %d has sent %s that fits nothing here: its memory, or this rank's, is damaged",
             world_rank_of(peer), what);
    boot::abort(obj::process->job, static_cast<int>(Err::other), text);
}

lane::PeerState& state_of(LaneGuard& g, int peer) {
    lane::PeerState* const s = g.lane.make_peer(peer);
    if (WEFT_UNLIKELY(s == nullptr)) out_of_memory(0, peer);
    return *s;
}

uint64_t identity_of(lane::Ids& ids, int peer, void* record) {
    const uint64_t id = ids.put(record);
    if (WEFT_UNLIKELY(id == 0)) out_of_memory(0, peer);
    return id;
}

void enqueue(LaneGuard& g, int peer, Request& r) {
    lane::PeerState& to = state_of(g, peer);
    if (to.pending.empty()) g.lane.pending_peers.push(&to);
    to.pending.push(&r);
    g.lane.hold(peer);
    g.lane.work.fetch_add(1, std::memory_order_relaxed);
}

bool push_pending(LaneGuard& g) {
    Lane& l = g.lane;
    bool moved = false;
    Link* before = nullptr;
    for (Link *n = l.pending_peers.head, *following; n != nullptr; n = following) {
        following = n->next;
        const int peer = static_cast<lane::PeerState*>(n)->peer;
        moved |= push_queue(g, peer);
        if (l.peers[peer].pending.empty()) l.pending_peers.remove(n, before);
        else before = n;
    }
    return moved;
}

void send_ssend_ack(LaneGuard& g, int peer, uint64_t send) { send_control(g, peer, Protocol::ssend_ack, send, 0, 0); }
void send_cts(LaneGuard& g, int peer, uint64_t send, uint64_t receive, int64_t limit) {
    send_control(g, peer, Protocol::cts, send, receive, limit);
}

bool must_drain(LaneGuard& g, int peer) {
    return g.lane.peers[peer].awaiting != 0 || g.lane.looking != 0 || receives_from(g, peer);
}

}  // namespace weft::p2p
