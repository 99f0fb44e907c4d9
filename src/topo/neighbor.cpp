#include "topo/neighbor.hpp"

#include "obj/status.hpp"
#include "p2p/p2p.hpp"

namespace weft::topo {

namespace {

using coll::Schedule;
using coll::Team;

// Receives are posted in the order in which the messages were sent. Where both neighbours along a dimension are the
// same process (a ring of one or two), its message "down" is the one that arrives here "from above", so a grid's pairs
// are received in reverse. `to`: a schedule, or messages that go at once.
template <class To, class Send, class Recv> void add_exchange(To& to, Comm& c, const Neighbours& n, Send out, Recv in) {
    const Team t = coll::local_team(c);
    for (int32_t i = 0; i < n.sources; i++) {
        const int32_t at = n.grid ? i ^ 1 : i, peer = n.from[at];
        if (peer != obj::proc_null) to.recv(t, peer, in(at));
    }
    for (int32_t i = 0; i < n.destinations; i++) {
        const int32_t peer = n.to[i];
        if (peer != obj::proc_null) to.send(t, peer, out(i));
    }
}

Buffer block(const coll::Blocks& b, int32_t i) {
    return coll::is_row(b) ? coll::Row{b.base, b.count, b.type}.run(i, i + 1) : b.at(i);
}

template <class To> void add(To& to, Comm& c, const Neighbours& n, const NeighborAllgather& a) {
    add_exchange(to, c, n, [&](int32_t) { return a.send; }, [&](int32_t i) { return block(a.recv, i); });
}
template <class To> void add(To& to, Comm& c, const Neighbours& n, const NeighborAlltoall& a) {
    add_exchange(to, c, n, [&](int32_t i) { return block(a.send, i); }, [&](int32_t i) { return block(a.recv, i); });
}

Err check(bool in_place) {
    return in_place ? fail(Err::buffer, "MPI_IN_PLACE has no meaning in a neighbourhood") : Err::ok;
}
Err check(const NeighborAllgather& a) { return check(coll::in_place(a.send.base) || a.recv.in_place()); }
Err check(const NeighborAlltoall& a) { return check(a.send.in_place() || a.recv.in_place()); }

template <class A> Err build_exchange(Schedule& s, const A& a) {
    WEFT_TRY(check(a));
    Neighbours n;
    WEFT_TRY(neighbours(*s.comm, &n));
    add(s, *s.comm, n, a);
    return Err::ok;
}

// A blocking call's messages. An error does not stop the others: the neighbours count on them.
class Messages {
public:
    static constexpr int32_t most = 32;

    Messages(Process& p, int32_t tag) : process_(p), tag_(tag) {}
    WEFT_INLINE void recv(const Team& t, int32_t from, const Buffer& b) {
        keep(p2p::irecv(process_, *t.comm, b, {from, tag_, obj::Request::coll}, &requests_[count_]));
    }
    WEFT_INLINE void send(const Team& t, int32_t to, const Buffer& b) {
        keep(p2p::isend(process_, *t.comm, b, {to, tag_, obj::Request::coll}, p2p::Mode::standard, &requests_[count_]));
    }
    Err finish() {
        for (int32_t i = 0; i < count_; i++) {
            obj::Request& r = *requests_[i];
            if (!r.done()) p2p::wait(process_, r);
            note(p2p::finish(process_, r, nullptr));
        }
        return error_;
    }

private:
    void note(Err e) { if (error_ == Err::ok) error_ = e; }
    void keep(Err e) {
        note(e);
        if (e == Err::ok && requests_[count_] != &process_.sent_request) count_++;
    }

    Process& process_;
    const int32_t tag_;
    Err error_ = Err::ok;
    int32_t count_ = 0;
    obj::Request* requests_[most];
};

template <class A> Err exchange_now(Process& p, Comm& c, const A& a) {
    WEFT_TRY(check(a));
    Neighbours n;
    WEFT_TRY(neighbours(c, &n));
    if (n.sources + n.destinations > Messages::most) {
        Schedule* s = nullptr;
        WEFT_TRY(coll::open(p, c, coll::of_sequence, false, &s));
        add(*s, c, n, a);
        return coll::run(*s);
    }
    Messages messages(p, coll::next_tag(c, coll::of_sequence));
    add(messages, c, n, a);
    return messages.finish();
}

}  // namespace

Err build(Schedule& s, const NeighborAllgather& a) { return build_exchange(s, a); }
Err build(Schedule& s, const NeighborAlltoall& a) { return build_exchange(s, a); }
Err exchange(Process& p, Comm& c, const NeighborAllgather& a) { return exchange_now(p, c, a); }
Err exchange(Process& p, Comm& c, const NeighborAlltoall& a) { return exchange_now(p, c, a); }

}  // namespace weft::topo
