// Entry points that weft.h declares and the standard lacks; each has its PMPIX_ name, checks its arguments and raises errors as
// the generated ones do. No lock.
#pragma GCC visibility push(default)
#include <weft.h>
#pragma GCC visibility pop

#include "api/bindings.hpp"
#include "base/scratch.hpp"
#include "calls/comms.hpp"
#include "comm/comm.hpp"
#include "rma/rma.hpp"

namespace {

using namespace weft;

const bindings::Arg node_rank_args[] = {
    {"comm", bindings::ArgKind::comm, bindings::Significant::always, -1, -1, -1},
    {"rank", bindings::ArgKind::dest, bindings::Significant::always, -1, -1, -1},
    {"node_rank", bindings::ArgKind::int_out, bindings::Significant::always, -1, -1, -1},
};
const bindings::Function node_rank_function = {
    "MPIX_Comm_node_rank", node_rank_args, 3, bindings::Errors::comm, 0, false, true};

const bindings::Arg endpoints_args[] = {
    {"parent", bindings::ArgKind::comm, bindings::Significant::always, -1, -1, -1},
    {"num_ep", bindings::ArgKind::nonneg, bindings::Significant::always, -1, -1, -1},
    {"info", bindings::ArgKind::info, bindings::Significant::always, -1, -1, -1},
    {"out_handles", bindings::ArgKind::ints_out, bindings::Significant::always, -1, 1, -1, bindings::Length::argument},
};
const bindings::Function endpoints_function = {
    "MPIX_Comm_create_endpoints", endpoints_args, 4, bindings::Errors::comm, 0, false, true};

const bindings::Arg windows_args[] = {
    {"num_ep", bindings::ArgKind::nonneg, bindings::Significant::always, -1, -1, -1},
    {"bases", bindings::ArgKind::ints, bindings::Significant::always, -1, 0, -1, bindings::Length::argument},
    {"sizes", bindings::ArgKind::ints, bindings::Significant::always, -1, 0, -1, bindings::Length::argument},
    {"disp_unit", bindings::ArgKind::int_, bindings::Significant::always, -1, -1, -1},
    {"info", bindings::ArgKind::info, bindings::Significant::always, -1, -1, -1},
    {"endpoints", bindings::ArgKind::comm_inout, bindings::Significant::always, -1, -1, -1},   // the first is looked at here
    {"wins", bindings::ArgKind::ints_out, bindings::Significant::always, -1, 0, -1, bindings::Length::argument},
};
const bindings::Function windows_function = {
    "MPIX_Win_create_endpoints", windows_args, 7, bindings::Errors::comm, 5, false, true};

// The objects of an array of communicators.
Err find_all(obj::Process& p, const MPI_Comm* handles, int n, obj::Comm** out) {
    for (int i = 0; i < n; i++) {
        out[i] = obj::comm_of(p, handles[i]);
        if (!bindings::good<Kind::comm>(out[i])) return fail(Err::comm, "element %d of the array of endpoints is no communicator (argument 6)", i);
    }
    return Err::ok;
}

Err make_windows(obj::Process& p, int n, void* const* bases, const MPI_Aint* sizes, int disp_unit, obj::Info* info, const MPI_Comm* endpoints,
                 MPI_Win* wins) {
    Scratch<obj::Comm*> comms(n);
    Scratch<rma::Memory> memory(n);
    Scratch<obj::Win*> made(n);
    if (!comms || !memory || !made) return fail(Err::no_mem, "no memory for windows of %d endpoints", n);
    WEFT_TRY(find_all(p, endpoints, n, comms.get()));
    for (int i = 0; i < n; i++) memory[i] = {bases[i], sizes[i]};
    WEFT_TRY(rma::create_endpoints(p, memory.get(), disp_unit, info, n, comms.get(), made.get()));
    for (int i = 0; i < n; i++) wins[i] = obj::handle_of(made[i]);
    return Err::ok;
}

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


int PMPIX_Comm_create_endpoints(MPI_Comm parent, int num_ep, MPI_Info info, MPI_Comm out_handles[]) {
    obj::Process& proc = *obj::process;
    obj::Comm* parent_ = obj::comm_of(proc, parent);
    const bool good = bindings::good<Kind::comm>(parent_) && num_ep >= 0 && bindings::good_or_null(obj::info_of(proc, info)) &&
                      bindings::good_array(out_handles, num_ep);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good)) {
        const intptr_t v[] = {bindings::word(parent), bindings::word(num_ep), bindings::word(info), bindings::word(out_handles)};
        return bindings::reject(endpoints_function, v);
    }
    Scratch<obj::Comm*> made(num_ep);
    Err e = made ? comm::create_endpoints(proc, *parent_, num_ep, made.get()) : fail(Err::no_mem, "no memory for %d endpoints", num_ep);
    if (WEFT_UNLIKELY(e != Err::ok)) return bindings::raise(endpoints_function, parent_, e);
    for (int i = 0; i < num_ep; i++) out_handles[i] = obj::handle_of(made[i]);
    return MPI_SUCCESS;
}
int MPIX_Comm_create_endpoints(MPI_Comm parent, int num_ep, MPI_Info info, MPI_Comm out_handles[])
    __attribute__((weak, alias("PMPIX_Comm_create_endpoints")));

int PMPIX_Win_create_endpoints(int num_ep, void* const bases[], const MPI_Aint sizes[], int disp_unit, MPI_Info info,
                               const MPI_Comm endpoints[], MPI_Win wins[]) {
    obj::Process& proc = *obj::process;
    if (num_ep == 0) return MPI_SUCCESS;
    obj::Comm* first = obj::comm_of(proc, bindings::load(endpoints));
    obj::Info* info_ = obj::info_of(proc, info);
    const bool good = num_ep > 0 && bases != nullptr && sizes != nullptr && wins != nullptr && endpoints != nullptr &&
                      bindings::good<Kind::comm>(first) && bindings::good_or_null(info_);
    if (WEFT_CHECKS && WEFT_UNLIKELY(!good)) {
        const intptr_t v[] = {bindings::word(num_ep), bindings::word(bases), bindings::word(sizes), bindings::word(disp_unit),
                              bindings::word(info), bindings::word(endpoints), bindings::word(wins)};
        return bindings::reject(windows_function, v);
    }
    Err e = make_windows(proc, num_ep, bases, sizes, disp_unit, info_, endpoints, wins);
    return WEFT_LIKELY(e == Err::ok) ? MPI_SUCCESS : bindings::raise(windows_function, first, e);
}
int MPIX_Win_create_endpoints(int num_ep, void* const bases[], const MPI_Aint sizes[], int disp_unit, MPI_Info info,
                              const MPI_Comm endpoints[], MPI_Win wins[])
    __attribute__((weak, alias("PMPIX_Win_create_endpoints")));

}  // extern "C"
