// Launchers that speak the PMI-1 wire protocol over an inherited descriptor: Hydra, Slurm's pmi2 plugin, Flux.
// boot/ alone includes this; it holds no lock, and one thread attaches, finalises or aborts.
// The launcher only names the ranks; rank 0 then hands the others the node's segment over a local socket of its own.
#pragma once
#include "boot/boot.hpp"

namespace weft::boot {

// The descriptor of PMI_FD when it is alive, else -1.
int pmi_descriptor();
// PMI_FD is dead here because a rank keeps it: the rank's pid. This process is its child, and no rank. Else 0.
int pmi_parent();
Err attach_pmi(Job* job, int fd);
void finalized_pmi(Job* job);
void abort_pmi(Job* job, int code, const char* text);

}  // namespace weft::boot
