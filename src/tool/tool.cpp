#include "tool/tool.hpp"

#include <mpi.h>

#include <cstdlib>
#include <cstring>

#include "obj/process.hpp"
#include "obj/registry.hpp"

namespace weft::tool {

using obj::Registry;
using obj::registry;

namespace {

constexpr Err invalid{MPI_T_ERR_INVALID};

// Between an MPI_T_init_thread and the MPI_T_finalize that undoes it.
Err running(Process& p) {
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    return r.tool_users > 0 ? Err::ok : Err{MPI_T_ERR_NOT_INITIALIZED};
}

obj::ToolSession** find(Registry& r, const void* session) {
    obj::ToolSession** at = &r.tool_sessions;
    while (*at != nullptr && *at != session) at = &(*at)->next;
    return at;
}

}  // namespace

Err init_thread(Process& p, int required, int* provided) {
    if (provided == nullptr) return invalid;
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    r.tool_users++;
    // Any level will do: the lowest that is enough.
    *provided = required <= MPI_THREAD_SINGLE ? MPI_THREAD_SINGLE : required <= MPI_THREAD_FUNNELED ? MPI_THREAD_FUNNELED
              : required <= MPI_THREAD_SERIALIZED ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
    return Err::ok;
}

Err finalize(Process& p) {
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    if (r.tool_users == 0) return Err{MPI_T_ERR_NOT_INITIALIZED};
    if (--r.tool_users > 0) return Err::ok;
    while (obj::ToolSession* s = r.tool_sessions) {   // those that nobody has freed
        r.tool_sessions = s->next;
        free(s);
    }
    return Err::ok;
}

Err number(Process& p, int* n) {
    WEFT_TRY(running(p));
    if (n == nullptr) return invalid;
    *n = 0;
    return Err::ok;
}

Err no_index(Process& p) {
    WEFT_TRY(running(p));
    return Err{MPI_T_ERR_INVALID_INDEX};
}

Err no_handle(Process& p) {
    WEFT_TRY(running(p));
    return Err{MPI_T_ERR_INVALID_HANDLE};
}

Err no_name(Process& p, const char* name, const void* index) {
    WEFT_TRY(running(p));
    return name == nullptr || index == nullptr ? invalid : Err{MPI_T_ERR_INVALID_NAME};
}

Err session_create(Process& p, void* session_out) {
    WEFT_TRY(running(p));
    if (session_out == nullptr) return invalid;
    auto* s = static_cast<obj::ToolSession*>(malloc(sizeof(obj::ToolSession)));
    if (s == nullptr) return Err{MPI_T_ERR_MEMORY};
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    s->next = r.tool_sessions;
    r.tool_sessions = s;
    memcpy(session_out, &s, sizeof s);
    return Err::ok;
}

Err session_free(Process& p, void* session_inout) {
    WEFT_TRY(running(p));
    if (session_inout == nullptr) return invalid;
    obj::ToolSession* s;
    memcpy(&s, session_inout, sizeof s);
    {
        Registry& r = registry(p);
        SpinGuard guard(r.lock);
        obj::ToolSession** at = find(r, s);
        if (*at == nullptr) return Err{MPI_T_ERR_INVALID_SESSION};
        *at = s->next;
    }
    free(s);
    memset(session_inout, 0, sizeof s);   // MPI_T_PVAR_SESSION_NULL
    return Err::ok;
}

Err no_index_of(Process& p, const void* session) {
    Err e = no_handle_of(p, session);
    return e == Err{MPI_T_ERR_INVALID_HANDLE} ? Err{MPI_T_ERR_INVALID_INDEX} : e;
}

Err no_handle_of(Process& p, const void* session) {
    WEFT_TRY(running(p));
    Registry& r = registry(p);
    SpinGuard guard(r.lock);
    return Err{*find(r, session) == nullptr ? MPI_T_ERR_INVALID_SESSION : MPI_T_ERR_INVALID_HANDLE};
}

Err on_handles_of(Process& p, const void* session, const void* handle) {
    Err e = no_handle_of(p, session);
    return e == Err{MPI_T_ERR_INVALID_HANDLE} && handle == MPI_T_PVAR_ALL_HANDLES ? Err::ok : e;
}

}  // namespace weft::tool
