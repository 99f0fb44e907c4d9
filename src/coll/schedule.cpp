#include "coll/schedule.hpp"

#include <cstdlib>
#include <cstring>

#include "op/op.hpp"
#include "p2p/p2p.hpp"

namespace weft::coll {

struct Schedule::Chunk {
    Chunk* next;
    int64_t size, used;
    char* data() { return reinterpret_cast<char*>(this) + 64; }
};
static_assert(sizeof(int64_t) * 3 <= 64);

struct Schedule::Held {
    Held* next;
    const type::Type* type;
};

namespace {

constexpr int64_t first_chunk_bytes = 4096;
constexpr int32_t most_idle = 16;

}  // namespace

// ------------------------------------------------------------------------------------------------ building

Step* Schedule::push(Step::What what) {
    if (count_ == capacity_) {
        int32_t grown = capacity_ == 0 ? 32 : capacity_ * 2;
        auto* steps = static_cast<Step*>(realloc(steps_, static_cast<size_t>(grown) * sizeof(Step)));
        if (steps == nullptr) {
            failed_to_build_ = true;
            return nullptr;
        }
        steps_ = steps;
        capacity_ = grown;
    }
    Step* s = &steps_[count_++];
    memset(static_cast<void*>(s), 0, sizeof *s);
    s->what = what;
    return s;
}

void Schedule::hold(const type::Type& t) {
    if (!keep_ || t.is(type::Type::predefined) || (held_ != nullptr && held_->type == &t)) return;
    auto* h = static_cast<Held*>(temp(sizeof(Held)));
    if (h == nullptr) return;
    type::retain(t);
    *h = {held_, &t};
    held_ = h;
}

void Schedule::send(const Team& team, int32_t to, Buffer b) {
    if (Step* s = push(Step::send)) {
        s->peer = team.at(to);
        s->comm = team.comm;
        s->buf = b;
        hold(*b.type);
    }
}

void Schedule::recv(const Team& team, int32_t from, Buffer b) {
    if (Step* s = push(Step::recv)) {
        s->peer = team.at(from);
        s->comm = team.comm;
        s->buf = b;
        hold(*b.type);
    }
}

void Schedule::copy(Buffer from, Buffer to) {
    if (from.bytes() == 0 && to.bytes() == 0) return;
    if (Step* s = push(Step::copy)) {
        s->buf = from;
        s->to = to;
        hold(*from.type);
        hold(*to.type);
    }
}

void Schedule::take(Buffer from, Buffer to) {
    const int32_t before = count_;
    copy(from, to);
    if (count_ > before && to.dense()) steps_[before].what = Step::take;
}

void Schedule::reduce(const void* left, Buffer inout) {
    if (inout.count == 0) return;
    if (Step* s = push(Step::reduce)) {
        s->buf = inout;
        s->to.base = const_cast<void*>(left);
        hold(*inout.type);
    }
}

void Schedule::fence() {
    if (count_ > 0 && steps_[count_ - 1].what != Step::fence) push(Step::fence);
}

void Schedule::signal(uint64_t mark) {
    if (Step* s = push(Step::signal)) s->mark = mark;
}

void Schedule::await(const Watch& w) {
    if (Step* s = push(Step::await)) {
        s->watch = w;
        s->first = w.next;
    }
}

// Calls of the area follow each other in every member: a nonblocking one begins when the one before has told that it is over.
uint64_t Schedule::begin_in_area() {
    const uint64_t n = ++share_->call;
    if (keep_ && n > 1) await(share_->mark_of(share_->me, Share::mark_done(n - 1)));
    else signal(Share::mark_done(n - 1));
    return n;
}

void Schedule::tell(int64_t bytes) {
    if (Step* s = push(Step::tell)) s->bytes = bytes;
}

void Schedule::compare(int32_t from, int32_t end, int64_t bytes) {
    if (Step* s = push(Step::compare)) {
        s->watch = {nullptr, 0, from, end, share_->me};
        s->bytes = bytes;
    }
}

// After an error only the last mark is set: the other members wait for none of this one's then.
void Schedule::compare_now(const Step& s) {
    Err e = Err::ok;
    for (int32_t i = s.watch.next; i < s.watch.end && e == Err::ok; i++)
        if (i != s.watch.skip) e = share_->compare(i, share_->told(i).load(std::memory_order_relaxed), s.bytes);
    if (e == Err::ok) return;
    note(e);
    for (next_ = count_; steps_[next_ - 1].what != Step::signal;) next_--;
    next_--;
}

void Schedule::own(Share* share) { share_ = own_ = share; }

// The steps of a call in the area of its own, turned into those of the call after it.
void Schedule::next_call() {
    constexpr uint64_t one = Share::mark_at(1, 0);
    for (int32_t i = 0; i < count_; i++) {
        Step& s = steps_[i];
        if (s.what == Step::signal) s.mark += one;
        if (s.what != Step::await) continue;
        s.watch.value += one;
        s.watch.next = s.first;
    }
}

void Schedule::use(const op::Op& op) {
    op_ = &op;
    if (keep_) op::retain(op);
}

void* Schedule::temp(int64_t bytes) {
    bytes = (bytes + 63) & ~int64_t{63};
    if (chunks_ == nullptr || chunks_->size - chunks_->used < bytes) {
        int64_t size = bytes > first_chunk_bytes ? bytes : first_chunk_bytes;
        void* memory = nullptr;
        if (size > INT64_MAX / 2 || posix_memalign(&memory, 64, static_cast<size_t>(size) + 64) != 0) {
            failed_to_build_ = true;
            return nullptr;
        }
        auto* c = static_cast<Chunk*>(memory);
        *c = {chunks_, size, 0};
        chunks_ = c;
    }
    void* p = chunks_->data() + chunks_->used;
    chunks_->used += bytes;
    return p;
}

Buffer Schedule::temp_like(int64_t count, const type::Type& t) {
    if (count == 0) return {nullptr, 0, &t};
    int64_t walk = (count - 1) * t.extent;
    int64_t lowest = t.true_lb + (walk < 0 ? walk : 0);
    int64_t span = t.true_extent + (walk < 0 ? -walk : walk);
    auto* memory = static_cast<char*>(temp(span));
    return {memory == nullptr ? nullptr : memory - lowest, count, &t};
}

Buffer Schedule::temp_bytes(int64_t bytes) { return bytes_at(temp(bytes), bytes); }

// ------------------------------------------------------------------------------------------------- running

void copy_now(const Buffer& from, const Buffer& to) {
    type::copy(from, to, from.bytes() < to.bytes() ? from.bytes() : to.bytes());
}

void Schedule::issue(Step& s) {
    p2p::Envelope envelope{s.peer, s.comm == comm ? tag : tag | of_local_comm, Request::coll};
    switch (s.what) {
        case Step::send: note(p2p::isend(*process, *s.comm, s.buf, envelope, p2p::Mode::standard, &s.request)); break;
        case Step::recv: note(p2p::irecv(*process, *s.comm, s.buf, envelope, &s.request)); break;
        case Step::copy: copy_now(s.buf, s.to); break;
        case Step::take: process->lane->shm.copy_out(s.to.data(), s.buf.data(), static_cast<size_t>(s.buf.bytes())); break;
        case Step::reduce: note(op::apply(*op_, s.to.base, s.buf.base, s.buf.count, *s.buf.type)); break;
        case Step::signal: share_->set_mark(*process, s.mark); break;
        case Step::tell: share_->told(share_->me).store(s.bytes, std::memory_order_relaxed); break;
        case Step::compare: compare_now(s); break;
        case Step::fence:
        case Step::await: break;
    }
}

// Takes the results of the steps under way, in order; false when one is not complete (and `wait` is not asked).
bool Schedule::reap(bool wait) {
    for (; reaped_ < next_; reaped_++) {
        Request*& r = steps_[reaped_].request;
        if (r == nullptr) continue;
        if (!r->done()) {
            if (!wait) return false;
            p2p::wait(*process, *r);
        }
        note(p2p::finish(*process, *r, nullptr));
        r = nullptr;
    }
    return true;
}

// An error does not stop a schedule: the other processes count on its messages.
bool Schedule::advance() {
    for (;;) {
        if (!reap(false)) return false;
        if (next_ == count_) return true;
        while (next_ < count_) {
            Step& s = steps_[next_];
            if (s.what == Step::await && !share_->look(s.watch, s.waits)) return false;
            next_++;
            if (s.what == Step::fence) break;
            issue(s);
        }
    }
}

Err Schedule::finish_now() {
    while (next_ < count_) {
        Step& s = steps_[next_++];
        if (s.what == Step::fence) {
            reap(true);
        } else if (s.what == Step::await) {
            share_->wait(*process, s.watch);
        } else {
            issue(s);
        }
    }
    reap(true);
    return error_;
}

void Schedule::rewind() {
    next_ = reaped_ = 0;
    error_ = Err::ok;
    if (own_ != nullptr && started_) next_call();
    started_ = true;
}

// -------------------------------------------------------------------------------------------------- engine

namespace {

bool drive_all(Process&);

Engine* engine_of(Process& p) {
    if (Engine* e = __atomic_load_n(&p.coll, __ATOMIC_ACQUIRE)) return e;
    auto* fresh = static_cast<Engine*>(calloc(1, sizeof(Engine)));
    if (fresh == nullptr) return nullptr;
    Engine* none = nullptr;
    if (!__atomic_compare_exchange_n(&p.coll, &none, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        free(fresh);
        return none;
    }
    p2p::register_hook(p, drive_all);
    return fresh;
}

}  // namespace

// The private side of Schedule that the engine needs.
struct Access {
    static void reset(Schedule& s, Process& p, Comm& c, int32_t tag, bool keep) {
        s.process = &p;
        s.comm = &c;
        s.tag = tag;
        s.count_ = s.next_ = s.reaped_ = 0;
        s.error_ = Err::ok;
        s.keep_ = keep;
        s.failed_to_build_ = false;
        s.op_ = nullptr;
        s.share_ = s.own_ = nullptr;
        s.started_ = false;
        s.held_ = nullptr;
        s.request_ = nullptr;
        s.busy_.store(1, std::memory_order_relaxed);
        if (s.chunks_ != nullptr) s.chunks_->used = 0;
    }

    static void free_chunks(Schedule& s, bool all) {
        while (s.chunks_ != nullptr && (all || s.chunks_->next != nullptr || s.chunks_->size > first_chunk_bytes)) {
            Schedule::Chunk* c = s.chunks_;
            s.chunks_ = c->next;
            free(c);
        }
    }

    static void destroy(Schedule& s) {
        free_chunks(s, true);
        free(s.steps_);
        free(&s);
    }

    static void give_back(Schedule& s) {
        for (Schedule::Held* h = s.held_; h != nullptr; h = h->next) type::release(*h->type);
        if (s.keep_ && s.op_ != nullptr) op::release(*s.op_);
        close_own_area(*s.process, s.own_);
        if (s.keep_) obj::release(*s.comm);
        free_chunks(s, false);
        Engine& e = *s.process->coll;
        {
            SpinGuard guard(e.lock);
            if (e.idle_count < most_idle && s.capacity_ <= 1024) {
                s.next_active_ = e.idle;
                e.idle = &s;
                e.idle_count++;
                return;
            }
        }
        destroy(s);
    }

    static Err checked(Schedule& s) {
        return s.failed_to_build_ ? fail(Err::no_mem, "no memory for the schedule of a collective call") : Err::ok;
    }

    static Schedule*& link(Schedule& s) { return s.next_active_; }

    static void insert(Engine& e, Schedule& s) {
        SpinGuard guard(e.lock);
        append(e, s);
        e.active.fetch_add(1, std::memory_order_relaxed);
        p2p::begin_work(*s.process);
    }

    static void append(Engine& e, Schedule& s) {
        s.next_active_ = nullptr;
        s.previous_ = e.last;
        (e.last != nullptr ? e.last->next_active_ : e.first) = &s;
        e.last = &s;
    }

    static void unlink(Engine& e, Schedule& s) {
        (s.previous_ != nullptr ? s.previous_->next_active_ : e.first) = s.next_active_;
        (s.next_active_ != nullptr ? s.next_active_->previous_ : e.last) = s.previous_;
    }

    static bool try_busy(Schedule& s) {
        return s.busy_.load(std::memory_order_relaxed) == 0 && s.busy_.exchange(1, std::memory_order_acquire) == 0;
    }

    // Advances a schedule whose `busy` is ours. When it is at its end, busy stays taken and completing the request is
    // the last touch: the owner may free it at that moment. True when something moved.
    static bool drive(Schedule& s) {
        int32_t before = s.reaped_, issued = s.next_;
        if (s.advance()) {
            Engine& e = *s.process->coll;
            {
                SpinGuard guard(e.lock);
                unlink(e, s);
                e.active.fetch_sub(1, std::memory_order_relaxed);
                p2p::end_work(*s.process);
            }
            p2p::complete_special(*s.process, *s.request_, s.error_);
            return true;
        }
        bool moved = s.reaped_ != before || s.next_ != issued;
        s.busy_.store(0, std::memory_order_release);
        return moved;
    }

    static void begin(Schedule& s) {
        s.rewind();
        s.busy_.store(1, std::memory_order_relaxed);
        insert(*s.process->coll, s);
        drive(s);
    }

    static void attach(Schedule& s, Request* r) { s.request_ = r; }
    // An area that no step uses is not kept.
    static void keep_area_in_use(Schedule& s) {
        if (s.own_ == nullptr || s.own_->call != 0) return;
        close_own_area(*s.process, s.own_);
        s.own(nullptr);
    }
    static void may_use(Schedule& s, Share* share) { s.share_ = share; }
};

namespace {

Schedule& schedule_of(Request& r) { return *static_cast<Schedule*>(r.ext); }

bool poll(Request& r) {
    if (r.done()) return true;
    Schedule& s = schedule_of(r);
    if (Access::try_busy(s)) Access::drive(s);
    return r.done();
}

Err start_again(Request& r) {
    r.state.store(Request::pending, std::memory_order_relaxed);
    Access::begin(schedule_of(r));
    return Err::ok;
}

void free_schedule(Request& r) { Access::give_back(schedule_of(r)); }

constexpr obj::RequestOps once_ops{"collective", nullptr, poll, nullptr, nullptr, free_schedule};
constexpr obj::RequestOps again_ops{"persistent collective", start_again, poll, nullptr, nullptr, free_schedule};

// This thread is inside drive_all: advancing a schedule may make progress, which must not nest any deeper.
thread_local bool driving = false;

// The progress hook. Each schedule is visited once; one that another thread holds is skipped.
bool drive_all(Process& p) {
    if (p.coll == nullptr || driving) return false;  // null: closed, and the last messages are leaving
    Engine& e = *p.coll;
    int32_t visits = e.active.load(std::memory_order_relaxed);
    if (visits == 0) return false;
    driving = true;
    bool moved = false;
    for (; visits > 0; visits--) {
        Schedule* s = nullptr;
        {
            SpinGuard guard(e.lock);
            if ((s = e.first) == nullptr) break;
            Access::unlink(e, *s);
            Access::append(e, *s);
            if (!Access::try_busy(*s)) continue;
        }
        moved |= Access::drive(*s);
    }
    driving = false;
    return moved;
}

}  // namespace

Err open_tagged(Process& p, Comm& c, int32_t tag, bool keep, Schedule** out) {
    Engine* e = engine_of(p);
    Schedule* s = nullptr;
    if (e != nullptr) {
        SpinGuard guard(e->lock);
        if ((s = e->idle) != nullptr) {
            e->idle = Access::link(*s);
            e->idle_count--;
        }
    }
    if (e != nullptr && s == nullptr) s = static_cast<Schedule*>(calloc(1, sizeof(Schedule)));
    if (s == nullptr) return fail(Err::no_mem, "no memory for the schedule of a collective call");
    Access::reset(*s, p, c, tag, keep);
    if (keep) obj::retain(c);
    *out = s;
    return Err::ok;
}

Err open(Process& p, Comm& c, TagSpace space, bool keep, Schedule** out) {
    std::atomic<uint32_t>& sequence = space == of_nonblocking ? c.nonblocking_sequence : c.coll_sequence;
    const uint32_t number = sequence.fetch_add(1, std::memory_order_relaxed);
    WEFT_TRY(open_tagged(p, c, (static_cast<int32_t>(number) & tag_mask) | space, keep, out));
    if (space != of_persistent) Access::may_use(**out, share_for(c, space == of_nonblocking, number));
    return Err::ok;
}

Err abandon(Schedule& s, Err why) {
    Access::give_back(s);
    return why;
}

Err run(Schedule& s) {
    Err e = Access::checked(s);
    if (e == Err::ok) e = s.finish_now();
    Access::give_back(s);
    return e;
}

Err start(Schedule& s, Request** out) {
    if (Err e = Access::checked(s); e != Err::ok) return abandon(s, e);
    Request* r = p2p::make_special(*s.process, s.comm, &once_ops, &s);
    if (r == nullptr) return abandon(s, fail(Err::no_mem, "no memory for a request"));
    Access::attach(s, r);
    Access::begin(s);
    *out = r;
    return Err::ok;
}

Err init(Schedule& s, Request** out) {
    Access::keep_area_in_use(s);
    if (Err e = Access::checked(s); e != Err::ok) return abandon(s, e);
    Request* r = p2p::make_special(*s.process, s.comm, &again_ops, &s);
    if (r == nullptr) return abandon(s, fail(Err::no_mem, "no memory for a request"));
    Access::attach(s, r);
    r->flags |= Request::persistent;
    r->state.store(Request::inactive, std::memory_order_release);
    *out = r;
    return Err::ok;
}

void close(Process& p) {
    Engine* e = p.coll;
    if (e == nullptr) return;
    while (Schedule* s = e->idle) {
        e->idle = Access::link(*s);
        Access::destroy(*s);
    }
    forget_areas(p);
    free(e);
    p.coll = nullptr;
}

}  // namespace weft::coll
