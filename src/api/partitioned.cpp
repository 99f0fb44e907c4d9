// Partitioned collectives, which weft.h declares and the standard lacks: each checks its arguments and raises errors as the generated
// entry points do. No lock.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

#include "api/bindings.hpp"
#include "coll/coll.hpp"
#include "part/part.hpp"

namespace {

using namespace weft;
using bindings::Arg;
using bindings::ArgKind;
using bindings::Function;
using bindings::Significant;
using bindings::word;

constexpr Arg arg(const char* name, ArgKind kind) { return {name, kind, Significant::always, -1, -1, -1}; }
constexpr Arg buffer_arg(const char* name, int8_t count) {
    return {name, ArgKind::buf_coll, Significant::always, -1, count, static_cast<int8_t>(count + 1)};
}

const Arg bcast_args[] = {buffer_arg("buffer", 2), arg("partitions", ArgKind::nonneg), arg("count", ArgKind::count),
                          arg("datatype", ArgKind::type), arg("root", ArgKind::root), arg("comm", ArgKind::comm),
                          arg("info", ArgKind::info), arg("request", ArgKind::request_out)};
const Arg allreduce_args[] = {buffer_arg("sendbuf", 3), buffer_arg("recvbuf", 3), arg("partitions", ArgKind::nonneg),
                              arg("count", ArgKind::count), arg("datatype", ArgKind::type), arg("op", ArgKind::op),
                              arg("comm", ArgKind::comm), arg("info", ArgKind::info), arg("request", ArgKind::request_out)};
const Function bcast_function = {"MPIX_Pbcast_init", bcast_args, 8, bindings::Errors::comm, 5, false, true};
const Function allreduce_function = {"MPIX_Pallreduce_init", allreduce_args, 9, bindings::Errors::comm, 6, false, true};

// What both have.
struct Call {
    obj::Comm* comm;
    obj::Info* info;
    type::Buffer each;
    int partitions;

    bool good(const MPI_Request* request) const {
        return bindings::good<Kind::comm>(comm) && bindings::good_or_null(info) && bindings::usable(each.type) && each.count >= 0 &&
               partitions >= 0 && bindings::good_coll_buffer(each.base, each.count, each.type, *comm) && request != nullptr;
    }
};

Call call(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, MPI_Comm comm, MPI_Info info) {
    obj::Process& proc = *obj::process;
    return {obj::comm_of(proc, comm), obj::info_of(proc, info), {buf, count, obj::type_of(proc, datatype)}, partitions};
}

int made(const Function& f, const Call& c, Err e, obj::Request* r, MPI_Request* request) {
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(f, c.comm, e);
    *request = obj::handle_of_new(r);
    return MPI_SUCCESS;
}

}  // namespace

extern "C" {

int PMPIX_Pbcast_init(void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                      MPI_Request* request) {
    const Call c = call(buffer, partitions, count, datatype, comm, info);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(c.good(request) && root >= 0 && root < c.comm->size && !c.comm->is_inter()))) {
        const intptr_t v[] = {word(buffer), word(partitions), word(count), word(datatype), word(root), word(comm), word(info), word(request)};
        if (bindings::examine(bcast_function, v).error != Err::ok) return bindings::reject(bcast_function, v);
    }
    obj::Request* r = nullptr;
    const Err e = part::pbcast_init(*obj::process, *c.comm, c.each, partitions, root, c.info, &r);
    return made(bcast_function, c, e, r, request);
}
int MPIX_Pbcast_init(void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
                     MPI_Request* request) __attribute__((weak, alias("PMPIX_Pbcast_init")));

int PMPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    const Call c = call(recvbuf, partitions, count, datatype, comm, info);
    const op::Op* o = obj::op_of(*obj::process, op);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!(c.good(request) && bindings::good<Kind::op>(o) && !c.comm->is_inter() &&
                                       bindings::good_coll_buffer(sendbuf, count, c.each.type, *c.comm)))) {
        const intptr_t v[] = {word(sendbuf), word(recvbuf), word(partitions), word(count), word(datatype), word(op), word(comm), word(info),
                              word(request)};
        if (bindings::examine(allreduce_function, v).error != Err::ok) return bindings::reject(allreduce_function, v);
    }
    obj::Request* r = nullptr;
    const Err e = part::pallreduce_init(*obj::process, *c.comm, sendbuf, c.each, partitions, *o, c.info, &r);
    return made(allreduce_function, c, e, r, request);
}
int MPIX_Pallreduce_init(const void* sendbuf, void* recvbuf, int partitions, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm, MPI_Info info, MPI_Request* request) __attribute__((weak, alias("PMPIX_Pallreduce_init")));

}  // extern "C"
