#include "wire/sock/sock.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "os/process.hpp"
#include "os/socket.hpp"

namespace weft::wire::sock {
namespace {

// The first datagram of every connection.
struct Hello {
    unsigned char secret[sizeof Key::secret];
    int32_t rank;
};

constexpr size_t name_bytes = 64;
constexpr const char* wakes_suffix = "-wakes";

void name_of(const Key& key, int rank, char out[name_bytes], const char* suffix = "") {
    int at = snprintf(out, name_bytes, "weft-");
    for (const unsigned char c : key.name) at += snprintf(out + at, name_bytes - static_cast<size_t>(at), "%02x", c);
    snprintf(out + at, name_bytes - static_cast<size_t>(at), "-%d%s", rank, suffix);
}

uint32_t bulk_of(const Cell& c) {
    BulkRef ref;
    memcpy(&ref, c.payload, sizeof ref);
    return ref.bytes;
}

constexpr size_t header_bytes = offsetof(Cell, payload);

size_t bytes_of(const Cell& c, const Header& h) {
    return (h.flags & has_bulk) != 0 ? sizeof(Cell) + bulk_of(c) : header_bytes + h.bytes;
}

bool is_message(const Sock::Datagram& d, int64_t bytes) {
    const Header h = d.cell.header(d.cell.word.load(std::memory_order_relaxed));
    return bytes >= static_cast<int64_t>(header_bytes) && h.bytes <= inline_bytes && static_cast<size_t>(bytes) == bytes_of(d.cell, h);
}

Sock::Datagram* make_datagram() { return static_cast<Sock::Datagram*>(aligned_alloc(64, sizeof(Sock::Datagram))); }

}  // namespace

Err Sock::open(const Key& key, int all, int rank) {
    key_ = key;
    ranks = all;
    me = rank;
    const auto n = static_cast<size_t>(all);
    out = static_cast<Out*>(malloc(n * sizeof(Out)));
    in = static_cast<In**>(calloc(n, sizeof(In*)));
    sending_ = make_datagram();
    arrived_ = make_datagram();
    if (out == nullptr || in == nullptr || sending_ == nullptr || arrived_ == nullptr)
        return fail(Err::no_mem, "no memory for the ends of %d sockets", all);
    for (size_t p = 0; p < n; ++p) out[p] = Out{-1, 0, 0, false, false, false, false, false, false, nullptr};
    char name[name_bytes];
    name_of(key, rank, name);
    listener_ = os::listen_abstract(name);
    watcher_ = os::make_watch();
    event_ = os::make_event();
    if (listener_ < 0 || watcher_ < 0 || event_ < 0 || !os::set_nonblocking(listener_) ||
        !os::watch(watcher_, listener_, os::News::readable, this))
        return fail(Err::other, "no socket for the other ranks: %s", strerror(errno));
    // Every sending socket gets the same size. With less than four chunks writer and reader would alternate instead of overlapping.
    buffer_ = os::ask_for_buffer(listener_, 4 * (largest_chunk + 8192));
    const int64_t most = buffer_ - 32 - static_cast<int64_t>(sizeof(Cell));  // 32: reserved by Linux
    chunk_limit = most < largest_chunk ? static_cast<uint32_t>(most & ~int64_t{4095}) : largest_chunk;
    if (buffer_ < 8192) return fail(Err::other, "sockets with buffers of %lld bytes are no use", static_cast<long long>(buffer_));
    return Err::ok;
}

Err Sock::accept_wakes() {
    char name[name_bytes];
    name_of(key_, me, name, wakes_suffix);
    wakes_ = os::make_wake_socket(name);
    return wakes_ >= 0 ? Err::ok : fail(Err::other, "no socket to be woken at: %s", strerror(errno));
}

void Sock::close() {
    for (int p = 0; p < ranks && out != nullptr; ++p) {
        os::close_fd(&out[p].fd);
        free(out[p].waiting);
    }
    while (all_in_ != nullptr) {
        In* i = all_in_;
        all_in_ = i->next_in;
        os::close_fd(&i->fd);
        free(i);
    }
    for (int* fd : {&listener_, &watcher_, &event_, &wakes_}) os::close_fd(fd);
    free(out);
    free(in);
    free(sending_);
    free(arrived_);
    out = nullptr;
    in = nullptr;
    sending_ = arrived_ = nullptr;
    active_ = Fifo{};
    last_ = nullptr;
    unsent_ = kept_ = ranks = 0;
}

Err Sock::check() const {
    return denied_ == nullptr ? Err::ok : fail(Err::other, "rank %d: %s: %s", me, denied_, strerror(why_));
}

bool Sock::denied(const char* what) {
    denied_ = what;
    why_ = errno;
    return false;
}

// ---- sending

// Connects to a peer; called again until it listens.
bool Sock::try_connect(int peer) {
    Out& o = out[peer];
    const bool retry = o.retry;
    o.retry = false;
    const bool connected = connect(peer, o);
    if (o.retry != retry) retries_.fetch_add(o.retry ? 1 : -1, std::memory_order_relaxed);
    return connected;
}

bool Sock::connect(int peer, Out& o) {
    char name[name_bytes];
    name_of(key_, peer, name);
    int fd = os::connect_abstract(name, false);
    if (fd < 0 && errno == EMFILE && os::raise_descriptor_limit()) fd = os::connect_abstract(name, false);
    if (fd < 0) {
        // It does not listen yet, or its backlog is full.
        o.retry = errno == ECONNREFUSED || errno == EAGAIN;
        return o.retry ? false : denied("cannot connect to another rank");
    }
    errno = EPERM;
    bool good = os::peer_is_same_user(fd) || denied("another user listens at a rank's name");
    if (good && o.waiting == nullptr) {
        o.waiting = make_datagram();
        good = o.waiting != nullptr || denied("no memory to connect to another rank");
    }
    Hello hello{{}, me};
    memcpy(hello.secret, key_.secret, sizeof hello.secret);
    good = good && os::ask_for_buffer(fd, buffer_) >= buffer_ && os::send_now(fd, &hello, sizeof hello) == os::Sent::whole;
    if (!good) os::close_fd(&fd);
    o.fd = fd;
    o.retry = !good;
    return good;
}

int64_t Sock::free_bytes(const Out& o) const {
    const int64_t unread = os::unread_bytes(o.fd);
    return unread < 0 ? 1 : buffer_ - unread;  // unknown: assumes room, and the next send tells
}

// False: again later.
bool Sock::make_room(int peer) {
    Out& o = out[peer];
    if (o.held || o.gone || (o.fd < 0 && !try_connect(peer))) return false;
    read_credit(o);
    if (o.waiting_bytes != 0 || o.gone) return false;  // poll() sends it first
    const int64_t bytes = free_bytes(o);
    o.full = bytes <= 0;
    if (o.full) return false;
    o.room = bytes < room_at_once ? static_cast<int32_t>(bytes) : room_at_once;
    if (o.watched) os::unwatch(watcher_, o.fd);
    o.watched = false;
    return true;
}

bool Sock::has_room(int peer, uint32_t cells, size_t chunk) {
    if (reserve(peer) == nullptr) return false;
    // Linux takes the last datagram whatever its size, as long as some room is left.
    return free_bytes(out[peer]) > (cells - 1) * cost(sizeof(Cell) + chunk);
}

void Sock::commit(int peer, Cell* c, const Header& h) {
    Out& o = out[peer];
    ++cells_sent;
    c->tag = h.tag;
    c->context = h.context;
    c->word.store(Cell::pack(h), std::memory_order_relaxed);
    const size_t bytes = bytes_of(*c, h);
    switch (os::send_now(o.fd, c, bytes)) {
    case os::Sent::whole: {
        const int64_t room = o.room - cost(bytes);
        o.room = room > 0 ? static_cast<int32_t>(room) : 0;
        return;
    }
    case os::Sent::later:
        memcpy(static_cast<void*>(o.waiting), c, bytes);
        o.waiting_bytes = static_cast<uint32_t>(bytes);
        o.room = 0;
        o.full = true;
        ++unsent_;
        more_.store(true, std::memory_order_relaxed);
        return;
    case os::Sent::over: drop_out(o); return;
    }
}

bool Sock::send_waiting() {
    bool moved = false;
    for (int p = 0; p < ranks && unsent_ != 0; ++p) {
        Out& o = out[p];
        if (o.waiting_bytes == 0) continue;
        const os::Sent sent = os::send_now(o.fd, o.waiting, o.waiting_bytes);
        if (sent == os::Sent::later) continue;
        moved = true;
        if (sent == os::Sent::over) {
            drop_out(o);
        } else {
            o.waiting_bytes = 0;
            --unsent_;
        }
    }
    return moved;
}

// The peer of `o` has ended: drops the datagram that waits for it.
void Sock::drop_out(Out& o) {
    if (o.watched) os::unwatch(watcher_, o.fd);
    os::close_fd(&o.fd);
    if (o.waiting_bytes != 0) --unsent_;
    o.waiting_bytes = 0;
    o.room = 0;
    o.full = false;
    o.watched = false;
    o.gone = true;
}

// Reads what the reader has reported of credit.
void Sock::read_credit(Out& o) {
    char over;
    int64_t n;
    while ((n = os::receive_now(o.fd, &over, 1)) > 0) o.over_credit = over != 0;
    if (n < 0) drop_out(o);
}

bool Sock::within_credit(int peer) {
    Out& o = out[peer];
    if (o.over_credit && !o.gone) read_credit(o);
    return !o.over_credit;
}

void Sock::tell_over_credit(int peer, bool over) {
    In* i = in[peer];
    if (i == nullptr) return;
    i->over = over;
    send_credit(*i);
}

// If the kernel does not take the byte, deliver() tries again after the next message of that peer.
void Sock::send_credit(In& i) {
    const char over = i.over;
    if (i.fd < 0 || os::send_now(i.fd, &over, 1) != os::Sent::later) i.reported = i.over;
}

// ---- receiving

// Receives the next message of `i` into `arrived_`; false if there is none.
bool Sock::receive(In& i) {
    while (i.fd >= 0) {
        const int64_t n = os::receive_now(i.fd, arrived_, sizeof *arrived_);
        if (n == 0) return false;
        if (n > 0 && i.peer < 0) {
            if (!identify(i, n)) end(i);
            continue;
        }
        if (n > 0 && is_message(*arrived_, n)) {
            arrived_bytes_ = static_cast<uint32_t>(n);
            return true;
        }
        end(i);
    }
    return false;
}

// Reads the first datagram. False unless it holds the secret and a rank that has not connected before.
bool Sock::identify(In& i, int64_t bytes) {
    Hello h;
    memcpy(&h, arrived_, sizeof h);
    if (bytes != sizeof h || memcmp(h.secret, key_.secret, sizeof h.secret) != 0 || h.rank < 0 || h.rank >= ranks || in[h.rank] != nullptr)
        return false;
    i.peer = h.rank;
    in[h.rank] = &i;
    return true;
}

// The other side has closed, or is no rank of this job. (close() alone would not end the watch if a forked child has the socket, too.)
void Sock::end(In& i) {
    os::unwatch(watcher_, i.fd);
    os::close_fd(&i.fd);
    if (last_ == &i) last_ = nullptr;
}

void Sock::activate(In& i) {
    if (i.active) return;
    i.active = true;
    active_.push(&i);
}

// Takes `i` off the active list until epoll reports it again; frees a connection that was refused.
void Sock::leave(In& i, Link* before) {
    active_.remove(&i, before);
    i.active = false;
    if (i.fd >= 0 || i.peer >= 0) return;
    In** at = &all_in_;
    while (*at != &i) at = &(*at)->next_in;
    *at = i.next_in;
    free(&i);
}

void Sock::keep(In& i) {
    memcpy(static_cast<void*>(&i.kept), arrived_, arrived_bytes_);
    i.kept_bytes = arrived_bytes_;
    ++kept_;
}

void Sock::drop_kept(In& i) {
    i.kept_bytes = 0;
    --kept_;
}

void Sock::read_events(uint64_t now) {
    constexpr int at_once = 64;
    void* tags[at_once];
    events_read_ = now;
    const int n = os::take_news(watcher_, tags, at_once);
    if (n == at_once) events_read_ = 0;
    for (int k = 0; k < n; ++k) {
        if (tags[k] == this) accept_due_ = true;
        else if (tags[k] != nullptr) activate(*static_cast<In*>(tags[k]));  // null: room for sending, which make_room() finds
    }
    if (WEFT_UNLIKELY(accept_due_)) accept_all();
}

void Sock::accept_all() {
    for (;;) {
        int fd = os::accept_now(listener_);
        if (fd < 0 && errno == EMFILE && os::raise_descriptor_limit()) continue;
        if (fd < 0) {
            accept_due_ = errno != EAGAIN;
            if (accept_due_) (void)denied("cannot accept another rank's connection");
            return;
        }
        if (os::peer_is_same_user(fd)) admit(fd);
        else os::close_fd(&fd);
    }
}

void Sock::admit(int fd) {
    auto* i = static_cast<In*>(aligned_alloc(64, sizeof(In)));
    if (i == nullptr || !os::watch(watcher_, fd, os::News::readable, i)) {
        (void)denied("no memory for another rank's connection");
        free(i);
        os::close_fd(&fd);
        return;
    }
    i->fd = fd;
    i->peer = -1;
    i->kept_bytes = 0;
    i->active = i->over = i->reported = false;
    i->next_in = all_in_;
    all_in_ = i;
    activate(*i);
}

// ---- waiting

void Sock::after_poll(bool moved) {
    more_.store(moved || kept_ != 0 || unsent_ != 0, std::memory_order_relaxed);
    // epoll does not report unread messages again. If this thread leaves MPI now, a sleeping one has to poll for them.
    if (moved && asleep_.load(std::memory_order_seq_cst) != 0) wake_self();
}

bool Sock::peek() const { return more_.load(std::memory_order_relaxed) || os::has_news(watcher_); }

uint32_t Sock::sleep_prepare() {
    if (asleep_.fetch_add(1, std::memory_order_seq_cst) == 0) {
        os::clear_event(event_);
        if (wakes_ >= 0) os::clear_wakes(wakes_);
    }
    // Room is watched only during a sleep. events_read_ = 0: the caller's poll reads epoll, so that old events do not end the sleep.
    for (int p = 0; p < ranks; ++p)
        if (out[p].full && !out[p].watched) out[p].watched = os::watch(watcher_, out[p].fd, os::News::writable, nullptr);
    events_read_ = 0;
    return 0;
}

void Sock::sleep(uint32_t, uint32_t timeout_us) {
    // Nothing reports that a rank has begun to listen, so the sleep is short while a connect() has to be tried again.
    constexpr uint32_t between_retries_us = 1000;
    const bool retries = retries_.load(std::memory_order_relaxed) != 0;
    os::wait_for_any(watcher_, event_, wakes_, retries && timeout_us > between_retries_us ? between_retries_us : timeout_us);
}

void Sock::wake(int peer) const {
    char name[name_bytes];
    name_of(key_, peer, name, wakes_suffix);
    os::wake_at(wakes_, name);
}

void Sock::wake_self() const { os::ring_event(event_); }

}  // namespace weft::wire::sock
