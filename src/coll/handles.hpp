// The one place in coll/ where a datatype handle inside an array (alltoallw) becomes an object. Included by coll/ alone;
// the bindings have checked the handles, and no lock is held.
#pragma once
#include "obj/handles.hpp"
#include "type/type.hpp"

namespace weft::coll {

inline const type::Type& type_of_handle(const void* handle) { return *obj::type_of(static_cast<MPI_Datatype>(const_cast<void*>(handle))); }

}  // namespace weft::coll
