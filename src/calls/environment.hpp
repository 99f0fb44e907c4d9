// The calls about the library and the machine: versions, time, memory, the processor's name, addresses, the ABI.
// For api/. What is remembered lives in the registry and is guarded by its lock.
#pragma once
#include <mpi.h>

#include "base/err.hpp"
#include "obj/info.hpp"
#include "os/clock.hpp"

namespace weft::calls {

using obj::Info;
using obj::Process;

Err get_version(Process&, int* version, int* subversion);
Err get_library_version(Process&, char* text, int* length);
Err get_processor_name(Process&, char* name, int* length);

inline double wtime(Process&) { return static_cast<double>(os::now_ns()) * 1e-9; }
double wtick(Process&);

Err alloc_mem(Process&, int64_t bytes, Info* info, void* pointer_out);
Err free_mem(Process&, void* base);

inline Err pcontrol(Process&, int) { return Err::ok; }
inline Err get_address(Process&, const void* location, MPI_Aint* address) {
    *address = reinterpret_cast<MPI_Aint>(location);
    return Err::ok;
}
// Addresses wrap as unsigned numbers do.
inline MPI_Aint aint_add(Process&, MPI_Aint base, MPI_Aint disp) {
    return static_cast<MPI_Aint>(static_cast<uintptr_t>(base) + static_cast<uintptr_t>(disp));
}
inline MPI_Aint aint_diff(Process&, MPI_Aint a, MPI_Aint b) {
    return static_cast<MPI_Aint>(static_cast<uintptr_t>(a) - static_cast<uintptr_t>(b));
}

Err abi_get_version(Process&, int* major, int* minor);
Err abi_get_info(Process&, Info** out);
// MPI_INFO_NULL (null) until a Fortran layer has told.
Err abi_get_fortran_info(Process&, Info** out);
Err abi_set_fortran_info(Process&, Info&);
Err abi_get_fortran_booleans(Process&, int logical_size, void* logical_true, void* logical_false, bool* is_set);
Err abi_set_fortran_booleans(Process&, int logical_size, const void* logical_true, const void* logical_false);

// No hardware resources are told of: an empty info.
Err get_hw_resource_info(Process&, Info** out);

}  // namespace weft::calls
