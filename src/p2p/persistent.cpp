// Persistent requests, and a send and a receive in one: special requests that hold the plain ones of the moment.
#include <cstdlib>
#include <cstring>

#include "p2p/calls.hpp"
#include "p2p/combined.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

namespace {

constexpr int packed_id = 0x207;   // MPI_PACKED

enum class What : uint8_t { send, bsend, recv };

// What is started again and again.
struct Template {
    What what;
    Mode mode;
    Comm* comm;
    Buffer buffer;
    Envelope envelope;
    Request* inner;     // of the activation under way; null once its result is in `status`
    Status status;
    Err error;
};

Template& template_of(Request& r) { return *static_cast<Template*>(r.ext); }

Err start_template(Request& r) {
    Process& p = *obj::process;
    Template& t = template_of(r);
    Request* inner = nullptr;
    switch (t.what) {
    case What::send: WEFT_TRY(isend(p, *t.comm, t.buffer, t.envelope, t.mode, &inner)); break;
    case What::bsend: WEFT_TRY(ibsend(p, *t.comm, t.buffer, t.envelope, &inner)); break;
    case What::recv: WEFT_TRY(irecv(p, *t.comm, t.buffer, t.envelope, &inner)); break;
    }
    t.inner = inner;
    r.state.store(Request::pending, std::memory_order_relaxed);
    return Err::ok;
}

bool poll_template(Request& r) { return template_of(r).inner == nullptr || template_of(r).inner->done(); }

// May be asked for the status several times; the plain request gives it once.
Err finish_template(Request& r, Status& s) {
    Template& t = template_of(r);
    if (t.inner != nullptr) {
        t.status = obj::empty_status;
        t.error = finish(*obj::process, *t.inner, &t.status);
        t.inner = nullptr;
    }
    s = t.status;
    return t.error;
}

Err cancel_template(Request& r) {
    Request* inner = template_of(r).inner;
    // A send that was done at once has nothing left to cancel.
    return inner == nullptr || inner->done() ? Err::ok : cancel(*obj::process, &inner);
}

void free_template(Request& r) {
    Template& t = template_of(r);
    if (t.inner != nullptr) free_request(*obj::process, *t.inner);
    type::release(*t.buffer.type);
    free(&t);
}

constexpr obj::RequestOps template_ops{
    "persistent request", start_template, poll_template, finish_template, cancel_template, free_template, true};

Err make_template(Process& p, Comm& c, Buffer b, Envelope e, What what, Mode mode, Request** out) {
    auto* t = static_cast<Template*>(malloc(sizeof(Template)));
    if (t == nullptr) return fail(Err::no_mem, "no memory for a persistent request");
    *t = {what, mode, &c, b, e, nullptr, obj::empty_status, Err::ok};
    Request* r = make_special(p, &c, &template_ops, t);
    if (r == nullptr) {
        free(t);
        return fail(Err::no_mem, "no memory for a request");
    }
    type::retain(*b.type);
    r->flags |= Request::persistent;
    r->state.store(Request::inactive, std::memory_order_relaxed);
    *out = r;
    return Err::ok;
}

// A send and a receive of one request.
struct Pair {
    Request *send, *recv;   // null once finished
    char* copy;             // of what is sent while it is being replaced
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
        // MPI_Request_free while it is active: the copy must stay until it has been sent.
        if (x.copy != nullptr) wait(*obj::process, *x.send);
        free_request(*obj::process, *x.send);
    }
    if (x.recv != nullptr) free_request(*obj::process, *x.recv);
    free(x.copy);
    free(&x);
}

constexpr obj::RequestOps pair_ops{
    "nonblocking send-receive", nullptr, poll_pair, finish_pair, nullptr, free_pair, true};

// Takes over `copy`, on failure too.
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

Err send_init(Process& p, Comm& c, Buffer b, Envelope e, Mode m, Request** out) {
    return make_template(p, c, b, e, What::send, m, out);
}
Err bsend_init(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    return make_template(p, c, b, e, What::bsend, Mode::standard, out);
}
Err recv_init(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    return make_template(p, c, b, e, What::recv, Mode::standard, out);
}

Err isendrecv(Process& p, Comm& c, Buffer send, Envelope to, Buffer recv, Envelope from, Request** out) {
    return start_pair(p, c, send, to, recv, from, nullptr, out);
}

Err isendrecv_replace(Process& p, Comm& c, Buffer b, Envelope to, Envelope from, Request** out) {
    const int64_t bytes = b.bytes();
    auto* copy = static_cast<char*>(malloc(static_cast<size_t>(bytes) + 1));
    if (copy == nullptr) return fail(Err::no_mem, "no memory for the %ld bytes to send", static_cast<long>(bytes));
    type::pack(b, 0, bytes, copy);
    return start_pair(p, c, Buffer{copy, bytes, type::predefined_at(packed_id)}, to, b, from, copy, out);
}

}  // namespace weft::p2p
