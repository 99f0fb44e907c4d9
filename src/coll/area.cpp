// Making a communicator's area, waiting in it, giving it back.
#include "coll/area.hpp"

#include <cstdlib>
#include <new>

#include "coll/choice.hpp"
#include "coll/coll.hpp"
#include "heap/heap.hpp"
#include "lane/lane.hpp"
#include "obj/group.hpp"
#include "op/predefined.hpp"
#include "os/clock.hpp"
#include "os/memory.hpp"
#include "p2p/p2p.hpp"
#include "p2p/progress.hpp"

namespace weft::coll {

// ------------------------------------------------------------------------------------------------- waiting

namespace {

bool has_work(const Process& p) {
    return p.lane->work.load(std::memory_order_relaxed) != 0 || p.hook_work.load(std::memory_order_relaxed) != 0;
}

// Gives the CPU to the members that share it until the watch is over. False when the wait is to go on by other means.
bool over_by_resting(Process& p, const Comm& c, Watch& w) {
    constexpr uint32_t yields = 32;   // between rounds of progress
    lane::Lane& l = *p.lane;
    lane::Rest rest(l);
    const uint64_t began = os::now_ns();
    for (uint64_t now = began; now - began < l.limits.sleep_ns && !lane::Idler::is_disturbed(l, now); now = os::now_ns()) {
        for (const uint32_t end = rest.yields() + yields; rest.yields() != end;) {
            if (has_work(p)) return false;
            rest.between_looks(c.routes[w.next].index);
            if (w.over()) return true;
        }
        p2p::progress(p);
    }
    return false;
}

bool over_by_spinning(Process& p, Watch& w) {
    for (uint32_t looks = p.lane->limits.spin_polls; looks != 0 && !has_work(p); --looks) {
        os::pause_cpu();
        if (w.over()) return true;
    }
    return false;
}

}  // namespace

void Share::wait_long(Process& p, Watch w) {
    if (p.lane->limits.shared_cpus ? over_by_resting(p, *comm, w) : over_by_spinning(p, w)) return;
    head().waiters.fetch_add(1, std::memory_order_seq_cst);
    {
        p2p::AwaitingMember told(*comm, w.next);
        p2p::progress_until(p, [&] { return w.over(); });
    }
    head().waiters.fetch_sub(1, std::memory_order_relaxed);
}

bool Share::look(Watch& w, bool& counted) const {
    bool over = w.over();
    if (!over && !counted) {
        head().waiters.fetch_add(1, std::memory_order_seq_cst);
        counted = true;
        over = w.over();
    }
    if (over) uncount(counted);
    return over;
}

Err Share::differ(int32_t i, int64_t theirs, int64_t mine) const {
    return fail(Err::truncate, "rank %d brings %lld bytes to a collective to which rank %d brings %lld", i, static_cast<long long>(theirs), me,
                static_cast<long long>(mine));
}

void Share::wake_members(Process& p) const {
    for (int32_t i = 0; i < ranks; i++)
        if (i != me) p.lane->wake(comm->routes[i].peer);
}

// ------------------------------------------------------------------------------------------ made, given back

// Memory of areas that this process owns and other members had not left when it did. Part of the engine.
struct LeftArea {
    LeftArea* next;
    char* base;
};

namespace {

constexpr int32_t most_members = 64;
constexpr uint32_t collectives_before = 4;   // by messages, until an area seems worth while
constexpr int64_t most_stage_bytes = 512 * 1024, all_stage_bytes = 4 << 20;

Layout layout_for(int32_t ranks) {
    const int64_t share = all_stage_bytes / ranks;
    return {ranks, share < most_stage_bytes ? share / 4096 * 4096 : most_stage_bytes};
}

// For a call of `bytes` alone: twice, as halves may be used in turn, and some lines for each reader.
Layout layout_for(int32_t ranks, int64_t bytes) {
    Layout l = layout_for(ranks);
    const int64_t least = 4 * line_bytes * ranks;
    if (bytes < (l.stage_bytes - least) / 2) l.stage_bytes = (2 * bytes + least + 4095) / 4096 * 4096;
    l.what = Layout::stages_alone;
    return l;
}

// Whether this member could use an area in the heap of another. What all of them see alike decides first.
bool all_near(const Process& p, const Comm& c) {
    if (c.is_inter() || c.size < 2 || c.size > most_members || p.nodes != 1) return false;
    for (int32_t i = 0; i < c.size; i++)
        if (i != c.rank && c.routes[i].way != obj::Route::shm) return false;
    return true;
}

bool can_address(const Process& p) { return p.segment != nullptr && p.segment->same_address; }

// All words of an area; the rest is written before it is read.
void clear(char* base, const Layout& l) {
    Share s;
    s.layout = l;
    s.base = base;
    s.ranks = l.ranks;
    s.head().waiters.store(0, std::memory_order_relaxed);
    s.head().users.store(l.ranks, std::memory_order_relaxed);
    for (int32_t i = 0; i < l.ranks; i++) {
        s.mark(i).store(0, std::memory_order_relaxed);
        for (uint64_t n = 0; l.what != Layout::stages_alone && n < Layout::depth; n++) s.line(n, i).call.store(0, std::memory_order_relaxed);
    }
}

// Null when out of memory.
char* allocate(Process& p, const Layout& l, size_t areas) {
    sweep_areas(p);
    auto* base = static_cast<char*>(p.heap->allocate(areas * l.bytes(), os::page_bytes));
    for (size_t i = 0; base != nullptr && i < areas; i++) clear(base + i * l.bytes(), l);
    return base;
}

// What the members agree on is the least that any of them says.
struct Offer {
    uint64_t address;       // the first's, and in its two lowest bits a value of Cpus; the others': all ones, or 0 who cannot have it
    uint64_t not_begun;     // complement of the number of nonblocking collectives begun: these go by messages in all members
};

// By messages: there is no area yet.
Err agree(Process& p, Comm& c, Offer* offer) {
    Schedule* s = nullptr;
    WEFT_TRY(open(p, c, of_sequence, false, &s));
    const Buffer words{offer, 2, type::predefined_at(number::type_uint64_t)};
    const Err e = build(*s, Allreduce{reinterpret_cast<const void*>(in_place_address), words, op::predefined_at(number::op_min)});
    return e == Err::ok ? run(*s) : abandon(*s, e);
}

Cpus cpus_of(const lane::Lane& l) {
    return l.limits.shared_cpus ? Cpus::shared : l.limits.claim_lines ? Cpus::own_claiming : Cpus::own;
}

void open_share(Share& s, const Process& p, Comm& c, const Layout& l, char* base, Cpus cpus) {
    new (&s) Share();
    s.layout = l;
    s.base = base;
    s.comm = &c;
    s.me = c.rank;
    s.ranks = c.size;
    s.crowded = cpus == Cpus::shared;
    s.cpus = cpus;
    s.table = &table_of(p);
    for (int i = 0; i < n_operations; i++) s.lines_most[i] = most_by_lines(*s.table, static_cast<Operation>(i), c.size, cpus);
}

// Two areas: for blocking and for nonblocking collectives.
void make_areas(Process& p, Comm& c) {
    CommState* state = static_cast<Forced>(p.coll_choice) == Forced::messages ? nullptr : state_of(c);
    if (state == nullptr || state->asked.exchange(1, std::memory_order_relaxed) != 0 || !all_near(p, c)) return;
    const Layout l = layout_for(c.size);
    auto* shares = static_cast<Share*>(malloc(2 * sizeof(Share)));
    char* mine = c.rank == 0 && shares != nullptr && can_address(p) ? allocate(p, l, 2) : nullptr;
    Offer offer{shares != nullptr && can_address(p) ? ~uint64_t{0} : 0, ~uint64_t{c.nonblocking_sequence.load(std::memory_order_relaxed)}};
    if (c.rank == 0) offer.address = reinterpret_cast<uint64_t>(mine) | (mine != nullptr ? static_cast<uint64_t>(cpus_of(*p.lane)) : 0);
    if (agree(p, c, &offer) != Err::ok) offer.address = 0;
    if (offer.address == 0) {
        if (mine != nullptr) (void)p.heap->release(mine);
        return free(shares);
    }
    auto* base = reinterpret_cast<char*>(offer.address & ~uint64_t{3});
    for (size_t i = 0; i < 2; i++) open_share(shares[i], p, c, l, base + i * l.bytes(), static_cast<Cpus>(offer.address & 3));
    state->first_nonblocking = static_cast<uint32_t>(~offer.not_begun);
    state->blocking.store(&shares[0], std::memory_order_release);
    state->nonblocking.store(&shares[1], std::memory_order_release);
}

// This member uses the memory no more. Whose it is keeps it until nobody does.
void leave(Process& p, const Share& s) {
    if (p.coll == nullptr) return;   // at the end, when the heap goes as a whole
    const bool last = s.head().users.fetch_sub(1, std::memory_order_acq_rel) == 1;
    if (s.me != 0) return;
    if (last) {
        (void)p.heap->release(s.base);
        return;
    }
    auto* left = static_cast<LeftArea*>(malloc(sizeof(LeftArea)));
    if (left == nullptr) return;   // the memory comes back at the end
    SpinGuard guard(p.coll->lock);
    *left = {p.coll->left, s.base};
    p.coll->left = left;
}

}  // namespace

void consider_area(Process& p, Comm& c) {
    if (c.coll_sequence.load(std::memory_order_relaxed) >= collectives_before) make_areas(p, c);
}

namespace {

// An area of `l`, for members that all have `common`.
Share* open_own(Process& p, Comm& c, const Share& common, const Layout& l) {
    auto* share = static_cast<Share*>(malloc(sizeof(Share)));
    char* mine = c.rank == 0 && share != nullptr ? allocate(p, l, 1) : nullptr;
    Offer offer{share == nullptr ? 0 : c.rank == 0 ? reinterpret_cast<uint64_t>(mine) : ~uint64_t{0}, ~uint64_t{0}};
    if (agree(p, c, &offer) != Err::ok) offer.address = 0;
    if (offer.address == 0) {
        if (mine != nullptr) (void)p.heap->release(mine);
        free(share);
        return nullptr;
    }
    new (share) Share(common);
    share->layout = l;
    share->base = reinterpret_cast<char*>(offer.address);
    share->call = share->all_done = share->marked = 0;
    return share;
}

// The communicator's area for its blocking collectives, made now if there is none; null where there can be none.
const Share* common_area(Process& p, Comm& c) {
    if (share_of(c) == nullptr) make_areas(p, c);
    return share_of(c);
}

}  // namespace

Share* open_own_area(Process& p, Comm& c, Operation o, int64_t bytes) {
    const Share* common = common_area(p, c);
    return common != nullptr && common->stages(o, bytes) ? open_own(p, c, *common, layout_for(c.size, bytes)) : nullptr;
}

Share* open_own_lines(Process& p, Comm& c, Operation o, int64_t bytes) {
    const Share* common = common_area(p, c);
    if (common == nullptr || bytes > Line::room || !common->lines(o, bytes)) return nullptr;
    return open_own(p, c, *common, {c.size, 0, Layout::lines_alone});
}

void close_own_area(Process& p, Share* share) {
    if (share != nullptr) leave(p, *share);
    free(share);
}

namespace {

void close_state(Process& p, Comm&, obj::CollState* c) {
    auto* state = static_cast<CommState*>(c);
    Share* share = state->blocking.load(std::memory_order_relaxed);
    if (share != nullptr) leave(p, *share);
    free(share);
    free(state->nodes.load(std::memory_order_relaxed));
    free(state);
}

}  // namespace

CommState* state_of(Comm& c) {
    if (auto* known = static_cast<CommState*>(__atomic_load_n(&c.coll, __ATOMIC_ACQUIRE))) return known;
    auto* fresh = static_cast<CommState*>(calloc(1, sizeof(CommState)));
    if (fresh == nullptr) return nullptr;
    fresh->close = close_state;
    obj::CollState* none = nullptr;
    // Release: pairs with the load above, for the thread that comes later.
    if (__atomic_compare_exchange_n(&c.coll, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return fresh;
    free(fresh);
    return static_cast<CommState*>(none);
}

void sweep_areas(Process& p) {
    LeftArea* free_now = nullptr;
    if (p.coll == nullptr) return;
    {
        SpinGuard guard(p.coll->lock);
        for (LeftArea** at = &p.coll->left; *at != nullptr;) {
            LeftArea* l = *at;
            if (reinterpret_cast<Head*>(l->base)->users.load(std::memory_order_acquire) != 0) {
                at = &l->next;
                continue;
            }
            *at = l->next;
            l->next = free_now;
            free_now = l;
        }
    }
    while (free_now != nullptr) {
        LeftArea* l = free_now;
        free_now = l->next;
        (void)p.heap->release(l->base);
        free(l);
    }
}

void forget_areas(Process& p) {
    while (LeftArea* l = p.coll->left) {
        p.coll->left = l->next;
        free(l);
    }
}

}  // namespace weft::coll
