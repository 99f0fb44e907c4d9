// Ownership passing: the OPI_* entry points, which weft.h declares. Each checks its arguments and raises errors as the generated ones
// do. The short paths are inlined into them, so that handing a buffer over costs what an 8-byte message costs. No lock.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

#include "api/bindings.hpp"
#include "p2p/given.hpp"

namespace {

using namespace weft;
using bindings::ArgKind;
using bindings::Significant;
using bindings::word;

constexpr bindings::Arg arg(const char* name, ArgKind kind) { return {name, kind, Significant::always, -1, -1, -1}; }

const bindings::Arg alloc_args[] = {arg("ptr", ArgKind::addr_out), arg("length", ArgKind::raw)};
const bindings::Arg free_args[] = {arg("ptr", ArgKind::addr_out)};
const bindings::Arg give_args[] = {arg("ptr", ArgKind::addr_out), arg("count", ArgKind::count), arg("datatype", ArgKind::type),
                                   arg("rank", ArgKind::dest), arg("tag", ArgKind::tag_send), arg("comm", ArgKind::comm),
                                   arg("request", ArgKind::request_out)};
const bindings::Arg take_args[] = {arg("ptr", ArgKind::addr_out), arg("count", ArgKind::count), arg("datatype", ArgKind::type),
                                   arg("rank", ArgKind::source), arg("tag", ArgKind::tag_recv), arg("comm", ArgKind::comm),
                                   arg("request", ArgKind::request_out)};

constexpr bindings::Function function(const char* name, const bindings::Arg* args, uint8_t n, int8_t comm) {
    return {name, args, n, comm >= 0 ? bindings::Errors::comm : bindings::Errors::self, comm, false, true};
}
const bindings::Function alloc_function = function("OPI_Alloc", alloc_args, 2, -1), free_function = function("OPI_Free", free_args, 1, -1);
const bindings::Function give_function = function("OPI_Give", give_args, 6, 5), igive_function = function("OPI_Igive", give_args, 7, 5);
const bindings::Function take_function = function("OPI_Take", take_args, 6, 5), itake_function = function("OPI_Itake", take_args, 7, 5);

// The arguments of all gives and takes, resolved. Passed on by value only, so that they stay in registers.
struct Message {
    type::Type* shape;
    obj::Comm* comm;
    type::Buffer buffer;   // of a give; of a take the address of the user's pointer
    p2p::Envelope envelope;
};
WEFT_INLINE Message message(obj::Process& proc, void* buffer, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm) {
    type::Type* const type_ = obj::type_of(proc, datatype);
    return {type_, obj::comm_of(proc, comm), {buffer, count, type_}, {rank, tag}};
}
WEFT_INLINE bool good(const Message& m, const void* ptr, int count) {
    return bindings::good<Kind::comm>(m.comm) && bindings::usable(m.shape) && ptr != nullptr && count >= 0;
}
WEFT_INLINE bool good_give(const Message& m, const void* ptr, int count, int rank, int tag) {
    return good(m, ptr, count) && m.comm->valid_peer(rank) && tag >= 0;
}
WEFT_INLINE bool good_take(const Message& m, const void* ptr, int count, int rank, int tag) {
    return good(m, ptr, count) && bindings::good_source(*m.comm, rank) && bindings::good_recv_tag(tag);
}

WEFT_COLD int reject(const bindings::Function& f, void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm,
                     MPI_Request* request) {
    const intptr_t v[] = {word(ptr), word(count), word(datatype), word(rank), word(tag), word(comm), word(request)};
    return bindings::reject(f, v);
}

WEFT_COLD int no_memory(size_t length) {
    return bindings::raise(alloc_function, nullptr, fail(Err::no_mem, "no memory for a buffer of %zu bytes", length));
}

WEFT_COLD int no_buffer(const void* data) {
    return bindings::raise(free_function, nullptr, fail(Err::buffer, "%p is no buffer that this rank owns, or it was freed or given away before", data));
}

WEFT_COLD int reject_alloc(void** ptr, size_t length) {
    const intptr_t v[] = {word(ptr), word(length)};
    return bindings::reject(alloc_function, v);
}

WEFT_COLD int reject_free(void** ptr) {
    const intptr_t v[] = {word(ptr)};
    return bindings::reject(free_function, v);
}

// What the short paths leave over: in functions of their own, so that those have no stack frame.
__attribute__((noinline)) int slow_give(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm) {
    obj::Process& proc = *obj::process;
    const Message m = message(proc, p2p::get_pointer(ptr), count, datatype, rank, tag, comm);
    const Err e = p2p::give_slow(proc, *m.comm, m.buffer, m.envelope);
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(give_function, m.comm, e);
    p2p::set_pointer(ptr, nullptr);
    return MPI_SUCCESS;
}

__attribute__((noinline)) int slow_igive(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request* request) {
    obj::Process& proc = *obj::process;
    const Message m = message(proc, p2p::get_pointer(ptr), count, datatype, rank, tag, comm);
    obj::Request* made = nullptr;
    const Err e = p2p::igive_slow(proc, *m.comm, m.buffer, m.envelope, &made);
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(igive_function, m.comm, e);
    p2p::set_pointer(ptr, nullptr);
    *request = obj::handle_of_new(made);
    return MPI_SUCCESS;
}

__attribute__((noinline)) int slow_take(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Status* status) {
    obj::Process& proc = *obj::process;
    const Message m = message(proc, ptr, count, datatype, rank, tag, comm);
    const Err e = p2p::take_slow(proc, *m.comm, m.buffer, m.envelope, reinterpret_cast<obj::Status*>(status));
    return WEFT_LIKELY(e == Err::ok) ? MPI_SUCCESS : bindings::raise(take_function, m.comm, e);
}

}  // namespace

extern "C" {

int OPI_Alloc(void** ptr, size_t length) {
    obj::Process& proc = *obj::process;
    if (WEFT_CHECKS && WEFT_UNLIKELY(!bindings::active(proc) || ptr == nullptr)) return reject_alloc(ptr, length);
    void* const data = p2p::allocate_buffer(proc, length);
    if (WEFT_UNLIKELY(data == nullptr)) return no_memory(length);
    p2p::set_pointer(ptr, data);
    return MPI_SUCCESS;
}

int OPI_Free(void** ptr) {
    obj::Process& proc = *obj::process;
    if (WEFT_CHECKS && WEFT_UNLIKELY(!bindings::active(proc) || ptr == nullptr)) return reject_free(ptr);
    void* const data = p2p::get_pointer(ptr);
    if (WEFT_UNLIKELY(!p2p::release_buffer(proc, data)) && data != nullptr) return no_buffer(data);
    p2p::set_pointer(ptr, nullptr);
    return MPI_SUCCESS;
}

int OPI_Give(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm) {
    obj::Process& proc = *obj::process;
    Message m = message(proc, nullptr, count, datatype, rank, tag, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good_give(m, ptr, count, rank, tag)))
        return reject(give_function, ptr, count, datatype, rank, tag, comm, nullptr);
    m.buffer.base = p2p::get_pointer(ptr);
    if (WEFT_UNLIKELY(!p2p::give_inline(proc, *m.comm, m.buffer, m.envelope))) return slow_give(ptr, count, datatype, rank, tag, comm);
    p2p::set_pointer(ptr, nullptr);
    return MPI_SUCCESS;
}

int OPI_Igive(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request* request) {
    obj::Process& proc = *obj::process;
    Message m = message(proc, nullptr, count, datatype, rank, tag, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good_give(m, ptr, count, rank, tag) || request == nullptr))
        return reject(igive_function, ptr, count, datatype, rank, tag, comm, request);
    m.buffer.base = p2p::get_pointer(ptr);
    if (WEFT_UNLIKELY(!p2p::give_inline(proc, *m.comm, m.buffer, m.envelope)))
        return slow_igive(ptr, count, datatype, rank, tag, comm, request);
    p2p::set_pointer(ptr, nullptr);
    *request = obj::handle_of_new(&proc.sent_request);
    return MPI_SUCCESS;
}

int OPI_Take(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Status* status) {
    obj::Process& proc = *obj::process;
    const Message m = message(proc, ptr, count, datatype, rank, tag, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good_take(m, ptr, count, rank, tag)))
        return reject(take_function, ptr, count, datatype, rank, tag, comm, nullptr);
    if (WEFT_UNLIKELY(!p2p::take_inline(proc, *m.comm, m.buffer, m.envelope, reinterpret_cast<obj::Status*>(status))))
        return slow_take(ptr, count, datatype, rank, tag, comm, status);
    return MPI_SUCCESS;
}

int OPI_Itake(void** ptr, int count, MPI_Datatype datatype, int rank, int tag, MPI_Comm comm, MPI_Request* request) {
    obj::Process& proc = *obj::process;
    const Message m = message(proc, ptr, count, datatype, rank, tag, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good_take(m, ptr, count, rank, tag) || request == nullptr))
        return reject(itake_function, ptr, count, datatype, rank, tag, comm, request);
    obj::Request* made = nullptr;
    const Err e = p2p::itake(proc, *m.comm, m.buffer, m.envelope, &made);
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(itake_function, m.comm, e);
    *request = obj::handle_of_new(made);
    return MPI_SUCCESS;
}

}  // extern "C"
