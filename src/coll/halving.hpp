// Recursive halving: a reduction of a vector that may be cut anywhere between elements, and combined in any order. Of n members a power of
// two takes part; the first of the others' operands are added to their neighbours' before. Included by coll/ alone.
#pragma once
#include "coll/coll.hpp"

namespace weft::coll {

// Commutative operations on predefined types, of one element or more for each member: the same in all.
inline bool can_be_cut(const Schedule& s, const Team& t, const Buffer& b) {
    return s.op()->is(op::Op::commutative) && b.type->is(type::Type::predefined) && b.count >= t.size;
}

struct Halves {
    const Team& t;
    Buffer data;             // operand, then as much of the result as the member has
    int32_t whole = 1;       // how many take part
    int32_t extra, me = -1;  // pairs of members of which only the odd one does; the caller among those who take part

    Halves(const Team& team, Buffer b) : t(team), data(b) {
        while (whole * 2 <= t.size) whole *= 2;
        extra = t.size - whole;
        if (t.rank >= 2 * extra) me = t.rank - extra;
        else if (t.rank % 2 == 1) me = t.rank / 2;
    }
    bool takes_part() const { return me >= 0; }
    int32_t real(int32_t i) const { return i < extra ? 2 * i + 1 : i + extra; }
    // The shares of [from, to) of those who take part.
    Buffer share(int64_t from, int64_t to) const {
        const int64_t first = data.count * from / whole, end = data.count * to / whole;
        return {static_cast<char*>(data.base) + first * data.type->extent, end - first, data.type};
    }

    // Whoever takes part has its share of the result at the end.
    void add_reduce_scatter(Schedule& s) const {
        if (!takes_part()) {
            s.send(t, t.rank + 1, data);
            return s.fence();
        }
        const bool folds = t.rank < 2 * extra;
        const Buffer incoming = s.temp_like(folds ? data.count : data.count / 2 + 1, *data.type);
        auto combine = [&](int32_t from, Buffer mine) {
            s.recv(t, from, {incoming.base, mine.count, mine.type});
            s.fence();
            s.reduce(incoming.base, mine);
        };
        if (folds) combine(t.rank - 1, data);
        for (int32_t half = whole / 2; half > 0; half /= 2) {
            const int32_t mine = me & ~(half - 1), theirs = mine ^ half;
            s.send(t, real(me ^ half), share(theirs, theirs + half));
            combine(real(me ^ half), share(mine, mine + half));
        }
    }
    // From there on: all have all.
    void add_allgather(Schedule& s) const {
        if (!takes_part()) {
            s.recv(t, t.rank + 1, data);
            return s.fence();
        }
        for (int32_t width = 1; width < whole; width *= 2) {
            const int32_t mine = me & ~(width - 1), theirs = mine ^ width;
            s.recv(t, real(me ^ width), share(theirs, theirs + width));
            s.send(t, real(me ^ width), share(mine, mine + width));
            s.fence();
        }
        if (t.rank < 2 * extra) s.send(t, t.rank - 1, data);
    }
};

}  // namespace weft::coll
