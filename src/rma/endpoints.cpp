// MPIX_Win_create_endpoints: windows of a communicator of endpoints. Each endpoint is a process of the window, with a part, locks, epochs and
// a communicator of its own; a process may have several. One thread makes the windows of several endpoints at once, so what the endpoints
// tell each other meanwhile is nonblocking.
#include <cstdlib>
#include <cstring>

#include "base/scratch.hpp"
#include "coll/calls.hpp"
#include "comm/comm.hpp"
#include "obj/branches.hpp"
#include "p2p/p2p.hpp"
#include "rma/making.hpp"
#include "rma/messages.hpp"
#include "type/predefined.hpp"

namespace weft::rma {

namespace {

// One endpoint, while its window is made.
struct Making {
    Window* window;
    Offer mine;
    Offer* all;         // of all endpoints
    Request* request;
};

// The endpoints must be different ones of one communicator.
Err check_endpoints(Comm* const* endpoints, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        const Comm& c = *endpoints[i];
        if (!obj::has_endpoints(c)) return fail(Err::comm, "communicator %d of the array is not one of endpoints", i);
        if (c.branches->at[0]->context != endpoints[0]->branches->at[0]->context)
            return fail(Err::comm, "communicator %d of the array is another one than the first", i);
        for (int32_t k = 0; k < i; k++)
            if (endpoints[k]->rank == c.rank) return fail(Err::comm, "communicators %d and %d of the array are the same endpoint", k, i);
    }
    return Err::ok;
}

// Every endpoint learns what all offer.
Err exchange(Process& p, Making* all, int32_t n) {
    Err e = Err::ok;
    int32_t begun = 0;
    for (; begun < n && e == Err::ok; begun++) {
        Making& m = all[begun];
        e = coll::allgather(p, *m.window->comm, type::bytes_at(&m.mine, sizeof m.mine), type::bytes_at(m.all, sizeof m.mine), &m.request);
    }
    if (e != Err::ok) begun--;
    for (int32_t i = 0; i < begun; i++) {
        p2p::wait(p, *all[i].request);
        const Err one = p2p::finish(p, *all[i].request, nullptr);
        if (e == Err::ok) e = one;
    }
    for (int32_t i = 0; i < n && e == Err::ok; i++) e = first_error(all[i].all, all[i].window->size(), all[i].window->comm->rank);
    return e;
}

Err build(Process& p, Making* all, int32_t n, const Wanted* wanted) {
    for (int32_t i = 0; i < n; i++) all[i].mine = offer_of(p, *all[i].window, wanted[i]);
    WEFT_TRY(exchange(p, all, n));
    for (int32_t i = 0; i < n; i++) {
        Window& w = *all[i].window;
        settle(p, w, all[i].all);
        w.lanes = 0;   // endpoints have lanes of their own
        if (!w.mapped) all[i].mine.error = static_cast<int32_t>(open_messages(p, w));
    }
    return all[0].window->mapped ? Err::ok : exchange(p, all, n);
}

// `all` zeroed. What has been made when it fails is in `all`.
Err make(Process& p, Making* all, int32_t n, Comm* const* endpoints, const Wanted* wanted) {
    Scratch<Comm*> own(n);
    if (!own) return fail(Err::no_mem, "no memory for windows of %d endpoints", n);
    WEFT_TRY(comm::dup_endpoints_together(p, endpoints, n, own.get()));
    Err e = Err::ok;
    for (int32_t i = 0; i < n; i++) {
        const Err one = take_window(p, &all[i].window);
        strcpy(own[i]->name, "of a window");
        if (one == Err::ok) all[i].window->comm = own[i];
        else (void)comm::free_comm(p, &own[i]);
        if (e == Err::ok) e = one;
    }
    for (int32_t i = 0; i < n && e == Err::ok; i++) {
        all[i].all = static_cast<Offer*>(calloc(static_cast<size_t>(endpoints[i]->size), sizeof(Offer)));
        if (all[i].all == nullptr) e = fail(Err::no_mem, "no memory for a window of %d endpoints", endpoints[i]->size);
    }
    return e == Err::ok ? build(p, all, n, wanted) : e;
}

}  // namespace

Err create_endpoints(Process& p, const Memory* parts, int64_t disp_unit, Info* info, int32_t n, Comm* const* endpoints, Win** out) {
    if (n == 0) return Err::ok;
    WEFT_TRY(check_endpoints(endpoints, n));
    Scratch<Making> all(n);
    Scratch<Wanted> wanted(n);
    if (!all || !wanted) return fail(Err::no_mem, "no memory for windows of %d endpoints", n);
    for (int32_t i = 0; i < n; i++) {
        all[i] = {};
        wanted[i] = {MPI_WIN_FLAVOR_CREATE, parts[i].base, parts[i].bytes, disp_unit, info};
    }
    const Err e = make(p, all.get(), n, endpoints, wanted.get());
    for (int32_t i = 0; i < n; i++) {
        free(all[i].all);
        if (e == Err::ok) out[i] = announce(*all[i].window);
        else if (all[i].window != nullptr) destroy(p, *all[i].window);
    }
    return e;
}

}  // namespace weft::rma
