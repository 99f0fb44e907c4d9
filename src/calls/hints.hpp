// The hints a communicator takes, and what it says of them. For api/. Comm::info holds what the user gave; a hint that is
// not known or has no meaning is ignored, as the standard wants it.
#pragma once
#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/info.hpp"

namespace weft::calls {

using obj::Comm;
using obj::Info;
using obj::Process;

Err comm_set_info(Process&, Comm&, Info* info);
// A new info with every hint that is supported: the user's value, or the standard's default.
Err comm_get_info(Process&, Comm&, Info** out);

}  // namespace weft::calls
