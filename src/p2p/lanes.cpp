#include "p2p/lanes.hpp"

#include "obj/request.hpp"
#include "obj/status.hpp"

namespace weft::p2p {

Err find_receiver(obj::Comm& front, int32_t rank, int32_t tag, uint8_t context, obj::Comm** out) {
    const obj::Branches& b = *front.branches;
    if (context == 0 && rank != obj::proc_null) {
        if (b.by == obj::By::tag && tag == obj::any_tag)
            return fail(Err::tag, "MPI_ANY_TAG on a communicator made with mpi_assert_no_any_tag, whose tags choose among %d lanes", b.count);
        if (b.by == obj::By::source && rank == obj::any_source)
            return fail(Err::rank, "MPI_ANY_SOURCE on a communicator made with mpi_assert_no_any_source, whose ranks choose among %d lanes", b.count);
    }
    *out = &obj::receiving_branch(b, rank, tag, context != 0);
    return Err::ok;
}

}  // namespace weft::p2p
