// Launchers that speak PMIx: Open MPI's mpirun, PRRTE, Slurm with --mpi=pmix. libpmix.so.2 is loaded only where
// PMIX_NAMESPACE shows such a launcher. boot/ alone includes this; it holds no lock, and one thread calls it.
// As with PMI, the launcher only names the ranks; rank 0 hands the others the node's segment.
#pragma once
#include "boot/boot.hpp"

namespace weft::boot {

bool under_pmix();
Err attach_pmix(Job* job);
void finalized_pmix();
void abort_pmix(int code, const char* text);

}  // namespace weft::boot
