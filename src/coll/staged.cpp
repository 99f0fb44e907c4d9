// A call goes in rounds: each moves as much as the staging memory of a round holds. With CPUs of their own the members use half of it in
// turn, so that one half is written while the other is read. Members that share CPUs use all of it: every wait hands CPUs over, and the
// number of waits decides.
//
// Marks within a round are its phases, numbered through the call. What each phase waits for is said where it is added.
#include "coll/staged.hpp"

#include "coll/area.hpp"
#include "op/op.hpp"

namespace weft::coll {

namespace {

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// One call in the area, as its builder sees it: numbers its phases, and says what may be written when.
class Rounds {
public:
    // `total`: bytes that the call moves through each unit of `room` bytes of staging memory, in rounds of up to `most`.
    Rounds(Schedule& s, int64_t total, int64_t room, int64_t most = INT64_MAX)
        : s_(s), area_(*s.share()), total_(total), parts_(area_.crowded ? 1 : 2), n_(s.begin_in_area()) {
        round_ = room / parts_ / line_bytes * line_bytes;
        if (!area_.crowded) round_ = smaller(round_, most);
    }
    int64_t count() const { return (total_ + round_ - 1) / round_; }
    int64_t from(int64_t r) const { return r * round_; }
    int64_t bytes(int64_t r) const { return smaller(round_, total_ - from(r)); }
    // Where the round's bytes lie in a unit that starts at `unit`.
    char* in(char* unit, int64_t r) const { return unit + r % parts_ * round_; }

    // Before this member writes to its memory for round r: all have read what it held, that is, passed their last phase of round
    // r - parts, or are done with the call before.
    void wait_until_read(int64_t r, uint64_t last_phase_of(int64_t)) {
        s_.await(area_.marks_of(read_at(r, last_phase_of)));
        if (compares_sizes && r == 0) s_.tell(total_);
    }
    // Where one member alone reads it.
    void wait_until_read_by(int32_t member, int64_t r, uint64_t last_phase_of(int64_t)) {
        if (r < parts_) return wait_until_read(r, last_phase_of);
        s_.await(area_.mark_of(member, read_at(r, last_phase_of)));
    }
    // A copy from memory that `readers` read in this phase.
    void read(Buffer staged, Buffer to, int32_t readers) {
        if (readers == 1 && !area_.crowded) s_.take(staged, to);
        else s_.copy(staged, to);
    }
    void pass(uint64_t phase) { s_.signal(Share::mark_at(n_, phase)); }
    void wait_for(uint64_t phase) {
        s_.await(area_.marks_of(Share::mark_at(n_, phase)));
        if (compares_sizes && phase == 1) s_.compare(0, area_.ranks, total_);
    }
    void wait_for(int32_t member, uint64_t phase) {
        s_.await(area_.mark_of(member, Share::mark_at(n_, phase)));
        if (compares_sizes && phase == 1) s_.compare(member, member + 1, total_);
    }
    void done() { s_.signal(Share::mark_done(n_)); }

private:
    uint64_t read_at(int64_t r, uint64_t last_phase_of(int64_t)) const {
        return r < parts_ ? Share::mark_done(n_ - 1) : Share::mark_at(n_, last_phase_of(r - parts_));
    }

    Schedule& s_;
    const Share& area_;
    int64_t total_, round_;
    int32_t parts_;
    uint64_t n_;
};

// One member writes while the others read what it wrote before: in pieces that are small beside the whole, and not too small.
int64_t pipelined(int64_t total) {
    constexpr int64_t least = 8 * 1024, pieces = 4;
    const int64_t piece = total / pieces / line_bytes * line_bytes;
    return piece > least ? piece : least;
}

// Whether the call is for staging memory. `bytes` as in coll/choice.hpp.
bool by_stages(const Schedule& s, Operation o, int64_t bytes) {
    const Share* area = s.share();
    return area != nullptr && area->stages(o, bytes);
}

// Packed bytes of a buffer that is used in pieces: itself where it is dense.
class Flat {
public:
    Flat(Schedule& s, Buffer b) : s_(s), user_(b), dense_(b.dense()), bytes_(dense_ ? bytes_at(b.data(), b.bytes()) : s.temp_bytes(b.bytes())) {}
    bool dense() const { return dense_; }
    void fill() { if (!dense_) s_.copy(user_, bytes_); }
    void empty() { if (!dense_) s_.copy(bytes_, user_); }
    Buffer piece(int64_t from, int64_t bytes) const { return bytes_at(static_cast<char*>(bytes_.base) + from, bytes); }

private:
    Schedule& s_;
    Buffer user_;
    bool dense_;
    Buffer bytes_;
};

// Phases of a call whose rounds have one, and of one whose rounds have two.
uint64_t only(int64_t r) { return static_cast<uint64_t>(r) + 1; }
uint64_t first_of(int64_t r, uint64_t of) { return static_cast<uint64_t>(r) * of + 1; }

}  // namespace

Extent extent_of(const Comm&, const Barrier&) { return {Operation::barrier, 1}; }
Extent extent_of(const Comm&, const Bcast& a) { return {Operation::bcast, a.buf.bytes()}; }
Extent extent_of(const Comm&, const Reduce& a) { return {Operation::reduce, a.recv.bytes()}; }
Extent extent_of(const Comm&, const Allreduce& a) { return {Operation::allreduce, a.recv.bytes()}; }
Extent extent_of(const Comm& c, const ReduceScatter& a) { return {Operation::reduce_scatter, Parts{a}.first(c.size) * a.recv.type->size}; }
Extent extent_of(const Comm&, const Scan& a) { return {Operation::scan, a.recv.bytes()}; }
Extent extent_of(const Comm& c, const Gather& a) {
    return {Operation::gather, !a.equal ? 0 : a.root == c.rank ? a.recv.at(0).bytes() : a.send.bytes()};
}
Extent extent_of(const Comm& c, const Scatter& a) {
    return {Operation::scatter, !a.equal ? 0 : c.size * (a.root == c.rank ? a.send.at(0).bytes() : a.recv.bytes())};
}
Extent extent_of(const Comm& c, const Allgather& a) { return {Operation::allgather, a.recv.types != nullptr ? 0 : largest(a.recv, c.size)}; }
Extent extent_of(const Comm& c, const Alltoall& a) { return {Operation::alltoall, is_row(a.recv) ? a.recv.at(0).bytes() * c.size : 0}; }

// All have passed the one phase.
bool add_staged_barrier(Schedule& s) {
    if (!by_stages(s, Operation::barrier, 1)) return false;
    const uint64_t n = s.begin_in_area();
    s.signal(Share::mark_at(n, 1));
    s.await(s.share()->marks_of(Share::mark_at(n, 1)));
    s.signal(Share::mark_done(n));
    return true;
}

// The root writes, all others read: all members' staging memory is the root's.
bool add_staged_bcast(Schedule& s, int32_t root, Buffer b) {
    if (!by_stages(s, Operation::bcast, b.bytes())) return false;
    const Share& area = *s.share();
    Rounds rounds(s, b.bytes(), area.layout.stage_bytes * area.ranks, pipelined(b.bytes()));
    Flat flat(s, b);
    const bool writes = root == area.me;
    if (writes) flat.fill();
    for (int64_t r = 0; r < rounds.count(); r++) {
        Buffer mine = flat.piece(rounds.from(r), rounds.bytes(r)), staged = bytes_at(rounds.in(area.stage(0), r), mine.count);
        if (writes) {
            rounds.wait_until_read(r, only);
            s.copy(mine, staged);
        } else {
            rounds.wait_for(root, only(r));
            rounds.read(staged, mine, area.ranks - 1);
        }
        rounds.pass(only(r));
    }
    if (!writes) flat.empty();
    rounds.done();
    return true;
}

namespace {

// A vector that all members reduce together: each its share of every round.
struct Vector {
    Schedule& s;
    const Share& area;
    Rounds& rounds;
    const void* own;   // operands
    Buffer result;     // null base: this member gets none
    void* scratch;     // for its share of a round, where that cannot be reduced in the result; else null

    int64_t width() const { return result.type->size; }
    // Of the elements of round r, those that member i reduces: [share(r, i), share(r, i + 1)), counted from the round's first. Whole lines.
    int64_t share(int64_t r, int32_t i) const {
        const int64_t elements = rounds.bytes(r) / width(), in_line = line_bytes / width();
        return i == area.ranks ? elements : elements * i / area.ranks / in_line * in_line;
    }
    Buffer at(void* base, int64_t r, int32_t i, int32_t to) const {
        return {static_cast<char*>(base) + share(r, i) * width(), share(r, to) - share(r, i), result.type};
    }
    Buffer of_own(int64_t r, int32_t i, int32_t to) const {
        return at(static_cast<char*>(const_cast<void*>(own)) + rounds.from(r), r, i, to);
    }
    Buffer of_result(int64_t r, int32_t i, int32_t to) const { return at(static_cast<char*>(result.base) + rounds.from(r), r, i, to); }
    // Where member i, this one, reduces its share: in memory that is in its own caches.
    Buffer sum(int64_t r, int32_t i) const {
        if (scratch == nullptr) return of_result(r, i, i + 1);
        return {scratch, share(r, i + 1) - share(r, i), result.type};
    }
    Buffer staged(int32_t member, int64_t r, int32_t i, int32_t to) const { return at(rounds.in(area.stage(member), r), r, i, to); }
};

// Three phases: the operands that others reduce are staged; this member's share is reduced, and staged too; all have read it.
uint64_t last_of_three(int64_t r) { return first_of(r, 3) + 2; }

void add_reduction_round(const Vector& v, int64_t r, int32_t reader) {
    Schedule& s = v.s;
    const int32_t me = v.area.me, all = v.area.ranks;
    const uint64_t phase = first_of(r, 3);
    v.rounds.wait_until_read(r, last_of_three);
    s.copy(v.of_own(r, 0, me), v.staged(me, r, 0, me));
    s.copy(v.of_own(r, me + 1, all), v.staged(me, r, me + 1, all));
    v.rounds.pass(phase);
    v.rounds.wait_for(phase);
    const Buffer share = v.of_own(r, me, me + 1), sum = v.sum(r, me);
    v.rounds.read(v.staged((me + 1) % all, r, me, me + 1), sum, 1);
    s.reduce(share.base, sum);
    for (int32_t i = 2; i < all; i++) s.reduce(v.staged((me + i) % all, r, me, me + 1).base, sum);
    s.copy(sum, v.staged(me, r, me, me + 1));
    v.rounds.pass(phase + 1);
    if (reader < 0 || reader == me) {
        v.rounds.wait_for(phase + 1);
        if (v.scratch != nullptr) s.copy(sum, v.of_result(r, me, me + 1));
        for (int32_t i = 1; i < all; i++) {
            const int32_t from = (me + i) % all;
            v.rounds.read(v.staged(from, r, from, from + 1), v.of_result(r, from, from + 1), reader < 0 ? all - 1 : 1);
        }
    }
    v.rounds.pass(phase + 2);
}

// Types whose elements may be reduced in any pieces of whole lines: the same in all members.
bool can_be_cut(const type::Type& t) { return t.is(type::Type::predefined) && t.is(type::Type::dense) && line_bytes % t.size == 0; }

// A small one: who gets the result combines the operands, in the members' order, from the last one on. No second phase.
bool add_small_reduction(Schedule& s, Operation o, int32_t reader, const void* own, Buffer result) {
    if (!by_stages(s, o, result.bytes()) || result.bytes() > Layout::slot_bytes || !can_be_cut(*result.type)) return false;
    const Share& area = *s.share();
    Rounds rounds(s, result.bytes(), area.layout.stage_bytes);
    auto staged = [&](int32_t i) { return Buffer{rounds.in(area.stage(i), 0), result.count, result.type}; };
    rounds.wait_until_read(0, only);
    s.copy({const_cast<void*>(own), result.count, result.type}, staged(area.me));
    rounds.pass(only(0));
    if (reader < 0 || reader == area.me) {
        rounds.wait_for(only(0));
        s.copy(staged(area.ranks - 1), result);
        for (int32_t i = area.ranks - 2; i >= 0; i--) s.reduce(staged(i).base, result);
    }
    rounds.done();
    return true;
}

bool add_staged_reduction(Schedule& s, Operation o, int32_t reader, const void* own, Buffer result) {
    if (add_small_reduction(s, o, reader, own, result)) return true;
    if (!by_stages(s, o, result.bytes()) || !s.op()->is(op::Op::commutative) || !can_be_cut(*result.type)) return false;
    const Share& area = *s.share();
    Rounds rounds(s, result.bytes(), area.layout.stage_bytes);
    const bool elsewhere = result.base == nullptr || own == result.base;
    const Vector v{s, area, rounds, own, result, elsewhere ? s.temp(rounds.bytes(0) / area.ranks + 2 * line_bytes) : nullptr};
    for (int64_t r = 0; r < rounds.count(); r++) add_reduction_round(v, r, reader);
    rounds.done();
    return true;
}

}  // namespace

bool add_staged_reduce(Schedule& s, int32_t root, const void* own, Buffer result) {
    return add_staged_reduction(s, Operation::reduce, root, own, result);
}

bool add_staged_allreduce(Schedule& s, const void* own, Buffer result) {
    return add_staged_reduction(s, Operation::allreduce, -1, own, result);
}

// Two phases: what others read is staged; all have read it.
static uint64_t last_of_two(int64_t r) { return first_of(r, 2) + 1; }

static Buffer whole(const Blocks& b, int32_t blocks) { return Row{b.base, b.count, b.type}.run(0, blocks); }

namespace {

// Blocks that are used in pieces: each where it lies, or packed beside the others. `n` blocks; 0: they are another member's, not used here.
class FlatBlocks {
public:
    FlatBlocks(Schedule& s, const Blocks& b, int32_t n) : s_(s), user_(b), n_(n) {
        if (n > 0 && !b.type->is(type::Type::dense)) packed_ = static_cast<char*>(s.temp(before(n)));
    }
    bool dense() const { return packed_ == nullptr; }
    int64_t bytes(int32_t i) const { return user_.at(i).bytes(); }
    void fill() { for (int32_t i = 0; !dense() && i < n_; i++) s_.copy(user_.at(i), piece(i, 0, bytes(i))); }
    void empty() { for (int32_t i = 0; !dense() && i < n_; i++) s_.copy(piece(i, 0, bytes(i)), user_.at(i)); }
    Buffer piece(int32_t i, int64_t from, int64_t bytes) const {
        return bytes_at((dense() ? user_.at(i).data() : packed_ + before(i)) + from, bytes);
    }

private:
    int64_t before(int32_t i) const {
        int64_t sum = 0;
        for (int32_t j = 0; j < i; j++) sum += bytes(j);
        return sum;
    }

    Schedule& s_;
    const Blocks& user_;
    int32_t n_;
    char* packed_ = nullptr;
};

// Of a block of `all` bytes, those of a round that has [from, from + most).
int64_t part_of(int64_t all, int64_t from, int64_t most) { return all <= from ? 0 : smaller(all - from, most); }

}  // namespace

// Everybody writes its block to its own memory, and reads all others'. The largest block decides how many rounds there are.
bool add_staged_allgather(Schedule& s, Buffer send, const Blocks& recv) {
    const Share* area = s.share();
    const int64_t block = area == nullptr || recv.types != nullptr ? 0 : largest(recv, area->ranks);
    if (!by_stages(s, Operation::allgather, block)) return false;
    const int32_t me = area->me, all = area->ranks;
    Rounds rounds(s, block, area->layout.stage_bytes);
    const bool place = in_place(send.base);
    Flat own(s, place ? recv.at(me) : send);
    FlatBlocks row(s, recv, all);
    own.fill();
    for (int64_t r = 0; r < rounds.count(); r++) {
        const uint64_t phase = first_of(r, 2);
        const int64_t from = rounds.from(r);
        auto bytes = [&](int32_t i) { return part_of(row.bytes(i), from, rounds.bytes(r)); };
        rounds.wait_until_read(r, last_of_two);
        s.copy(own.piece(from, bytes(me)), bytes_at(rounds.in(area->stage(me), r), bytes(me)));
        rounds.pass(phase);
        if (!place || !row.dense()) s.copy(own.piece(from, bytes(me)), row.piece(me, from, bytes(me)));
        for (int32_t i = 1; i < all; i++) {
            const int32_t other = (me + i) % all;
            if (bytes(other) == 0) continue;
            rounds.wait_for(other, phase);
            rounds.read(bytes_at(rounds.in(area->stage(other), r), bytes(other)), row.piece(other, from, bytes(other)), all - 1);
        }
        rounds.pass(phase + 1);
    }
    row.empty();
    rounds.done();
    return true;
}

// Equal blocks: everybody writes to its own memory, and the root reads.
bool add_staged_gather(Schedule& s, int32_t root, Buffer send, const Blocks& recv) {
    const Share* area = s.share();
    const bool reads = area != nullptr && root == area->me;
    const int64_t block = reads ? recv.at(0).bytes() : send.bytes();
    if (!by_stages(s, Operation::gather, block)) return false;
    Rounds rounds(s, block, area->layout.stage_bytes);
    Flat own(s, in_place(send.base) ? recv.at(root) : send);
    FlatBlocks row(s, recv, reads ? area->ranks : 0);
    own.fill();
    for (int64_t r = 0; r < rounds.count(); r++) {
        const int64_t from = rounds.from(r), bytes = rounds.bytes(r);
        if (!reads) {
            rounds.wait_until_read_by(root, r, only);
            s.copy(own.piece(from, bytes), bytes_at(rounds.in(area->stage(area->me), r), bytes));
        }
        for (int32_t i = 0; reads && i < area->ranks; i++) {
            if (i == root) {
                if (!in_place(send.base) || !row.dense()) s.copy(own.piece(from, bytes), row.piece(i, from, bytes));
                continue;
            }
            rounds.wait_for(i, only(r));
            rounds.read(bytes_at(rounds.in(area->stage(i), r), bytes), row.piece(i, from, bytes), 1);
        }
        rounds.pass(only(r));
    }
    row.empty();
    rounds.done();
    return true;
}

// Equal blocks: the root writes each to the memory of who reads it.
bool add_staged_scatter(Schedule& s, int32_t root, const Blocks& send, Buffer recv) {
    const Share* area = s.share();
    const bool writes = area != nullptr && root == area->me;
    const int64_t block = writes ? send.at(0).bytes() : recv.bytes();
    if (area == nullptr || !by_stages(s, Operation::scatter, block * area->ranks)) return false;
    const bool place = in_place(recv.base);
    Rounds rounds(s, block, area->layout.stage_bytes);
    FlatBlocks row(s, send, writes ? area->ranks : 0);
    Flat own(s, place ? send.at(root) : recv);
    row.fill();
    for (int64_t r = 0; r < rounds.count(); r++) {
        const int64_t from = rounds.from(r), bytes = rounds.bytes(r);
        if (writes) {
            rounds.wait_until_read(r, only);
            for (int32_t i = 0; i < area->ranks; i++)
                if (i != root) s.copy(row.piece(i, from, bytes), bytes_at(rounds.in(area->stage(i), r), bytes));
        } else {
            rounds.wait_for(root, only(r));
            rounds.read(bytes_at(rounds.in(area->stage(area->me), r), bytes), own.piece(from, bytes), 1);
        }
        rounds.pass(only(r));
        if (writes && !place) s.copy(row.piece(root, from, bytes), own.piece(from, bytes));
    }
    if (!place) own.empty();
    rounds.done();
    return true;
}

// The same, with a part of the memory for each reader.
bool add_staged_alltoall(Schedule& s, const Blocks& send, const Blocks& recv) {
    const Share* area = s.share();
    const int64_t block = is_row(recv) ? recv.at(0).bytes() : 0;
    if (area == nullptr || !by_stages(s, Operation::alltoall, block * area->ranks)) return false;
    const int32_t me = area->me, all = area->ranks;
    const int64_t room = area->layout.stage_bytes / all / line_bytes * line_bytes;
    Rounds rounds(s, block, room);
    const bool place = send.in_place();
    Flat in(s, whole(recv, all)), own(s, whole(send, place ? 0 : all));
    Flat& out = place ? in : own;
    out.fill();
    for (int64_t r = 0; r < rounds.count(); r++) {
        const uint64_t phase = first_of(r, 2);
        const int64_t from = rounds.from(r), bytes = rounds.bytes(r);
        auto staged = [&](int32_t writer, int32_t reader) { return bytes_at(rounds.in(area->stage(writer) + reader * room, r), bytes); };
        rounds.wait_until_read(r, last_of_two);
        for (int32_t i = 0; i < all; i++)
            if (i != me) s.copy(out.piece(i * block + from, bytes), staged(me, i));
        rounds.pass(phase);
        if (!place) s.copy(out.piece(me * block + from, bytes), in.piece(me * block + from, bytes));
        for (int32_t i = 1; i < all; i++) {
            const int32_t other = (me + i) % all;
            rounds.wait_for(other, phase);
            rounds.read(staged(other, me), in.piece(other * block + from, bytes), 1);
        }
        rounds.pass(phase + 1);
    }
    in.empty();
    rounds.done();
    return true;
}

// As an alltoall whose readers reduce what they read. The largest part decides how many rounds there are.
bool add_staged_reduce_scatter(Schedule& s, const Parts& parts, const void* own, Buffer result) {
    const Share* area = s.share();
    const int64_t width = result.type->size;
    if (area == nullptr || !by_stages(s, Operation::reduce_scatter, parts.first(area->ranks) * width) || !s.op()->is(op::Op::commutative) ||
        !can_be_cut(*result.type))
        return false;
    const int32_t me = area->me, all = area->ranks;
    int64_t most = 0;
    for (int32_t i = 0; i < all; i++) most = parts.count(i) > most ? parts.count(i) : most;
    const int64_t room = area->layout.stage_bytes / all / line_bytes * line_bytes;
    Rounds rounds(s, most * width, room);
    for (int64_t r = 0; r < rounds.count(); r++) {
        const uint64_t phase = first_of(r, 2);
        const int64_t from = rounds.from(r);
        auto bytes = [&](int32_t i) { return part_of(parts.count(i) * width, from, rounds.bytes(r)); };
        auto part = [&](int32_t i) { return bytes_at(static_cast<char*>(parts.at(own, i).base) + from, bytes(i)); };
        auto staged = [&](int32_t writer, int32_t reader) { return rounds.in(area->stage(writer) + reader * room, r); };
        rounds.wait_until_read(r, last_of_two);
        for (int32_t i = 0; i < all; i++)
            if (i != me) s.copy(part(i), bytes_at(staged(me, i), bytes(i)));
        rounds.pass(phase);
        const Buffer sum{static_cast<char*>(result.base) + from, bytes(me) / width, result.type};
        s.copy(part(me), bytes_at(sum.base, bytes(me)));
        for (int32_t i = 1; i < all && sum.count > 0; i++) {
            const int32_t other = (me + i) % all;
            rounds.wait_for(other, phase);
            s.reduce(staged(other, me), sum);
        }
        rounds.pass(phase + 1);
    }
    rounds.done();
    return true;
}

// A chain: each reads what those before it come to, and writes what they come to with itself. One reduction per member and round; while
// a member is in one round, those before it are in the next.
bool add_staged_scan(Schedule& s, bool exclusive, const void* own, Buffer result) {
    if (!by_stages(s, Operation::scan, result.bytes()) || !can_be_cut(*result.type)) return false;
    const Share& area = *s.share();
    const int32_t me = area.me;
    const bool first = me == 0, last = me + 1 == area.ranks;
    const int64_t width = result.type->size;
    Rounds rounds(s, result.bytes(), area.layout.stage_bytes, pipelined(result.bytes()));
    for (int64_t r = 0; r < rounds.count(); r++) {
        auto elements = [&](const void* base, int64_t from) {
            return Buffer{static_cast<char*>(const_cast<void*>(base)) + from, rounds.bytes(r) / width, result.type};
        };
        const Buffer mine = elements(own, rounds.from(r)), to = elements(result.base, rounds.from(r));
        const Buffer before = elements(rounds.in(area.stage(first ? 0 : me - 1), r), 0), sum = elements(rounds.in(area.stage(me), r), 0);
        if (!last) {
            rounds.wait_until_read_by(me + 1, r, only);
            s.copy(mine, sum);
        } else if (!exclusive && mine.base != to.base) {
            s.copy(mine, to);
        }
        if (!first) rounds.wait_for(me - 1, only(r));
        if (!first && !last) s.reduce(before.base, sum);
        if (!first && last && !exclusive) s.reduce(before.base, to);
        if (exclusive && !first) s.copy(before, to);
        if (!exclusive && !last) s.copy(sum, to);
        rounds.pass(only(r));
    }
    rounds.done();
    return true;
}

}  // namespace weft::coll
