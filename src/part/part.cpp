#include "part/part.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "os/spin.hpp"
#include "obj/status.hpp"
#include "type/predefined.hpp"

namespace weft::part {

// What a sender tells its receiver when it is made, in the order of the init calls.
struct Setup {
    int32_t tag;          // the user's, in full: the envelope has room for less
    int32_t partitions;
    int64_t bytes;        // of one partition
    int32_t first_tag;    // of the internal messages: partition i has tag first_tag + i
};

// One side of a partitioned message: what the request's `ext` points to.
struct Channel {
    Process* process;
    Comm* comm;
    Request* request;           // null once freed
    Buffer each;
    int32_t partitions, peer, tag;
    bool sending;
    bool listed;                // in the engine's list; under its lock
    std::atomic<bool> matched;  // receiver: the setup is known
    bool posted;                // receiver: this activation's receives are
    Err error;                  // first of this activation
    Setup setup;
    std::atomic<Request*> setup_request;  // the setup on its way out, or for the next one from this peer
    Setup incoming;             // ... and where it lands
    int32_t parts;              // internal messages: the sender's partitions
    int32_t done_parts;         // of this activation
    Request** requests;         // one per part, under way
    std::atomic<uint8_t>* state;    // sender: marked; receiver: arrived. One per part
    std::atomic<int32_t> marked;
    std::atomic<bool> active;
    std::atomic<uint8_t> busy;  // whoever holds it may drive the channel
    char* spill;                // receiver: packed parts that do not map to whole elements
    Channel *previous, *next;   // in the engine's list, in the order of the init calls
};

// Every channel that somebody must drive: active ones, and receivers that wait for their setup.
struct Engine {
    os::SpinLock lock;
    Channel *first, *last;
    std::atomic<int32_t> next_tag;
    std::atomic<uint8_t> matching;  // whoever holds it takes setups
};

namespace {

// In the collective context, beside the tags of coll/ (TagSpace there), of which none has both upper bits.
constexpr int32_t setup_space = 3 << 29, data_space = setup_space | 1 << 28, tag_bits = (1 << 28) - 1;

int32_t setup_tag(int32_t tag) { return setup_space | ((tag ^ tag >> 28) & tag_bits); }
p2p::Envelope envelope(int32_t peer, int32_t tag) { return {peer, tag, Request::coll}; }
using type::bytes_at;

bool drive_all(Process&);

Engine* engine_of(Process& p) {
    if (Engine* e = __atomic_load_n(&p.part, __ATOMIC_ACQUIRE)) return e;
    auto* fresh = static_cast<Engine*>(calloc(1, sizeof(Engine)));
    if (fresh == nullptr) return nullptr;
    Engine* none = nullptr;
    if (!__atomic_compare_exchange_n(&p.part, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        free(fresh);
        return none;
    }
    p2p::register_hook(p, drive_all);
    return fresh;
}

void append(Engine& e, Channel& c) {
    SpinGuard guard(e.lock);
    if (c.listed) return;
    c.listed = true;
    p2p::begin_work(*c.process);
    c.next = nullptr;
    c.previous = e.last;
    (e.last != nullptr ? e.last->next : e.first) = &c;
    e.last = &c;
}

void unlink(Engine& e, Channel& c) {
    SpinGuard guard(e.lock);
    if (!c.listed) return;
    c.listed = false;
    p2p::end_work(*c.process);
    (c.previous != nullptr ? c.previous->next : e.first) = c.next;
    (c.next != nullptr ? c.next->previous : e.last) = c.previous;
}

void note(Channel& c, Err e) {
    if (c.error == Err::ok) c.error = e;
}

Err no_memory() { return fail(Err::no_mem, "no memory for a partitioned message"); }

// Room for what one message per part needs.
Err make_parts(Channel& c, int32_t parts) {
    auto n = static_cast<size_t>(parts);
    c.requests = static_cast<Request**>(calloc(n + 1, sizeof(Request*)));
    c.state = static_cast<std::atomic<uint8_t>*>(calloc(n + 1, 1));
    c.parts = parts;
    return c.requests != nullptr && c.state != nullptr ? Err::ok : no_memory();
}

void destroy(Channel& c) {
    type::release(*c.each.type);
    if (!obj::is_predefined(*c.comm)) obj::release(*c.comm);
    free(c.requests);
    free(c.state);
    free(c.spill);
    free(&c);
}

bool try_busy(Channel& c) {
    return c.busy.load(std::memory_order_relaxed) == 0 && c.busy.exchange(1, std::memory_order_acquire) == 0;
}
void release_busy(Channel& c) { c.busy.store(0, std::memory_order_release); }

// ------------------------------------------------------------------------------------------------- matching

// The receiver whose turn it is for a setup: the first made for that peer and tag that has none yet.
Channel* claim(Engine& e, const Channel& lander) {
    SpinGuard guard(e.lock);
    for (Channel* c = e.first; c != nullptr; c = c->next)
        if (!c->sending && !c->matched.load(std::memory_order_relaxed) && c->comm == lander.comm && c->peer == lander.peer &&
            c->tag == lander.incoming.tag) {
            c->setup = lander.incoming;
            c->matched.store(true, std::memory_order_release);  // pairs with drive()
            return c;
        }
    return nullptr;
}

// The first receiver whose setup has come, and before which no other waits for one in the same envelope: receives take
// messages in the order in which they were posted, so setups are given out in that order too.
Channel* landed(Engine& e) {
    SpinGuard guard(e.lock);
    for (Channel* c = e.first; c != nullptr; c = c->next) {
        Request* r = c->sending ? nullptr : c->setup_request.load(std::memory_order_relaxed);
        if (r == nullptr || !r->done()) continue;
        bool first = true;
        for (Channel* d = e.first; d != c && first; d = d->next)
            first = d->sending || d->comm != c->comm || d->peer != c->peer || setup_tag(d->tag) != setup_tag(c->tag) ||
                    d->setup_request.load(std::memory_order_relaxed) == nullptr;
        if (first) return c;
    }
    return nullptr;
}

// Gives out the setups that have come. A channel is kept while its setup is awaited, so `c` stays.
bool take_setups(Engine& e) {
    bool moved = false;
    if (e.matching.exchange(1, std::memory_order_acquire) != 0) return false;
    while (Channel* c = landed(e)) {
        (void)p2p::finish(*c->process, *c->setup_request.load(std::memory_order_relaxed), nullptr);
        claim(e, *c);
        c->setup_request.store(nullptr, std::memory_order_release);  // pairs with drive()
        moved = true;
    }
    e.matching.store(0, std::memory_order_release);
    return moved;
}

// The sender's setup has left.
bool setup_left(Channel& c) {
    Request* r = c.setup_request.load(std::memory_order_relaxed);
    if (r == nullptr || !r->done()) return false;
    note(c, p2p::finish(*c.process, *r, nullptr));
    c.setup_request.store(nullptr, std::memory_order_relaxed);
    return true;
}

// -------------------------------------------------------------------------------------------------- receiving

int64_t total_bytes(const Channel& c) { return c.each.bytes() * c.partitions; }

// Where part i lands: in place where it is whole elements, else packed in the spill and unpacked on arrival.
Buffer landing(const Channel& c, int32_t i, bool* spilled) {
    int64_t size = c.each.type->size, bytes = c.setup.bytes, at = bytes * i;
    *spilled = false;
    if (size > 0 && bytes % size == 0 && at + bytes <= total_bytes(c))
        return {static_cast<char*>(c.each.base) + at / size * c.each.type->extent, bytes / size, c.each.type};
    *spilled = true;
    return bytes_at(c.spill + at, bytes);
}

void post(Channel& c) {
    c.posted = true;
    if (c.requests == nullptr) {
        if (Err e = make_parts(c, c.setup.partitions); e != Err::ok) {
            note(c, e);
            c.parts = 0;
            return;
        }
        int64_t size = c.each.type->size, sent = c.setup.bytes * c.parts;
        if (sent > 0 && (size == 0 || c.setup.bytes % size != 0 || sent > total_bytes(c)))
            if ((c.spill = static_cast<char*>(malloc(static_cast<size_t>(sent)))) == nullptr) {
                note(c, no_memory());
                c.parts = 0;
                return;
            }
    }
    if (c.setup.bytes * c.parts > total_bytes(c))
        note(c, fail(Err::truncate, "the sender's %d partitions are larger than the receive's %d", c.parts, c.partitions));
    for (int32_t i = 0; i < c.parts; i++) {
        bool spilled = false;
        note(c, p2p::irecv(*c.process, *c.comm, landing(c, i, &spilled), envelope(c.peer, c.setup.first_tag + i),
                           &c.requests[i]));
    }
}

void land(Channel& c, int32_t i) {
    bool spilled = false;
    Buffer part = landing(c, i, &spilled);
    if (!spilled || c.spill == nullptr) return;
    int64_t at = c.setup.bytes * i, room = total_bytes(c) - at;
    int64_t n = part.count < room ? part.count : room;
    if (n > 0) type::unpack({c.each.base, c.each.count * c.partitions, c.each.type}, at, n, part.base);
}

// ---------------------------------------------------------------------------------------------------- driving

// Takes the results of messages that are done. True when all of this activation's are.
bool reap(Channel& c) {
    for (int32_t i = 0; i < c.parts && c.done_parts < c.parts; i++) {
        Request* r = c.requests[i];
        if (r == nullptr || !r->done()) continue;
        note(c, p2p::finish(*c.process, *r, nullptr));
        c.requests[i] = nullptr;
        c.done_parts++;
        if (!c.sending) {
            land(c, i);
            c.state[i].store(1, std::memory_order_release);  // pairs with parrived()
        }
    }
    return c.done_parts == c.parts;
}

// A receiver that was freed before its setup came has only been waiting for it.
bool forgotten(const Channel& c) { return c.request == nullptr; }

// With `busy` held, which ends here. Completing the request is the last touch.
bool drive(Channel& c) {
    Engine& e = *c.process->part;
    bool moved = c.sending && setup_left(c);
    if (!c.sending && c.setup_request.load(std::memory_order_relaxed) != nullptr) moved = take_setups(e);
    const bool pending = c.setup_request.load(std::memory_order_acquire) != nullptr;
    const bool matched = c.matched.load(std::memory_order_acquire);
    const bool expected = pending || (!c.sending && !matched);  // a setup is still to go or come
    if (forgotten(c)) {
        if (expected) {
            release_busy(c);
            return moved;
        }
        unlink(e, c);
        destroy(c);
        return true;
    }
    bool end = false;
    if (c.active.load(std::memory_order_acquire)) {
        if (c.sending) {
            // Acquire: pairs with mark(), so that all requests are seen.
            end = c.marked.load(std::memory_order_acquire) == c.parts && reap(c);
        } else if (!c.sending && matched) {
            if (!c.posted) post(c);
            end = reap(c);
        }
    }
    if (!end) {
        release_busy(c);
        return moved;
    }
    if (!expected) unlink(e, c);
    c.active.store(false, std::memory_order_relaxed);
    Request* r = c.request;
    Err err = c.error;
    release_busy(c);
    p2p::complete_special(*c.process, *r, err);
    return true;
}

thread_local bool driving = false;  // progress made inside must not nest

bool drive_all(Process& p) {
    Engine& e = *p.part;
    if (driving || __atomic_load_n(&e.first, __ATOMIC_RELAXED) == nullptr) return false;
    driving = true;
    bool moved = false;
    // The list keeps its order, which matching needs: one visit each, found again by counting.
    for (int32_t visit = 0;; visit++) {
        Channel* c;
        bool mine = false;
        {
            SpinGuard guard(e.lock);
            c = e.first;
            for (int32_t i = 0; i < visit && c != nullptr; i++) c = c->next;
            if (c != nullptr) mine = try_busy(*c);
        }
        if (c == nullptr) break;
        if (mine) moved |= drive(*c);
    }
    driving = false;
    return moved;
}

// --------------------------------------------------------------------------------------------- as a request

Channel& channel_of(Request& r) { return *static_cast<Channel*>(r.ext); }

bool poll(Request& r) {
    if (r.done()) return true;
    Channel& c = channel_of(r);
    if (try_busy(c)) drive(c);
    return r.done();
}

Err start(Request& r) {
    Channel& c = channel_of(r);
    while (!try_busy(c)) __builtin_ia32_pause();  // another thread's look at it; it is short
    c.error = Err::ok;
    c.done_parts = 0;
    c.posted = false;
    c.marked.store(0, std::memory_order_relaxed);
    for (int32_t i = 0; c.state != nullptr && i < c.parts; i++) c.state[i].store(0, std::memory_order_relaxed);
    r.state.store(Request::pending, std::memory_order_relaxed);
    Process& p = *c.process;
    if (c.peer == obj::proc_null) {
        release_busy(c);
        p2p::complete_special(p, r, Err::ok);
        return Err::ok;
    }
    append(*p.part, c);
    c.active.store(true, std::memory_order_release);
    drive(c);
    return Err::ok;
}

Err finish(Request& r, obj::Status& s) {
    Channel& c = channel_of(r);
    if (!c.sending) {
        s.source = c.peer;
        s.tag = c.peer == obj::proc_null ? obj::any_tag : c.tag;
        s.bytes = c.peer == obj::proc_null ? 0 : c.setup.bytes * c.parts;
    }
    return static_cast<Err>(r.error);
}

void free_channel(Request& r) {
    Channel& c = channel_of(r);
    while (!try_busy(c)) __builtin_ia32_pause();
    c.request = nullptr;
    drive(c);  // it stays until its setup has gone or come, so that this one matches nobody else
}

constexpr obj::RequestOps ops{"partitioned", start, poll, finish, nullptr, free_channel};

Err make(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, bool sending, Request** out) {
    if (partitions < 0) return fail(Err::arg, "%d partitions", partitions);
    if (e.rank == obj::any_source) return fail(Err::rank, "a partitioned receive names its source");
    if (e.tag < 0) return fail(Err::tag, "a partitioned receive names its tag");
    Engine* engine = engine_of(p);
    auto* c = static_cast<Channel*>(calloc(1, sizeof(Channel)));
    if (engine == nullptr || c == nullptr) {
        free(c);
        return no_memory();
    }
    c->process = &p;
    c->comm = &comm;
    c->each = each;
    c->partitions = partitions;
    c->peer = e.rank;
    c->tag = e.tag;
    c->sending = sending;
    if (e.rank == obj::proc_null) c->matched.store(true, std::memory_order_relaxed);
    Err err = sending ? make_parts(*c, partitions) : Err::ok;
    Request* r = err == Err::ok ? p2p::make_special(p, &comm, &ops, c) : nullptr;
    if (r == nullptr) {
        free(c->requests);
        free(c->state);
        free(c);
        return err == Err::ok ? no_memory() : err;
    }
    type::retain(*each.type);
    if (!obj::is_predefined(comm)) obj::retain(comm);
    r->flags |= Request::persistent;
    r->state.store(Request::inactive, std::memory_order_release);
    c->request = r;
    *out = r;
    return Err::ok;
}

}  // namespace

Err psend_init(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, obj::Info*, Request** out) {
    Request* r = nullptr;
    WEFT_TRY(make(p, comm, each, partitions, e, true, &r));
    Channel& c = channel_of(*r);
    if (c.peer != obj::proc_null) {
        int32_t first = p.part->next_tag.fetch_add(partitions, std::memory_order_relaxed) & (tag_bits >> 1);
        c.setup = {c.tag, partitions, each.bytes(), data_space | first};
        Request* message = nullptr;
        Err err = p2p::isend(p, comm, bytes_at(&c.setup, sizeof(Setup)), envelope(c.peer, setup_tag(c.tag)),
                             p2p::Mode::standard, &message);
        if (err == Err::ok) {
            // The data lies in the channel, which is kept until the message has left.
            if (message->done()) {
                err = p2p::finish(p, *message, nullptr);
            } else {
                c.setup_request.store(message, std::memory_order_relaxed);
                append(*p.part, c);
            }
        }
        if (err != Err::ok) {
            p2p::free_request(p, *r);
            return err;
        }
    }
    *out = r;
    return Err::ok;
}

Err precv_init(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, obj::Info*, Request** out) {
    Request* r = nullptr;
    WEFT_TRY(make(p, comm, each, partitions, e, false, &r));
    Channel& c = channel_of(*r);
    if (c.peer != obj::proc_null) {
        c.busy.store(1, std::memory_order_relaxed);
        append(*p.part, c);
        Request* message = nullptr;
        Err err = p2p::irecv(p, comm, bytes_at(&c.incoming, sizeof(Setup)), envelope(c.peer, setup_tag(c.tag)),
                             &message);
        c.setup_request.store(message, std::memory_order_release);
        if (err != Err::ok) {
            c.matched.store(true, std::memory_order_relaxed);  // nothing will come
            release_busy(c);
            p2p::free_request(p, *r);
            return err;
        }
        release_busy(c);
    }
    *out = r;
    return Err::ok;
}

namespace {

Err check_send(Request& r) {
    obj::blame(r.comm);
    if (!(r.flags & Request::special) || r.ops != &ops || !channel_of(r).sending)
        return fail(Err::request, "the request is no partitioned send");
    if (r.state.load(std::memory_order_acquire) == Request::inactive)
        return fail(Err::request, "the partitioned send has not been started");
    return Err::ok;
}

Err check_partition(const Channel& c, int partition) {
    if (partition >= 0 && partition < c.partitions) return Err::ok;
    return fail(Err::arg, "partition %d of %d", partition, c.partitions);
}

Err mark(Process& p, Channel& c, int partition) {
    if (c.peer == obj::proc_null) return Err::ok;
    if (c.state[partition].exchange(1, std::memory_order_relaxed) != 0)
        return fail(Err::arg, "partition %d is marked ready twice", partition);
    Buffer part = c.each;
    part.base = static_cast<char*>(part.base) + int64_t{partition} * part.count * part.type->extent;
    Err e = p2p::isend(p, *c.comm, part, envelope(c.peer, c.setup.first_tag + partition), p2p::Mode::standard,
                       &c.requests[partition]);
    c.marked.fetch_add(1, std::memory_order_release);  // pairs with drive()
    return e;
}

}  // namespace

Err pready(Process& p, int partition, Request& r) {
    WEFT_TRY(check_send(r));
    WEFT_TRY(check_partition(channel_of(r), partition));
    return mark(p, channel_of(r), partition);
}

Err pready_range(Process& p, int low, int high, Request& r) {
    WEFT_TRY(check_send(r));
    WEFT_TRY(check_partition(channel_of(r), low));
    WEFT_TRY(check_partition(channel_of(r), high));
    if (low > high) return fail(Err::arg, "the range of partitions ends at %d, before %d", high, low);
    for (int i = low; i <= high; i++) WEFT_TRY(mark(p, channel_of(r), i));
    return Err::ok;
}

Err pready_list(Process& p, int n, const int* partitions, Request& r) {
    WEFT_TRY(check_send(r));
    for (int i = 0; i < n; i++) WEFT_TRY(check_partition(channel_of(r), partitions[i]));
    for (int i = 0; i < n; i++) WEFT_TRY(mark(p, channel_of(r), partitions[i]));
    return Err::ok;
}

// Have all parts come that reach into this partition? Where parts are empty, the count decides in place of the bytes.
static bool covered(const Channel& c, int partition) {
    bool empty = c.setup.bytes == 0;
    int64_t each = empty ? c.parts : c.each.bytes(), part = empty ? c.partitions : c.setup.bytes;
    int64_t from = each * partition, to = from + each;
    for (int64_t i = from / part; i < c.parts && i * part < to; i++)
        if (c.state[i].load(std::memory_order_acquire) == 0) return false;  // pairs with reap()
    return true;
}

Err parrived(Process& p, Request& r, int partition, bool* flag) {
    obj::blame(r.comm);
    if (&r == &obj::null_request) {
        *flag = true;
        return Err::ok;
    }
    if (!(r.flags & Request::special) || r.ops != &ops || channel_of(r).sending)
        return fail(Err::request, "the request is no partitioned receive");
    Channel& c = channel_of(r);
    WEFT_TRY(check_partition(c, partition));
    if (r.done()) {
        *flag = true;
        return Err::ok;
    }
    p2p::progress_once(p);
    if (try_busy(c)) drive(c);
    bool there = r.done();
    // `busy` keeps the setup and the flags' array in place while they are read.
    if (!there && try_busy(c)) {
        there = c.matched.load(std::memory_order_acquire) && c.state != nullptr && covered(c, partition);
        release_busy(c);
    }
    *flag = there;
    return Err::ok;
}

}  // namespace weft::part
