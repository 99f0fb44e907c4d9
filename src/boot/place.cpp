#include "boot/place.hpp"

#include "boot/boot.hpp"
#include "os/place.hpp"

namespace weft::boot {

int32_t node_of(const Job* job, int rank) { return job->places != nullptr ? job->places[rank].at[machine] : 0; }

Place own_place(const Job* job) {
    if (job != nullptr && job->places != nullptr) return job->places[job->rank];
    static_assert(Place::spread == os::in_several && Place::absent == os::not_told);
    Place place;
    place.at[package] = os::lowest_of(os::Group::package);
    place.at[numa_node] = os::lowest_of(os::Group::numa_node);
    place.at[l3_cache] = os::lowest_of(os::Group::l3_cache);
    place.at[core] = os::lowest_of(os::Group::core);
    place.at[hardware_thread] = os::lowest_of(os::Group::thread);
    return place;
}

}  // namespace weft::boot
