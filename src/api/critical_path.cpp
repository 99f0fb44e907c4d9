// Sends, receives and puts whose callers promise more than the standard asks of them, so that less is left to do: what weft.h declares
// under "the critical path". Each checks its arguments and raises errors as the generated entry points do. The short paths are inlined
// into them; what these leave over is in functions of its own, so that they have no stack frame. No lock.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

#include "api/bindings.hpp"
#include "comm/comm.hpp"
#include "obj/group.hpp"
#include "obj/status.hpp"
#include "p2p/p2p.hpp"
#include "p2p/requestless.hpp"
#include "rma/rma.hpp"
#include "rma/short.hpp"

namespace {

using namespace weft;
using bindings::Arg;
using bindings::ArgKind;
using bindings::Function;
using bindings::Significant;
using bindings::word;
using obj::Process;
using obj::Request;

constexpr Arg arg(const char* name, ArgKind kind) { return {name, kind, Significant::always, -1, -1, -1}; }
constexpr Arg buffer_arg(const char* name, int8_t count) { return {name, ArgKind::buf, Significant::always, -1, count,
                         static_cast<int8_t>(count + 1)}; }

constexpr Arg buf_arg = buffer_arg("buf", 1), count_arg = arg("count", ArgKind::count), datatype_arg = arg("datatype", ArgKind::type),
              tag_arg = arg("tag", ArgKind::tag_send), comm_arg = arg("comm", ArgKind::comm), request_arg = arg("request", ArgKind::request_out),
              world_rank_arg = arg("world_rank", ArgKind::int_), rank_arg = arg("dest", ArgKind::rank), dest_arg = arg("dest", ArgKind::dest),
              fixed_arg = arg("predefined", ArgKind::raw);
const Arg global_args[] = {buf_arg, count_arg, datatype_arg, world_rank_arg, tag_arg, comm_arg, request_arg};
const Arg npn_args[] = {buf_arg, count_arg, datatype_arg, rank_arg, tag_arg, comm_arg, request_arg};
const Arg noreq_args[] = {buf_arg, count_arg, datatype_arg, dest_arg, tag_arg, comm_arg};
const Arg nomatch_args[] = {buf_arg, count_arg, datatype_arg, dest_arg, comm_arg, request_arg};
const Arg receive_args[] = {buf_arg, count_arg, datatype_arg, comm_arg, request_arg};
const Arg all_args[] = {buf_arg, count_arg, datatype_arg, world_rank_arg, arg("predefined", ArgKind::comm)};
const Arg comm_args[] = {comm_arg};
const Arg dup_args[] = {comm_arg, fixed_arg};
const Arg split_args[] = {comm_arg, arg("color", ArgKind::int_), arg("key", ArgKind::int_), fixed_arg};
const Arg put_args[] = {buffer_arg("origin", 1), arg("origin_count", ArgKind::count), arg("origin_datatype", ArgKind::type),
                        arg("target", ArgKind::target), arg("target_address", ArgKind::int_), arg("target_count", ArgKind::count),
                        arg("target_datatype", ArgKind::type), arg("win", ArgKind::win)};

template <uint8_t N> constexpr Function function(const char* name, const Arg (&args)[N], int8_t owner,
    bindings::Errors errors = bindings::Errors::comm) {
    return {name, args, N, errors, owner, false, true};
}
const Function global_function = function("MPIX_Isend_global", global_args, 5), npn_function = function("MPIX_Isend_npn", npn_args, 5);
const Function noreq_function = function("MPIX_Isend_noreq", noreq_args, 5), waitall_function = function("MPIX_Comm_waitall", comm_args, 0);
const Function nomatch_function = function("MPIX_Isend_nomatch", nomatch_args, 4), receive_function = function("MPIX_Irecv_nomatch", receive_args, 3);
const Function all_function = function("MPIX_Isend_all_opts", all_args, 4);
const Function dup_function = function("MPIX_Comm_dup_predefined", dup_args, 0), split_function = function("MPIX_Comm_split_predefined", split_args, 0);
const Function put_function = function("MPIX_Put_virtual_addr", put_args, 7, bindings::Errors::win);

// The arguments of a send or receive, resolved. Passed on by value only, so that they stay in registers.
struct Message {
    obj::Comm* comm;
    type::Buffer buffer;
};
WEFT_INLINE Message message(Process& proc, const void* buf, int count, MPI_Datatype datatype, MPI_Comm comm) {
    return {obj::comm_of(proc, comm), {const_cast<void*>(buf), count, obj::type_of(proc, datatype)}};
}
WEFT_INLINE bool good(const Message& m) {
    return bindings::good<Kind::comm>(m.comm) && bindings::usable(m.buffer.type) && m.buffer.count >= 0 &&
           bindings::good_buffer(m.buffer.base, m.buffer.count, m.buffer.type);
}

// Whether `c` can send to that rank of MPI_COMM_WORLD by that rank's route: not if it has several lanes, or is of endpoints. A member of a
// group that is listed is looked up in checking builds alone: what is none then fails in the slow path, or its message is never received.
// `fixed`: it is one of MPIX_COMM_1 to 4, which have one lane.
WEFT_INLINE bool reaches(const Process& p, const obj::Comm& c, int world_rank, bool fixed = false) {
    if (WEFT_UNLIKELY(static_cast<uint32_t>(world_rank) >= static_cast<uint32_t>(p.world.size))) return world_rank == obj::proc_null;
    const obj::Group& g = c.is_inter() ? *c.remote_group : *c.group;
    const uint32_t peers = fixed ? static_cast<uint32_t>(g.size) : c.direct_peers;
    if (WEFT_LIKELY(g.ranks == nullptr && static_cast<uint32_t>(world_rank - g.first) < peers)) return true;
    return g.ranks != nullptr && c.branches == nullptr && (!WEFT_CHECK_HANDLES || obj::rank_of(g, world_rank) != obj::undefined);
}

Err no_member(const obj::Comm& c, int world_rank) {
    if (c.branches != nullptr) return fail(Err::comm, "the communicator has several lanes, or is of endpoints: ranks of MPI_COMM_WORLD do not tell by which");
    return fail(Err::rank, "rank %d of MPI_COMM_WORLD is no process that the communicator can send to", world_rank);
}

// The rank in `c` of that rank of MPI_COMM_WORLD.
Err translate(const obj::Comm& c, int world_rank, int32_t* rank) {
    *rank = world_rank == obj::proc_null ? world_rank : obj::rank_of(c.is_inter() ? *c.remote_group : *c.group, world_rank);
    return *rank == obj::undefined ? no_member(c, world_rank) : Err::ok;
}

// An argument is wrong: by the rules of all calls, or because of `why`.
template <class Why> WEFT_COLD int reject(const Function& f, const intptr_t* v, const void* owner, Why&& why) {
    return bindings::examine(f, v).error != Err::ok ? bindings::reject(f, v) : bindings::raise(f, owner, why());
}

int made(const Function& f, obj::Comm* comm, Err e, Request* r, MPI_Request* request) {
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(f, comm, e);
    *request = obj::handle_of_new(r);
    return MPI_SUCCESS;
}

int done(const Function& f, obj::Comm* comm, Err e) { return WEFT_LIKELY(e == Err::ok) ? MPI_SUCCESS : bindings::raise(f, comm, e); }

WEFT_COLD int reject_global(const void* buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm, MPI_Request* request) {
    const intptr_t v[] = {word(buf), word(count), word(datatype), word(world_rank), word(tag), word(comm), word(request)};
    const obj::Comm* c = obj::comm_of(*obj::process, comm);
    return reject(global_function, v, c, [=] { return no_member(*c, world_rank); });
}

WEFT_COLD int reject_npn(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
    const intptr_t v[] = {word(buf), word(count), word(datatype), word(dest), word(tag), word(comm), word(request)};
    return bindings::reject(npn_function, v);
}

WEFT_COLD int reject_noreq(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    const intptr_t v[] = {word(buf), word(count), word(datatype), word(dest), word(tag), word(comm)};
    return bindings::reject(noreq_function, v);
}

WEFT_COLD int reject_nomatch(const void* buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request* request) {
    const intptr_t v[] = {word(buf), word(count), word(datatype), word(dest), word(comm), word(request)};
    return bindings::reject(nomatch_function, v);
}

WEFT_COLD int reject_all(const void* buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm comm) {
    const obj::Comm* c = obj::comm_of(*obj::process, comm);
    const intptr_t v[] = {word(buf), word(count), word(datatype), word(world_rank), word(comm)};
    return reject(all_function, v, c, [=] {
        return obj::is_fixed(*obj::process, *c) ? no_member(*c, world_rank) : fail(Err::comm, "the communicator is none of MPIX_COMM_1 to MPIX_COMM_4");
    });
}

WEFT_COLD int reject_put(const void* origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint address, int target_count,
                         MPI_Datatype target_datatype, MPI_Win win) {
    const intptr_t v[] = {word(origin), word(origin_count), word(origin_datatype), word(target), word(address), word(target_count),
                          word(target_datatype), word(win)};
    return bindings::reject(put_function, v);
}

__attribute__((noinline)) int slow_global(const void* buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm,
                                          MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    int32_t rank = 0;
    Request* r = nullptr;
    Err e = translate(*m.comm, world_rank, &rank);
    if (e == Err::ok) e = p2p::isend_slow(proc, *m.comm, m.buffer, {rank, tag}, p2p::Mode::standard, &r);
    return made(global_function, m.comm, e, r, request);
}

__attribute__((noinline)) int slow_npn(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    Request* r = nullptr;
    const Err e = p2p::isend_slow(proc, *m.comm, m.buffer, {dest, tag}, p2p::Mode::standard, &r);
    return made(npn_function, m.comm, e, r, request);
}

__attribute__((noinline)) int slow_noreq(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    return done(noreq_function, m.comm, p2p::send_requestless(proc, *m.comm, m.buffer, {dest, tag}));
}

__attribute__((noinline)) int slow_nomatch(const void* buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    Request* r = nullptr;
    const Err e = p2p::isend_slow(proc, *m.comm, m.buffer, {dest, 0, Request::nomatch}, p2p::Mode::standard, &r);
    return made(nomatch_function, m.comm, e, r, request);
}

__attribute__((noinline)) int slow_all(const void* buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm comm) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    int32_t rank = 0;
    Err e = translate(*m.comm, world_rank, &rank);
    if (e == Err::ok) e = p2p::send_requestless(proc, *m.comm, m.buffer, {rank, 0, Request::nomatch});
    return done(all_function, m.comm, e);
}

__attribute__((noinline)) int slow_put(const void* origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint address,
                                       int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Process& proc = *obj::process;
    obj::Win* const w = obj::win_of(proc, win);
    const type::Buffer from{const_cast<void*>(origin), origin_count, obj::type_of(proc, origin_datatype)};
    const type::Type* const type = obj::type_of(proc, target_datatype);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(bindings::good<Kind::win>(w) && bindings::usable(from.type) && bindings::usable(type) && origin_count >= 0 &&
                                       target_count >= 0 && bindings::good_buffer(origin, origin_count, from.type))))
        return reject_put(origin, origin_count, origin_datatype, target, address, target_count, target_datatype, win);
    const Err e = rma::put_virtual(proc, from, target, address, target_count, *type, *w);
    return WEFT_LIKELY(e == Err::ok) ? MPI_SUCCESS : bindings::raise(put_function, w, e);
}

// Whole calls, apart from their entry points, which are small enough for link-time optimisation to take them into a program.

int fast_global(const void* buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm, MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(good(m) && reaches(proc, *m.comm, world_rank) && tag >= 0 && request != nullptr)))
        return reject_global(buf, count, datatype, world_rank, tag, comm, request);
    if (WEFT_UNLIKELY(!p2p::send_inline(proc, *m.comm, proc.world.routes[world_rank], m.buffer, {world_rank, tag})))
        return slow_global(buf, count, datatype, world_rank, tag, comm, request);
    *request = obj::handle_of_new(&proc.sent_request);
    return MPI_SUCCESS;
}

int fast_npn(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(good(m) && bindings::good_rank(*m.comm, dest) && tag >= 0 && request != nullptr)))
        return reject_npn(buf, count, datatype, dest, tag, comm, request);
    if (WEFT_UNLIKELY(!p2p::send_inline(proc, *m.comm, m.buffer, {dest, tag}))) return slow_npn(buf, count, datatype, dest, tag, comm, request);
    *request = obj::handle_of_new(&proc.sent_request);
    return MPI_SUCCESS;
}

int fast_noreq(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(good(m) && m.comm->valid_peer(dest) && tag >= 0)))
        return reject_noreq(buf, count, datatype, dest, tag, comm);
    if (WEFT_UNLIKELY(!p2p::send_inline(proc, *m.comm, m.buffer, {dest, tag}))) return slow_noreq(buf, count, datatype, dest, tag, comm);
    return MPI_SUCCESS;
}

int fast_nomatch(const void* buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(good(m) && m.comm->valid_peer(dest) && request != nullptr)))
        return reject_nomatch(buf, count, datatype, dest, comm, request);
    if (WEFT_UNLIKELY(!p2p::send_inline(proc, *m.comm, m.buffer, {dest, 0, Request::nomatch})))
        return slow_nomatch(buf, count, datatype, dest, comm, request);
    *request = obj::handle_of_new(&proc.sent_request);
    return MPI_SUCCESS;
}

int fast_all(const void* buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm comm) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(good(m) && obj::is_fixed(proc, *m.comm) && world_rank >= 0 && reaches(proc, *m.comm, world_rank, true))))
        return reject_all(buf, count, datatype, world_rank, comm);
    if (WEFT_UNLIKELY(!p2p::send_made(proc, *m.comm, proc.world.routes[world_rank], m.buffer, world_rank)))
        return slow_all(buf, count, datatype, world_rank, comm);
    return MPI_SUCCESS;
}

int fast_put(const void* origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint target_address, int target_count,
             MPI_Datatype target_datatype, MPI_Win win) {
    Process& proc = *obj::process;
    obj::Win* const w = obj::win_of(proc, win);
    const type::Buffer from{const_cast<void*>(origin), origin_count, obj::type_of(proc, origin_datatype)};
    const type::Type* const type = target_datatype == origin_datatype ? from.type : obj::type_of(proc, target_datatype);
    if (WEFT_UNLIKELY(!rma::put_virtual_inline(proc, from, target, target_address, target_count, *type, *w)))
        return slow_put(origin, origin_count, origin_datatype, target, target_address, target_count, target_datatype, win);
    return MPI_SUCCESS;
}

}  // namespace

extern "C" {

int PMPIX_Isend_global(const void* buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm,
                       MPI_Request* request) {
    return fast_global(buf, count, datatype, world_rank, tag, comm, request);
}

int PMPIX_Isend_npn(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                    MPI_Request* request) {
    return fast_npn(buf, count, datatype, dest, tag, comm, request);
}

int PMPIX_Isend_noreq(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return fast_noreq(buf, count, datatype, dest, tag, comm);
}

int PMPIX_Comm_waitall(MPI_Comm comm) {
    Process& proc = *obj::process;
    obj::Comm* const c = obj::comm_of(proc, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!bindings::good<Kind::comm>(c))) {
        const intptr_t v[] = {word(comm)};
        return bindings::reject(waitall_function, v);
    }
    return done(waitall_function, c, p2p::wait_requestless(proc, *c));
}

int PMPIX_Isend_nomatch(const void* buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request* request) {
    return fast_nomatch(buf, count, datatype, dest, comm, request);
}

int PMPIX_Irecv_nomatch(void* buf, int count, MPI_Datatype datatype, MPI_Comm comm, MPI_Request* request) {
    Process& proc = *obj::process;
    const Message m = message(proc, buf, count, datatype, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(good(m) && request != nullptr))) {
        const intptr_t v[] = {word(buf), word(count), word(datatype), word(comm), word(request)};
        return bindings::reject(receive_function, v);
    }
    Request* r = nullptr;
    const Err e = p2p::irecv_slow(proc, *m.comm, m.buffer, {obj::any_source, 0, Request::nomatch}, &r);
    return made(receive_function, m.comm, e, r, request);
}

int PMPIX_Isend_all_opts(const void* buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm comm) {
    return fast_all(buf, count, datatype, world_rank, comm);
}

int PMPIX_Comm_dup_predefined(MPI_Comm comm, MPI_Comm predefined) {
    Process& proc = *obj::process;
    obj::Comm* const c = obj::comm_of(proc, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!bindings::good<Kind::comm>(c))) {
        const intptr_t v[] = {word(comm), word(predefined)};
        return bindings::reject(dup_function, v);
    }
    return done(dup_function, c, comm::dup_to_fixed(proc, *c, *obj::comm_of(proc, predefined)));
}

int PMPIX_Comm_split_predefined(MPI_Comm comm, int color, int key, MPI_Comm predefined) {
    Process& proc = *obj::process;
    obj::Comm* const c = obj::comm_of(proc, comm);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!bindings::good<Kind::comm>(c))) {
        const intptr_t v[] = {word(comm), word(color), word(key), word(predefined)};
        return bindings::reject(split_function, v);
    }
    return done(split_function, c, comm::split_to_fixed(proc, *c, color, key, *obj::comm_of(proc, predefined)));
}

int PMPIX_Put_virtual_addr(const void* origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint target_address,
                           int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    return fast_put(origin, origin_count, origin_datatype, target, target_address, target_count, target_datatype, win);
}

int MPIX_Isend_global(const void* buf, int count, MPI_Datatype datatype, int world_rank, int tag, MPI_Comm comm, MPI_Request* request)
    __attribute__((weak, alias("PMPIX_Isend_global")));
int MPIX_Isend_npn(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request)
    __attribute__((weak, alias("PMPIX_Isend_npn")));
int MPIX_Isend_noreq(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
    __attribute__((weak, alias("PMPIX_Isend_noreq")));
int MPIX_Comm_waitall(MPI_Comm comm) __attribute__((weak, alias("PMPIX_Comm_waitall")));
int MPIX_Isend_nomatch(const void* buf, int count, MPI_Datatype datatype, int dest, MPI_Comm comm, MPI_Request* request)
    __attribute__((weak, alias("PMPIX_Isend_nomatch")));
int MPIX_Irecv_nomatch(void* buf, int count, MPI_Datatype datatype, MPI_Comm comm, MPI_Request* request)
    __attribute__((weak, alias("PMPIX_Irecv_nomatch")));
int MPIX_Isend_all_opts(const void* buf, int count, MPI_Datatype datatype, int world_rank, MPI_Comm comm)
    __attribute__((weak, alias("PMPIX_Isend_all_opts")));
int MPIX_Comm_dup_predefined(MPI_Comm comm, MPI_Comm predefined) __attribute__((weak, alias("PMPIX_Comm_dup_predefined")));
int MPIX_Comm_split_predefined(MPI_Comm comm, int color, int key, MPI_Comm predefined)
    __attribute__((weak, alias("PMPIX_Comm_split_predefined")));
int MPIX_Put_virtual_addr(const void* origin, int origin_count, MPI_Datatype origin_datatype, int target, MPI_Aint target_address,
                          int target_count, MPI_Datatype target_datatype, MPI_Win win) __attribute__((weak, alias("PMPIX_Put_virtual_addr")));

}  // extern "C"
