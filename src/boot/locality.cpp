#include "boot/locality.hpp"

#include "boot/boot.hpp"
#include "os/locality.hpp"

namespace weft::boot {

int32_t node_of(const Job* job, int rank) { return job->localities != nullptr ? job->localities[rank].at[machine] : 0; }

Locality own_locality(const Job* job) {
    if (job != nullptr && job->localities != nullptr) return job->localities[job->rank];
    static_assert(Locality::spread == os::in_several && Locality::absent == os::not_told);
    Locality locality;
    locality.at[package] = os::lowest_of(os::Group::package);
    locality.at[numa_node] = os::lowest_of(os::Group::numa_node);
    locality.at[l3_cache] = os::lowest_of(os::Group::l3_cache);
    locality.at[core] = os::lowest_of(os::Group::core);
    locality.at[hardware_thread] = os::lowest_of(os::Group::thread);
    return locality;
}

}  // namespace weft::boot
