// The calls on error handlers, but for those that call one (api/errors.cpp). For api/. Locks: see obj/errhandler.
#pragma once
#include <mpi.h>

#include "base/err.hpp"
#include "obj/errhandler.hpp"
#include "obj/session.hpp"

namespace weft::calls {

using obj::Comm;
using obj::Errhandler;
using obj::File;
using obj::Process;
using obj::Session;

Err comm_create_errhandler(Process&, MPI_Comm_errhandler_function* fn, Errhandler** out);
Err win_create_errhandler(Process&, MPI_Win_errhandler_function* fn, Errhandler** out);
Err file_create_errhandler(Process&, MPI_File_errhandler_function* fn, Errhandler** out);
Err session_create_errhandler(Process&, MPI_Session_errhandler_function* fn, Errhandler** out);
Err comm_set_errhandler(Process&, Comm&, Errhandler&);
Err comm_get_errhandler(Process&, Comm&, Errhandler** out);
Err session_set_errhandler(Process&, Session&, Errhandler&);
Err session_get_errhandler(Process&, Session&, Errhandler** out);
// Null stands for MPI_FILE_NULL.
Err file_set_errhandler(Process&, File*, Errhandler&);
Err file_get_errhandler(Process&, File*, Errhandler** out);
Err errhandler_free(Process&, Errhandler** e);

}  // namespace weft::calls
