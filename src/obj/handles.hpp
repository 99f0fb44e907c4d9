// Handles and objects: the only place where one becomes the other. Predefined handles are small integers (their ABI
// numbers), all others are the objects' addresses. For api/ and the implementations of calls; no lock.
#pragma once
#include <mpi.h>

#include <array>
#include <cstdint>

#include "base/object.hpp"
#include "handle_numbers.hpp"
#include "obj/comm.hpp"
#include "obj/errhandler.hpp"
#include "obj/group.hpp"
#include "obj/info.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"
#include "op/predefined.hpp"
#include "type/predefined.hpp"
#include "type/type.hpp"

namespace weft::obj {

struct Win;
struct File;
struct Session;
struct Message;

// Addresses below this are handles of predefined objects, assigned or not.
inline constexpr uintptr_t first_address = 0x1000;

// What an unassigned small number is the handle of; large enough to be read as any object.
struct alignas(64) BadObject { Object head; char zeros[512]; };
extern WEFT_HIDDEN const BadObject bad_object;
extern WEFT_HIDDEN const BadObject null_win;
extern WEFT_HIDDEN const BadObject no_proc_message; // MPI_MESSAGE_NO_PROC

namespace detail {

inline uintptr_t number(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
template <class T> T* object(const void* handle) { return static_cast<T*>(const_cast<void*>(handle)); }
template <class T> T* bad() { return object<T>(&bad_object); }
// The object that a handle points to which is no predefined number. Reading at any address is a crash where nothing is mapped,
// and asking the kernel before is too slow for programs that are right: builds with WEFT_CHECK_HANDLES do, for all others.
bool is_address_of_something(const void* handle, size_t alignment);
template <class T, size_t alignment = alignof(Request)> WEFT_INLINE T* pointed_to(const void* handle) {
    return !WEFT_CHECK_HANDLES || is_address_of_something(handle, alignment) ? object<T>(handle) : bad<T>();
}
template <class H> H predefined_handle(uintptr_t n) { return reinterpret_cast<H>(n); }

// Byte offset of each predefined type in type::predefined; the bad handle's (0) everywhere else.
constexpr auto make_type_offsets() {
    std::array<uint16_t, first_address> a{};
    for (int v = 0; v < static_cast<int>(first_address); v++)
        a[static_cast<size_t>(v)] = static_cast<uint16_t>(static_cast<size_t>(type::predefined_index(v)) * sizeof(type::Type));
    return a;
}
inline constexpr std::array<uint16_t, first_address> type_offsets = make_type_offsets();
static_assert(sizeof(type::Type) * type::n_predefined < 65536, "offsets are kept in 16 bits");

constexpr auto make_op_index() {
    std::array<uint8_t, 64> a{};
    for (int v = 0; v < 64; v++) a[static_cast<size_t>(v)] = static_cast<uint8_t>(op::predefined_index(v));
    return a;
}
inline constexpr std::array<uint8_t, 64> op_index = make_op_index();

}  // namespace detail

// ---- handle to object. Always yields something with a kind to compare, except where a null is said to be possible.

WEFT_INLINE type::Type* type_of(Process&, MPI_Datatype h) {
    if (uintptr_t v = detail::number(h); WEFT_LIKELY(v < first_address)) {
        const char* base = reinterpret_cast<const char*>(&type::predefined);
        return detail::object<type::Type>(base + detail::type_offsets[v]);
    }
    return detail::pointed_to<type::Type, alignof(type::Type)>(h);
}
inline type::Type* type_of(MPI_Datatype h) { return type_of(*process, h); }

WEFT_INLINE Comm* comm_of(Process& p, MPI_Comm h) {
    uintptr_t v = detail::number(h);
    if (uintptr_t slot = v - number::comm_null; WEFT_LIKELY(slot < Process::comm_numbers)) {
        // With link-time optimisation the compiler may see which: what comms[] holds.
        if (__builtin_constant_p(slot)) return slot == 0 ? &p.null_comm : slot == 1 ? &p.world : slot == 2 ? &p.self : &p.fixed[slot - 3];
        return p.comms[slot];
    }
    return WEFT_LIKELY(v >= first_address) ? detail::pointed_to<Comm, alignof(Comm)>(h) : detail::bad<Comm>();
}
// For arguments that only some callers have to give: null unless it is a communicator.
inline Comm* comm_or_null(Process& p, MPI_Comm h) {
    Comm* c = comm_of(p, h);
    return c->kind == Kind::comm ? c : nullptr;
}

WEFT_INLINE Request* request_of(Process&, MPI_Request h) {
    uintptr_t v = detail::number(h);
    if (WEFT_LIKELY(v >= first_address)) return detail::pointed_to<Request>(h);
    return v == number::request_null ? &null_request : detail::bad<Request>();
}
inline Request* request_of(MPI_Request h) { return request_of(*process, h); }

inline Group* group_of(Process&, MPI_Group h) {
    uintptr_t v = detail::number(h);
    if (v >= first_address) return detail::pointed_to<Group>(h);
    return v == number::group_empty ? &group_empty : detail::bad<Group>();
}
// Null for MPI_INFO_NULL.
inline Info* info_of(Process& p, MPI_Info h) {
    uintptr_t v = detail::number(h);
    if (v >= first_address) return detail::pointed_to<Info>(h);
    return v == number::info_null ? nullptr : v == number::info_env ? info_env(p) : detail::bad<Info>();
}
inline Errhandler* errh_of(Process&, MPI_Errhandler h) {
    switch (detail::number(h)) {
    case number::errors_are_fatal: return &errors_are_fatal;
    case number::errors_abort: return &errors_abort;
    case number::errors_return: return &errors_return;
    }
    return detail::number(h) >= first_address ? detail::pointed_to<Errhandler>(h) : detail::bad<Errhandler>();
}
inline Win* win_of(Process&, MPI_Win h) {
    if (const uintptr_t v = detail::number(h); WEFT_LIKELY(v >= first_address)) return detail::pointed_to<Win>(h);
    return detail::object<Win>(detail::number(h) == number::win_null ? &null_win : &bad_object);
}
inline File* file_of(Process&, MPI_File h) {
    return detail::number(h) >= first_address ? detail::pointed_to<File>(h) : detail::bad<File>();
}
// Null for MPI_FILE_NULL, whose error handler is that of files yet to be opened.
inline File* file_or_null(Process& p, MPI_File h) { return detail::number(h) == number::file_null ? nullptr : file_of(p, h); }
inline Session* session_of(Process&, MPI_Session h) {
    return detail::number(h) >= first_address ? detail::pointed_to<Session>(h) : detail::bad<Session>();
}
inline Message* message_of(Process&, MPI_Message h) {
    uintptr_t v = detail::number(h);
    if (v >= first_address) return detail::pointed_to<Message>(h);
    return v == number::message_no_proc ? detail::object<Message>(&no_proc_message) : detail::bad<Message>();
}
inline op::Op* op_of(Process&, MPI_Op h) {
    uintptr_t v = detail::number(h);
    return WEFT_LIKELY(v < first_address) ? &op::predefined[v < 64 ? detail::op_index[v] : 0] : detail::pointed_to<op::Op>(h);
}
inline MPI_Op handle_of(const op::Op* o) {
    if (o == nullptr) return MPI_OP_NULL;
    return o->is(op::Op::predefined) ? detail::predefined_handle<MPI_Op>(static_cast<uintptr_t>(o->id))
                                     : detail::object<MPI_ABI_Op>(o);
}

// ---- object to handle; null gives the null handle.

inline MPI_Datatype handle_of(const type::Type* t) {
    return t == nullptr ? MPI_DATATYPE_NULL : detail::object<MPI_ABI_Datatype>(type::handle_of(*t));
}
inline MPI_Request handle_of(const Request* r) {
    return r == nullptr || r == &null_request ? MPI_REQUEST_NULL : detail::object<MPI_ABI_Request>(r);
}
// Of a request that was just made: never the null request.
inline MPI_Request handle_of_new(const Request* r) {
    return r == nullptr ? MPI_REQUEST_NULL : detail::object<MPI_ABI_Request>(r);
}
inline MPI_Comm handle_of(const Comm* c) {
    if (c == nullptr) return MPI_COMM_NULL;
    for (uintptr_t i = 0; i < Process::comm_numbers; i++)
        if (c == process->comms[i]) return detail::predefined_handle<MPI_Comm>(number::comm_null + i);
    return detail::object<MPI_ABI_Comm>(c);
}
inline MPI_Group handle_of(const Group* g) {
    return g == nullptr ? MPI_GROUP_NULL : g == &group_empty ? MPI_GROUP_EMPTY : detail::object<MPI_ABI_Group>(g);
}
inline MPI_Info handle_of(const Info* i) {
    return i == nullptr ? MPI_INFO_NULL : i->id == number::info_env ? MPI_INFO_ENV : detail::object<MPI_ABI_Info>(i);
}
inline MPI_Errhandler handle_of(const Errhandler* e) {
    if (e == nullptr) return MPI_ERRHANDLER_NULL;
    bool named = e->id > 0 && e->id < static_cast<int>(first_address);
    return named ? detail::predefined_handle<MPI_Errhandler>(static_cast<uintptr_t>(e->id))
                 : detail::object<MPI_ABI_Errhandler>(e);
}
inline MPI_Win handle_of(const Win* w) { return w ? detail::object<MPI_ABI_Win>(w) : MPI_WIN_NULL; }
inline MPI_File handle_of(const File* f) { return f ? detail::object<MPI_ABI_File>(f) : MPI_FILE_NULL; }
inline MPI_Session handle_of(const Session* s) { return s ? detail::object<MPI_ABI_Session>(s) : MPI_SESSION_NULL; }
// Of a message that was just matched: neither of the others.
inline MPI_Message handle_of_new(const Message* m) { return detail::object<MPI_ABI_Message>(m); }
inline MPI_Message handle_of(const Message* m) {
    if (m == nullptr) return MPI_MESSAGE_NULL;
    return detail::number(m) == detail::number(&no_proc_message) ? MPI_MESSAGE_NO_PROC : detail::object<MPI_ABI_Message>(m);
}

}  // namespace weft::obj
