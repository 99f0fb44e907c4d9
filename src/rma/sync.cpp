// Epochs: fence, post, start, complete, wait; locks and flushes.
//
// MPI_Win_post and MPI_Win_complete tell the other side by a message without data on the window's communicator, whatever the accesses
// are: whoever receives it sees all stores before it.
#include <cstdlib>

#include "coll/calls.hpp"
#include "comm/comm.hpp"
#include "obj/group.hpp"
#include "os/futex.hpp"
#include "p2p/calls.hpp"
#include "p2p/progress.hpp"
#include "rma/messages.hpp"
#include "type/predefined.hpp"

namespace weft::rma {

namespace {

constexpr int all_assertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

Err check_assertion(int given) {
    return (given & ~all_assertions) == 0 ? Err::ok : fail(err_assert, "the assertion %d is not made of those that the standard has", given);
}

void open_epoch(Window& w) { w.open_epochs.fetch_add(1, std::memory_order_relaxed); }
void close_epoch(Window& w) { w.open_epochs.fetch_sub(1, std::memory_order_relaxed); }

// ------------------------------------------------------------------------------------------------ locks that are words

bool try_lock(Control& c, Held how) {
    uint32_t now = c.word.load(std::memory_order_relaxed);
    if (how == Held::alone ? now != 0 : (now & Control::exclusive) != 0) return false;
    const uint32_t next = how == Held::alone ? Control::exclusive : now + 1;
    return c.word.compare_exchange_strong(now, next, std::memory_order_acquire);   // pairs with unlock_word()
}

// Sleeps until the word changes, for a millisecond at most, because messages do not end this sleep. Whoever gives the lock back reads
// `sleepers` after changing the word; whoever sleeps adds to it before the kernel compares the word.
void sleep_on(Control& c) {
    constexpr uint32_t longest_us = 1000;
    c.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (const uint32_t now = c.word.load(std::memory_order_seq_cst); now != 0) os::futex_wait(c.word, now, longest_us);
    c.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void lock_word(Process& p, Control& c, Held how) {
    p2p::progress_until(p, [&] { return try_lock(c, how); }, nullptr, [&](bool&) { sleep_on(c); });
}

void unlock_word(Control& c, Held how) {
    c.word.fetch_sub(how == Held::alone ? Control::exclusive : 1, std::memory_order_seq_cst);
    if (WEFT_UNLIKELY(c.sleepers.load(std::memory_order_seq_cst) != 0)) os::futex_wake(c.word);
}

void lock_part(Process& p, Window& w, int target, Held how) {
    if (w.by_words) lock_word(p, *w.parts[target].control, how);
    else lock_by_messages(w, target, how);
}

void unlock_part(Process& p, Window& w, int target, Held how) {
    if (!w.by_words) return unlock_by_messages(w, target);
    if (!w.mapped) flush_by_messages(w, target);
    unlock_word(*w.parts[target].control, how);
}

// ------------------------------------------------------------------------------------------------- post and start

Buffer nothing() { return type::bytes_at(nullptr, 0); }

// The members of a group that takes part in an epoch, to be freed by free().
Err find_members(const Window& w, const Group& g, Members** out) {
    WEFT_TRY(comm::check_processes(*w.comm));
    auto* m = static_cast<Members*>(malloc(sizeof(Members) + static_cast<size_t>(g.size) * sizeof(Member)));
    if (m == nullptr) return fail(Err::no_mem, "no memory for an epoch of %d processes", g.size);
    m->count = g.size;
    for (int32_t i = 0; i < g.size; i++) {
        m->all()[i] = {obj::rank_of(*w.comm->group, g.at(i)), nullptr};
        if (m->all()[i].rank != obj::undefined) continue;
        free(m);
        return fail(Err::group, "rank %d of the group is not in the window", i);
    }
    *out = m;
    return Err::ok;
}

// A message without data to each member. Nobody waits for it.
Err tell_all(Process& p, Window& w, const Members& members, Tag tag) {
    for (const Member& m : members) {
        Request* r = nullptr;
        WEFT_TRY(p2p::isend(p, *w.comm, nothing(), {m.rank, tag}, p2p::Mode::standard, &r));
        p2p::free_request(p, *r);
    }
    return Err::ok;
}

Err close_exposure(Process& p, Window& w) {
    Err e = Err::ok;
    for (Member& m : *w.exposed) {
        p2p::wait(p, *m.completion);
        const Err one = p2p::finish(p, *m.completion, nullptr);
        if (e == Err::ok) e = one;
    }
    free(w.exposed);
    w.exposed = nullptr;
    return e;
}

Err not_exposed() { return fail(err_sync, "no epoch of exposure is open: MPI_Win_post comes first"); }

Err check_held(const Window& w, int target) {
    WEFT_TRY(check_target(w, target));
    if (target == obj::proc_null || w.all_locked || w.locks[target] != Held::no) return Err::ok;
    return fail(err_sync, "the part of rank %d is not locked", target);
}

Err check_any_held(const Window& w) {
    if (w.all_locked) return Err::ok;
    for (int i = 0; i < w.size(); i++)
        if (w.locks[i] != Held::no) return Err::ok;
    return fail(err_sync, "no process's part is locked");
}

template <class Each> void each_target(const Window& w, Each&& each) {
    for (int i = 0; i < w.size(); i++) each(i);
}

}  // namespace

void complete_accesses(Process& p, Window& w, int target) {
    full_fence();
    if (!w.mapped) flush_by_messages(w, target);
}

void complete_accesses(Process& p, Window& w) {
    full_fence();
    if (!w.mapped) flush_all_by_messages(w);
}

Err fence(Process& p, int assertion, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_assertion(assertion));
    if (w.all_locked || w.accessed != nullptr || w.exposed != nullptr || w.open_epochs.load(std::memory_order_relaxed) > (w.fenced ? 1 : 0))
        return fail(err_sync, "an epoch of another kind is open");
    complete_accesses(p, w);
    WEFT_TRY(coll::barrier(p, *w.comm));
    const bool fenced = (assertion & MPI_MODE_NOSUCCEED) == 0;
    if (fenced != w.fenced) fenced ? open_epoch(w) : close_epoch(w);
    w.fenced = fenced;
    return Err::ok;
}

Err post(Process& p, Group& group, int assertion, Win& win) {
    Window& w = window_of(win);
    Members* members = nullptr;
    WEFT_TRY(check_assertion(assertion));
    if (w.exposed != nullptr) return fail(err_sync, "the window is exposed already: MPI_Win_wait comes first");
    WEFT_TRY(find_members(w, group, &members));
    for (Member& m : *members) {
        const Err e = p2p::irecv(p, *w.comm, nothing(), {m.rank, completed_tag}, &m.completion);
        if (e == Err::ok) continue;
        for (Member* posted = members->begin(); posted != &m; posted++) cancel_receives(p, &posted->completion, 1);
        free(members);
        return e;
    }
    full_fence();
    w.exposed = members;
    return (assertion & MPI_MODE_NOCHECK) != 0 ? Err::ok : tell_all(p, w, *members, posted_tag);
}

Err start(Process& p, Group& group, int assertion, Win& win) {
    Window& w = window_of(win);
    Members* members = nullptr;
    WEFT_TRY(check_assertion(assertion));
    if (w.accessed != nullptr) return fail(err_sync, "an epoch of access is open: MPI_Win_complete comes first");
    WEFT_TRY(find_members(w, group, &members));
    Err e = Err::ok;
    for (const Member& m : *members)
        if ((assertion & MPI_MODE_NOCHECK) == 0 && e == Err::ok) e = p2p::recv(p, *w.comm, nothing(), {m.rank, posted_tag}, nullptr);
    if (e != Err::ok) {
        free(members);
        return e;
    }
    w.accessed = members;
    open_epoch(w);
    return Err::ok;
}

Err complete(Process& p, Win& win) {
    Window& w = window_of(win);
    if (w.accessed == nullptr) return fail(err_sync, "no epoch of access is open: MPI_Win_start comes first");
    for (const Member& m : *w.accessed) complete_accesses(p, w, m.rank);
    const Err e = tell_all(p, w, *w.accessed, completed_tag);
    free(w.accessed);
    w.accessed = nullptr;
    close_epoch(w);
    return e;
}

Err wait(Process& p, Win& win) {
    Window& w = window_of(win);
    return w.exposed != nullptr ? close_exposure(p, w) : not_exposed();
}

Err test(Process& p, Win& win, bool* flag) {
    Window& w = window_of(win);
    if (w.exposed == nullptr) return not_exposed();
    *flag = false;
    for (const Member& m : *w.exposed)
        if (!p2p::test(p, *m.completion)) return Err::ok;
    *flag = true;
    return close_exposure(p, w);
}

Err lock(Process& p, int type, int target, int assertion, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_target(w, target));
    if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED) return fail(err_locktype, "there is no type of lock %d", type);
    WEFT_TRY(check_assertion(assertion));
    if (target == obj::proc_null) {
        open_epoch(w);
        return Err::ok;
    }
    if (w.all_locked || w.locks[target] != Held::no) return fail(err_sync, "the part of rank %d is locked by this process already", target);
    const Held how = type == MPI_LOCK_EXCLUSIVE ? Held::alone : Held::shared;
    lock_part(p, w, target, how);
    w.locks[target] = how;
    open_epoch(w);
    return Err::ok;
}

Err unlock(Process& p, int target, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_target(w, target));
    if (target == obj::proc_null) {
        close_epoch(w);
        return Err::ok;
    }
    if (w.locks[target] == Held::no) return fail(err_sync, "the part of rank %d is not locked by MPI_Win_lock", target);
    const Held how = w.locks[target];
    w.locks[target] = Held::no;
    close_epoch(w);
    unlock_part(p, w, target, how);
    return Err::ok;
}

Err lock_all(Process& p, int assertion, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_assertion(assertion));
    if (w.all_locked || check_any_held(w) == Err::ok) return fail(err_sync, "this process holds a lock of the window already");
    if (w.by_words) {
        each_target(w, [&](int i) { lock_word(p, *w.parts[i].control, Held::shared); });
    } else {
        each_target(w, [&](int i) { ask_for_lock(w, i, Held::shared); });
        each_target(w, [&](int i) { await_lock(w, i); });
    }
    w.all_locked = true;
    open_epoch(w);
    return Err::ok;
}

Err unlock_all(Process& p, Win& win) {
    Window& w = window_of(win);
    if (!w.all_locked) return fail(err_sync, "the window is not locked by MPI_Win_lock_all");
    w.all_locked = false;
    close_epoch(w);
    each_target(w, [&](int i) { unlock_part(p, w, i, Held::shared); });
    return Err::ok;
}

Err flush(Process& p, int target, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_held(w, target));
    if (target != obj::proc_null) complete_accesses(p, w, target);
    return Err::ok;
}

Err flush_all(Process& p, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_any_held(w));
    complete_accesses(p, w);
    return Err::ok;
}

Err flush_local(Process& p, int target, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_held(w, target));
    if (!w.mapped && target != obj::proc_null) flush_local_by_messages(w, target);
    return Err::ok;
}

Err flush_local_all(Process& p, Win& win) {
    Window& w = window_of(win);
    WEFT_TRY(check_any_held(w));
    if (!w.mapped) each_target(w, [&](int i) { flush_local_by_messages(w, i); });
    return Err::ok;
}

// A loop around it must also see what arrives by messages.
Err sync(Process& p, Win& win) {
    full_fence();
    if (!window_of(win).mapped) (void)p2p::progress(p);
    return Err::ok;
}

}  // namespace weft::rma
