// Everything that makes communicators, and what ends them. Included by topo/ and the bindings' calls.
// All of it is collective over the processes it names; no lock is held while callbacks or messages run.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/group.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"

namespace weft::obj { struct Info; }

namespace weft::comm {

using obj::Comm;
using obj::Group;
using obj::Info;
using obj::Process;
using obj::Request;

// Where a call may give MPI_COMM_NULL, *out is null.
Err dup(Process&, Comm&, Comm** out);
Err dup_with_info(Process&, Comm&, Info*, Comm** out);
Err idup(Process&, Comm&, Comm** out, Request**);
Err idup_with_info(Process&, Comm&, Info*, Comm** out, Request**);
Err split(Process&, Comm&, int color, int key, Comm** out);
Err split_type(Process&, Comm&, int split_type, int key, Info*, Comm** out);
// The same, with MPIX_COMM_1 to 4 for the result: Err::comm if `to` is none of them, or in use. Where a split has none, `to` stays free.
Err dup_to_fixed(Process&, Comm&, Comm& to);
Err split_to_fixed(Process&, Comm&, int color, int key, Comm& to);
Err create(Process&, Comm&, Group&, Comm** out);
Err create_group(Process&, Comm&, Group&, int tag, Comm** out);
// `peer` is significant at the local leader only, and may be null elsewhere.
Err intercomm_create(Process&, Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Comm** out);
// Err::unsupported for one of endpoints, of which nothing can be made for which each process must be in it once.
Err check_processes(const Comm&);
// MPIX_Comm_create_endpoints: `out` has room for `count`.
Err create_endpoints(Process&, Comm&, int count, Comm** out);
// MPI_Comm_dup of several endpoints of this process at once, without what the user has attached to them: for rma/. Collective over the
// communicator's endpoints; the others may take part by calls of their own.
Err dup_endpoints_together(Process&, Comm* const* endpoints, int32_t count, Comm** out);
Err intercomm_merge(Process&, Comm&, int high, Comm** out);
Err free_comm(Process&, Comm** c);
Err disconnect(Process&, Comm** c);

// For topo/: a communicator of `group` (a subset of the intracommunicator's, the same on all its members), made by its
// members alone under a tag all have taken; null on the others.
Err create_over(Process&, Comm& parent, Group& group, int32_t tag, Comm** out);
int32_t take_tag(Comm&);

}  // namespace weft::comm
