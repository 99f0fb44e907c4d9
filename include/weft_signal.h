/* weft_signal.h: signals and counters that ranks or threads share: how a program that reads and writes its neighbours' memory
   says "it is there" and "I have read it" without a message. Plain inline C11 or C++ on gcc's and clang's atomics; it needs no
   MPI, and works on any library.

   They lie in memory that all partners address: MPI_Alloc_mem on Weft, a shared window, or a common heap. Zero is their
   valid first state. One of them fills a cache line, so that waiting for one does not disturb its neighbours.

   Order. What a rank did before weft_signal_set, weft_signal_clear or weft_counter_add is visible to the rank whose wait, or whose
   weft_signal_is or weft_counter_get, saw that change, and to what that rank does next. Nothing else is ordered: in particular, a
   store to a signal does not keep a later load of the same rank from running before it. Two ranks that each set their own signal
   and then look at the other's once may both see 0; weft_counter_add is a full fence, so two that each add to their own counter
   and then look at the other's cannot both miss it.

   Waiting. The waits poll, and after WEFT_SIGNAL_LOOKS looks (about 100 microseconds) give the CPU away between two, so that more
   ranks than CPUs get on; beside a process of somebody else that may cost a slice of its time. They do not progress MPI: a rank
   that owes a partner a message should use weft_signal_is between calls of MPI_Test.

   Errors: none. A rank that dies leaves those that wait for it waiting. Thread-safe. */
#ifndef WEFT_SIGNAL_H_INCLUDED
#define WEFT_SIGNAL_H_INCLUDED

#include <sched.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(WEFT_SIGNAL_LOOKS)
#define WEFT_SIGNAL_LOOKS 2000
#endif

typedef struct weft_signal {
    int32_t value; /* 0 or 1 */
    char unused[60];
} __attribute__((aligned(64))) weft_signal;

typedef struct weft_counter {
    int64_t value;
    char unused[56];
} __attribute__((aligned(64))) weft_counter;

/* After a look that failed; `looks` counts them. */
static inline void weft_wait_between_looks(int *looks)
{
    if (*looks < WEFT_SIGNAL_LOOKS) {
        ++*looks;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    } else {
        sched_yield();
    }
}

/* Release: pairs with the acquire of weft_signal_is. */
static inline void weft_signal_set(weft_signal *s) { __atomic_store_n(&s->value, 1, __ATOMIC_RELEASE); }
static inline void weft_signal_clear(weft_signal *s) { __atomic_store_n(&s->value, 0, __ATOMIC_RELEASE); }

/* Whether it is set (1) or clear (0). */
static inline int weft_signal_is(const weft_signal *s, int value)
{
    return __atomic_load_n(&s->value, __ATOMIC_ACQUIRE) == value;
}

static inline void weft_signal_wait(const weft_signal *s, int value)
{
    int looks = 0;
    while (!weft_signal_is(s, value))
        weft_wait_between_looks(&looks);
}

/* Adds `n` and returns the value from before; a full fence. */
static inline int64_t weft_counter_add(weft_counter *c, int64_t n) { return __atomic_fetch_add(&c->value, n, __ATOMIC_SEQ_CST); }

/* Acquire, and in one order with all weft_counter_add. */
static inline int64_t weft_counter_get(const weft_counter *c) { return __atomic_load_n(&c->value, __ATOMIC_SEQ_CST); }

/* Waits until it is greater than `value`. */
static inline void weft_counter_wait_gt(const weft_counter *c, int64_t value)
{
    int looks = 0;
    while (weft_counter_get(c) <= value)
        weft_wait_between_looks(&looks);
}

#if defined(__cplusplus)
}
#endif

#endif
