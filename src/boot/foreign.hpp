// Launchers that Weft cannot talk to: what in the environment proves one, and what it means here.
// boot/ alone includes this; it holds no lock.
// Evidence is firm only where a single process could not carry it: a step or a world of several tasks.
#pragma once
#include "base/err.hpp"

namespace weft::boot {

// ok: this process is alone. Otherwise the text explains why it must not run as one of N silent singletons.
Err refuse_foreign();

}  // namespace weft::boot
