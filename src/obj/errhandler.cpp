#include "obj/errhandler.hpp"

#include <cstdlib>
#include <strings.h>

#include "handle_numbers.hpp"
#include "obj/branches.hpp"
#include "obj/comm.hpp"
#include "obj/info.hpp"
#include "obj/process.hpp"
#include "obj/registry.hpp"
#include "obj/session.hpp"
#include "obj/win.hpp"

namespace weft::obj {

constinit Errhandler errors_are_fatal = {{Kind::errhandler, 0, number::errors_are_fatal}, Errhandler::fatal, Errhandler::any, {1}, {nullptr}};
constinit Errhandler errors_abort = {{Kind::errhandler, 0, number::errors_abort}, Errhandler::abort, Errhandler::any, {1}, {nullptr}};
constinit Errhandler errors_return = {{Kind::errhandler, 0, number::errors_return}, Errhandler::return_code, Errhandler::any, {1}, {nullptr}};

Err make_errhandler(Process& p, Errhandler::Target target, void (*fn)(), Errhandler** out) {
    if (fn == nullptr) return fail(Err::arg, "the function of an error handler is a null pointer");
    Errhandler* e;
    {
        SpinGuard guard(p.pool_lock);
        if ((e = p.free_errhandlers) != nullptr) p.free_errhandlers = e->next;
    }
    if (e == nullptr) e = static_cast<Errhandler*>(calloc(1, sizeof(Errhandler)));
    if (e == nullptr) return fail(Err::no_mem, "no memory for an error handler");
    e->action = Errhandler::user;
    e->target = target;
    e->refs.store(1, std::memory_order_relaxed);
    e->comm_fn = reinterpret_cast<MPI_Comm_errhandler_function*>(fn);
    e->id = 0;
    e->kind = Kind::errhandler;
    *out = e;
    return Err::ok;
}

void release(Process& p, Errhandler& e) {
    if (e.predefined() || e.refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    SpinGuard guard(p.pool_lock);
    e.kind = Kind::dead;
    e.next = p.free_errhandlers;
    p.free_errhandlers = &e;
}

// What was asked for at launch (mpiexec -initial-errhandler).
static Errhandler& initial_errhandler(Process& p) {
    char name[40];
    if (p.job == nullptr || !info_lookup(info_env(p), "mpi_initial_errhandler", name, sizeof name)) return errors_are_fatal;
    if (strcasecmp(name, "mpi_errors_return") == 0) return errors_return;
    return strcasecmp(name, "mpi_errors_abort") == 0 ? errors_abort : errors_are_fatal;
}

// What `place` points to, with a reference of the caller's own; null where it is null.
static Errhandler* retain_at(Process& p, Errhandler* const& place) {
    SpinGuard guard(p.pool_lock);
    if (place != nullptr) retain(*place);
    return place;
}

// Puts `e` there, whose reference it takes.
static void replace_at(Process& p, Errhandler*& place, Errhandler& e) {
    Errhandler* old;
    {
        SpinGuard guard(p.pool_lock);
        old = place;
        place = &e;
    }
    if (old != nullptr) release(p, *old);
}

static HeldErrhandler held_or_initial(Process& p, Errhandler* e) { return {p, e != nullptr ? *e : initial_errhandler(p)}; }

HeldErrhandler default_errhandler(Process& p) {
    return held_or_initial(p, p.self.kind == Kind::comm ? retain_at(p, p.self.errhandler) : nullptr);
}

HeldErrhandler errhandler_of(Process& p, const Comm& c) { return held_or_initial(p, retain_at(p, c.errhandler)); }
HeldErrhandler errhandler_of(Process& p, const Session& s) { return held_or_initial(p, retain_at(p, s.errhandler)); }
HeldErrhandler errhandler_of(Process& p, const Win& w) {
    Errhandler* e = retain_at(p, w.errhandler);
    return {p, e != nullptr ? *e : errors_are_fatal};
}
Errhandler* inherit_errhandler(Process& p, const Comm& parent) { return retain_at(p, parent.errhandler); }

HeldErrhandler file_errhandler(Process& p) {
    Errhandler* e = retain_at(p, registry(p).file_errhandler);
    return {p, e != nullptr ? *e : errors_return};
}

static Err set_errhandler(Process& p, Errhandler*& place, Errhandler::Target target, const char* what, Errhandler& e) {
    if (!e.predefined() && e.target != target) return fail(Err::errhandler, "this error handler is not one for %s", what);
    retain(e);
    replace_at(p, place, e);
    return Err::ok;
}

Err set_errhandler(Process& p, Comm& c, Errhandler& e) {
    WEFT_TRY(set_errhandler(p, c.errhandler, Errhandler::comm, "communicators", e));
    for (int32_t i = 0; c.branches != nullptr && i < c.branches->count; i++)   // the communicators of its requests
        WEFT_TRY(set_errhandler(p, *c.branches->at[i], e));
    return Err::ok;
}
Err set_errhandler(Process& p, Session& s, Errhandler& e) { return set_errhandler(p, s.errhandler, Errhandler::session, "sessions", e); }
Err set_errhandler(Process& p, Win& w, Errhandler& e) { return set_errhandler(p, w.errhandler, Errhandler::win, "windows", e); }
Err set_file_errhandler(Process& p, Errhandler& e) {
    return set_errhandler(p, registry(p).file_errhandler, Errhandler::file, "files", e);
}

}  // namespace weft::obj
