// Two-sided calls that are built on others: persistent sends and receives, a send and a receive in one request, buffered sends,
// generalized requests. Included by the bindings, comm/ and p2p/. No lock is held by callers; the list of buffered messages has a leaf
// lock of its own.
#pragma once
#include <mpi.h>

#include "obj/handles.hpp"
#include "p2p/p2p.hpp"

namespace weft::p2p {

// Inactive until started.
Err send_init(Process&, Comm&, Buffer, Envelope, Mode, Request** out);
Err bsend_init(Process&, Comm&, Buffer, Envelope, Request** out);
Err recv_init(Process&, Comm&, Buffer, Envelope, Request** out);

Err isendrecv(Process&, Comm&, Buffer send, Envelope to, Buffer recv, Envelope from, Request** out);
Err isendrecv_replace(Process&, Comm&, Buffer, Envelope to, Envelope from, Request** out);

// Not inlined, even with link-time optimisation: in MPI_Start() it would cost the other kinds of requests registers.
[[gnu::noinline]] Err bsend(Process&, Comm&, Buffer, Envelope);
Err ibsend(Process&, Comm&, Buffer, Envelope, Request** out);

// The owner of an attached buffer: a communicator, a session, or (null) the process.
struct BufferOwner {
    const void* object = nullptr;
    uint32_t context = 0;       // distinguishes a communicator from a later one at the same address
    BufferOwner() = default;
    explicit BufferOwner(const Comm& c) : object(&c), context(c.context) {}
    explicit BufferOwner(const obj::Session& s) : object(&s) {}
    bool operator==(const BufferOwner& o) const { return object == o.object && context == o.context; }
};
Err buffer_attach(Process&, BufferOwner, void* buffer, int64_t size);
// Waits until all messages of the buffer have been sent. `address` points to the user's pointer; null and 0 if no buffer is attached.
// `large`: the caller accepts a size beyond int; otherwise such a buffer stays attached, and the call fails.
Err buffer_detach(Process&, BufferOwner, void* address, int64_t* size, bool large);
Err buffer_flush(Process&, BufferOwner);
Err buffer_iflush(Process&, BufferOwner, Request** out);
// At the end of a communicator or session: waits until all messages have been sent, and detaches.
void close_buffer(Process&, BufferOwner);
// Frees `memory`, from which an abandoned send still reads, and the request, once the send is complete.
void keep_until_sent(Process&, Request* send, void* memory);
// MPI_Finalize: waits until all messages have been sent, and detaches all buffers.
void close_buffers(Process&);

Err grequest_start(Process&, MPI_Grequest_query_function* query, MPI_Grequest_free_function* free,
                   MPI_Grequest_cancel_function* cancel, void* extra, Request** out);
Err grequest_complete(Process&, Request&);

}  // namespace weft::p2p
