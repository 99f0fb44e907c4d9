// Partitioned communication: a message whose sender's threads mark its partitions ready one by one. Each of the sender's
// partitions travels as one internal message as soon as it is marked; both sides may divide the buffer differently.
// Included by the bindings. No lock is held by callers; Engine::lock (below) guards lists only and is a leaf.
#pragma once
#include <cstdint>

#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/ints.hpp"
#include "obj/process.hpp"
#include "obj/request.hpp"
#include "p2p/p2p.hpp"
#include "type/type.hpp"

namespace weft::obj { struct Info; }

namespace weft::part {

using obj::Comm;
using obj::Process;
using obj::Request;
using type::Buffer;

// `each`: the first partition's buffer, its count that of one partition. Local: nothing waits for the other side.
Err psend_init(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
Err precv_init(Process&, Comm&, Buffer each, int partitions, p2p::Envelope, obj::Info*, Request** out);
// Any thread, on different partitions at once.
Err pready(Process&, int partition, Request&);
Err pready_range(Process&, int low, int high, Request&);
Err pready_list(Process&, int n, const int* partitions, Request&);
Err parrived(Process&, Request&, int partition, bool* flag);

}  // namespace weft::part
