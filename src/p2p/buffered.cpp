// Buffered sends. A message that cannot be sent inline is copied to memory from malloc and sent from there. The size of an attached buffer
// only limits how many bytes may be held, MPI_BSEND_OVERHEAD for each message included; the buffer itself is not used.
#include <cstdlib>
#include <cstring>

#include "p2p/calls.hpp"
#include "p2p/combined.hpp"
#include "type/predefined.hpp"

namespace weft::p2p {

// A buffered message that is not yet complete.
struct Buffered {
    Buffered* next;
    Request* request;
    uint64_t number;     // in the order of sending
    int64_t cost;
    char data[];
};

struct AttachedBuffer {
    AttachedBuffer* next;
    BufferOwner owner;
    void* address;
    int64_t size;        // -1: automatic, without bound
    int64_t used;
    Buffered* under_way; // oldest first
    Buffered** end;      // the link after the last one
};

// Memory from which an abandoned request still sends.
struct Kept {
    Kept* next;
    Request* send;
    void* memory;
};

// Guarded by `lock`, a leaf lock: requests are finished after it is released.
struct Buffers {
    os::SpinLock lock;
    AttachedBuffer* first;
    uint64_t sent;       // messages so far, in all buffers
    Kept* kept;
};

namespace {

Err buffers_of(Process& p, Buffers** out) {
    Buffers* b = p.buffers.load(std::memory_order_acquire);   // pairs with the exchange
    if (b == nullptr) {
        auto* fresh = static_cast<Buffers*>(calloc(1, sizeof(Buffers)));
        if (fresh == nullptr) return fail(Err::no_mem, "no memory for buffered sends");
        constexpr auto both = std::memory_order_acq_rel;
        if (p.buffers.compare_exchange_strong(b, fresh, both, std::memory_order_acquire)) b = fresh;
        else free(fresh);
    }
    *out = b;
    return Err::ok;
}

// Under the lock.
AttachedBuffer** find(Buffers& all, const BufferOwner& owner) {
    for (AttachedBuffer** b = &all.first; *b != nullptr; b = &(*b)->next)
        if ((*b)->owner == owner) return b;
    return nullptr;
}

// Removes and frees the messages that have been sent. True when none up to `number` is left.
bool reap(Process& p, Buffers& all, const BufferOwner& owner, uint64_t number) {
    Buffered* done = nullptr;
    bool left = false;
    {
        SpinGuard guard(all.lock);
        AttachedBuffer** at = find(all, owner);
        if (at == nullptr) return true;
        for (Buffered** m = &(*at)->under_way; *m != nullptr;) {
            Buffered* x = *m;
            if (x->request != nullptr && x->request->done()) {
                *m = x->next;
                (*at)->used -= x->cost;
                x->next = done;
                done = x;
            } else {
                left |= x->number <= number;
                m = &x->next;
            }
            (*at)->end = m;
        }
    }
    while (done != nullptr) {
        Buffered* x = done;
        done = x->next;
        (void)finish(p, *x->request, nullptr);
        free(x);
    }
    return !left;
}

// The communicator's buffer, else its session's, else the process's.
AttachedBuffer** choose(Buffers& all, const Comm& c) {
    if (AttachedBuffer** b = find(all, BufferOwner(c))) return b;
    if (c.session != nullptr)
        if (AttachedBuffer** b = find(all, BufferOwner(*static_cast<obj::Session*>(c.session)))) return b;
    return find(all, BufferOwner());
}

// Fails if no buffer is attached, or the message is larger than the whole buffer.
Err check_buffer(Buffers& all, const Comm& c, int64_t cost) {
    SpinGuard guard(all.lock);
    AttachedBuffer** at = choose(all, c);
    if (at == nullptr) return fail(Err::buffer, "no buffer is attached for buffered sends (MPI_Buffer_attach)");
    if ((*at)->size >= 0 && cost > (*at)->size)
        return fail(Err::buffer, "a message needs %ld bytes of the attached buffer, which has only %ld",
                    static_cast<long>(cost), static_cast<long>((*at)->size));
    return Err::ok;
}

// Charges the message to a buffer; its request is set later.
Err book(Buffers& all, const Comm& c, Buffered* m, BufferOwner* owner) {
    SpinGuard guard(all.lock);
    AttachedBuffer** at = choose(all, c);
    if (at == nullptr) return fail(Err::buffer, "no buffer is attached for buffered sends (MPI_Buffer_attach)");
    AttachedBuffer& b = **at;
    *owner = b.owner;
    if (b.size >= 0 && b.used + m->cost > b.size)
        return fail(Err::buffer, "a message needs %ld bytes of the attached buffer, %ld of its %ld are free",
                    static_cast<long>(m->cost), static_cast<long>(b.size - b.used), static_cast<long>(b.size));
    b.used += m->cost;
    m->number = ++all.sent;
    *b.end = m;
    b.end = &m->next;
    return Err::ok;
}

void unbook(Buffers& all, const BufferOwner& owner, Buffered* m) {
    SpinGuard guard(all.lock);
    AttachedBuffer** at = find(all, owner);
    if (at == nullptr) return;
    for (Buffered** x = &(*at)->under_way; *x != nullptr; x = &(*x)->next) {
        if (*x != m) continue;
        *x = m->next;
        if ((*at)->end == &m->next) (*at)->end = x;
        (*at)->used -= m->cost;
        return;
    }
}

// Frees the kept memory of sends that are complete. True when none is left.
bool drop_kept(Process& p, Buffers& all) {
    Kept* done = nullptr;
    bool left;
    {
        SpinGuard guard(all.lock);
        for (Kept** k = &all.kept; *k != nullptr;) {
            Kept* x = *k;
            if (!x->send->done()) {
                k = &x->next;
                continue;
            }
            *k = x->next;
            x->next = done;
            done = x;
        }
        left = all.kept != nullptr;
    }
    while (done != nullptr) {
        Kept* x = done;
        done = x->next;
        (void)finish(p, *x->send, nullptr);
        free(x->memory);
        free(x);
    }
    return !left;
}

}  // namespace

Err bsend(Process& p, Comm& c, Buffer b, Envelope e) {
    if (e.rank == obj::proc_null) return Err::ok;
    Buffers* all;
    WEFT_TRY(buffers_of(p, &all));
    const int64_t bytes = b.bytes();
    WEFT_TRY(check_buffer(*all, c, bytes + MPI_BSEND_OVERHEAD));
    if (send_inline(p, c, b, e)) return Err::ok;
    auto* m = static_cast<Buffered*>(malloc(sizeof(Buffered) + static_cast<size_t>(bytes)));
    if (m == nullptr) return fail(Err::no_mem, "no memory to buffer %ld bytes", static_cast<long>(bytes));
    *m = {nullptr, nullptr, 0, bytes + MPI_BSEND_OVERHEAD};
    if (bytes != 0) type::pack(b, 0, bytes, m->data);  // else the buffer may be a null pointer
    BufferOwner owner;
    Err err = book(*all, c, m, &owner);
    // Progress may complete earlier sends and free room. A round completes few, so the buffer is full only when a round moves nothing.
    for (bool moved = true; err == Err::buffer && moved;) {
        moved = progress(p);
        (void)reap(p, *all, owner, UINT64_MAX);
        err = book(*all, c, m, &owner);
    }
    if (err != Err::ok) {
        free(m);
        return err;
    }
    Request* r = nullptr;
    err = isend(p, c, type::bytes_at(m->data, bytes), e, Mode::standard, &r);
    if (err != Err::ok) {
        unbook(*all, owner, m);
        free(m);
        return err;
    }
    {
        SpinGuard guard(all->lock);
        m->request = r;
    }
    if (r->done()) (void)reap(p, *all, owner, 0);
    return Err::ok;
}

Err ibsend(Process& p, Comm& c, Buffer b, Envelope e, Request** out) {
    WEFT_TRY(bsend(p, c, b, e));
    *out = &p.sent_request;
    return Err::ok;
}

Err buffer_attach(Process& p, BufferOwner owner, void* buffer, int64_t size) {
    Buffers* all;
    WEFT_TRY(buffers_of(p, &all));
    const bool automatic = buffer == MPI_BUFFER_AUTOMATIC;
    if (!automatic && buffer == nullptr && size > 0) return fail(Err::buffer, "the buffer is a null pointer");
    auto* fresh = static_cast<AttachedBuffer*>(calloc(1, sizeof(AttachedBuffer)));
    if (fresh == nullptr) return fail(Err::no_mem, "no memory to attach a buffer");
    fresh->owner = owner;
    fresh->address = buffer;
    fresh->size = automatic ? -1 : size;
    fresh->end = &fresh->under_way;
    SpinGuard guard(all->lock);
    if (find(*all, owner) != nullptr) {
        free(fresh);
        return fail(Err::buffer, "a buffer is attached here already");
    }
    fresh->next = all->first;
    all->first = fresh;
    return Err::ok;
}

Err buffer_flush(Process& p, BufferOwner owner) {
    Buffers* all;
    WEFT_TRY(buffers_of(p, &all));
    progress_until(p, [&] { return reap(p, *all, owner, UINT64_MAX); });
    return Err::ok;
}

Err buffer_detach(Process& p, BufferOwner owner, void* address, int64_t* size, bool large) {
    Buffers* known;
    WEFT_TRY(buffers_of(p, &known));
    Buffers& all = *known;
    if (!large) {  // before anything is lost
        SpinGuard guard(all.lock);
        if (AttachedBuffer** at = find(all, owner); at != nullptr && (*at)->size > INT32_MAX)
            return fail(Err::value_too_large, "the buffer's %ld bytes do not fit an int, but MPI_Buffer_detach_c's",
                        static_cast<long>((*at)->size));
    }
    WEFT_TRY(buffer_flush(p, owner));
    AttachedBuffer* b = nullptr;
    {
        SpinGuard guard(all.lock);
        if (AttachedBuffer** at = find(all, owner)) {
            b = *at;
            *at = b->next;
        }
    }
    void* was = b != nullptr ? b->address : nullptr;
    memcpy(address, &was, sizeof was);   // the user's pointer, whatever its type
    *size = b != nullptr && b->size >= 0 ? b->size : 0;
    free(b);
    return Err::ok;
}

namespace {

// A pending flush of the messages up to `number`.
struct Flush {
    BufferOwner owner;
    uint64_t number;
};

bool poll_flush(Request& r) {
    Process& p = *obj::process;
    auto& f = *static_cast<Flush*>(r.ext);
    return reap(p, *p.buffers.load(std::memory_order_acquire), f.owner, f.number);
}

void free_flush(Request& r) { free(r.ext); }

Err finish_flush(Request&, Status& s) {
    s = obj::empty_status;
    return Err::ok;
}

constexpr obj::RequestOps flush_ops{"flush of a buffer", nullptr, poll_flush, finish_flush, nullptr, free_flush, true};

}  // namespace

Err buffer_iflush(Process& p, BufferOwner owner, Request** out) {
    Buffers* all;
    WEFT_TRY(buffers_of(p, &all));
    auto* f = static_cast<Flush*>(malloc(sizeof(Flush)));
    if (f == nullptr) return fail(Err::no_mem, "no memory for a request");
    {
        SpinGuard guard(all->lock);
        *f = {owner, all->sent};
    }
    Request* r = make_special(p, nullptr, &flush_ops, f);
    if (r == nullptr) {
        free(f);
        return fail(Err::no_mem, "no memory for a request");
    }
    *out = r;
    return Err::ok;
}

void keep_until_sent(Process& p, Request* send, void* memory) {
    Buffers* all;
    auto* k = static_cast<Kept*>(malloc(sizeof(Kept)));
    if (k == nullptr || buffers_of(p, &all) != Err::ok) {
        free(k);
        wait(p, *send);
        (void)finish(p, *send, nullptr);
        free(memory);
        return;
    }
    (void)drop_kept(p, *all);
    SpinGuard guard(all->lock);
    *k = {all->kept, send, memory};
    all->kept = k;
}

void close_buffer(Process& p, BufferOwner owner) {
    void* address;
    int64_t size;
    if (p.buffers.load(std::memory_order_acquire) != nullptr) (void)buffer_detach(p, owner, &address, &size, true);
}

void close_buffers(Process& p) {
    Buffers* all = p.buffers.load(std::memory_order_acquire);
    if (all == nullptr) return;
    while (all->first != nullptr) close_buffer(p, all->first->owner);
    progress_until(p, [&] { return drop_kept(p, *all); });
    free(all);
    p.buffers.store(nullptr, std::memory_order_release);
}

}  // namespace weft::p2p
