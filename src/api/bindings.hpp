// The bindings: what generated entry points are made of. Handles are resolved by obj/handles.hpp, arguments are checked by
// the small functions here, and everything that goes wrong ends in one of the cold functions at the end.
// Included by api/ and the generated files alone. No lock; error handlers run with none held.
#pragma once
#include "api/function.hpp"
#include "base/err.hpp"
#include "base/object.hpp"
#include "obj/addresses.hpp"
#include "obj/handles.hpp"
#include "obj/ints.hpp"
#include "obj/status.hpp"

namespace weft::bindings {

inline obj::Ints ints(const int* a) { return {a, false}; }
inline obj::Ints ints(const int64_t* a) { return {a, true}; }

// ---- checks. Each is true for a good argument and costs a compare or two.

template <Kind K> bool good(const void* object) { return static_cast<const Object*>(object)->kind == K; }
inline bool good_or_null(const obj::Info* i) { return i == nullptr || i->kind == Kind::info; }
inline bool good_info(const obj::Info* i) { return i != nullptr && i->kind == Kind::info; }
inline bool good_request(const obj::Request* r) { return r->kind == Kind::request && r != &obj::null_request; }

inline bool is_comm_or_null(const obj::Comm* c) { return c->kind == Kind::comm || c->kind == Kind::null_handle; }
inline bool is_win_or_null(const obj::Win* w) { return good<Kind::win>(w) || good<Kind::null_handle>(w); }
inline bool is_type(const type::Type* t) { return t->kind == Kind::type; }
inline bool is_type_or_null(const type::Type* t) { return is_type(t) || t->kind == Kind::null_handle; }
inline bool known(const type::Type* t) { return is_type(t) && !t->is(type::Type::unsupported); }
// Fit for communication.
inline bool usable(const type::Type* t) {
    return is_type(t) && t->is(type::Type::committed);
}

// Handles of an array, null ones included. The array may be null only if it is empty.
inline bool good_requests(const MPI_Request* a, int64_t n) {
    if (a == nullptr) return n <= 0;
    for (int64_t i = 0; i < n; i++)
        if (WEFT_UNLIKELY(!good<Kind::request>(obj::request_of(a[i])))) return false;
    return true;
}

// The count that a caller means whose header declares it as int or as MPI_Count, and who has so many elements in each of
// `pieces`. Of `given`, the whole register, an int fills the lower half alone, and the ABI lets the other hold anything: so
// it is taken as it stands only where it fits an int or where that much memory is there; else its lower half is meant.
WEFT_COLD int64_t large_count_meant(int64_t given, int64_t pieces, const void* buf, const type::Type* t);
inline int64_t count_meant(int64_t given, int64_t pieces, const void* buf, const type::Type* t) {
    return WEFT_LIKELY(given == static_cast<int32_t>(given)) ? given : large_count_meant(given, pieces, buf, t);
}

// ---- arrays: of `n` elements each, and null only where there are none

inline bool good_array(const void* a, int64_t n) { return WEFT_LIKELY(a != nullptr) || n <= 0; }
template <class Int> bool good_counts(const Int* a, int64_t n) {
    if (!good_array(a, n)) return false;
    for (int64_t i = 0; i < n; i++)
        if (WEFT_UNLIKELY(a[i] < 0)) return false;
    return true;
}
// Fit for communication; null where the count is 0.
bool good_types(const MPI_Datatype* a, int64_t n, obj::Ints counts);
// Fit to make another type of.
bool good_known_types(const MPI_Datatype* a, int64_t n);

inline int32_t peers(const obj::Comm& c) { return c.remote_size; }
inline int32_t members(const obj::Comm& c) { return c.size; }
// Of a communicator without a topology none: the call itself says what is wrong.
int32_t sources(const obj::Comm& c);
int32_t destinations(const obj::Comm& c);

using obj::no_data_at;
// The same in a collective, which decides for itself about MPI_IN_PLACE.
inline bool no_coll_data_at(const void* buf) { return no_data_at(buf) && buf != MPI_IN_PLACE; }

// Blocks in a buffer where no data can be: right where every one is empty, or addressed by its type. The blocks share a type, or
// have one each.
WEFT_COLD bool no_blocks_at(const void* buf, obj::Ints counts, int64_t n, const type::Type* t);
WEFT_COLD bool no_blocks_at(const void* buf, obj::Ints counts, int64_t n, const MPI_Datatype* types);
template <class T> bool good_blocks(const void* buf, obj::Ints counts, int64_t n, T type, const obj::Comm& c) {
    return WEFT_LIKELY(!no_coll_data_at(buf)) || c.is_inter() || c.topology != nullptr || no_blocks_at(buf, counts, n, type);
}

inline bool active(const obj::Process& p) { return p.phase.load(std::memory_order_relaxed) == obj::Phase::active; }

// MPI_BOTTOM is a null pointer in this ABI: right with nothing to transfer, and with a type made of addresses.
inline bool good_buffer(const void* buf, int64_t count, const type::Type* t) {
    if (WEFT_LIKELY(!no_data_at(buf))) return true;
    __asm__ volatile("");   // else the compiler tests first, in every call, what is tested here
    return count == 0 || t->size == 0 || (buf == nullptr && t->is(type::Type::absolute));
}
// On intercommunicators and topologies the buffer may be unused.
inline bool good_coll_buffer(const void* buf, int64_t count, const type::Type* t, const obj::Comm& c) {
    return WEFT_LIKELY(!no_coll_data_at(buf)) || good_buffer(buf, count, t) || c.is_inter() || c.topology != nullptr;
}

inline bool good_recv_tag(int tag) { return tag >= 0 || tag == obj::any_tag; }
inline bool good_source(const obj::Comm& c, int rank) { return c.valid_peer(rank) && rank != -2; }
inline bool good_rank(const obj::Comm& c, int rank) {
    return static_cast<uint32_t>(rank) < static_cast<uint32_t>(c.remote_size);
}
inline bool good_root(const obj::Comm& c, int root) {
    return good_rank(c, root) || (c.is_inter() && (root == obj::root_self || root == obj::proc_null));
}

// Where an argument of a rooted collective is significant.
inline bool at_root(const obj::Comm& c, int root) { return c.is_inter() ? root == obj::root_self : root == c.rank; }
inline bool at_leaf(const obj::Comm& c, int root) { return !c.is_inter() || root >= 0; }
inline bool at_part(const obj::Comm& c, int root) { return !c.is_inter() || root != obj::proc_null; }

// ---- passing values

// A null pointer to a handle is a bad handle.
template <class H> H load(const H* handle) { return WEFT_LIKELY(handle != nullptr) ? *handle : H{}; }

inline bool store(int* out, int64_t value) {
    if (value != static_cast<int>(value)) return false;
    *out = static_cast<int>(value);
    return true;
}
inline bool store(int64_t* out, int64_t value) {
    *out = value;
    return true;
}
template <class Int> void store_or_undefined(Int* out, int64_t value) {
    if (!store(out, value)) *out = MPI_UNDEFINED;
}

// Any argument as a word, for the cold paths.
template <class T> intptr_t word(T value) {
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<intptr_t>(value);
    else return static_cast<intptr_t>(value);
}

// ---- what goes wrong. All return the code for the caller of MPI, after the error handler returned.

// Some check failed: finds out which, by the same rules, and raises.
WEFT_COLD int reject(const Function&, const intptr_t* values);
// The implementation reported `e`; `owner` is the object whose error handler serves the call, or null.
WEFT_COLD int raise(const Function&, const void* owner, Err e);
WEFT_COLD int too_large(const Function&, const void* owner, int argument);
// A function that is not there yet: checks its arguments, then raises MPI_ERR_UNSUPPORTED_OPERATION.
WEFT_COLD int unsupported(const Function&, const intptr_t* values);

// The first wrong argument, by its index, with its class; {ok, -1} if there is none. The reason is left in fail_text().
struct Finding { Err error; int argument; };
Finding examine(const Function&, const intptr_t* values);

// MPI_Comm_call_errhandler and its like; MPI_File_call_errhandler (on MPI_FILE_NULL, null here).
Err comm_call_errhandler(obj::Process&, obj::Comm&, int code);
Err session_call_errhandler(obj::Process&, obj::Session&, int code);
Err win_call_errhandler(obj::Process&, obj::Win&, int code);
Err file_call_errhandler(obj::Process&, obj::File*, int code);

}  // namespace weft::bindings
