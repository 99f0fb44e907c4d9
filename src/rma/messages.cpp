#include "rma/messages.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "boot/boot.hpp"
#include "comm/comm.hpp"
#include "obj/handles.hpp"
#include "obj/info.hpp"
#include "os/clock.hpp"
#include "p2p/calls.hpp"
#include "p2p/progress.hpp"
#include "type/elements.hpp"
#include "type/predefined.hpp"

namespace weft::rma {

// A packet that is leaving; the packet follows.
struct Sent {
    Sent* next;
    Request* request;
    int64_t bytes;
    Packet* packet() { return reinterpret_cast<Packet*>(this + 1); }
};

// An access that awaits data.
struct Access {
    Buffer result;      // holds a reference on its type
    int64_t left;       // bytes
    Request* request;   // null: none
    int32_t target;
};

namespace {

constexpr int64_t most_queued = 64 << 20;   // bytes of packets that a target may be late with; beyond, accesses wait for it

int64_t filled_up(int64_t bytes) { return (bytes + 7) & ~int64_t{7}; }

[[noreturn]] void end_job(Process& p, Err e, const char* text) { boot::abort(p.job, static_cast<int>(e), text); }
[[noreturn]] void out_of_memory(Process& p) { end_job(p, Err::no_mem, "no memory for an access to a window"); }
[[noreturn]] void damaged(Process& p) {
    end_job(p, Err::other, "a packet for a window fits nothing here: this process's memory, or the sender's, is damaged");
}

// -------------------------------------------------------------------------------------------------- packets that leave

Sent* take_sent(Messages& m) {
    SpinGuard guard(m.lock);
    Sent* s = m.first_sent;
    if (s == nullptr || !s->request->done()) return nullptr;
    m.first_sent = s->next;
    if (s->next == nullptr) m.last_sent = nullptr;
    return s;
}

bool free_sent(Messages& m) {
    bool any = false;
    while (Sent* s = take_sent(m)) {
        (void)p2p::finish(*m.process, *s->request, nullptr);
        m.queued.fetch_sub(s->bytes, std::memory_order_relaxed);
        free(s);
        any = true;
    }
    return any;
}

Sent* make_packet(Messages& m, int64_t bytes, PacketKind kind) {
    auto* s = static_cast<Sent*>(malloc(sizeof(Sent) + static_cast<size_t>(bytes)));
    if (s == nullptr) out_of_memory(*m.process);
    *s->packet() = {kind, 0, 0, 0, 0, 0};
    return s;
}

// Sends the first `bytes` of the packet, which is freed when it has left. Packets to one target arrive in the order of these calls.
void send_packet(Messages& m, int32_t target, Sent* s, int64_t bytes) {
    const p2p::Envelope to{target, packet_tag};
    if (p2p::isend(*m.process, *m.comm, type::bytes_at(s->packet(), bytes), to, p2p::Mode::standard, &s->request) != Err::ok)
        out_of_memory(*m.process);
    s->bytes = bytes;
    if (s->request->done()) {
        (void)p2p::finish(*m.process, *s->request, nullptr);
        free(s);
        return;
    }
    m.queued.fetch_add(bytes, std::memory_order_relaxed);
    SpinGuard guard(m.lock);
    s->next = nullptr;
    (m.last_sent != nullptr ? m.last_sent->next : m.first_sent) = s;
    m.last_sent = s;
}

void send_signal(Messages& m, int32_t target, PacketKind kind) {
    send_packet(m, target, make_packet(m, sizeof(Packet), kind), sizeof(Packet));
}

// Cuts an access into packets.
class Packets {
public:
    Packets(Messages& m, const Order& o, uint64_t access) : m_(m), o_(o), access_(access) {}

    bool add(type::ElementRun run) {
        const bool bytes = (o_.kind == PacketKind::put || o_.kind == PacketKind::get) && run.type->is(type::Type::dense);
        if (bytes) run = {run.offset, run.count * run.type->size, &type::byte_type()};
        while (run.count > 0) {
            const int64_t fit = room() / run.type->size, n = fit < run.count ? fit : run.count;
            if (n <= 0) {
                send();
                continue;
            }
            add_piece(run, n);
            run.offset += n * run.type->extent;
            run.count -= n;
        }
        return true;
    }

    void send() {
        if (s_ == nullptr) return;
        send_packet(m_, o_.target, s_, used_);
        s_ = nullptr;
    }

private:
    // Bytes of data that still fit with a piece, in the packet and in its reply.
    int64_t room() const {
        if (s_ == nullptr) return packet_bytes - static_cast<int64_t>(sizeof(Packet) + sizeof(Piece)) - 8;
        const int64_t here = packet_bytes - used_ - static_cast<int64_t>(sizeof(Piece)) - 8;
        const int64_t back = packet_bytes - static_cast<int64_t>(sizeof(Packet)) - replied_;
        return here < back ? here : back;
    }

    bool carries_data() const { return o_.kind != PacketKind::get && o_.origin.type != nullptr; }

    void add_piece(const type::ElementRun& run, int64_t n) {
        if (s_ == nullptr) begin();
        const Piece piece{o_.offset + run.offset, static_cast<int32_t>(n), type::number_of(*run.type)};
        char* to = reinterpret_cast<char*>(s_->packet()) + used_;
        memcpy(to, &piece, sizeof piece);
        used_ += static_cast<int64_t>(sizeof piece);
        s_->packet()->pieces++;
        const int64_t bytes = n * run.type->size, sent = o_.kind == PacketKind::compare_and_swap ? 2 * bytes : bytes;
        if (carries_data()) {
            type::pack(o_.origin, at_, sent, to + sizeof piece);
            used_ += filled_up(sent);
        }
        at_ += bytes;
        replied_ += bytes;
    }

    void begin() {
        s_ = make_packet(m_, packet_bytes, o_.kind);
        Packet& h = *s_->packet();
        h.op = o_.op != nullptr ? o_.op->id : 0;
        h.access = access_;
        h.at = at_;
        used_ = sizeof(Packet);
        replied_ = 0;
    }

    Messages& m_;
    const Order& o_;
    const uint64_t access_;
    Sent* s_ = nullptr;
    int64_t used_ = 0, replied_ = 0, at_ = 0;
};

// ------------------------------------------------------------------------------------------------ packets that arrive

// Reads a packet's pieces one by one.
class Pieces {
public:
    Pieces(Messages& m, const Packet& h, int64_t bytes)
        : m_(m), from_(reinterpret_cast<const char*>(&h + 1)), end_(reinterpret_cast<const char*>(&h) + bytes) {}

    // The next one's place here. Ends the job if there is none, or not in this window.
    Elements next() {
        Piece piece;
        if (end_ - from_ < static_cast<int64_t>(sizeof piece)) damaged(*m_.process);
        memcpy(&piece, from_, sizeof piece);
        from_ += sizeof piece;
        const type::Type* t = type::element_with(piece.number);
        if (t == nullptr || piece.count <= 0) damaged(*m_.process);
        Window& w = *m_.window;
        const Part& mine = w.parts[w.comm->rank];
        const Elements e{address(mine, piece.offset), piece.count, t};
        const int64_t span = (e.count - 1) * t->extent + t->true_extent;
        if (w.flavor == MPI_WIN_FLAVOR_DYNAMIC ? !is_attached(w, e.at, span) : piece.offset < 0 || piece.offset + span > mine.bytes)
            end_job(*m_.process, err_range, "a process has accessed memory that is not, or no longer, in this process's part of a window");
        return e;
    }

    const char* data(int64_t bytes) {
        if (end_ - from_ < bytes) damaged(*m_.process);
        const char* found = from_;
        from_ += filled_up(bytes);
        return found;
    }

private:
    Messages& m_;
    const char *from_, *end_;
};

int64_t bytes_of(const Elements& e) { return e.count * e.type->size; }

// Applies an access, and sends back what it asks for.
void apply(Messages& m, int32_t origin, const Packet& h, int64_t bytes) {
    Pieces pieces(m, h, bytes);
    os::SpinLock& wide = m.window->control->wide;
    const op::Op& op = *obj::op_of(*m.process, obj::detail::predefined_handle<MPI_Op>(static_cast<uintptr_t>(h.op)));
    Sent* reply = h.access != 0 ? make_packet(m, packet_bytes, PacketKind::reply) : nullptr;
    char* back = reply != nullptr ? reinterpret_cast<char*>(reply->packet() + 1) : nullptr;
    int32_t replied = 0;
    for (int32_t i = 0; i < h.pieces; i++) {
        const Elements e = pieces.next();
        const int64_t n = bytes_of(e);
        if (back != nullptr && replied + n > packet_bytes - static_cast<int64_t>(sizeof(Packet))) damaged(*m.process);
        switch (h.kind) {
        case PacketKind::put: type::unpack({e.at, e.count, e.type}, 0, n, pieces.data(n)); break;
        case PacketKind::get: type::pack({e.at, e.count, e.type}, 0, n, back + replied); break;
        case PacketKind::accumulate:
            accumulate(op, e, op.code == op::Code::no_op ? nullptr : pieces.data(n), back != nullptr ? back + replied : nullptr, wide);
            break;
        default: {
            const char* values = pieces.data(2 * n);
            compare_and_swap(e, values, values + n, back + replied, wide);
        }
        }
        replied += static_cast<int32_t>(n);
    }
    if (reply == nullptr) return;
    *reply->packet() = {PacketKind::reply, 0, 0, replied, h.access, h.at};
    send_packet(m, origin, reply, static_cast<int64_t>(sizeof(Packet)) + replied);
}

void take_reply(Messages& m, const Packet& h, int64_t bytes) {
    Access* a;
    {
        SpinGuard guard(m.lock);
        a = static_cast<Access*>(m.accesses.find(h.access));
        if (a != nullptr && a->left <= h.bytes) m.accesses.take(h.access);
    }
    if (a == nullptr || a->left < h.bytes || bytes < static_cast<int64_t>(sizeof(Packet)) + h.bytes) damaged(*m.process);
    type::unpack(a->result, h.at, h.bytes, &h + 1);
    a->left -= h.bytes;
    if (a->left != 0) return;
    type::release(*a->result.type);
    if (a->request != nullptr) p2p::complete_special(*m.process, *a->request, Err::ok);
    m.targets[a->target].replies.fetch_sub(1, std::memory_order_release);   // pairs with the acquire loads of those that wait
    free(a);
}

// Grants the lock to those that wait for it, in their order.
void grant(Messages& m) {
    while (m.waiting_count > 0) {
        const LockRequest r = m.waiting[m.waiting_from];
        if (m.held == Held::alone || (r.how == Held::alone && m.held != Held::no)) return;
        m.held = r.how;
        m.holders++;
        m.waiting_from = (m.waiting_from + 1) % m.window->size();
        m.waiting_count--;
        send_signal(m, r.rank, PacketKind::granted);
    }
}

void queue_lock(Messages& m, int32_t origin, Held how) {
    if (m.waiting_count == m.window->size()) damaged(*m.process);
    m.waiting[(m.waiting_from + m.waiting_count++) % m.window->size()] = {origin, how};
    grant(m);
}

void release_lock(Messages& m) {
    if (--m.holders == 0) m.held = Held::no;
    grant(m);
}

void handle(Messages& m, int32_t origin, const Packet& h, int64_t bytes) {
    switch (h.kind) {
    case PacketKind::put:
    case PacketKind::get:
    case PacketKind::accumulate:
    case PacketKind::compare_and_swap: return apply(m, origin, h, bytes);
    case PacketKind::reply: return take_reply(m, h, bytes);
    case PacketKind::flush: return send_signal(m, origin, PacketKind::ack);
    case PacketKind::unlock:
        send_signal(m, origin, PacketKind::ack);
        return release_lock(m);
    case PacketKind::ack: m.targets[origin].answered.fetch_add(1, std::memory_order_release); return;   // pairs with await_answers()
    case PacketKind::lock_shared: return queue_lock(m, origin, Held::shared);
    case PacketKind::lock_alone: return queue_lock(m, origin, Held::alone);
    case PacketKind::granted: m.targets[origin].granted.store(true, std::memory_order_release); return;   // pairs with await_lock()
    }
    damaged(*m.process);
}

// -------------------------------------------------------------------------------------------------------- the server

Err post_receive(Messages& m, int i) {
    return p2p::irecv(*m.process, *m.comm, type::bytes_at(m.space + i * packet_bytes, packet_bytes), {obj::any_source, packet_tag}, &m.incoming[i]);
}

// Handles the packets that have come, in their order. By one thread at a time.
bool serve(Messages& m) {
    bool moved = free_sent(m);
    for (int i = m.next_incoming; m.incoming[i]->done(); i = m.next_incoming) {
        obj::Status s{};
        if (p2p::finish(*m.process, *m.incoming[i], &s) != Err::ok || s.bytes < static_cast<int64_t>(sizeof(Packet))) damaged(*m.process);
        handle(m, s.source, *reinterpret_cast<const Packet*>(m.space + i * packet_bytes), s.bytes);
        if (post_receive(m, i) != Err::ok) out_of_memory(*m.process);
        m.next_incoming = (i + 1) % packet_receives;
        moved = true;
    }
    if (!moved) return false;
    // Other threads may sleep until what was just done, at all lanes: see lane::sleep_until_woken().
    { lane::LaneGuard guard(*m.comm->lane); }
    lane::wake_sleepers(*m.comm->lane);
    return true;
}

// Window number `visit` of the list, for this thread to serve; null where another thread serves it, and then that one looks once more.
Messages* begin_visit(Engine& e, int32_t visit, bool* exists) {
    SpinGuard guard(e.lock);
    Messages* m = e.first;
    for (int32_t i = 0; i < visit && m != nullptr; i++) m = m->next;
    *exists = m != nullptr;
    if (m == nullptr || m->busy) {
        if (m != nullptr) m->missed = true;
        return nullptr;
    }
    m->busy = true;
    m->missed = false;
    return m;
}

// True if another thread found it busy meanwhile, and may rely on its packets being served.
bool end_visit(Engine& e, Messages& m) {
    SpinGuard guard(e.lock);
    m.busy = false;
    return m.missed;
}

bool serve_all(Process& p) {
    Engine& e = *p.rma;
    bool moved = false, exists = true;
    for (int32_t visit = 0;;) {
        Messages* m = begin_visit(e, visit, &exists);
        if (!exists) return moved;
        if (m != nullptr) moved |= serve(*m);
        if (m == nullptr || !end_visit(e, *m)) visit++;
    }
}

Err engine_of(Process& p, Engine** out) {
    SpinGuard guard(p.pool_lock);
    if (p.rma == nullptr) p.rma = static_cast<Engine*>(calloc(1, sizeof(Engine)));
    *out = p.rma;
    return p.rma != nullptr ? Err::ok : fail(Err::no_mem, "no memory for a window");
}

void enlist(Engine& e, Messages& m) {
    SpinGuard guard(e.lock);
    m.next = e.first;
    e.first = &m;
}

// From here on nobody begins to serve it; true once nobody does.
bool delist(Engine& e, Messages& m) {
    SpinGuard guard(e.lock);
    for (Messages** at = &e.first; *at != nullptr; at = &(*at)->next)
        if (*at == &m) {
            *at = m.next;
            break;
        }
    return !m.busy;
}

void free_messages(Messages& m) {
    free(m.targets);
    free(m.waiting);
    free(m.space);
    m.accesses.close();
    free(&m);
}

// Waits for what comes by that lane: the waiting thread polls it first, as for a message. A thread that waits by another lane may serve
// the window meanwhile, so any lane can end the wait.
template <class Done> void await(Messages& m, Done&& done) {
    p2p::progress_until(*m.process, done, nullptr, p2p::Home{m.comm->lane, false});
}

template <class Each> void each_lane(const Window& w, Each&& each) {
    for (int32_t i = 0; i < (w.lanes > 0 ? w.lanes : 1); i++)
        if (w.messages[i] != nullptr) each(*w.messages[i]);   // null where a window could not be made
}

// Sends a flush, if there were accesses since the last one.
void ask_for_flush(Messages& m, int32_t target) {
    ToTarget& t = m.targets[target];
    {
        SpinGuard guard(m.lock);   // so that whoever finds `dirty` cleared finds the flush counted
        if (!t.dirty.exchange(false, std::memory_order_acq_rel)) return;
        t.asked.fetch_add(1, std::memory_order_relaxed);
    }
    send_signal(m, target, PacketKind::flush);
}

// Until what was asked for so far is answered. Not until nothing is: other threads may go on asking.
void await_answers(Messages& m, int32_t target) {
    ToTarget& t = m.targets[target];
    const uint32_t asked = t.asked.load(std::memory_order_relaxed);
    await(m, [&] { return static_cast<int32_t>(t.answered.load(std::memory_order_acquire) - asked) >= 0; });
}

// The calling thread's number among those of its process that have used lanes of windows. Threads are numbered in turn, because hashes of
// what identifies them would collide.
int32_t thread_number(Engine& e) {
    thread_local constinit int32_t number = -1;
    if (number < 0) number = e.threads.fetch_add(1, std::memory_order_relaxed) & INT32_MAX;
    return number;
}

// By which an access goes.
Messages& lane_of(Process& p, const Window& w, const Order& o) {
    if (w.lanes <= 1) return *w.messages[0];
    const bool ordered = !w.unordered && (o.kind == PacketKind::accumulate || o.kind == PacketKind::compare_and_swap);
    return *w.messages[(ordered ? o.target : thread_number(*p.rma)) % w.lanes];
}

constexpr obj::RequestOps access_ops{"access to a window", nullptr, nullptr, nullptr, nullptr, nullptr, false};

}  // namespace

void cancel_receives(Process& p, Request* const* receives, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        Request* r = receives[i];
        (void)p2p::cancel(p, &r);
        p2p::wait(p, *r);
        (void)p2p::finish(p, *r, nullptr);
    }
}

namespace {

// A communicator of the window's group with a lane of its own, while there is one.
Err make_lane(Process& p, Window& w, Comm** out) {
    Info* hints = nullptr;
    WEFT_TRY(obj::make_info(p, &hints));
    Err e = obj::info_put(*hints, "mpi_assert_new_vci", "true");
    if (e == Err::ok) e = comm::dup_with_info(p, *w.comm, hints, out);
    if (e == Err::ok) strcpy((*out)->name, w.comm->name);
    obj::free_info(p, *hints);
    return e;
}

Err open_lane(Process& p, Window& w, Engine& e, Comm& comm, Messages** out) {
    void* memory = malloc(sizeof(Messages));
    if (memory == nullptr) return fail(Err::no_mem, "no memory for a window");
    auto* m = new (memory) Messages{};
    const auto n = static_cast<size_t>(w.size());
    m->process = &p;
    m->window = &w;
    m->comm = &comm;
    m->targets = static_cast<ToTarget*>(calloc(n, sizeof(ToTarget)));
    m->waiting = static_cast<LockRequest*>(calloc(n, sizeof(LockRequest)));
    m->space = static_cast<char*>(malloc(packet_bytes * packet_receives));
    if (m->targets == nullptr || m->waiting == nullptr || m->space == nullptr) {
        free_messages(*m);
        return fail(Err::no_mem, "no memory for a window");
    }
    for (int i = 0; i < packet_receives; i++)
        if (post_receive(*m, i) != Err::ok) out_of_memory(p);
    *out = m;
    enlist(e, *m);
    comm.lane->services.fetch_add(1, std::memory_order_relaxed);
    p2p::register_hook(p, serve_all);
    p2p::begin_work(p);
    use_helper(p, e.helper);
    return Err::ok;
}

void close_lane(Process& p, Messages& m) {
    await(m, [&] { return m.queued.load(std::memory_order_relaxed) == 0; });
    leave_helper(p.rma->helper);
    while (!delist(*p.rma, m)) os::yield_cpu();
    p2p::end_work(p);
    m.comm->lane->services.fetch_sub(1, std::memory_order_relaxed);
    cancel_receives(p, m.incoming, packet_receives);
    if (m.comm != m.window->comm) (void)comm::free_comm(p, &m.comm);
    free_messages(m);
}

}  // namespace

Err open_messages(Process& p, Window& w) {
    Engine* e;
    WEFT_TRY(engine_of(p, &e));
    const int32_t n = w.lanes > 0 ? w.lanes : 1;
    w.messages = static_cast<Messages**>(calloc(static_cast<size_t>(n), sizeof(Messages*)));
    if (w.messages == nullptr) return fail(Err::no_mem, "no memory for a window");
    for (int32_t i = 0; i < n; i++) {
        Comm* comm = w.comm;
        if (w.lanes > 0) WEFT_TRY(make_lane(p, w, &comm));
        const Err one = open_lane(p, w, *e, *comm, &w.messages[i]);
        if (one == Err::ok) continue;
        if (comm != w.comm) (void)comm::free_comm(p, &comm);
        return one;
    }
    return Err::ok;
}

void close_messages(Process& p, Window& w) {
    each_lane(w, [&](Messages& m) { close_lane(p, m); });
    free(w.messages);
    w.messages = nullptr;
}

Err put_lanes(const Process& p, const Window& w, Info& i) {
    if (w.mapped || p.lane_count == 1) return Err::ok;
    char text[4 * lane::most_lanes];   // their numbers have two digits
    int at = 0;
    each_lane(w, [&](const Messages& m) {
        at += snprintf(text + at, sizeof text - static_cast<size_t>(at), "%s%u", at > 0 ? "," : "", p.contexts.lane_of(m.comm->context));
    });
    WEFT_TRY(obj::info_put(i, "weft_lane", text));
    if (w.lanes < 2) return Err::ok;
    snprintf(text, sizeof text, "%d", w.lanes);
    return obj::info_put(i, "mpi_num_vcis", text);
}

// ------------------------------------------------------------------------------------------------------- the origin

Err send_order(Process& p, Window& w, const Order& o, Request** out) {
    Messages& m = lane_of(p, w, o);
    ToTarget& t = m.targets[o.target];
    const int64_t bytes = o.shape.bytes();
    if (bytes == 0) return Err::ok;
    uint64_t id = 0;
    if (o.result.type != nullptr) {
        auto* a = static_cast<Access*>(malloc(sizeof(Access)));
        if (a == nullptr) out_of_memory(p);
        *a = {o.result, bytes, nullptr, o.target};
        if (out != nullptr && (*out = a->request = p2p::make_special(p, m.comm, &access_ops, nullptr)) == nullptr) out_of_memory(p);
        type::retain(*o.result.type);
        t.replies.fetch_add(1, std::memory_order_relaxed);
        SpinGuard guard(m.lock);
        if ((id = m.accesses.put(a)) == 0) out_of_memory(p);
    }
    Packets packets(m, o, id);
    type::each_run(*o.shape.type, o.shape.count, [&](const type::ElementRun& run) { return packets.add(run); });
    packets.send();
    // After the packets have been handed over: whoever clears it sends a flush that they precede.
    t.dirty.store(true, std::memory_order_release);
    if (m.queued.load(std::memory_order_relaxed) > most_queued)
        await(m, [&] { return m.queued.load(std::memory_order_relaxed) <= most_queued; });
    return Err::ok;
}

void flush_by_messages(Window& w, int32_t target) {
    each_lane(w, [&](Messages& m) { ask_for_flush(m, target); });
    each_lane(w, [&](Messages& m) { await_answers(m, target); });
}

void flush_all_by_messages(Window& w) {
    for (int32_t i = 0; i < w.size(); i++) each_lane(w, [&](Messages& m) { ask_for_flush(m, i); });
    for (int32_t i = 0; i < w.size(); i++) each_lane(w, [&](Messages& m) { await_answers(m, i); });
}

void flush_local_by_messages(Window& w, int32_t target) {
    each_lane(w, [&](Messages& m) {
        ToTarget& t = m.targets[target];
        await(m, [&] { return t.replies.load(std::memory_order_acquire) == 0; });
    });
}

void ask_for_lock(Window& w, int32_t target, Held how) {
    send_signal(*w.messages[0], target, how == Held::alone ? PacketKind::lock_alone : PacketKind::lock_shared);
}

void await_lock(Window& w, int32_t target) {
    ToTarget& t = w.messages[0]->targets[target];
    await(*w.messages[0], [&] { return t.granted.load(std::memory_order_acquire); });
    t.granted.store(false, std::memory_order_relaxed);
}

void lock_by_messages(Window& w, int32_t target, Held how) {
    ask_for_lock(w, target, how);
    await_lock(w, target);
}

void unlock_by_messages(Window& w, int32_t target) {
    if (w.lanes > 1) flush_by_messages(w, target);   // nothing orders the other lanes before this one
    Messages& m = *w.messages[0];
    ToTarget& t = m.targets[target];
    {
        SpinGuard guard(m.lock);
        t.dirty.store(false, std::memory_order_relaxed);
        t.asked.fetch_add(1, std::memory_order_relaxed);
    }
    send_signal(m, target, PacketKind::unlock);
    await_answers(m, target);
}

}  // namespace weft::rma
