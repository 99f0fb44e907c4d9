#include "p2p/calls.hpp"

#include <cstdlib>

#include "obj/handles.hpp"
#include "p2p/flags.hpp"
#include "p2p/persistent.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

namespace {

// The request of an element of a user's array; for MPI_REQUEST_NULL the sentinel.
Request* request_at(Request* handle) { return obj::request_of(reinterpret_cast<MPI_Request>(handle)); }
Request* raw_null() { return reinterpret_cast<Request*>(MPI_REQUEST_NULL); }

bool active(const Request& r) { return r.state.load(std::memory_order_relaxed) != Request::inactive; }

Err take_raw(Process& p, Request** handle, Status* s) {
    Request* r = request_at(*handle);
    const Err e = take(p, &r, s);
    if (r == nullptr) *handle = raw_null();
    return e;
}

// Completes one of several: its error goes to its status as well.
Err take_one_of(Process& p, Request** handle, Status* s) {
    const Err e = take_raw(p, handle, s);
    if (s != nullptr) s->error = static_cast<int32_t>(e);
    return e;
}

Status* at(Status* statuses, int64_t i) { return statuses == nullptr ? nullptr : statuses + i; }

// One pass over the requests without progress: the index of a complete one, -1 where none is, -2 where none is active.
int64_t find_complete(int64_t n, Request* const* handles) {
    bool any = false;
    for (int64_t i = 0; i < n; ++i) {
        Request& r = *request_at(handles[i]);
        if (!active(r)) continue;
        any = true;
        if (r.done() || poll_special(r)) return i;
    }
    return any ? -1 : -2;
}

// Completes every complete request of the array; the number of them, or undefined when none is active.
int take_some(Process& p, int64_t n, Request** handles, int* indices, Status* statuses, bool* failed) {
    int count = 0;
    bool any = false;
    for (int64_t i = 0; i < n; ++i) {
        Request& r = *request_at(handles[i]);
        if (!active(r)) continue;
        any = true;
        if (!r.done() && !poll_special(r)) continue;
        if (take_one_of(p, &handles[i], at(statuses, count)) != Err::ok) *failed = true;
        indices[count++] = static_cast<int>(i);
    }
    return any ? count : obj::undefined;
}

// The status and error of a complete request, which is not freed.
Err peek(Request& r, Status* s) {
    const Err e = outcome(r, s);
    if (e != Err::ok) obj::blame(r.comm);
    return e;
}

// One of several: its error goes to its status as well.
Err peek_one_of(Request& r, Status* s) {
    const Err e = peek(r, s);
    if (s != nullptr) s->error = static_cast<int32_t>(e);
    return e;
}

// Returns a chain of requests of one lane to its pool.
WEFT_INLINE void return_run(Lane& l, Pool::Block* first, Pool::Block* last) {
    LaneGuard g(l);
    last->next = g.lane.requests.free;
    g.lane.requests.free = first;
}

// The same for requests of several lanes: those that follow each other and are of one lane together.
WEFT_COLD void return_blocks(Process& p, Pool::Block* first, const Pool::Block* end) {
    const auto lane = [](const Pool::Block* b) { return reinterpret_cast<const Request*>(b)->lane; };
    for (Pool::Block *last = first, *next; first != nullptr; first = last = next) {
        while (last != end && lane(last->next) == lane(first)) last = last->next;
        next = last != end ? last->next : nullptr;
        return_run(lane_of(p, *reinterpret_cast<Request*>(first)), first, last);
    }
}

}  // namespace

Err test_request(Process& p, Request** r, bool* flag, Status* s) {
    *flag = test(p, **r);
    return *flag ? take(p, r, s) : Err::ok;
}

Err wait_all(Process& p, int64_t n, Request** handles, Status* statuses) {
    bool failed = false;
    Pool::Block* first = nullptr;  // finished receives, returned to the pool together
    Pool::Block* last = nullptr;
    for (int64_t i = 0; i < n; ++i) {
        Request* const r = handles[i];
        if (WEFT_LIKELY(r == &p.sent_request)) {
            handles[i] = raw_null();
            if (statuses != nullptr) statuses[i] = obj::empty_status;
            continue;
        }
        if (WEFT_UNLIKELY(reinterpret_cast<uintptr_t>(r) < obj::first_address)) {  // MPI_REQUEST_NULL
            if (statuses != nullptr) statuses[i] = obj::empty_status;
            continue;
        }
        if (!r->done()) wait(p, *r);
        if (WEFT_LIKELY(r->is_plain_receive())) {
            if (statuses != nullptr) {
                receive_status(*r, &statuses[i]);
                statuses[i].error = 0;
            }
            handles[i] = raw_null();
            r->kind = Kind::dead;
            auto* b = reinterpret_cast<Pool::Block*>(r);
            b->next = first;
            if (first == nullptr) last = b;
            first = b;
            continue;
        }
        if (WEFT_UNLIKELY(take_one_of(p, &handles[i], at(statuses, i)) != Err::ok)) failed = true;
    }
    if (first != nullptr) {
        if (WEFT_UNLIKELY(p.lane_count > 1)) return_blocks(p, first, last);
        else return_run(*p.lane, first, last);
    }
    return failed ? Err::in_status : Err::ok;
}

Err test_all(Process& p, int64_t n, Request** handles, bool* flag, Status* statuses) {
    *flag = false;
    bool progressed = false;
    for (int64_t i = 0; i < n; ++i) {
        Request& r = *request_at(handles[i]);
        if (r.done()) continue;
        if (!progressed) progress_once(p, &lane_of(p, r));
        progressed = true;
        if (!r.done() && !poll_special(r)) return Err::ok;
    }
    *flag = true;
    return wait_all(p, n, handles, statuses);
}

Err wait_any(Process& p, int64_t n, Request** handles, int* index, Status* s) {
    int64_t i = -1;
    progress_until(p, [&] { return (i = find_complete(n, handles)) != -1; });
    if (i == -2) {
        *index = obj::undefined;
        return finish(p, obj::null_request, s);
    }
    *index = static_cast<int>(i);
    return take_raw(p, &handles[i], s);
}

Err test_any(Process& p, int64_t n, Request** handles, int* index, bool* flag, Status* s) {
    int64_t i = find_complete(n, handles);
    if (i == -1) {
        progress_once(p);
        i = find_complete(n, handles);
    }
    *flag = i != -1;
    *index = i < 0 ? obj::undefined : static_cast<int>(i);
    if (i == -2) return finish(p, obj::null_request, s);
    return i < 0 ? Err::ok : take_raw(p, &handles[i], s);
}

Err wait_some(Process& p, int64_t n, Request** handles, int* count, int* indices, Status* statuses) {
    bool failed = false;
    progress_until(p, [&] { return (*count = take_some(p, n, handles, indices, statuses, &failed)) != 0; });
    return failed ? Err::in_status : Err::ok;
}

Err test_some(Process& p, int64_t n, Request** handles, int* count, int* indices, Status* statuses) {
    bool failed = false;
    progress_once(p);
    *count = take_some(p, n, handles, indices, statuses, &failed);
    return failed ? Err::in_status : Err::ok;
}

Err request_free(Process& p, Request** r) {
    free_request(p, **r);
    *r = nullptr;
    return Err::ok;
}

Err request_get_status(Process& p, Request& r, bool* flag, Status* s) {
    *flag = test(p, r);
    return *flag ? peek(r, s) : Err::ok;
}

Err request_get_status_any(Process& p, int64_t n, Request* const* handles, int* index, bool* flag, Status* s) {
    progress_once(p);
    const int64_t i = find_complete(n, handles);
    *flag = i != -1;
    *index = i < 0 ? obj::undefined : static_cast<int>(i);
    if (i == -2 && s != nullptr) *s = obj::empty_status;   // its MPI_ERROR too
    return i < 0 ? Err::ok : peek(*request_at(handles[i]), s);
}

Err request_get_status_all(Process& p, int64_t n, Request* const* handles, bool* flag, Status* statuses) {
    *flag = false;
    progress_once(p);
    for (int64_t i = 0; i < n; ++i)
        if (Request* one[1] = {handles[i]}; find_complete(1, one) == -1) return Err::ok;
    *flag = true;
    bool failed = false;
    for (int64_t i = 0; i < n; ++i)
        if (peek_one_of(*request_at(handles[i]), at(statuses, i)) != Err::ok) failed = true;
    return failed ? Err::in_status : Err::ok;
}

Err request_get_status_some(Process& p, int64_t n, Request* const* handles, int* count, int* indices, Status* statuses) {
    progress_once(p);
    *count = 0;
    bool any = false, failed = false;
    for (int64_t i = 0; i < n; ++i) {
        Request* one[1] = {handles[i]};
        const int64_t found = find_complete(1, one);
        any |= found != -2;
        if (found != 0) continue;
        if (peek_one_of(*request_at(handles[i]), at(statuses, *count)) != Err::ok) failed = true;
        indices[(*count)++] = static_cast<int>(i);
    }
    if (!any) *count = obj::undefined;
    return failed ? Err::in_status : Err::ok;
}

Err cancel(Process& p, Request** handle) {
    Request& r = **handle;
    if (!active(r)) return fail(Err::request, "the request is not active: there is nothing to cancel");
    if (r.flags & Request::special)
        return r.ops->cancel != nullptr ? r.ops->cancel(r)
                                        : fail(Err::request, "a %s cannot be cancelled", r.ops->name);
    LaneGuard g(lane_of(p, r));
    // A send is never cancelled (the standard allows it to complete); a receive that is still posted is.
    if (!(r.flags & Request::is_recv) || r.done() || !unpost(g, r))
        return Err::ok;
    r.flags |= Request::cancelled;
    complete(g, r, 0);
    return Err::ok;
}

Err not_startable(const Request& r) {
    return r.flags & Request::persistent ? fail(Err::request, "the persistent request is active already: complete it first")
                                         : fail(Err::request, "only a persistent request can be started");
}

Err start_all(Process& p, int64_t n, Request** handles) {
    for (int64_t i = 0; i < n; ++i) {
        Request* r = request_at(handles[i]);
        WEFT_TRY(start(p, &r));
    }
    return Err::ok;
}

Err sendrecv(Process& p, Comm& c, Buffer send_buffer, Envelope to, Buffer recv_buffer, Envelope from, Status* s) {
    Request* r = nullptr;
    Request* w = nullptr;
    WEFT_TRY(irecv(p, c, recv_buffer, from, &r));
    Err e = isend(p, c, send_buffer, to, Mode::standard, &w);
    if (e == Err::ok) {
        wait(p, *w);
        e = finish(p, *w, nullptr);
    }
    wait(p, *r);
    const Err received = finish(p, *r, s);
    return e != Err::ok ? e : received;
}

Err sendrecv_replace(Process& p, Comm& c, Buffer b, Envelope to, Envelope from, Status* s) {
    const int64_t bytes = b.bytes();
    char small[512];
    char* copy = bytes <= static_cast<int64_t>(sizeof small) ? small : static_cast<char*>(malloc(static_cast<size_t>(bytes)));
    if (copy == nullptr) return fail(Err::no_mem, "no memory for the %ld bytes to send", static_cast<long>(bytes));
    type::pack(b, 0, bytes, copy);
    const Err e = sendrecv(p, c, type::bytes_at(copy, bytes), to, b, from, s);
    if (copy != small) free(copy);
    return e;
}

}  // namespace weft::p2p
