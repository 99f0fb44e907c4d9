// Two-sided messages: what the bindings and the collectives call. Matching is by (context, source, tag), in order.
// Thread-safe at every level that was asked for: each call takes the lane's guard itself; none runs user code under it.
// Ranks and tags have been checked by the caller (the bindings): tag >= 0 or any_tag, Comm::valid_peer(rank).
#pragma once
#include "base/err.hpp"
#include "obj/comm.hpp"
#include "obj/request.hpp"
#include "obj/status.hpp"
#include "type/type.hpp"

namespace weft::obj { struct Process; struct Message; }

namespace weft::p2p {

using obj::Comm;
using obj::Message;
using obj::Process;
using obj::Request;
using obj::Status;
using type::Buffer;

enum class Mode : uint8_t { standard, synchronous, ready };

// Where a message goes or comes from. `coll` selects the communicator's context.
struct Envelope {
    int32_t rank;
    int32_t tag;
    uint8_t coll = 0;   // 0, Request::coll or Request::nomatch
};

// Blocking. A status pointer may be null (ignored).
Err send(Process&, Comm&, Buffer, Envelope, Mode);
Err recv(Process&, Comm&, Buffer, Envelope, Status*);

// Nonblocking: `*out` is set on success only. The type and the communicator may be freed by the user at once.
Err isend(Process&, Comm&, Buffer, Envelope, Mode, Request** out);
Err irecv(Process&, Comm&, Buffer, Envelope, Request** out);

Err probe(Process&, Comm&, Envelope, Status*);
Err iprobe(Process&, Comm&, Envelope, bool* found, Status*);
// `*out` is MPI_MESSAGE_NO_PROC's object for MPI_PROC_NULL. The receives set `*message` to null.
Err mprobe(Process&, Comm&, Envelope, Message** out, Status*);
Err improbe(Process&, Comm&, Envelope, bool* found, Message** out, Status*);
Err mrecv(Process&, Buffer, Message** message, Status*);
Err imrecv(Process&, Buffer, Message** message, Request** out);

// Waits for `r` to complete. The request is still owned by the caller: take the result and free it by `finish`.
void wait(Process&, Request& r);
// One round of progress, then whether `r` is complete. True for an inactive request.
bool test(Process&, Request& r);
// The error of a complete request, and its status unless null.
Err outcome(Request& r, Status*);
// The same; then frees it (a persistent one becomes inactive).
Err finish(Process&, Request& r, Status*);
// An active request is freed when it completes.
void free_request(Process&, Request& r);
// A new pending request of kind `ops` (see RequestOps); freed by finish(). For collectives, partitioned, combined, generalized ones.
Request* make_special(Process&, Comm*, const obj::RequestOps*, void* ext);
// Marks a special request complete. Any thread.
void complete_special(Process&, Request& r, Err e);

}  // namespace weft::p2p

#include "p2p/recv.hpp"
#include "p2p/send.hpp"
