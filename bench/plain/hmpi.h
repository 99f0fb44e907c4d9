/* The matching and the transfers of Hybrid MPI (A. Friedley, Indiana University, 2013), as its description has them: an inbox per rank
 * with two queues, one shared and guarded by an MCS lock, one of the receiver's own; small messages inside the message object, one copy
 * by the receiver, or blocks that both sides claim. And, for comparison under the same matching, an inbox of one ring for each pair.
 * Included by hmpi.c alone. Everything lies in memory that all processes have at the same address. */
#ifndef WEFT_BENCH_HMPI_H
#define WEFT_BENCH_HMPI_H
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { most_ranks = 64, messages_each = 16, ring_slots = 32 };
/* The thresholds for Sandy Bridge. Below twice the block there is nothing to share. */
enum { immediate_below = 256, small_block = 4 << 10, large_block = 12 << 10, large_block_above = 24 << 10 };

/* Invariant: from `posted` on a message belongs to its receiver, all but `state`, until that is `idle` (immediate) or `finished`; it is in
 * one queue or one ring's slot at a time. While it is `copying`, sender and receiver may take blocks, each of which one of them copies;
 * the receiver leaves that state when `copied` says that all have been. */
typedef enum State { idle, posted, copying, finished } State;

typedef struct Message {
    _Alignas(64) struct Message *next; /* of either queue */
    int source, tag, context;
    size_t bytes;
    const char *from;
    char data[immediate_below];
    _Alignas(64) _Atomic int state;
    char *to; /* of a shared copy: these are written before it is `copying` */
    size_t block;
    _Alignas(64) _Atomic size_t claimed;
    _Atomic size_t copied; /* what is claimed need not be copied yet */
} Message;

typedef struct Waiter {
    _Alignas(64) _Atomic(struct Waiter *) next;
    _Atomic bool waits;
} Waiter;

typedef struct Inbox {
    _Alignas(64) _Atomic(Waiter *) last; /* of those who have or want the lock */
    _Alignas(64) _Atomic(Message *) head; /* peeked at without the lock */
    Message *tail;
} Inbox;

typedef struct Ring {
    _Alignas(64) _Atomic(Message *) slot[ring_slots];
} Ring;

typedef struct Rank {
    Inbox inbox;
    Ring from[most_ranks];
    Waiter waiter;                              /* of this rank, for any inbox */
    Message messages[most_ranks][messages_each]; /* of this rank, by receiver */
    _Alignas(64) _Atomic uint64_t done;          /* what this rank has received, for those who watch */
} Rank;

/* What one process knows. */
typedef struct Self {
    Rank *ranks;
    int me, count;
    bool rings, yields, alone; /* alone: the receiver copies by itself */
    Message *first, *last;     /* the private queue */
    unsigned sent[most_ranks], received[most_ranks];
} Self;

INLINE void rest(const Self *s)
{
    if (s->yields)
        sched_yield();
}

/* First come, first served: a rank that dies while it has the lock, or waits for it, stops all who come after. */
INLINE void lock(const Self *s, Inbox *box)
{
    Waiter *me = &s->ranks[s->me].waiter;
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->waits, true, memory_order_relaxed);
    Waiter *before = atomic_exchange_explicit(&box->last, me, memory_order_acq_rel);
    if (!before)
        return;
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (atomic_load_explicit(&me->waits, memory_order_acquire))
        rest(s);
}

INLINE void unlock(const Self *s, Inbox *box)
{
    Waiter *me = &s->ranks[s->me].waiter, *next = atomic_load_explicit(&me->next, memory_order_acquire), *expected = me;
    if (!next) {
        if (atomic_compare_exchange_strong_explicit(&box->last, &expected, NULL, memory_order_release, memory_order_relaxed))
            return;
        while (!(next = atomic_load_explicit(&me->next, memory_order_acquire)))
            rest(s);
    }
    atomic_store_explicit(&next->waits, false, memory_order_release);
}

/* A message object for this receiver; NULL while all of them are under way. */
INLINE Message *free_message(Self *s, int to)
{
    Message *m = &s->ranks[s->me].messages[to][s->sent[to] % messages_each];
    return atomic_load_explicit(&m->state, memory_order_acquire) == idle ? m : NULL;
}

/* Returns when the message is under way. */
INLINE void post(Self *s, Message *m, int to, int tag, const char *from, size_t bytes)
{
    m->next = NULL;
    m->source = s->me, m->tag = tag, m->context = 0, m->bytes = bytes;
    m->from = bytes < immediate_below ? m->data : from;
    if (bytes < immediate_below)
        memcpy(m->data, from, bytes);
    atomic_store_explicit(&m->state, posted, memory_order_relaxed);
    if (s->rings) { /* the slot is free, as there are more of them than messages */
        atomic_store_explicit(&s->ranks[to].from[s->me].slot[s->sent[to]++ % ring_slots], m, memory_order_release);
        return;
    }
    s->sent[to]++;
    Inbox *box = &s->ranks[to].inbox;
    lock(s, box);
    if (atomic_load_explicit(&box->head, memory_order_relaxed))
        box->tail->next = m;
    else
        atomic_store_explicit(&box->head, m, memory_order_relaxed);
    box->tail = m;
    unlock(s, box);
}

INLINE void keep(Self *s, Message *first, Message *last)
{
    if (s->last)
        s->last->next = first;
    else
        s->first = first;
    s->last = last;
}

/* All that has come goes to the end of the private queue. */
INLINE void drain(Self *s)
{
    if (s->rings) {
        for (int i = 0; i < s->count; i++) {
            _Atomic(Message *) *slot;
            Message *m;
            while ((m = atomic_load_explicit(slot = &s->ranks[s->me].from[i].slot[s->received[i] % ring_slots], memory_order_acquire))) {
                atomic_store_explicit(slot, NULL, memory_order_relaxed);
                s->received[i]++;
                keep(s, m, m);
            }
        }
        return;
    }
    Inbox *box = &s->ranks[s->me].inbox;
    if (!atomic_load_explicit(&box->head, memory_order_relaxed))
        return;
    lock(s, box);
    keep(s, atomic_load_explicit(&box->head, memory_order_relaxed), box->tail);
    atomic_store_explicit(&box->head, NULL, memory_order_relaxed);
    unlock(s, box);
}

/* The oldest message that fits; a negative source or tag fits all. Taken off the queue. */
INLINE Message *match(Self *s, int source, int tag)
{
    Message *before = NULL;
    for (Message *m = s->first; m; before = m, m = m->next) {
        if ((source >= 0 && m->source != source) || (tag >= 0 && m->tag != tag) || m->context != 0)
            continue;
        *(before ? &before->next : &s->first) = m->next;
        if (s->last == m)
            s->last = before;
        return m;
    }
    return NULL;
}

INLINE void copy_blocks(Message *m)
{
    size_t at, done = 0;
    while ((at = atomic_fetch_add_explicit(&m->claimed, m->block, memory_order_relaxed)) < m->bytes) {
        const size_t n = m->bytes - at < m->block ? m->bytes - at : m->block;
        memcpy(m->to + at, m->from + at, n);
        done += n;
    }
    if (done)
        atomic_fetch_add_explicit(&m->copied, done, memory_order_release);
}

INLINE void receive_into(const Self *s, Message *m, char *to)
{
    const size_t block = m->bytes > large_block_above ? large_block : small_block;
    if (s->alone || m->bytes < 2 * (size_t)small_block) {
        memcpy(to, m->from, m->bytes);
    } else {
        m->to = to, m->block = block;
        atomic_store_explicit(&m->claimed, 0, memory_order_relaxed);
        atomic_store_explicit(&m->copied, 0, memory_order_relaxed);
        atomic_store_explicit(&m->state, copying, memory_order_release);
        copy_blocks(m);
        while (atomic_load_explicit(&m->copied, memory_order_acquire) != m->bytes)
            rest(s);
    }
    /* A sender does not wait for what it has copied into the object. */
    atomic_store_explicit(&m->state, m->bytes < immediate_below ? idle : finished, memory_order_release);
}

/* The sender helps where it can, and has its object back when the receiver is through and it has left the blocks alone. */
INLINE bool is_sent(Message *m)
{
    const int state = atomic_load_explicit(&m->state, memory_order_acquire);
    if (state == copying)
        copy_blocks(m);
    if (state != finished)
        return false;
    atomic_store_explicit(&m->state, idle, memory_order_relaxed);
    return true;
}

INLINE void send_message(Self *s, int to, int tag, const char *from, size_t bytes)
{
    Message *m;
    while (!(m = free_message(s, to)))
        rest(s);
    post(s, m, to, tag, from, bytes);
    while (bytes >= immediate_below && !is_sent(m)) {
        drain(s);
        rest(s);
    }
}

INLINE void receive(Self *s, int source, int tag, char *to)
{
    Message *m;
    for (;;) {
        drain(s);
        if ((m = match(s, source, tag)))
            break;
        rest(s);
    }
    receive_into(s, m, to);
}
#endif
