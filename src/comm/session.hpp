// The Sessions Model: sessions, process sets, and communicators that have no parent. Included by the bindings.
// Thread-safe; Process::pool_lock guards the number of users, and is held by nobody who waits.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "obj/group.hpp"
#include "obj/process.hpp"
#include "obj/session.hpp"

namespace weft::obj { struct Info; }

namespace weft::comm {

using obj::Comm;
using obj::Errhandler;
using obj::Group;
using obj::Info;
using obj::Process;
using obj::Session;

Err session_init(Process&, Info*, Errhandler&, Session** out);
Err session_finalize(Process&, Session** session);
Err session_get_info(Process&, Session&, Info** out);
Err session_get_num_psets(Process&, Session&, Info*, int* n);
Err session_get_nth_pset(Process&, Session&, Info*, int n, int* length, char* name);
Err session_get_pset_info(Process&, Session&, const char* name, Info** out);
Err group_from_session_pset(Process&, Session&, const char* name, Group** out);

// *out is null for empty groups.
Err create_from_group(Process&, Group&, const char* stringtag, Info*, Errhandler&, Comm** out);
Err intercomm_create_from_groups(Process&, Group& local, int local_leader, Group& remote, int remote_leader,
                                 const char* stringtag, Info*, Errhandler&, Comm** out);
// What hangs from Process::directory is freed; before the engine stops.
void close_directory(Process&);

}  // namespace weft::comm
