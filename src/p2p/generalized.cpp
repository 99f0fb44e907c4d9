// Generalized requests: the user completes them (MPI_Grequest_complete), and callbacks give their status.
#include <cstdlib>

#include "p2p/combined.hpp"

namespace weft::p2p {

namespace {

struct Generalized {
    MPI_Grequest_query_function* query;
    MPI_Grequest_free_function* free;
    MPI_Grequest_cancel_function* cancel;
    void* extra;
};

Generalized& of(Request& r) { return *static_cast<Generalized*>(r.ext); }

Err said(int code, const char* which) {
    if (code == MPI_SUCCESS) return Err::ok;
    return fail(Err{code}, "the %s function of a generalized request returned %d", which, code);
}

Err finish_generalized(Request& r, Status& s) {
    Generalized& g = of(r);
    return said(g.query(g.extra, reinterpret_cast<MPI_Status*>(&s)), "query");
}

Err cancel_generalized(Request& r) {
    Generalized& g = of(r);
    return said(g.cancel(g.extra, r.done()), "cancel");
}

void free_generalized(Request& r) {
    Generalized g = of(r);
    free(r.ext);
    // finish() reads this: an error of the user's function is the result, unless an earlier one is.
    r.rank_ = static_cast<int32_t>(said(g.free(g.extra), "free"));
}

constexpr obj::RequestOps generalized_ops{
    "generalized request", nullptr, nullptr, finish_generalized, cancel_generalized, free_generalized, false};

}  // namespace

Err grequest_start(Process& p, MPI_Grequest_query_function* query, MPI_Grequest_free_function* free_fn,
                   MPI_Grequest_cancel_function* cancel, void* extra, Request** out) {
    if (query == nullptr || free_fn == nullptr || cancel == nullptr)
        return fail(Err::arg, "a callback is a null pointer");
    auto* g = static_cast<Generalized*>(malloc(sizeof(Generalized)));
    if (g == nullptr) return fail(Err::no_mem, "no memory for a generalized request");
    *g = {query, free_fn, cancel, extra};
    Request* r = make_special(p, nullptr, &generalized_ops, g);
    if (r == nullptr) {
        free(g);
        return fail(Err::no_mem, "no memory for a request");
    }
    r->flags |= Request::generalized;
    *out = r;
    return Err::ok;
}

Err grequest_complete(Process& p, Request& r) {
    if (!(r.flags & Request::generalized))
        return fail(Err::request, "the request is no generalized one (argument 1, request)");
    if (r.done()) return fail(Err::request, "the generalized request is complete already");
    complete_special(p, r, Err::ok);
    return Err::ok;
}

}  // namespace weft::p2p
