// Entry points that weft.h declares and the standard lacks; each has its PMPIX_ name, checks its arguments and raises errors as
// the generated ones do. No lock.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

#include "api/bindings.hpp"
#include "calls/comms.hpp"

namespace {

using namespace weft;

const bindings::Arg node_rank_args[] = {
    {"comm", bindings::ArgKind::comm, bindings::Significant::always, -1, -1, -1},
    {"rank", bindings::ArgKind::dest, bindings::Significant::always, -1, -1, -1},
    {"node_rank", bindings::ArgKind::int_out, bindings::Significant::always, -1, -1, -1},
};
const bindings::Function node_rank_function = {
    "MPIX_Comm_node_rank", node_rank_args, 3, bindings::Errors::comm, 0, false, true};

}  // namespace

extern "C" {

int PMPIX_Comm_node_rank(MPI_Comm comm, int rank, int* node_rank) {
    obj::Process& proc = *obj::process;
    obj::Comm* comm_ = obj::comm_of(proc, comm);
    const bool good = bindings::good<Kind::comm>(comm_) && comm_->valid_peer(rank) && (rank >= 0 || rank == MPI_PROC_NULL) &&
                      node_rank != nullptr;
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good)) {
        const intptr_t v[] = {bindings::word(comm), bindings::word(rank), bindings::word(node_rank)};
        return bindings::reject(node_rank_function, v);
    }
    Err e = calls::comm_node_rank(proc, *comm_, rank, node_rank);
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(node_rank_function, comm_, e);
    return MPI_SUCCESS;
}
int MPIX_Comm_node_rank(MPI_Comm comm, int rank, int* node_rank) __attribute__((weak, alias("PMPIX_Comm_node_rank")));

}  // extern "C"
