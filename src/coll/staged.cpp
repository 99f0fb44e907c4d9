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
        s_.await(area_.marks_of(r < parts_ ? Share::mark_done(n_ - 1) : Share::mark_at(n_, last_phase_of(r - parts_))));
    }
    // A copy from memory that `readers` read in this phase.
    void read(Buffer staged, Buffer to, int32_t readers) {
        if (readers == 1 && !area_.crowded) s_.take(staged, to);
        else s_.copy(staged, to);
    }
    void pass(uint64_t phase) { s_.signal(Share::mark_at(n_, phase)); }
    void wait_for(uint64_t phase) { s_.await(area_.marks_of(Share::mark_at(n_, phase))); }
    void wait_for(int32_t member, uint64_t phase) { s_.await(area_.mark_of(member, Share::mark_at(n_, phase))); }
    void done() { s_.signal(Share::mark_done(n_)); }

private:
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
    return area != nullptr && bytes > 0 && bytes >= area->limits_of(o).stages_least && bytes <= area->limits_of(o).stages_most;
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

bool add_staged_reduction(Schedule& s, Operation o, int32_t reader, const void* own, Buffer result) {
    const type::Type& t = *result.type;
    if (!by_stages(s, o, result.bytes()) || !s.op()->is(op::Op::commutative) || !t.is(type::Type::predefined) || !t.is(type::Type::dense) ||
        line_bytes % t.size != 0)
        return false;
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

static bool is_row(const Blocks& b) { return !b.counts && b.types == nullptr; }
static Buffer whole(const Blocks& b, int32_t blocks) { return Row{b.base, b.count, b.type}.run(0, blocks); }

// Everybody writes its block to its own memory, and reads all others'.
bool add_staged_allgather(Schedule& s, Buffer send, const Blocks& recv) {
    const Share* area = s.share();
    const int64_t block = is_row(recv) ? recv.at(0).bytes() : 0;
    if (!by_stages(s, Operation::allgather, block)) return false;
    const int32_t me = area->me, all = area->ranks;
    Rounds rounds(s, block, area->layout.stage_bytes);
    const bool place = in_place(send.base);
    Flat own(s, place ? recv.at(me) : send), row(s, whole(recv, all));
    own.fill();
    for (int64_t r = 0; r < rounds.count(); r++) {
        const uint64_t phase = first_of(r, 2);
        const int64_t from = rounds.from(r), bytes = rounds.bytes(r);
        rounds.wait_until_read(r, last_of_two);
        s.copy(own.piece(from, bytes), bytes_at(rounds.in(area->stage(me), r), bytes));
        rounds.pass(phase);
        if (!place || !row.dense()) s.copy(own.piece(from, bytes), row.piece(me * block + from, bytes));
        for (int32_t i = 1; i < all; i++) {
            const int32_t other = (me + i) % all;
            rounds.wait_for(other, phase);
            rounds.read(bytes_at(rounds.in(area->stage(other), r), bytes), row.piece(other * block + from, bytes), all - 1);
        }
        rounds.pass(phase + 1);
    }
    row.empty();
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

}  // namespace weft::coll
