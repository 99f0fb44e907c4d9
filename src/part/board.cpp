// Partitions on a board: see board.hpp for the protocol, channel.hpp for who may call what.
#include "part/board.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "heap/heap.hpp"
#include "heap/segment.hpp"
#include "lane/lane.hpp"
#include "part/part.hpp"

namespace weft::part {

namespace {

// The largest partition, and the largest message, that is staged where the receiver's buffer cannot be written to
// (docs/experiments/022-partitions.md).
constexpr int64_t largest_staged = 16 * 1024, largest_area = 4 << 20;

// The largest partition that is staged behind its mark, in the same line: sender and receiver then move one line between them, not two. One
// of 32 bytes would need a line to itself, and gains nothing.
constexpr int64_t largest_behind = 28;

// Threads that mark neighbours share no line, unless their data do anyway. A mark with its data takes a power of two, so that it lies in
// one line.
uint32_t stride_of(const Process& p, int64_t bytes, bool behind) {
    if (behind) return std::bit_ceil(static_cast<uint32_t>(bytes + int64_t{sizeof(uint32_t)}));
    return p.threads && bytes >= Board::line ? Board::line : sizeof(uint32_t);
}

// Whether partitions share lines, and how many marks lie in one.
bool are_small(const Channel& c) { return c.setup.bytes < Board::line; }
int32_t marks_in_line(const Channel& c) { return static_cast<int32_t>(Board::line / c.stride); }

int peer_number(const Channel& c) { return c.comm->routes[c.peer].peer; }
// Whether this rank can read and write there as every other of the node. Ranks that are threads share all memory.
bool is_common(const Process& p, const void* at) {
    return WEFT_THREADS_PRESET || (p.segment != nullptr && p.segment->in_heap(at));
}
// The receiver may sleep until this rank has stored something.
void notify(Channel& c) { c.process->lane->notify(peer_number(c)); }

wire::shm::Sharing sharing_of(const Channel& c) { return c.process->lane->shm.sharing_of(c.comm->routes[c.peer].index); }

// Takes the boards out of the list that their receivers have closed.
Board* take_closed(Engine& e) {
    SpinGuard guard(e.lock);
    Board* closed = nullptr;
    for (Board** at = &e.boards; *at != nullptr;) {
        Board* b = *at;
        if (b->closed.load(std::memory_order_acquire) == 0) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        b->next = closed;
        closed = b;
    }
    return closed;
}

void release_closed(Process& p) {
    for (Board* b = take_closed(*p.part); b != nullptr;) {
        Board* next = b->next;
        (void)p.heap->release(b);
        b = next;
    }
}

}  // namespace

void make_board(Channel& c) {
    Process& p = *c.process;
    const int64_t bytes = c.each.bytes();
    if (!p.part->boards_allowed || bytes == 0 || c.partitions == 0) return;
    if (c.comm->routes[c.peer].way != obj::Route::shm || sharing_of(c) == wire::shm::Sharing::nothing) return;
    release_closed(p);
    const bool staged = bytes <= largest_staged && bytes * c.partitions <= largest_area, behind = staged && bytes <= largest_behind;
    const uint64_t area = staged && !behind ? static_cast<uint64_t>(bytes * c.partitions + 63) / 64 * 64 : 0;
    const uint32_t stride = stride_of(p, bytes, behind);
    void* memory = p.heap->allocate(Board::size(c.partitions, stride, area), 64);
    if (memory == nullptr || !is_common(p, memory)) {
        if (memory != nullptr) (void)p.heap->release(memory);
        return;
    }
    memset(memory, 0, Board::size(c.partitions, stride, 0));
    auto* b = new (memory) Board;
    b->partitions = c.partitions;
    b->stride = stride;
    b->bytes = bytes;
    b->row_bytes = Board::row_size(c.partitions, stride);
    b->area_bytes = area;
    b->pitch = behind ? stride : staged ? static_cast<uint64_t>(bytes) : 0;
    b->made.store(Board::mark_of_boards, std::memory_order_release);  // pairs with accept()
    c.board = b;
    c.stride = stride;
    if (const Buffer own = whole(c); own.dense()) c.from = own.data();
    c.way.store(Way::undecided, std::memory_order_relaxed);
    p.lane->unguarded.fetch_add(1, std::memory_order_relaxed);
}

void leave_board(Engine& e, Channel& c) {
    Board* b = c.board;
    if (b == nullptr) return;
    c.board = nullptr;
    c.process->lane->unguarded.fetch_sub(1, std::memory_order_relaxed);
    if (!c.sending) {
        b->closed.store(1, std::memory_order_release);  // pairs with take_closed()
        return;
    }
    {
        SpinGuard guard(e.lock);
        b->next = e.boards;
        e.boards = b;
    }
    release_closed(*c.process);
}

// ------------------------------------------------------------------------------------------------- receiver

void accept(Channel& c) {
    Process& p = *c.process;
    Board* b = c.setup.board;
    c.accepted = true;
    if (b == nullptr || !is_common(p, b) || b->made.load(std::memory_order_acquire) != Board::mark_of_boards) {
        c.error = c.lasting = make_messages(c);
        return;
    }
    const Buffer own = whole(c);
    Board::Offer offer = b->pitch != 0 ? Board::only_staged : Board::messages;
    if (own.dense() && is_common(p, own.data()) && sent_bytes(c) <= own_bytes(c)) offer = Board::in_place;
    if (b->pitch != 0) {
        c.landed = static_cast<std::atomic<uint32_t>*>(calloc(static_cast<size_t>(b->partitions), sizeof(uint32_t)));
        if (c.landed == nullptr) c.error = c.lasting = no_memory();
    }
    c.board = b;
    c.stride = b->stride;
    p.lane->unguarded.fetch_add(1, std::memory_order_relaxed);
    if (offer == Board::messages) c.error = c.lasting = make_messages(c);
    else c.way.store(Way::board, std::memory_order_relaxed);
    b->to = offer == Board::in_place ? reinterpret_cast<uint64_t>(own.data()) : 0;
    b->offer.store(offer, std::memory_order_release);  // pairs with settle_way()
    notify(c);
}

void open_epoch(Channel& c) {
    Board& b = *c.board;
    c.row = b.row(c.epoch);
    c.cursor = c.probe = 0;
    c.awaited = -1;
    if (sent_bytes(c) > own_bytes(c))
        note(c, fail(Err::truncate, "the sender's %d partitions are larger than the receive's %d", c.setup.partitions, c.partitions));
    const bool alike = c.setup.partitions == c.partitions && c.setup.bytes == c.each.bytes();
    c.posted.store(true, std::memory_order_release);  // pairs with parrived()
    c.look_made.store(alike ? static_cast<uint32_t>(c.partitions) : 0, std::memory_order_release);  // likewise
    b.start_epoch(c.epoch);
    notify(c);
}

namespace {

// Whether this thread is to copy a staged part of this epoch. Relaxed: the mark orders the data before, and what is read of them after.
bool claim(Channel& c, int32_t i) {
    uint32_t seen = c.landed[i].load(std::memory_order_relaxed);
    return seen != c.epoch && c.landed[i].compare_exchange_strong(seen, c.epoch, std::memory_order_relaxed);
}

// Copies a staged part out, unless another thread does. The mark is its last touch of the channel: whoever sees it may end the epoch.
bool land(Channel& c, int32_t i) {
    if (c.process->threads && !claim(c, i)) return false;
    const int64_t at = c.setup.bytes * i, room = own_bytes(c) - at, n = c.setup.bytes < room ? c.setup.bytes : room;
    const Buffer own = whole(c);
    const char* data = c.board->area(c.epoch) + c.board->pitch * static_cast<uint64_t>(i);
    lane::Lane& lane = *c.process->lane;
    if (n > 0 && !own.dense()) type::unpack(own, at, n, data);
    else if (n >= Board::line) lane.shm.copy_out(own.data() + at, data, static_cast<size_t>(n));
    else if (n > 0) copy_small(own.data() + at, data, static_cast<size_t>(n));  // the sender may be writing to the line
    // Release: pairs with is_taken() and parrived_at_once() of other threads, and through end_epoch() with the sender's next mark.
    mark_at(c.row, c.stride, static_cast<uint32_t>(i)).store(mark_of(c.epoch, Where::in_place), std::memory_order_release);
    lane::wake_sleepers(lane);
    return true;
}

}  // namespace

bool is_taken(Channel& c, int32_t i) {
    // Acquire: pairs with publish(), put_at_once() and land(), or for a message with reap().
    const uint32_t mark = mark_at(c.row, c.stride, static_cast<uint32_t>(i)).load(std::memory_order_acquire);
    if (mark == mark_of(c.epoch, Where::in_place)) return true;
    return mark == mark_of(c.epoch, Where::staged) && land(c, i);
}

namespace {

// Whether the sender has marked that part; without the data, which is_taken() acquires.
bool has_mark(Channel& c, int32_t i) {
    return (mark_at(c.row, c.stride, static_cast<uint32_t>(i)).load(std::memory_order_relaxed) ^ c.mark) < 4;
}

// Takes partitions in their order as far as they have come, and returns the first that has not.
int32_t take_large(Channel& c) {
    const bool claims = c.process->lane->shm.claim.on && c.stride == Board::line;
    for (; c.cursor < c.setup.partitions && is_taken(c, c.cursor); ++c.cursor)
        if (claims) c.row[int64_t{c.cursor} * Board::line + Board::line - 1] = 0;
    return c.cursor;
}

// The same where partitions share lines: all whose marks share a line at once, when the last of them has come. The receiver looks at marks
// from the end of the line, and at no data until then; otherwise it would take the lines from the sender with each partition.
int32_t take_small(Channel& c) {
    const int32_t marks = marks_in_line(c), n = c.setup.partitions;
    while (c.cursor < n) {
        const int32_t line_end = (c.cursor / marks + 1) * marks, end = line_end < n ? line_end : n;
        if (c.probe <= c.cursor) c.probe = end;
        for (; c.probe > c.cursor; --c.probe)
            if (!has_mark(c, c.probe - 1)) return c.probe - 1;
        for (; c.cursor < end; ++c.cursor)
            if (!is_taken(c, c.cursor)) return c.cursor;
    }
    return c.cursor;
}

}  // namespace

void take_neighbours(Channel& c, int32_t i) {
    if (c.landed == nullptr || !are_small(c) || static_cast<uint32_t>(i) >= c.look_made.load(std::memory_order_relaxed)) return;
    const int32_t n = c.setup.partitions, marks = marks_in_line(c), first = i / marks * marks;
    for (int32_t k = first; k < n && k < first + marks; ++k) (void)is_taken(c, k);
}

bool take_all(Channel& c) {
    const int32_t n = c.setup.partitions;
    const bool small = are_small(c);
    for (;;) {
        const int32_t missing = small ? take_small(c) : take_large(c);
        if (missing == n) return true;
        const uint32_t next = c.awaits_any ? Board::any : static_cast<uint32_t>(missing);
        if (c.awaited == next) break;
        c.awaited = next;
        c.board->await(next);  // and look again: see Board::await()
    }
    if (small) return false;
    // One that has come out of order is copied while others are on their way.
    c.probe = c.probe + 1 < n ? c.probe + 1 : c.cursor;
    if (c.probe > c.cursor) (void)is_taken(c, c.probe);
    return false;
}

void end_epoch(Channel& c) {
    c.board->end_epoch(c.epoch);
    notify(c);
}

// --------------------------------------------------------------------------------------------------- sender

void start_board(Channel& c) {
    Board& b = *c.board;
    c.row = b.row(c.epoch);
    c.polled = &c.process->lane->shm.to(c.comm->routes[c.peer].index).control->polled;
    c.cursor = 0;
    c.ready_made = c.small_made = 0;
    if (c.way.load(std::memory_order_relaxed) != Way::board || c.from == nullptr) return;
    if (b.to == 0 && !b.has_room(c.epoch)) return;
    c.ready_made = static_cast<uint32_t>(c.partitions);
    c.small_made = c.bytes <= Board::line ? c.ready_made : 0;
    c.gate = b.to != 0 ? &b.open : &c.started;
    c.pitch = b.to != 0 ? c.bytes : b.pitch;
    c.into = b.to != 0 ? reinterpret_cast<char*>(b.to) : b.area(c.epoch);
    c.mark = mark_of(c.epoch, b.to != 0 ? Where::in_place : Where::staged);
}

namespace {

// Learns what the receiver can do. False: it has not said yet.
bool settle_way(Channel& c) {
    if (c.way.load(std::memory_order_acquire) != Way::undecided) return true;
    Board& b = *c.board;
    const uint32_t offer = b.offer.load(std::memory_order_acquire);  // pairs with accept()
    if (offer == Board::messages || sharing_of(c) == wire::shm::Sharing::nothing) {
        if (offer != Board::messages) b.closed.store(1, std::memory_order_relaxed);  // the receiver cannot
        c.way.store(Way::messages, std::memory_order_release);
        append(*c.process->part, c);
        return true;
    }
    if (offer == Board::unknown) return false;
    c.way.store(Way::board, std::memory_order_release);
    return true;
}

// Release: the data come before the mark. A receiver that does not poll is woken if it waits for this partition.
void publish(Channel& c, int32_t i, Where where) {
    mark_at(c.row, c.stride, static_cast<uint32_t>(i)).store(mark_of(c.epoch, where), std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in put_at_once()
    if (c.polled->load(std::memory_order_relaxed) == 0 && c.board->is_awaited(static_cast<uint32_t>(i))) notify(c);
    lane::wake_sleepers(*c.process->lane);
}

// Copies a partition to where the receiver finds it; `settled`: it has said where that may be. False: there is no room yet.
bool place(Channel& c, int32_t i, bool settled) {
    Board& b = *c.board;
    const bool in_place = settled && b.to != 0 && b.open.load(std::memory_order_acquire) == c.epoch;  // pairs with start_epoch()
    if (!in_place && (b.pitch == 0 || sharing_of(c) != wire::shm::Sharing::heap || !b.has_room(c.epoch))) return false;
    char* to = in_place ? reinterpret_cast<char*>(b.to) : b.area(c.epoch);
    const int64_t bytes = c.setup.bytes, at = bytes * i;
    to += in_place ? static_cast<uint64_t>(at) : b.pitch * static_cast<uint64_t>(i);
    if (c.from != nullptr) memcpy(to, c.from + at, static_cast<size_t>(bytes));
    else type::pack(whole(c), at, bytes, to);
    publish(c, i, in_place ? Where::in_place : Where::staged);
    return true;
}

uint32_t held_mark(const Channel& c) { return c.epoch << 1; }

bool is_marked(const Channel& c, int32_t i) {
    if (c.marks[i].load(std::memory_order_relaxed) >> 1 == (held_mark(c) >> 1)) return true;
    if (c.board == nullptr) return false;
    const auto mark = mark_at(c.row, c.stride, static_cast<uint32_t>(i)).load(std::memory_order_relaxed);
    return mark >> 2 == mark_of(c.epoch, Where::nowhere) >> 2;
}

void put_held(Channel& c) {
    const bool settled = settle_way(c), messages = c.way.load(std::memory_order_relaxed) == Way::messages;
    for (int32_t i = 0; i < c.partitions; i++) {
        if (c.marks[i].load(std::memory_order_acquire) != held_mark(c)) continue;  // pairs with put()
        if (messages) note(c, send_with_others(c, i));
        else if (!place(c, i, settled)) return;
        c.marks[i].store(held_mark(c) | 1, std::memory_order_relaxed);
        c.held.fetch_sub(1, std::memory_order_release);
    }
}

Err put_while_used(Channel& c, int32_t i) {
    if (is_marked(c, i)) return fail(Err::arg, "partition %d is marked ready twice", i);
    const bool settled = settle_way(c);
    if (c.way.load(std::memory_order_relaxed) == Way::messages) {
        c.marks[i].store(held_mark(c) | 1, std::memory_order_relaxed);
        return send_with_others(c, i);
    }
    if (place(c, i, settled)) return Err::ok;
    c.held.fetch_add(1, std::memory_order_relaxed);
    c.marks[i].store(held_mark(c), std::memory_order_release);  // pairs with put_held()
    append(*c.process->part, c);
    return Err::ok;
}

}  // namespace

// The request may be complete before this returns, and freed by another thread.
Err put(Channel& c, int32_t i) {
    c.users.fetch_add(1, std::memory_order_relaxed);  // before the mark, with which whoever frees it sees it
    const Err e = put_while_used(c, i);
    c.users.fetch_sub(1, std::memory_order_release);  // pairs with destroy()
    return e;
}

bool put_all(Channel& c) {
    if (c.held.load(std::memory_order_acquire) != 0) put_held(c);
    if (c.way.load(std::memory_order_acquire) == Way::messages)
        return c.marked.load(std::memory_order_acquire) == c.partitions && reap(c);  // pairs with send_with_others()
    const uint32_t epoch = mark_of(c.epoch, Where::nowhere) >> 2;
    while (c.cursor < c.partitions && mark_at(c.row, c.stride, static_cast<uint32_t>(c.cursor)).load(std::memory_order_acquire) >> 2 == epoch) ++c.cursor;
    return c.cursor == c.partitions;
}

}  // namespace weft::part
