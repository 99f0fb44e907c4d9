// A send and a receive in one request: a special request over the two plain ones.
#include "p2p/combined.hpp"

#include <cstdlib>

#include "p2p/calls.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

namespace {

// A send and a receive of one request.
struct Pair {
    Request *send, *recv;   // null once finished
    char* copy;             // of the data to send, whose buffer the receive replaces
    Status status;
    Err error;
};

Pair& pair_of(Request& r) { return *static_cast<Pair*>(r.ext); }

bool poll_pair(Request& r) {
    Pair& x = pair_of(r);
    return (x.send == nullptr || x.send->done()) && (x.recv == nullptr || x.recv->done());
}

Err finish_pair(Request& r, Status& s) {
    Process& p = *obj::process;
    Pair& x = pair_of(r);
    if (x.send != nullptr) x.error = finish(p, *x.send, nullptr);
    if (x.recv != nullptr) {
        x.status = obj::empty_status;
        Err e = finish(p, *x.recv, &x.status);
        if (x.error == Err::ok) x.error = e;
    }
    x.send = x.recv = nullptr;
    s = x.status;
    return x.error;
}

void free_pair(Request& r) {
    Pair& x = pair_of(r);
    if (x.send != nullptr) {
        // MPI_Request_free on an active request: the copy must stay until the send is complete.
        if (x.copy == nullptr) free_request(*obj::process, *x.send);
        else keep_until_sent(*obj::process, x.send, x.copy);
        x.copy = nullptr;
    }
    if (x.recv != nullptr) free_request(*obj::process, *x.recv);
    free(x.copy);
    free(&x);
}

constexpr obj::RequestOps pair_ops{
    "nonblocking send-receive", nullptr, poll_pair, finish_pair, nullptr, free_pair, true};

// Owns `copy` from here on, on failure too.
Err start_pair(Process& p, Comm& c, Buffer send, Envelope to, Buffer recv, Envelope from, char* copy, Request** out) {
    auto* x = static_cast<Pair*>(malloc(sizeof(Pair)));
    Request* r = x != nullptr ? make_special(p, &c, &pair_ops, x) : nullptr;
    if (r == nullptr) {
        free(x);
        free(copy);
        return fail(Err::no_mem, "no memory for a request");
    }
    *x = {nullptr, nullptr, copy, obj::empty_status, Err::ok};
    Err e = irecv(p, c, recv, from, &x->recv);
    if (e == Err::ok) e = isend(p, c, send, to, Mode::standard, &x->send);
    if (e == Err::ok) {
        *out = r;
        return Err::ok;
    }
    if (x->recv != nullptr) {
        Request* posted = x->recv;
        (void)cancel(p, &posted);
    }
    free_request(p, *r);
    return e;
}

}  // namespace

Err isendrecv(Process& p, Comm& c, Buffer send, Envelope to, Buffer recv, Envelope from, Request** out) {
    return start_pair(p, c, send, to, recv, from, nullptr, out);
}

Err isendrecv_replace(Process& p, Comm& c, Buffer b, Envelope to, Envelope from, Request** out) {
    const int64_t bytes = b.bytes();
    auto* copy = static_cast<char*>(malloc(static_cast<size_t>(bytes) + 1));
    if (copy == nullptr) return fail(Err::no_mem, "no memory for the %ld bytes to send", static_cast<long>(bytes));
    type::pack(b, 0, bytes, copy);
    return start_pair(p, c, type::bytes_at(copy, bytes), to, b, from, copy, out);
}

}  // namespace weft::p2p
