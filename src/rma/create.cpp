// Making and freeing windows.
#include <cstdlib>
#include <cstring>

#include "base/scratch.hpp"
#include "coll/calls.hpp"
#include "comm/comm.hpp"
#include "heap/heap.hpp"
#include "heap/mapped.hpp"
#include "lane/lane.hpp"
#include "obj/group.hpp"
#include "obj/handles.hpp"
#include "os/memory.hpp"
#include "rma/making.hpp"
#include "rma/messages.hpp"
#include "type/predefined.hpp"

namespace weft::rma {

namespace {

enum class Choice : uint8_t { automatic, messages, kernel };   // WEFT_RMA

// The lanes that hints ask for, at most as many as a process has.
int32_t lanes_in(Info* hints) {
    char value[MPI_MAX_INFO_VAL], *end = nullptr;
    if (hints == nullptr) return 0;
    if (obj::info_lookup(hints, "mpi_num_vcis", value, sizeof value)) {
        const long n = strtol(value, &end, 10);
        if (end != value && *end == 0 && n > 0) return n < lane::most_lanes ? static_cast<int32_t>(n) : lane::most_lanes;
    }
    return obj::info_lookup(hints, "mpi_assert_new_vci", value, sizeof value) && strcmp(value, "true") == 0 ? 1 : 0;
}

bool are_unordered(Info* hints) {
    char value[MPI_MAX_INFO_VAL];
    return hints != nullptr && obj::info_lookup(hints, "accumulate_ordering", value, sizeof value) && strcmp(value, "none") == 0;
}

Err no_memory(int64_t bytes) { return fail(Err::no_mem, "no memory for a window of %lld bytes", static_cast<long long>(bytes)); }

Err check_wanted(const Wanted& a) {
    if (a.bytes < 0) return fail(Err::size, "the size %lld is negative", static_cast<long long>(a.bytes));
    if (a.disp_unit <= 0 || a.disp_unit > INT32_MAX)
        return fail(err_disp, "the displacement unit %lld is not positive, or too large", static_cast<long long>(a.disp_unit));
    if (a.flavor == MPI_WIN_FLAVOR_CREATE && a.base == nullptr && a.bytes > 0)
        return fail(Err{MPI_ERR_BASE}, "a null pointer is no window of %lld bytes", static_cast<long long>(a.bytes));
    return Err::ok;
}

// No other process has memory: those on the null wire are thought to have what this one has.
bool is_alone(const Process& p, const Comm& c) { return c.size == 1 || p.lane->null != nullptr; }

bool shares_memory_with_all(const Process& p, const Comm& c) {
    bool all = is_alone(p, c) || p.segment != nullptr;
    for (int32_t i = 0; i < c.size && !is_alone(p, c); i++) all &= route_to(c, i).way == obj::Route::shm || route_to(c, i).way == obj::Route::self;
    return all;
}

bool in_heap(const Process& p, const void* at, int64_t bytes) {
    return bytes == 0 || heap::is_mapped(p.segment, at, static_cast<uint64_t>(bytes));
}

// Everything of this process's own, before the others are asked.
Err prepare(Process& p, Window& w, const Wanted& a) {
    WEFT_TRY(check_wanted(a));
    WEFT_TRY(obj::keep_hints(p, w, a.info));
    const auto n = static_cast<size_t>(w.size());
    w.parts = static_cast<Part*>(calloc(n, sizeof(Part)));
    w.locks = static_cast<Held*>(calloc(n, sizeof(Held)));
    w.control = static_cast<Control*>(p.heap->allocate(sizeof(Control), alignof(Control)));
    if (w.parts == nullptr || w.locks == nullptr || w.control == nullptr) return no_memory(a.bytes);
    memset(static_cast<void*>(w.control), 0, sizeof(Control));
    w.unordered = are_unordered(a.info);
    w.base = a.base;
    w.bytes = a.bytes;
    w.disp_unit = static_cast<int32_t>(a.disp_unit);
    w.flavor = a.flavor;
    w.model = MPI_WIN_UNIFIED;
    if (a.flavor != MPI_WIN_FLAVOR_ALLOCATE) return Err::ok;
    w.memory = w.base = p.heap->allocate(static_cast<size_t>(a.bytes));
    return w.base != nullptr ? Err::ok : no_memory(a.bytes);
}

Err allgather(Process& p, Comm& c, const Offer& mine, Offer* all) {
    if (!is_alone(p, c)) return coll::allgather(p, c, type::bytes_at(const_cast<Offer*>(&mine), sizeof mine), type::bytes_at(all, sizeof mine));
    for (int32_t i = 0; i < c.size; i++) all[i] = mine;
    return Err::ok;
}

// Each process's memory in a window of shared memory: in one block that rank 0 allocates, or one for each.
Err share_memory(Process& p, Window& w, const Offer* all, Offer* mine) {
    char apart[8] = "";
    const bool separate = w.info != nullptr && obj::info_lookup(w.info, "alloc_shared_noncontig", apart, sizeof apart) && strcmp(apart, "true") == 0;
    const int32_t me = w.comm->rank;
    int64_t total = 0, before = 0;
    for (int32_t i = 0; i < w.size(); i++) {
        if (i == me) before = total;
        total += all[i].bytes;
    }
    char* block = nullptr;
    if (separate || me == 0) {
        const int64_t bytes = separate ? mine->bytes : total;
        w.memory = block = static_cast<char*>(p.heap->allocate(static_cast<size_t>(bytes)));
        if (block == nullptr) mine->error = static_cast<int32_t>(no_memory(bytes));
    }
    if (!separate) {
        WEFT_TRY(coll::bcast(p, *w.comm, type::bytes_at(&block, sizeof block), 0));
        if (block != nullptr) block += before;
    }
    w.base = mine->base = block;
    mine->in_heap = is_alone(p, *w.comm) || in_heap(p, block, mine->bytes);
    return Err::ok;
}

}  // namespace

Err take_window(Process& p, Window** out) {
    Window* w;
    {
        SpinGuard guard(p.pool_lock);
        if ((w = static_cast<Window*>(p.free_wins)) != nullptr) p.free_wins = w->next;
    }
    if (w == nullptr) w = static_cast<Window*>(malloc(sizeof(Window)));
    if (w == nullptr) return fail(Err::no_mem, "no memory for a window");
    memset(static_cast<void*>(w), 0, sizeof *w);
    *out = w;
    return Err::ok;
}

Offer offer_of(Process& p, Window& w, const Wanted& a) {
    Offer mine{};
    mine.error = static_cast<int32_t>(prepare(p, w, a));
    mine.base = static_cast<char*>(w.base);
    mine.bytes = a.bytes;
    mine.disp_unit = a.disp_unit;
    mine.control = w.control;
    mine.lanes = lanes_in(a.info);
    mine.reaches_all = shares_memory_with_all(p, *w.comm) && (is_alone(p, *w.comm) || in_heap(p, w.control, sizeof(Control)));
    mine.in_heap = is_alone(p, *w.comm) || in_heap(p, w.base, w.bytes);
    return mine;
}

Err first_error(const Offer* all, int32_t n, int32_t me) {
    if (all[me].error != 0) return Err{all[me].error};
    for (int32_t i = 0; i < n; i++)
        if (all[i].error != 0) return fail(Err{all[i].error}, "rank %d of the communicator could not take part", i);
    return Err::ok;
}

void settle(const Process& p, Window& w, const Offer* all) {
    const auto choice = static_cast<Choice>(p.rma_choice);
    w.shared = w.flavor != MPI_WIN_FLAVOR_DYNAMIC;
    bool near = true;
    w.lanes = all[0].lanes;
    for (int32_t i = 0; i < w.size(); i++) {
        if (all[i].lanes < w.lanes) w.lanes = all[i].lanes;
        near &= all[i].reaches_all;
        w.shared &= all[i].reaches_all && all[i].in_heap;
        w.parts[i] = {all[i].base, all[i].bytes, all[i].disp_unit, all[i].control};
    }
    w.mapped = w.shared && choice == Choice::automatic;
    w.by_words = near && choice != Choice::messages;
    // A checker would not see that memory is written; the target of a dynamic window checks whether memory is attached.
    w.by_kernel = w.by_words && !w.mapped && w.flavor != MPI_WIN_FLAVOR_DYNAMIC && p.segment != nullptr && p.lane->limits.cma && !os::under_valgrind();
    w.reach = w.mapped ? static_cast<uint32_t>(w.size()) : 0;
}

Win* announce(Window& w) {
    w.id = 0;
    w.kind = Kind::win;
    return &w;
}

void destroy(Process& p, Window& w) {
    w.kind = Kind::dead;
    if (w.messages != nullptr) close_messages(p, w);
    if (w.memory != nullptr) (void)p.heap->release(w.memory);
    if (w.control != nullptr) (void)p.heap->release(w.control);
    while (Region* r = w.regions) {
        w.regions = r->next;
        free(r);
    }
    free(w.parts);
    free(w.locks);
    if (w.errhandler != nullptr) obj::release(p, *w.errhandler);
    if (w.info != nullptr) obj::free_info(p, *w.info);
    if (w.comm != nullptr) (void)comm::free_comm(p, &w.comm);
    SpinGuard guard(p.pool_lock);
    w.next = p.free_wins;
    p.free_wins = &w;
}

namespace {

// What all processes do together. An error is the same on all, as far as it can be.
Err build(Process& p, Window& w, const Wanted& a) {
    Scratch<Offer> all(w.size());
    if (!all) return no_memory(a.bytes);
    Offer mine = offer_of(p, w, a);
    WEFT_TRY(allgather(p, *w.comm, mine, all.get()));
    WEFT_TRY(first_error(all.get(), w.size(), w.comm->rank));
    if (a.flavor == MPI_WIN_FLAVOR_SHARED) {
        for (int32_t i = 0; i < w.size(); i++)
            if (!all[i].reaches_all) return fail(err_shared, "the processes of the communicator do not share memory");
        WEFT_TRY(share_memory(p, w, all.get(), &mine));
        WEFT_TRY(allgather(p, *w.comm, mine, all.get()));
        WEFT_TRY(first_error(all.get(), w.size(), w.comm->rank));
    }
    settle(p, w, all.get());
    if (w.mapped) return Err::ok;
    mine.error = static_cast<int32_t>(open_messages(p, w));
    WEFT_TRY(allgather(p, *w.comm, mine, all.get()));
    return first_error(all.get(), w.size(), w.comm->rank);
}

Err make(Process& p, Comm& parent, const Wanted& a, Win** out) {
    if (parent.is_inter()) return fail(Err::comm, "an intercommunicator cannot have a window");
    Window* w = nullptr;
    WEFT_TRY(take_window(p, &w));
    Err e = comm::create_over(p, parent, *parent.group, comm::take_tag(parent), &w->comm);
    if (e == Err::ok) {
        strcpy(w->comm->name, "of a window");
        e = build(p, *w, a);
    }
    if (e != Err::ok) {
        destroy(p, *w);
        return e;
    }
    *out = announce(*w);
    return Err::ok;
}

Err make(Process& p, Comm& c, const Wanted& a, void* address, Win** out) {
    WEFT_TRY(make(p, c, a, out));
    memcpy(address, &(*out)->base, sizeof(void*));
    return Err::ok;
}

Err not_dynamic() { return fail(err_flavor, "the window was not made by MPI_Win_create_dynamic"); }

}  // namespace

Err create(Process& p, void* base, int64_t bytes, int64_t disp_unit, Info* info, Comm& c, Win** out) {
    return make(p, c, {MPI_WIN_FLAVOR_CREATE, base, bytes, disp_unit, info}, out);
}

Err allocate(Process& p, int64_t bytes, int64_t disp_unit, Info* info, Comm& c, void* address, Win** out) {
    return make(p, c, {MPI_WIN_FLAVOR_ALLOCATE, nullptr, bytes, disp_unit, info}, address, out);
}

Err allocate_shared(Process& p, int64_t bytes, int64_t disp_unit, Info* info, Comm& c, void* address, Win** out) {
    return make(p, c, {MPI_WIN_FLAVOR_SHARED, nullptr, bytes, disp_unit, info}, address, out);
}

Err create_dynamic(Process& p, Info* info, Comm& c, Win** out) {
    return make(p, c, {MPI_WIN_FLAVOR_DYNAMIC, nullptr, 0, 1, info}, out);
}

Err free_win(Process& p, Win** win) {
    Window& w = window_of(**win);
    if (w.exposed != nullptr || w.accessed != nullptr || w.all_locked || w.open_epochs.load(std::memory_order_relaxed) > (w.fenced ? 1 : 0))
        return fail(err_sync, "the window is still in use: an epoch of access or exposure is open");
    WEFT_TRY(obj::delete_attributes(p, w));
    complete_accesses(p, w);
    if (!is_alone(p, *w.comm)) WEFT_TRY(coll::barrier(p, *w.comm));
    destroy(p, w);
    *win = nullptr;
    return Err::ok;
}

bool is_attached(Window& w, const char* at, int64_t bytes) {
    SpinGuard guard(w.lock);
    for (const Region* r = w.regions; r != nullptr; r = r->next)
        if (at >= r->base && at + bytes <= r->base + r->bytes) return true;
    return false;
}

Err attach(Process&, Win& win, void* base, int64_t bytes) {
    Window& w = window_of(win);
    auto* first = static_cast<char*>(base);
    if (w.flavor != MPI_WIN_FLAVOR_DYNAMIC) return not_dynamic();
    if (bytes < 0) return fail(Err::size, "the size %lld is negative", static_cast<long long>(bytes));
    if (base == nullptr && bytes > 0) return fail(Err{MPI_ERR_BASE}, "a null pointer cannot be attached");
    auto* fresh = static_cast<Region*>(malloc(sizeof(Region)));
    if (fresh == nullptr) return fail(Err::no_mem, "no memory for a region of a window");
    SpinGuard guard(w.lock);
    for (const Region* r = w.regions; r != nullptr; r = r->next)
        if (first < r->base + r->bytes && r->base < first + bytes) {
            free(fresh);
            return fail(err_attach, "the memory overlaps some that is attached already");
        }
    *fresh = {w.regions, first, bytes};
    w.regions = fresh;
    return Err::ok;
}

Err detach(Process&, Win& win, const void* base) {
    Window& w = window_of(win);
    if (w.flavor != MPI_WIN_FLAVOR_DYNAMIC) return not_dynamic();
    SpinGuard guard(w.lock);
    for (Region** r = &w.regions; *r != nullptr; r = &(*r)->next) {
        if ((*r)->base != base) continue;
        Region* found = *r;
        *r = found->next;
        free(found);
        return Err::ok;
    }
    return fail(err_attach, "no memory is attached at this address");
}

Err get_info(Process& p, Win& win, Info** out) {
    Info* i = nullptr;
    WEFT_TRY(obj::tell_hints(p, win, &i));
    if (const Err e = put_lanes(p, window_of(win), *i); e != Err::ok) {
        obj::free_info(p, *i);
        return e;
    }
    *out = i;
    return Err::ok;
}

Err shared_query(Process&, Win& win, int rank, MPI_Aint* bytes, int64_t* disp_unit, void* address) {
    Window& w = window_of(win);
    if (w.flavor == MPI_WIN_FLAVOR_DYNAMIC) return fail(err_flavor, "a dynamic window has no memory of its own");
    WEFT_TRY(check_target(w, rank));
    int first = rank;
    if (rank == obj::proc_null)   // the first that has memory
        for (first = 0; first + 1 < w.size() && w.parts[first].bytes == 0;) first++;
    Part part = w.parts[first];
    if (!w.shared && first != w.comm->rank) part = {nullptr, 0, part.disp_unit, nullptr};
    *bytes = part.bytes;
    *disp_unit = part.disp_unit;
    memcpy(address, &part.base, sizeof part.base);
    return Err::ok;
}

}  // namespace weft::rma
