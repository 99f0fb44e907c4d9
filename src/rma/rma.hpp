// One-sided communication: what the bindings call. Windows are accessed by loads and stores where all their memory is shared between
// their processes, else by messages that the target applies; which of the two is decided when a window is made (window.hpp).
// Included by the bindings. Thread-safe at every level that was asked for; no lock is held by callers.
#pragma once
#include <mpi.h>

#include <cstdint>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"
#include "obj/win.hpp"
#include "op/op.hpp"
#include "type/type.hpp"

namespace weft::rma {

using obj::Comm;
using obj::Group;
using obj::Info;
using obj::Process;
using obj::Request;
using obj::Win;
using type::Buffer;
using type::Type;

// Collective over the communicator. An argument that is wrong on one process is an error on all. `address`: of the user's pointer.
Err create(Process&, void* base, int64_t bytes, int64_t disp_unit, Info*, Comm&, Win** out);
Err allocate(Process&, int64_t bytes, int64_t disp_unit, Info*, Comm&, void* address, Win** out);
Err allocate_shared(Process&, int64_t bytes, int64_t disp_unit, Info*, Comm&, void* address, Win** out);
Err create_dynamic(Process&, Info*, Comm&, Win** out);
// MPIX_Win_create_endpoints: windows for `n` endpoints of one communicator, each with memory of its own. Collective over all endpoints of
// it; those of one process may take part by several calls.
struct Memory {
    void* base;
    int64_t bytes;
};
Err create_endpoints(Process&, const Memory*, int64_t disp_unit, Info*, int32_t n, Comm* const* endpoints, Win** out);
Err free_win(Process&, Win** win);
Err attach(Process&, Win&, void* base, int64_t bytes);
Err detach(Process&, Win&, const void* base);
// The hints, and the lanes by which accesses go where those are messages.
Err get_info(Process&, Win&, Info** out);
Err shared_query(Process&, Win&, int rank, MPI_Aint* bytes, int64_t* disp_unit, void* address);

// Accesses. Put, accumulate and their like have read the origin's buffer when they return.
Err put(Process&, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type&, Win&);
// To an address of the target's own, in its part of the window.
Err put_virtual(Process&, Buffer origin, int target, MPI_Aint at, int64_t count, const Type&, Win&);
Err get(Process&, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type&, Win&);
Err accumulate(Process&, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type&, const op::Op&, Win&);
Err get_accumulate(Process&, Buffer origin, Buffer result, int target, MPI_Aint disp, int64_t count, const Type&, const op::Op&, Win&);
Err fetch_and_op(Process&, void* origin, void* result, const Type&, int target, MPI_Aint disp, const op::Op&, Win&);
Err compare_and_swap(Process&, void* origin, void* compare, void* result, const Type&, int target, MPI_Aint disp, Win&);
// With a request, which is complete when the origin's buffers may be used again.
Err rput(Process&, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type&, Win&, Request** out);
Err rget(Process&, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type&, Win&, Request** out);
Err raccumulate(Process&, Buffer origin, int target, MPI_Aint disp, int64_t count, const Type&, const op::Op&, Win&, Request** out);
Err rget_accumulate(Process&, Buffer origin, Buffer result, int target, MPI_Aint disp, int64_t count, const Type&, const op::Op&, Win&,
                    Request** out);

// Synchronisation.
Err fence(Process&, int assertion, Win&);
Err post(Process&, Group&, int assertion, Win&);
Err start(Process&, Group&, int assertion, Win&);
Err complete(Process&, Win&);
Err wait(Process&, Win&);
Err test(Process&, Win&, bool* flag);
Err lock(Process&, int type, int target, int assertion, Win&);
Err unlock(Process&, int target, Win&);
Err lock_all(Process&, int assertion, Win&);
Err unlock_all(Process&, Win&);
Err flush(Process&, int target, Win&);
Err flush_all(Process&, Win&);
Err flush_local(Process&, int target, Win&);
Err flush_local_all(Process&, Win&);
Err sync(Process&, Win&);

}  // namespace weft::rma
