#include <cstring>

#include "p2p/flags.hpp"
#include "p2p/p2p.hpp"

namespace weft::p2p {

Request* make_request(LaneGuard& g, obj::Comm& c, Buffer b, int32_t rank, int32_t tag, uint16_t flags) {
    auto* r = static_cast<Request*>(g.lane.requests.take());
    if (WEFT_UNLIKELY(r == nullptr)) return nullptr;
    static_cast<Object&>(*r) = g.lane.request_head;
    prepare(*r, c, b, rank, tag, flags);
    if (WEFT_UNLIKELY(!r->type->is(type::Type::predefined))) {
        type::retain(*r->type);
        r->flags |= Request::counted;
    }
    if (WEFT_UNLIKELY(!obj::is_predefined(c))) {
        obj::retain(c, g.lane.threads);
        r->flags |= Request::holds_comm;
    }
    return r;
}

void free_request_block(LaneGuard& g, Request& r) {
    if (r.flags & Request::holds_comm) obj::release(*r.comm, g.lane.threads);
    r.kind = Kind::dead;
    g.lane.requests.give(&r);
}

// Who completes `r`, for ranks that share CPUs (lane::Rest).
static int partner_of(Lane& l, const Request& r) {
    if (!l.limits.shared_cpus || is_special(r)) return lane::Rest::nobody;
    LaneGuard g(l);   // another thread may complete it
    if (r.done() || r.comm == nullptr) return lane::Rest::nobody;
    const obj::Route& route = r.comm->routes[r.rank];   // MPI_ANY_SOURCE has a sentinel there
    return route.way == obj::Route::shm ? route.index : lane::Rest::nobody;
}

void wait(Process& p, Request& r) {
    const bool special = is_special(r);
    if (special && r.ops->wait != nullptr) return r.ops->wait(r);
    // What completes a special request may come by any lane.
    Lane& l = lane_of(p, r);
    progress_until(p, [&] { return r.done() || poll_special(r); }, &r, Home{&l, !special, partner_of(l, r)});
}

bool test(Process& p, Request& r) {
    if (r.done()) return true;
    progress_once(p, &lane_of(p, r));
    return r.done() || poll_special(r);
}

Err why_failed(const Request& r, int64_t bytes) {
    const auto err = static_cast<Err>(r.error);
    const bool receive = (r.flags & Request::is_recv) != 0;
    const char* const other = receive ? "from" : "to";
    switch (err) {
    case Err::truncate:
        return fail(err, "message from rank %d with tag %d is larger than the %ld bytes of the receive", r.rank, r.tag, static_cast<long>(bytes));
    case Err::buffer:
        return fail(err, "the buffer of a message %s rank %d with tag %d cannot be %s", other, r.rank, r.tag, receive ? "written" : "read");
    case Err::other:
        return fail(err, "the data of a message %s rank %d with tag %d could not be copied: the sender's buffer cannot be read", other, r.rank, r.tag);
    case Err::no_mem: return fail(err, "no memory for a message of %ld bytes to this rank itself", static_cast<long>(bytes));
    default: return err;
    }
}

Err outcome(Request& r, Status* s) {
    Err err = Err::ok;
    Status result = obj::empty_status;
    if (!(r.flags & Request::shared) && r.state.load(std::memory_order_relaxed) != Request::inactive) {
        err = static_cast<Err>(r.error);
        if (r.flags & Request::special) {
            result.error = r.error;
            if (r.ops->finish != nullptr) err = r.ops->finish(r, result);
        } else {
            if ((r.flags & (Request::is_recv | Request::cancelled)) == Request::is_recv) fill(&result, r.rank, r.tag, r.count);
            if (WEFT_UNLIKELY(err != Err::ok)) (void)why_failed(r, r.count);
        }
        if (r.flags & Request::cancelled) result.cancelled = 1;
    }
    if (s != nullptr) {
        result.error = s->error;
        *s = result;
    }
    return err;
}

Err finish(Process& p, Request& r, Status* s) {
    const bool idle = (r.flags & Request::shared) || r.state.load(std::memory_order_relaxed) == Request::inactive;
    Err err = outcome(r, s);
    if (idle) return err;
    if (r.flags & Request::persistent) {
        r.error = 0;
        r.flags &= static_cast<uint16_t>(~Request::cancelled);
        r.state.store(Request::inactive, std::memory_order_relaxed);
        return err;
    }
    if (r.flags & Request::special && r.ops->free != nullptr) r.ops->free(r);
    if (r.flags & Request::generalized && err == Err::ok) err = Err{r.rank_};
    LaneGuard g(lane_of(p, r));
    free_request_block(g, r);
    return err;
}

void free_request(Process& p, Request& r) {
    if (r.flags & Request::shared) return;
    {
        LaneGuard g(lane_of(p, r));
        // Under the guard: complete() looks at `orphan` under it too.
        const bool lets_go = r.flags & Request::special && r.ops->free_active;
        if (!r.done() && !lets_go) {
            r.flags |= Request::orphan;
            return;
        }
    }
    if (r.flags & Request::persistent && !(r.flags & Request::special)) {
        LaneGuard g(lane_of(p, r));
        free_persistent(g, r);
        return;
    }
    r.flags &= static_cast<uint16_t>(~Request::persistent);
    if (r.flags & Request::special && r.ops->free != nullptr) r.ops->free(r);
    LaneGuard g(lane_of(p, r));
    free_request_block(g, r);
}

Request* make_special(Process& p, Comm* c, const obj::RequestOps* ops, void* ext) {
    LaneGuard g(c != nullptr ? *c->lane : *p.lane);
    auto* r = static_cast<Request*>(g.lane.requests.take());
    if (r == nullptr) {
        (void)fail(Err::no_mem, "no memory for a request");
        return nullptr;
    }
    memset(static_cast<void*>(r), 0, sizeof *r);
    static_cast<Object&>(*r) = g.lane.request_head;
    r->flags = Request::special;
    r->comm = c;
    r->ops = ops;
    r->ext = ext;
    if (c != nullptr && !obj::is_predefined(*c)) {
        obj::retain(*c);
        r->flags |= Request::holds_comm;
    }
    return r;
}

void complete_special(Process& p, Request& r, Err e) {
    Lane& lane = lane_of(p, r);  // asked now: once complete, the request is its owner's, who may free it
    bool orphan;
    {
        LaneGuard g(lane);
        r.error = static_cast<uint8_t>(e);
        orphan = (r.flags & Request::orphan) != 0;
        if (!orphan) r.state.store(Request::complete, std::memory_order_release);  // pairs with Request::done()
    }
    if (!orphan) {
        lane::wake_sleepers(lane);
        return;
    }
    if (r.ops->free != nullptr) r.ops->free(r);
    LaneGuard g(lane);
    free_request_block(g, r);
}

}  // namespace weft::p2p
