// Launchers other than Weft's mpiexec: what in the environment proves one, and what it means here.
// boot/ alone includes this; it holds no lock.
// Evidence is firm only where a single process could not carry it: a live descriptor, a namespace, a step of several tasks.
#pragma once
#include "base/err.hpp"

namespace weft::boot {

// ok: this process is alone. Otherwise the text explains why it must not run as one of N silent singletons.
Err refuse_foreign();

}  // namespace weft::boot
