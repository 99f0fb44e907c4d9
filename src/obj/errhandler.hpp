// Error handlers. A communicator (window, file, session) holds a reference to one; a null pointer stands for the default.
// Any floor from obj/ upwards may include this. Reference counts are atomic, all else is immutable; the pointers that objects hold
// are guarded by Process::pool_lock.
#pragma once
#include <mpi.h>

#include <atomic>

#include "base/err.hpp"
#include "base/object.hpp"

namespace weft::obj {

struct Process;
struct Comm;
struct File;
struct Session;

struct Errhandler : Object {
    enum Action : uint8_t { fatal, abort, return_code, user };
    enum Target : uint8_t { any, comm, win, file, session };
    Action action;
    Target target;                // what it may be set on; predefined ones: anything
    std::atomic<int32_t> refs;    // the handle, and every object that holds it
    union {
        MPI_Comm_errhandler_function* comm_fn;
        MPI_Win_errhandler_function* win_fn;
        MPI_File_errhandler_function* file_fn;
        MPI_Session_errhandler_function* session_fn;
        Errhandler* next;         // link of the free list
    };

    bool predefined() const { return target == any; }
};

extern Errhandler errors_are_fatal, errors_abort, errors_return;

inline void retain(Errhandler& e) {
    if (!e.predefined()) e.refs.fetch_add(1, std::memory_order_relaxed);
}
void release(Process&, Errhandler& e);

// One that stays while this lives, though another thread may set another on its object meanwhile.
class HeldErrhandler {
public:
    HeldErrhandler(Process& p, Errhandler& retained) : p_(p), e_(retained) {}
    ~HeldErrhandler() { release(p_, e_); }
    HeldErrhandler(const HeldErrhandler&) = delete;
    HeldErrhandler& operator=(const HeldErrhandler&) = delete;
    operator Errhandler&() const { return e_; }

private:
    Process& p_;
    Errhandler& e_;
};
// The one that serves errors of a call without an object: MPI_COMM_SELF's, else the initial one.
HeldErrhandler default_errhandler(Process&);
// The object's; never null.
HeldErrhandler errhandler_of(Process&, const Comm&);
HeldErrhandler errhandler_of(Process&, const Session&);
// The one that a communicator made of `parent` starts with, retained; null: the default.
Errhandler* inherit_errhandler(Process&, const Comm& parent);

// Of MPI_FILE_NULL, whose handler serves files that are yet to be opened. Starts as MPI_ERRORS_RETURN.
HeldErrhandler file_errhandler(Process&);

Err make_errhandler(Process&, Errhandler::Target, void (*function)(), Errhandler** out);
// Err::errhandler for one that was made for objects of another kind.
Err set_errhandler(Process&, Comm&, Errhandler&);
Err set_errhandler(Process&, Session&, Errhandler&);
Err set_file_errhandler(Process&, Errhandler&);

}  // namespace weft::obj
