// Integer ids of handles (MPI_*_toint, MPI_*_fromint): the ABI's number for predefined handles; for all others a number
// of 0x1000 or more, given out when first asked for and good for the object's life. For api/; the registry's lock guards the table.
// No errors: a number that belongs to nobody gives the null handle.
#pragma once
#include <cstdint>

#include "obj/handles.hpp"

namespace weft::calls {

using obj::Process;

// The id of any object with a head; 0 without memory for it, and of what is no live object.
int id_of(Process&, Object*);
// The live object of that kind with that id, or null.
Object* object_with(Process&, int id, Kind);

template <class H> int to_int(Process& p, H handle) {
    auto v = reinterpret_cast<uintptr_t>(handle);
    return v < obj::first_address ? static_cast<int>(v) : id_of(p, obj::detail::pointed_to<Object>(handle));
}

template <class H, Kind K> H from_int(Process& p, int id, H null) {
    if (id >= 0 && id < static_cast<int>(obj::first_address)) return reinterpret_cast<H>(static_cast<uintptr_t>(id));
    Object* o = object_with(p, id, K);
    return o != nullptr ? reinterpret_cast<H>(o) : null;
}

inline MPI_Comm comm_fromint(Process& p, int i) { return from_int<MPI_Comm, Kind::comm>(p, i, MPI_COMM_NULL); }
inline MPI_Group group_fromint(Process& p, int i) { return from_int<MPI_Group, Kind::group>(p, i, MPI_GROUP_NULL); }
inline MPI_Datatype type_fromint(Process& p, int i) { return from_int<MPI_Datatype, Kind::type>(p, i, MPI_DATATYPE_NULL); }
inline MPI_Op op_fromint(Process& p, int i) { return from_int<MPI_Op, Kind::op>(p, i, MPI_OP_NULL); }
inline MPI_Info info_fromint(Process& p, int i) { return from_int<MPI_Info, Kind::info>(p, i, MPI_INFO_NULL); }
inline MPI_Errhandler errhandler_fromint(Process& p, int i) {
    return from_int<MPI_Errhandler, Kind::errhandler>(p, i, MPI_ERRHANDLER_NULL);
}
inline MPI_Request request_fromint(Process& p, int i) { return from_int<MPI_Request, Kind::request>(p, i, MPI_REQUEST_NULL); }
inline MPI_Win win_fromint(Process& p, int i) { return from_int<MPI_Win, Kind::win>(p, i, MPI_WIN_NULL); }
inline MPI_File file_fromint(Process& p, int i) { return from_int<MPI_File, Kind::file>(p, i, MPI_FILE_NULL); }
inline MPI_Session session_fromint(Process& p, int i) { return from_int<MPI_Session, Kind::session>(p, i, MPI_SESSION_NULL); }
inline MPI_Message message_fromint(Process& p, int i) { return from_int<MPI_Message, Kind::message>(p, i, MPI_MESSAGE_NULL); }

}  // namespace weft::calls
