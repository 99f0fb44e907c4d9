#include "p2p/requestless.hpp"

#include <cstdlib>
#include <new>

#include "os/spin.hpp"
#include "p2p/progress.hpp"

namespace weft::p2p {

// The sends of one communicator, in the order in which they began: a ring of `capacity` places. The oldest leaves it when it is complete.
struct Requestless {
    os::SpinLock lock;
    Err first_error;        // of those that were finished while others were added
    Request** all;
    int64_t capacity, first, count;
    int64_t added;          // so far
    int64_t finishing;      // taken off the list, complete, and not yet freed
};

namespace {

// That of `c`, made when it is first needed; null when out of memory.
Requestless* requestless_of(Comm& c) {
    Requestless* q = c.requestless.load(std::memory_order_acquire);
    if (q != nullptr) return q;
    auto* fresh = static_cast<Requestless*>(malloc(sizeof(Requestless)));
    if (fresh == nullptr) return nullptr;
    new (fresh) Requestless{};
    if (c.requestless.compare_exchange_strong(q, fresh, std::memory_order_acq_rel)) return fresh;
    free(fresh);   // another thread was faster
    return q;
}

bool grow(Requestless& q) {
    const int64_t capacity = q.capacity == 0 ? 16 : 2 * q.capacity;
    auto** all = static_cast<Request**>(malloc(static_cast<size_t>(capacity) * sizeof(Request*)));
    if (all == nullptr) return false;
    for (int64_t i = 0; i < q.count; i++) all[i] = q.all[(q.first + i) % q.capacity];
    free(q.all);
    q.all = all;
    q.capacity = capacity;
    q.first = 0;
    return true;
}

// Takes the oldest off the list; null when there is none, or it is not complete.
Request* take_complete(Requestless& q) {
    SpinGuard guard(q.lock);
    if (q.count == 0 || !q.all[q.first]->done()) return nullptr;
    Request* r = q.all[q.first];
    q.first = (q.first + 1) % q.capacity;
    q.count--;
    q.finishing++;
    return r;
}

// Frees those that are complete, up to the first that is not.
void finish_complete(Process& p, Requestless& q) {
    while (Request* r = take_complete(q)) {
        const Err e = finish(p, *r, nullptr);
        SpinGuard guard(q.lock);
        q.finishing--;
        if (q.first_error == Err::ok) q.first_error = e;
    }
}

int64_t added_to(Requestless& q) {
    SpinGuard guard(q.lock);
    return q.added;
}

// Whether the first `n` that were ever added are freed.
bool are_over(Requestless& q, int64_t n) {
    SpinGuard guard(q.lock);
    return q.added - q.count >= n && q.finishing == 0;
}

bool keep(Requestless& q, Request& r) {
    SpinGuard guard(q.lock);
    if (q.count == q.capacity && !grow(q)) return false;
    q.all[(q.first + q.count++) % q.capacity] = &r;
    q.added++;
    return true;
}

}  // namespace

Err send_requestless(Process& p, Comm& c, Buffer b, Envelope e) {
    Request* r = nullptr;
    WEFT_TRY(isend_slow(p, c, b, e, Mode::standard, &r));
    if (r->done()) return finish(p, *r, nullptr);
    Requestless* q = requestless_of(c);
    if (q != nullptr) finish_complete(p, *q);   // so that the list is no longer than what is pending
    if (q != nullptr && keep(*q, *r)) return Err::ok;
    wait(p, *r);   // without memory for the list
    return finish(p, *r, nullptr);
}

Err wait_requestless(Process& p, Comm& c) {
    Requestless* q = c.requestless.load(std::memory_order_acquire);
    if (q == nullptr) return Err::ok;
    const int64_t n = added_to(*q);
    progress_until(p, [&] {
        finish_complete(p, *q);
        return are_over(*q, n);
    }, nullptr, Home{c.lane, true});
    SpinGuard guard(q->lock);
    const Err first = q->first_error;
    q->first_error = Err::ok;
    return first;
}

void close_requestless(Process& p, Comm& c) {
    Requestless* q = c.requestless.exchange(nullptr, std::memory_order_acq_rel);
    if (q == nullptr) return;
    for (int64_t i = 0; i < q->count; i++) free_request(p, *q->all[(q->first + i) % q->capacity]);
    free(q->all);
    free(q);
}

}  // namespace weft::p2p
