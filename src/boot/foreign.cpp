#include "boot/foreign.hpp"

#include "os/env.hpp"
#include "os/process.hpp"

namespace weft::boot {

static Err refuse(const char* evidence, const char* remedy) {
    return fail(Err::other, "started by another launcher (%s) that Weft cannot talk to; %s", evidence, remedy);
}

Err refuse_foreign() {
    // SLURM_NTASKS alone is an allocation, where serial programs must run; a step of several tasks is a launch.
    if (os::env_int("SLURM_STEP_NUM_TASKS", 0) > 1)
        return refuse("SLURM_STEP_NUM_TASKS is above 1", "use srun --mpi=pmi2, srun --mpi=pmix, or Weft's mpiexec");
    if (os::env_int("OMPI_COMM_WORLD_SIZE", 0) > 1)
        return refuse("OMPI_COMM_WORLD_SIZE is above 1", "this is Open MPI's mpirun: use Weft's mpiexec");
    if (os::env("PMI_RANK") && os::env_int("PMI_SIZE", 0) > 1)
        return refuse("PMI_SIZE is above 1", "use Weft's mpiexec");
    return Err::ok;
}

}  // namespace weft::boot
