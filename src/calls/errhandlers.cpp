#include "calls/errhandlers.hpp"

namespace weft::calls {

namespace {

template <class Function>
Err make(Process& p, Errhandler::Target target, Function* fn, Errhandler** out) {
    return obj::make_errhandler(p, target, reinterpret_cast<void (*)()>(fn), out);
}

// With a reference of the caller's own.
Err give(const obj::HeldErrhandler& held, Errhandler** out) {
    Errhandler& e = held;
    obj::retain(e);
    *out = &e;
    return Err::ok;
}

Err only_null(const File* f) { return f == nullptr ? Err::ok : fail(Err{MPI_ERR_FILE}, "no file (argument 1)"); }

}  // namespace

Err comm_create_errhandler(Process& p, MPI_Comm_errhandler_function* fn, Errhandler** out) {
    return make(p, Errhandler::comm, fn, out);
}
Err win_create_errhandler(Process& p, MPI_Win_errhandler_function* fn, Errhandler** out) {
    return make(p, Errhandler::win, fn, out);
}
Err file_create_errhandler(Process& p, MPI_File_errhandler_function* fn, Errhandler** out) {
    return make(p, Errhandler::file, fn, out);
}
Err session_create_errhandler(Process& p, MPI_Session_errhandler_function* fn, Errhandler** out) {
    return make(p, Errhandler::session, fn, out);
}

Err comm_set_errhandler(Process& p, Comm& c, Errhandler& e) { return obj::set_errhandler(p, c, e); }
Err comm_get_errhandler(Process& p, Comm& c, Errhandler** out) { return give(obj::errhandler_of(p, c), out); }
Err session_set_errhandler(Process& p, Session& s, Errhandler& e) { return obj::set_errhandler(p, s, e); }
Err session_get_errhandler(Process& p, Session& s, Errhandler** out) { return give(obj::errhandler_of(p, s), out); }

Err file_set_errhandler(Process& p, File* f, Errhandler& e) {
    WEFT_TRY(only_null(f));
    return obj::set_file_errhandler(p, e);
}
Err file_get_errhandler(Process& p, File* f, Errhandler** out) {
    WEFT_TRY(only_null(f));
    return give(obj::file_errhandler(p), out);
}

// A predefined handler may have been got by Comm_get_errhandler, which obliges the user to free it.
Err errhandler_free(Process& p, Errhandler** e) {
    obj::release(p, **e);
    *e = nullptr;
    return Err::ok;
}

}  // namespace weft::calls
