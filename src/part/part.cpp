#include "part/part.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "obj/info.hpp"
#include "obj/settings.hpp"
#include "obj/status.hpp"
#include "os/clock.hpp"
#include "type/predefined.hpp"

namespace weft::part {

using type::bytes_at;

namespace {

// Partitions smaller than this travel with their neighbours where they are messages (docs/experiments/022-partitions.md).
constexpr int64_t gathered_bytes = 4096;

enum class Policy : uint8_t { native, each, one };   // as WEFT_POLICY.part names them

bool drive_all(Process&);

// ------------------------------------------------------------------------------------------------- the list

// A receiver that was freed before its setup came waits for it alone.
bool forgotten(const Channel& c) { return c.request == nullptr; }

// A setup is still to go or come.
bool expects_setup(const Channel& c) {
    return c.setup_request.load(std::memory_order_acquire) != nullptr || (!c.sending && !c.matched.load(std::memory_order_acquire));
}

bool needs_driving(const Channel& c) {
    if (forgotten(c) || expects_setup(c) || (!c.sending && !c.accepted)) return true;
    return c.active.load(std::memory_order_relaxed) && (!c.native() || c.held.load(std::memory_order_relaxed) != 0);
}

// With the list's lock.
void remove(Engine& e, Channel& c) {
    c.listed.store(false, std::memory_order_relaxed);
    p2p::end_work(*c.process);
    __atomic_store_n(c.previous != nullptr ? &c.previous->next : &e.first, c.next, __ATOMIC_RELAXED);  // drive_all() asks without the lock
    (c.next != nullptr ? c.next->previous : e.last) = c.previous;
}

// With `busy`. A thread that holds a partition adds to `held` before it asks for the list's lock, so it is seen here, or lists the
// channel again.
void list_if_needed(Engine& e, Channel& c) {
    if (needs_driving(c)) return append(e, c);
    if (!c.listed.load(std::memory_order_relaxed)) return;
    SpinGuard guard(e.lock);
    if (c.listed.load(std::memory_order_relaxed) && !needs_driving(c)) remove(e, c);
}

void destroy(Engine& e, Channel& c) {
    while (c.users.load(std::memory_order_acquire) != 0) os::yield_cpu();  // pairs with put(): each has stored its mark, and goes
    {
        SpinGuard guard(e.lock);
        if (c.listed.load(std::memory_order_relaxed)) remove(e, c);
    }
    leave_board(e, c);
    type::release(*c.each.type);
    if (!obj::is_predefined(*c.comm)) obj::release(*c.comm);
    for (void* owned : {static_cast<void*>(c.requests), static_cast<void*>(c.marks), static_cast<void*>(c.landed),
                        static_cast<void*>(c.missing), static_cast<void*>(c.own_row), static_cast<void*>(c.spill)})
        free(owned);
    free(&c);
}

// -------------------------------------------------------------------------------------------------- driving

// True when all of this epoch's partitions have left, or arrived.
bool advance(Channel& c) {
    if (c.sending) return put_all(c);
    if (!c.matched.load(std::memory_order_acquire)) return false;
    if (c.lasting != Err::ok) return true;
    if (!c.posted.load(std::memory_order_relaxed)) c.native() ? open_epoch(c) : post_messages(c);
    if (!c.posted.load(std::memory_order_relaxed)) return true;  // there was no memory
    return c.native() ? take_all(c) : reap(c);
}

// With `busy`, which ends here.
void end(Channel& c) {
    if (!c.sending && c.native()) end_epoch(c);
    c.active.store(false, std::memory_order_relaxed);
    Request* r = c.request;
    const Err err = c.error;
    if (r == nullptr && !expects_setup(c)) return destroy(*c.process->part, c);
    list_if_needed(*c.process->part, c);
    if (r != nullptr) p2p::complete_special(*c.process, *r, err);
    release_busy(c);  // before that nobody can free the request, or the channel
}

// With `busy`, which ends here; so does every use of the channel.
bool drive(Channel& c) {
    Engine& e = *c.process->part;
    bool moved = c.sending && setup_left(c);
    if (!c.sending && c.setup_request.load(std::memory_order_relaxed) != nullptr) moved = take_setups(e);
    if (!c.sending && !c.accepted && c.matched.load(std::memory_order_acquire)) accept(c);
    if (c.active.load(std::memory_order_acquire) && advance(c)) {
        end(c);
        return true;
    }
    if (forgotten(c) && !c.active.load(std::memory_order_relaxed) && !expects_setup(c)) {
        destroy(e, c);
        return true;
    }
    list_if_needed(e, c);
    release_busy(c);
    return moved;
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

void take_busy(Channel& c) {
    while (!try_busy(c)) __builtin_ia32_pause();  // another thread's look at it; it is short
}

bool poll(Request& r) {
    if (r.done()) return true;
    Channel& c = channel_of(r);
    if (try_busy(c)) drive(c);
    return r.done();
}

Err start(Request& r) {
    Channel& c = channel_of(r);
    take_busy(c);
    c.error = c.lasting;
    c.epoch++;
    c.started.store(c.epoch, std::memory_order_relaxed);
    c.mark = mark_of(c.epoch, Where::in_place);
    c.posted.store(false, std::memory_order_relaxed);
    c.look_made.store(0, std::memory_order_relaxed);
    r.state.store(Request::pending, std::memory_order_relaxed);
    if (c.peer == obj::proc_null) {
        release_busy(c);
        p2p::complete_special(*c.process, r, Err::ok);
        return Err::ok;
    }
    if (c.sending) {
        if (c.native()) start_board(c);
        if (c.way.load(std::memory_order_relaxed) != Way::board) start_messages(c);
    }
    c.active.store(true, std::memory_order_release);
    drive(c);
    return Err::ok;
}

Err finish(Request& r, obj::Status& s) {
    Channel& c = channel_of(r);
    if (!c.sending) {
        s.source = c.peer;
        s.tag = c.peer == obj::proc_null ? obj::any_tag : c.tag;
        s.bytes = c.peer == obj::proc_null ? 0 : sent_bytes(c);
    }
    return static_cast<Err>(r.error);
}

void free_channel(Request& r) {
    Channel& c = channel_of(r);
    take_busy(c);
    c.request = nullptr;
    drive(c);  // it stays until its setup has gone or come, so that this one matches nobody else, and until it is complete
}

Err make(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, bool sending, Channel** out) {
    if (partitions < 0) return fail(Err::arg, "%d partitions", partitions);
    if (e.rank == obj::any_source) return fail(Err::rank, "a partitioned receive names its source");
    Engine* engine = engine_of(p);
    auto* c = static_cast<Channel*>(calloc(1, sizeof(Channel)));
    Request* r = engine != nullptr && c != nullptr ? p2p::make_special(p, &comm, &ops, c) : nullptr;
    if (r == nullptr) {
        free(c);
        return no_memory();
    }
    c->process = &p;
    c->comm = &comm;
    c->each = each;
    c->bytes = static_cast<uint64_t>(each.bytes());
    c->partitions = partitions;
    c->peer = e.rank;
    c->tag = e.tag;
    c->sending = sending;
    c->setup.group = 1;
    c->way.store(Way::messages, std::memory_order_relaxed);
    if (e.rank == obj::proc_null) {
        c->matched.store(true, std::memory_order_relaxed);
        c->accepted = true;
    }
    type::retain(*each.type);
    if (!obj::is_predefined(comm)) obj::retain(comm);
    r->flags |= Request::persistent;
    r->protocol = obj::Protocol::partitioned;
    r->state.store(Request::inactive, std::memory_order_release);
    c->request = r;
    *out = c;
    return Err::ok;
}

// How many partitions a message gathers: as many as fit the bytes that the info key or the policy allows.
int32_t group_of(const Engine& e, obj::Info* info, const Channel& c) {
    int64_t most = e.gather;
    char text[32], *end = nullptr;
    if (obj::info_lookup(info, "weft_partition_gather", text, sizeof text))
        if (const long long v = strtoll(text, &end, 10); end != text && v >= 0) most = v;
    const int64_t bytes = c.each.bytes(), n = bytes == 0 ? most : most / bytes;
    return n < 1 ? 1 : n < c.partitions ? static_cast<int32_t>(n) : c.partitions > 0 ? c.partitions : 1;
}

Err send_setup(Process& p, Comm& comm, Channel& c) {
    Request* message = nullptr;
    WEFT_TRY(p2p::isend(p, comm, bytes_at(&c.setup, sizeof(Setup)), envelope(c.peer, setup_tag(c.tag)), p2p::Mode::standard, &message));
    // The data lie in the channel, which is kept until the message has left.
    if (message->done()) return p2p::finish(p, *message, nullptr);
    c.setup_request.store(message, std::memory_order_relaxed);
    append(*p.part, c);
    return Err::ok;
}

// A sender's room for its marks, its board or its messages, and what it tells the receiver.
Err prepare_send(Process& p, Comm& comm, Channel& c, obj::Info* info) {
    c.marks = static_cast<std::atomic<uint32_t>*>(calloc(static_cast<size_t>(c.partitions) + 1, sizeof(uint32_t)));
    if (c.marks == nullptr) return no_memory();
    const int32_t first = p.part->next_tag.fetch_add(c.partitions, std::memory_order_relaxed) & (tag_bits >> 1);
    c.setup = {c.tag, c.partitions, c.each.bytes(), data_space | first, group_of(*p.part, info, c), nullptr};
    WEFT_TRY(make_messages(c));
    make_board(c);
    c.setup.board = c.board;
    return send_setup(p, comm, c);
}

}  // namespace

Engine* engine_of(Process& p) {
    if (Engine* e = __atomic_load_n(&p.part, __ATOMIC_ACQUIRE)) return e;
    auto* fresh = static_cast<Engine*>(calloc(1, sizeof(Engine)));
    if (fresh == nullptr) return nullptr;
    const auto policy = static_cast<Policy>(p.part_policy);
    fresh->boards_allowed = policy == Policy::native;
    fresh->gather = policy == Policy::each ? 0 : policy == Policy::one ? INT64_MAX : gathered_bytes;
    Engine* none = nullptr;
    if (!__atomic_compare_exchange_n(&p.part, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        free(fresh);
        return none;
    }
    p2p::register_hook(p, drive_all);
    return fresh;
}

constinit const obj::RequestOps ops{"partitioned", start, poll, finish, nullptr, free_channel, true};

void append(Engine& e, Channel& c) {
    SpinGuard guard(e.lock);
    if (c.listed.load(std::memory_order_relaxed)) return;
    c.listed.store(true, std::memory_order_relaxed);
    p2p::begin_work(*c.process);
    c.next = nullptr;
    c.previous = e.last;
    __atomic_store_n(e.last != nullptr ? &e.last->next : &e.first, &c, __ATOMIC_RELAXED);
    e.last = &c;
}

Err psend_init(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, obj::Info* info, Request** out) {
    return make_sender(p, comm, each, partitions, e, info, out);
}

Err precv_init(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, obj::Info*, Request** out) {
    if (e.tag < 0) return fail(Err::tag, "a partitioned receive names its tag");
    return make_receiver(p, comm, each, partitions, e, out);
}

Err make_sender(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, obj::Info* info, Request** out) {
    Channel* c = nullptr;
    WEFT_TRY(make(p, comm, each, partitions, e, true, &c));
    Request* r = c->request;
    if (c->peer != obj::proc_null)
        if (const Err err = prepare_send(p, comm, *c, info); err != Err::ok) {
            p2p::free_request(p, *r);
            return err;
        }
    *out = r;
    return Err::ok;
}

Err make_receiver(Process& p, Comm& comm, Buffer each, int partitions, p2p::Envelope e, Request** out) {
    Channel* made = nullptr;
    WEFT_TRY(make(p, comm, each, partitions, e, false, &made));
    Channel& c = *made;
    Request* r = c.request;
    if (c.peer != obj::proc_null) {
        c.busy.store(1, std::memory_order_relaxed);
        append(*p.part, c);
        Request* message = nullptr;
        Err err = p2p::irecv(p, comm, bytes_at(&c.incoming, sizeof(Setup)), envelope(c.peer, setup_tag(c.tag)), &message);
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

// ----------------------------------------------------------------------------------------- marks and looks

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

}  // namespace

Err mark(Channel& c, int32_t partition) {
    if (c.peer == obj::proc_null || put_at_once<false>(*c.process, c, partition)) return Err::ok;
    return put(c, partition);
}

void wake(Process& p, const std::atomic<uint32_t>* polled) {
    wire::shm::Shm& shm = p.lane->shm;
    for (int i = 0; i < shm.ranks && polled->load(std::memory_order_relaxed) == 0; i++)
        if (shm.is_connected(i) && &shm.to(i).control->polled == polled) shm.notify(i);
    lane::wake_sleepers(*p.lane);
}

Err pready(Process&, int partition, Request& r) {
    if (is_collective(r)) return mark_of_collective(r, partition);
    WEFT_TRY(check_send(r));
    WEFT_TRY(check_partition(channel_of(r), partition));
    return mark(channel_of(r), partition);
}

Err pready_range(Process&, int low, int high, Request& r) {
    if (is_collective(r)) {
        if (low > high) return fail(Err::arg, "the range of partitions ends at %d, before %d", high, low);
        for (int i = low; i <= high; i++) WEFT_TRY(mark_of_collective(r, i));
        return Err::ok;
    }
    WEFT_TRY(check_send(r));
    WEFT_TRY(check_partition(channel_of(r), low));
    WEFT_TRY(check_partition(channel_of(r), high));
    if (low > high) return fail(Err::arg, "the range of partitions ends at %d, before %d", high, low);
    for (int i = low; i <= high; i++) WEFT_TRY(mark(channel_of(r), i));
    return Err::ok;
}

Err pready_list(Process&, int n, const int* partitions, Request& r) {
    if (is_collective(r)) {
        for (int i = 0; i < n; i++) WEFT_TRY(mark_of_collective(r, partitions[i]));
        return Err::ok;
    }
    WEFT_TRY(check_send(r));
    for (int i = 0; i < n; i++) WEFT_TRY(check_partition(channel_of(r), partitions[i]));
    for (int i = 0; i < n; i++) WEFT_TRY(mark(channel_of(r), partitions[i]));
    return Err::ok;
}

// Have all parts come that reach into this partition? Where parts are empty, the count decides in place of the bytes.
bool has_arrived(Channel& c, int32_t partition) {
    if (!c.posted.load(std::memory_order_acquire)) return false;  // pairs with open_epoch(), post_messages()
    const int32_t parts = parts_of(c);
    if (static_cast<uint32_t>(partition) < c.look_made.load(std::memory_order_relaxed)) return is_taken(c, partition);
    const bool empty = c.setup.bytes == 0;
    const int64_t each = empty ? parts : c.each.bytes(), part = empty ? c.partitions : part_bytes(c);
    const int64_t from = each * partition, to = from + each;
    for (int64_t i = from / part; i < parts && i * part < to; i++)
        if (!is_taken(c, static_cast<int32_t>(i))) return false;
    return true;
}

namespace {

// A program that looks at one partition will look at those beside it: small ones are taken with it.
bool look(Request& r, Channel& c, int32_t partition) {
    if (r.done()) return true;
    if (!has_arrived(c, partition)) return false;
    take_neighbours(c, partition);
    return true;
}

}  // namespace

Err parrived(Process& p, Request& r, int partition, bool* flag) {
    obj::blame(r.comm);
    if (&r == &obj::null_request) {
        *flag = true;
        return Err::ok;
    }
    if (is_collective(r)) return look_at_collective(r, partition, flag);
    if (!(r.flags & Request::special) || r.ops != &ops || channel_of(r).sending)
        return fail(Err::request, "the request is no partitioned receive");
    Channel& c = channel_of(r);
    WEFT_TRY(check_partition(c, partition));
    *flag = look(r, c, partition);
    if (*flag) return Err::ok;
    p2p::progress_once(p);
    *flag = look(r, c, partition);
    return Err::ok;
}

}  // namespace weft::part
