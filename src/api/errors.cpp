// The raise path: from an Err to the user's error handler, or to the end of the job.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "api/bindings.hpp"
#include "boot/boot.hpp"
#include "calls/errors.hpp"
#include "obj/message.hpp"
#include "obj/session.hpp"
#include "obj/win.hpp"

namespace weft::bindings {

namespace {

// The object whose error handler serves a call; all null: the handler that was passed to it.
struct Served {
    const obj::Comm* comm = nullptr;
    const obj::Session* session = nullptr;
    const obj::Win* win = nullptr;
    bool null_file = false;
};

// What a user may do about an error that ends the job by default: the call that makes this one return.
void hint(const Served& by, char* text, size_t size) {
    const obj::Process& p = *obj::process;
    if (by.comm == &p.self || by.comm == &p.world)
        snprintf(text, size, "MPI_Comm_set_errhandler(%s, MPI_ERRORS_RETURN)", by.comm == &p.self ? "MPI_COMM_SELF" : "MPI_COMM_WORLD");
    else if (by.comm != nullptr && by.comm->name[0] != 0)
        snprintf(text, size, "MPI_Comm_set_errhandler with MPI_ERRORS_RETURN on the communicator \"%.64s\"", by.comm->name);
    else if (by.comm != nullptr)
        snprintf(text, size, "MPI_Comm_set_errhandler with MPI_ERRORS_RETURN on this communicator, which has no name,");
    else if (by.session != nullptr)
        snprintf(text, size, "MPI_Session_set_errhandler with MPI_ERRORS_RETURN on this session");
    else if (by.win != nullptr)
        snprintf(text, size, "MPI_Win_set_errhandler with MPI_ERRORS_RETURN on %s%.64s%s", by.win->name[0] != 0 ? "the window \"" : "this window",
                 by.win->name, by.win->name[0] != 0 ? "\"" : "");
    else if (by.null_file)
        snprintf(text, size, "MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN)");
    else
        snprintf(text, size, "MPI_ERRORS_RETURN as the argument errhandler");
}

void describe(const char* function, int code, char* line, int size) {
    char class_name[MPI_MAX_ERROR_STRING];
    calls::error_name(*obj::process, code, class_name, sizeof class_name);
    const char* why = fail_text();
    if (why[0] != 0) snprintf(line, static_cast<size_t>(size), "%s: %s; %s", function, why, class_name);
    else snprintf(line, static_cast<size_t>(size), "%s: %s", function, class_name);
}

[[noreturn]] void end_job(const char* line, const Served& by, int code) {
    obj::Process& p = *obj::process;
    char text[1200], how[256];
    hint(by, how, sizeof how);
    if (active(p)) snprintf(text, sizeof text, "%s (%s makes it return an error code instead)", line, how);
    else snprintf(text, sizeof text, "%s", line);
    // A forked child ends alone: neither the job nor what its parent has still to print is its own.
    const bool forked = p.phase.load(std::memory_order_relaxed) == obj::Phase::forked;
    if (!forked) fflush(nullptr);   // what the program printed before it went wrong
    if (p.job != nullptr && !forked) boot::abort(p.job, code, text, boot::Cause::error);
    fprintf(stderr, "weft: %s\n", text);
    _Exit(code > 0 && code < 126 ? code : 1);
}

// The communicator that the user knows: the front of a branch.
const obj::Comm* known(const obj::Comm* c) {
    const obj::Comm* front = c->front.load(std::memory_order_relaxed);
    return front != nullptr ? front : c;
}

// Runs a user's error handler, with no lock held.
void call_user(obj::Errhandler& h, const Served& by, int code) {
    int error = code;
    MPI_Comm c = by.comm != nullptr ? obj::handle_of(known(by.comm)) : MPI_COMM_SELF;
    switch (h.target) {
    case obj::Errhandler::comm: h.comm_fn(&c, &error); break;
    case obj::Errhandler::win: { MPI_Win w = obj::handle_of(by.win); h.win_fn(&w, &error); break; }
    case obj::Errhandler::file: { MPI_File x = MPI_FILE_NULL; h.file_fn(&x, &error); break; }
    case obj::Errhandler::session: { MPI_Session s = obj::handle_of(by.session); h.session_fn(&s, &error); break; }
    case obj::Errhandler::any: break;
    }
}

// Calls `h`; returns the code that the MPI function shall return.
int deliver(const char* function, obj::Errhandler& h, const Served& by, int code) {
    char line[900];
    describe(function, code, line, sizeof line);
    clear_fail_text();
    switch (h.action) {
    case obj::Errhandler::fatal:
    case obj::Errhandler::abort:
        end_job(line, by, code);
    case obj::Errhandler::return_code:
        return code;
    case obj::Errhandler::user:
        call_user(h, by, code);
    }
    return code;
}

const Object* head(const void* object) { return static_cast<const Object*>(object); }

}  // namespace

Err comm_call_errhandler(obj::Process& p, obj::Comm& c, int code) {
    int class_of;
    WEFT_TRY(calls::error_class(p, code, &class_of));
    (void)deliver("MPI_Comm_call_errhandler", obj::errhandler_of(p, c), {.comm = &c}, code);
    return Err::ok;
}

Err session_call_errhandler(obj::Process& p, obj::Session& s, int code) {
    int class_of;
    WEFT_TRY(calls::error_class(p, code, &class_of));
    (void)deliver("MPI_Session_call_errhandler", obj::errhandler_of(p, s), {.session = &s}, code);
    return Err::ok;
}

Err win_call_errhandler(obj::Process& p, obj::Win& w, int code) {
    int class_of;
    WEFT_TRY(calls::error_class(p, code, &class_of));
    (void)deliver("MPI_Win_call_errhandler", obj::errhandler_of(p, w), {.win = &w}, code);
    return Err::ok;
}

Err file_call_errhandler(obj::Process& p, obj::File* f, int code) {
    int class_of;
    if (f != nullptr) return fail(Err{MPI_ERR_FILE}, "no file (argument 1)");
    WEFT_TRY(calls::error_class(p, code, &class_of));
    (void)deliver("MPI_File_call_errhandler", obj::file_errhandler(p), {.null_file = true}, code);
    return Err::ok;
}


int raise(const Function& f, const void* owner, Err e) {
    obj::Process& p = *obj::process;
    int code = static_cast<int>(e);
    const obj::Comm* comm = obj::take_blamed();
    if (f.errors == Errors::tool || f.errors == Errors::none) return code;
    if (owner != nullptr && head(owner)->kind == Kind::comm) comm = static_cast<const obj::Comm*>(owner);
    if (owner != nullptr && head(owner)->kind == Kind::errhandler)
        return deliver(f.name, *static_cast<obj::Errhandler*>(const_cast<void*>(owner)), {}, code);
    if (owner != nullptr && head(owner)->kind == Kind::session) {
        auto* session = static_cast<const obj::Session*>(owner);
        return deliver(f.name, obj::errhandler_of(p, *session), {.session = session}, code);
    }
    if (owner != nullptr && head(owner)->kind == Kind::win) {
        auto* win = static_cast<const obj::Win*>(owner);
        return deliver(f.name, obj::errhandler_of(p, *win), {.win = win}, code);
    }
    if (comm != nullptr && comm->kind == Kind::comm && active(p))
        return deliver(f.name, obj::errhandler_of(p, *comm), {.comm = comm}, code);
    if (f.errors == Errors::file && active(p)) return deliver(f.name, obj::file_errhandler(p), {.null_file = true}, code);
    return deliver(f.name, obj::default_errhandler(p), {.comm = &p.self}, code);
}

int too_large(const Function& f, const void* owner, int argument) {
    return raise(f, owner, fail(Err::value_too_large, "the result does not fit %s (argument %d); the form %s_c returns it",
                                f.args[argument].name, argument + 1, f.name));
}

// The communicator of the request or message that a call is about; null where there is none.
static const obj::Comm* comm_of_request(const Function& f, const intptr_t* values) {
    obj::Process& p = *obj::process;
    for (int i = 0; i < f.n_args; i++) {
        void* value = reinterpret_cast<void*>(values[i]);
        switch (f.args[i].kind) {
        case ArgKind::message_inout: {
            const obj::Message* m = value != nullptr ? obj::message_of(p, *static_cast<MPI_Message*>(value)) : nullptr;
            return m != nullptr && m->kind == Kind::message ? m->comm : nullptr;
        }
        case ArgKind::request:
        case ArgKind::request_null:
        case ArgKind::request_inout:
        case ArgKind::request_null_inout: {
            const ArgKind k = f.args[i].kind;
            if (k == ArgKind::request_inout || k == ArgKind::request_null_inout)
                value = value != nullptr ? *static_cast<MPI_Request*>(value) : MPI_REQUEST_NULL;
            const obj::Request* r = obj::request_of(p, static_cast<MPI_Request>(value));
            return r->kind == Kind::request && r != &obj::null_request && !(r->flags & obj::Request::shared) ? r->comm : nullptr;
        }
        default: break;
        }
    }
    return nullptr;
}

// The owner's object if its handle is good, else null.
static const void* good_owner(const Function& f, const intptr_t* values) {
    if (f.errors == Errors::request) return comm_of_request(f, values);
    if (f.owner < 0) return nullptr;
    obj::Process& p = *obj::process;
    const void* word = reinterpret_cast<const void*>(values[f.owner]);
    switch (f.args[f.owner].kind) {
    case ArgKind::comm: return obj::comm_or_null(p, static_cast<MPI_Comm>(const_cast<void*>(word)));
    case ArgKind::comm_inout:
        return word != nullptr ? obj::comm_or_null(p, *static_cast<const MPI_Comm*>(word)) : nullptr;
    case ArgKind::session: {
        auto* s = obj::session_of(p, static_cast<MPI_Session>(const_cast<void*>(word)));
        return head(s)->kind == Kind::session ? s : nullptr;
    }
    case ArgKind::win:
    case ArgKind::win_inout: {
        const MPI_Win handle = f.args[f.owner].kind == ArgKind::win ? static_cast<MPI_Win>(const_cast<void*>(word))
                                                                    : load(static_cast<const MPI_Win*>(word));
        auto* w = obj::win_of(p, handle);
        return head(w)->kind == Kind::win ? w : nullptr;
    }
    case ArgKind::errh: {
        auto* h = obj::errh_of(p, static_cast<MPI_Errhandler>(const_cast<void*>(word)));
        return h->kind == Kind::errhandler ? h : nullptr;
    }
    default: return nullptr;
    }
}

int reject(const Function& f, const intptr_t* values) {
    Finding found = examine(f, values);
    if (found.error == Err::ok) found.error = fail(Err::intern, "an argument was rejected for no reason found");
    return raise(f, good_owner(f, values), found.error);
}

int unsupported(const Function& f, const intptr_t* values) {
    if (f.errors == Errors::tool) return MPI_T_ERR_NOT_SUPPORTED;
    if (Finding found = examine(f, values); found.error != Err::ok) return raise(f, good_owner(f, values), found.error);
    return raise(f, good_owner(f, values), fail(Err::unsupported, "this version of Weft lacks this function"));
}

}  // namespace weft::bindings
