// The collectives in which everybody sends data to everybody: allgather and alltoall, in all their forms.
#include "coll/coll.hpp"
#include "coll/staged.hpp"

namespace weft::coll {

namespace {

constexpr int32_t window = 16;  // exchanges under way at a time, so that a large job does not post a million requests

Err no_place(const char* what) { return fail(Err::buffer, "MPI_IN_PLACE cannot be the %s here", what); }

// Every process of one group exchanges with every process of the other. Rounds are numbered the same on both sides.
template <class Send, class Recv> void add_between(Schedule& s, Comm& c, Send out, Recv in) {
    Team remote = remote_team(c);
    int32_t rounds = c.size > c.remote_size ? c.size : c.remote_size;
    for (int32_t i = 0; i < rounds; i++) {
        int32_t peer = (i - c.rank % rounds + rounds) % rounds;  // an involution between the two groups
        if (peer < c.remote_size) {
            s.recv(remote, peer, in(peer));
            s.send(remote, peer, out(peer));
        }
        if (i % window == window - 1) s.fence();
    }
}

}  // namespace

Err build(Schedule& s, const Allgather& a) {
    Comm& c = *s.comm;
    if (a.recv.in_place()) return no_place("receive buffer");
    if (c.is_inter()) {
        if (in_place(a.send.base)) return no_place("send buffer");
        add_between(s, c, [&](int32_t) { return a.send; }, [&](int32_t i) { return a.recv.at(i); });
        return Err::ok;
    }
    if (!add_staged_allgather(s, a.send, a.recv)) add_allgather(s, local_team(c), a.send, a.recv);
    return Err::ok;
}

namespace {

// In place: pairs swap blocks through a temporary one. Round i pairs r with i - r, which is its own inverse.
void add_swaps(Schedule& s, const Team& t, const Blocks& data, int64_t least) {
    for (int32_t i = 0; i < t.size; i++) {
        int32_t peer = (i - t.rank + t.size) % t.size;
        if (peer == t.rank) continue;
        Buffer block = data.at(peer);
        if (block.bytes() < least) continue;
        Buffer incoming = s.temp_bytes(block.bytes());
        s.recv(t, peer, incoming);
        s.send(t, peer, block);
        s.fence();
        s.copy(incoming, block);
    }
}

}  // namespace

namespace {

// Bruck's: log2(n) rounds, in each of which a member hands on half of all blocks, packed. Block i is the one that has to go i members on;
// those with the round's bit set go that far. Equal blocks.
void add_bruck(Schedule& s, const Team& t, const Alltoall& a) {
    const int64_t block = a.recv.at(0).bytes();
    const Buffer all = s.temp_bytes(block * t.size), out = s.temp_bytes(block * t.size), in = s.temp_bytes(block * t.size);
    auto at = [&](Buffer row, int64_t i) { return bytes_at(static_cast<char*>(row.base) + i * block, block); };
    for (int32_t i = 0; i < t.size; i++) s.copy(a.send.at((t.rank + i) % t.size), at(all, i));
    for (int32_t bit = 1; bit < t.size; bit *= 2) {
        int64_t n = 0;
        for (int32_t i = bit; i < t.size; i++)
            if ((i & bit) != 0) s.copy(at(all, i), at(out, n++));
        s.recv(t, (t.rank - bit + t.size) % t.size, bytes_at(in.base, n * block));
        s.send(t, (t.rank + bit) % t.size, bytes_at(out.base, n * block));
        s.fence();
        n = 0;
        for (int32_t i = bit; i < t.size; i++)
            if ((i & bit) != 0) s.copy(at(in, n++), at(all, i));
    }
    for (int32_t i = 0; i < t.size; i++) s.copy(at(all, i), a.recv.at((t.rank - i + t.size) % t.size));
}

}  // namespace

void add_alltoall(Schedule& s, const Team& t, const Alltoall& a, int64_t least) {
    if (least == 0 && is_row(a.recv) && !a.send.in_place() && by_messages(s, Operation::alltoall, t.size, a.recv.at(0).bytes() * t.size) == Algorithm::bruck)
        return add_bruck(s, t, a);
    if (a.send.in_place()) return add_swaps(s, t, a.recv, least);
    if (a.send.at(t.rank).bytes() >= least) s.copy(a.send.at(t.rank), a.recv.at(t.rank));
    for (int32_t i = 1; i < t.size; i++) {
        const int32_t from = (t.rank - i + t.size) % t.size, to = (t.rank + i) % t.size;
        if (a.recv.at(from).bytes() >= least) s.recv(t, from, a.recv.at(from));
        if (a.send.at(to).bytes() >= least) s.send(t, to, a.send.at(to));
        if (i % window == 0) s.fence();
    }
}

Err build(Schedule& s, const Alltoall& a) {
    Comm& c = *s.comm;
    if (a.recv.in_place()) return no_place("receive buffer");
    if (c.is_inter()) {
        if (a.send.in_place()) return no_place("send buffer");
        add_between(s, c, [&](int32_t i) { return a.send.at(i); }, [&](int32_t i) { return a.recv.at(i); });
        return Err::ok;
    }
    if (add_staged_alltoall(s, a.send, a.recv)) return Err::ok;
    add_alltoall(s, local_team(c), a);
    return Err::ok;
}

}  // namespace weft::coll
