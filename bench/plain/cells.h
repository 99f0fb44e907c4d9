/* The layouts that weft-bench-cells compares (cells.c says what each is): one end of a ring, how it sends a message and how
 * it receives one. Included by cells.c alone. */
#ifndef WEFT_BENCH_CELLS_H
#define WEFT_BENCH_CELLS_H
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INLINE static inline __attribute__((always_inline))

enum { most_bytes = 4096, most_lines = 1024, cells = 64, bulk_bytes = 512 << 10, chunk_bytes = 4096, most_chunks = 64 };
enum { demoted_bytes = 1024, inline_bytes = 48, line_bytes = 56, no_chunk = 255 };

typedef enum Layout { line_bulk, lines, first_last, one_word, pool, packed } Layout;

typedef struct Variant {
    const char *name;
    Layout layout;
    uint32_t lines, chunks; /* chunks: of the pool. Bytes of the bulk ring; for packed, messages to a line */
    bool claim, demote;
    bool streams; /* packed: a message that answers one leaves its line to itself */
} Variant;

/* word: turn | bytes << 8, published last. A first line holds the envelope (tag and context) and 48 B, another one 56 B. */
typedef struct Line {
    _Alignas(64) _Atomic uint64_t word;
    char rest[line_bytes];
} Line;

/* From one process to the other. Zero is the empty state. */
typedef struct Ring {
    _Alignas(128) _Atomic uint32_t consumed; /* lines given back, written by the reader every quarter of a lap */
    _Atomic uint32_t bulk_freed;
    _Alignas(128) Line lines[most_lines];
    _Alignas(4096) char bulk[bulk_bytes]; /* or the chunks of the pool */
} Ring;

/* One process's end of a ring: the writer's or the reader's. All positions are free-running. */
typedef struct End {
    Ring *ring;
    const Variant *variant;
    uint32_t index, shift;           /* next line; log2 of lines */
    uint32_t known;                  /* `consumed` as the writer saw it last, or as the reader told it last */
    uint32_t quarter;                /* lines after which the reader tells */
    uint32_t bulk, bulk_known;       /* the same for the bulk ring, */
    uint32_t bulk_quarter;           /* a power of two */
    uint32_t slot, slots_here;       /* packed: messages written or read in this line; that are known to be there, */
    bool closed;                     /* and whether no more will come there */
    uint32_t messages;               /* sent or received */
    bool awaited;                    /* a message has come since the last one sent: the peer may be waiting */
    uint32_t reclaimed, free_count;  /* pool: lines whose chunks have come back; */
    uint8_t free[most_chunks], in_flight[cells];
} End;

static unsigned patience = 1 << 20; /* looks before the CPU is given away: 1 ms, so that other busy processes hardly matter */

static void fail(const char *what, const char *name, uint32_t bytes)
{
    fprintf(stderr, "weft-bench-cells: %s: %s, %u B\n", name, what, bytes);
    _exit(1);
}

INLINE void rest(unsigned *looks)
{
    if (++*looks % patience == 0)
        sched_yield();
}

/* ---- copies */

/* Up to 64 bytes by overlapping moves. */
INLINE void copy_small(char *to, const char *from, uint32_t bytes)
{
    if (bytes == 8) {
        memcpy(to, from, 8);
    } else if (bytes >= 32) {
        char first[32], last[32];
        memcpy(first, from, 32);
        memcpy(last, from + bytes - 32, 32);
        memcpy(to, first, 32);
        memcpy(to + bytes - 32, last, 32);
    } else if (bytes >= 16) {
        char first[16], last[16];
        memcpy(first, from, 16);
        memcpy(last, from + bytes - 16, 16);
        memcpy(to, first, 16);
        memcpy(to + bytes - 16, last, 16);
    } else if (bytes > 8) {
        uint64_t first, last;
        memcpy(&first, from, 8);
        memcpy(&last, from + bytes - 8, 8);
        memcpy(to, &first, 8);
        memcpy(to + bytes - 8, &last, 8);
    } else {
        for (uint32_t i = 0; i < bytes; i++)
            to[i] = from[i];
    }
}

static void claim(char *from, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 64)
        ((volatile char *)from)[at] = 0;
}

static void demote(const char *from, uint32_t bytes)
{
#ifdef __x86_64__
    for (uint32_t at = 0; at < bytes; at += 64)
        __asm__ volatile("cldemote %0" : : "m"(from[at]));
#else
    (void)from, (void)bytes;
#endif
}

INLINE bool demotes(const End *e, uint32_t bytes)
{
    return e->variant->demote && e->awaited && bytes <= demoted_bytes;
}

/* ---- lines and room */

INLINE Line *line_at(const End *e, uint32_t index)
{
    return &e->ring->lines[index & ((1u << e->shift) - 1)];
}

/* The lap: never 0, and never what the line held a lap ago. */
INLINE uint64_t turn(const End *e, uint32_t index)
{
    return (index >> e->shift & 127) + 1;
}

/* Release: pairs with await_turn(). */
INLINE void publish(const End *e, Line *line, uint32_t index, uint64_t rest_of_word)
{
    atomic_store_explicit(&line->word, turn(e, index) | rest_of_word << 8, memory_order_release);
}

INLINE uint64_t await_turn(const End *e, const Line *line)
{
    unsigned looks = 0;
    uint64_t word;
    while (((word = atomic_load_explicit(&line->word, memory_order_acquire)) & 255) != turn(e, e->index))
        rest(&looks);
    return word >> 8;
}

/* Pairs with tell(). */
static void look(End *e)
{
    e->known = atomic_load_explicit(&e->ring->consumed, memory_order_acquire);
    e->bulk_known = atomic_load_explicit(&e->ring->bulk_freed, memory_order_relaxed);
    if (e->variant->layout != pool)
        return;
    for (; e->reclaimed != e->known; e->reclaimed++) {
        uint8_t chunk = e->in_flight[e->reclaimed % cells];
        if (chunk != no_chunk)
            e->free[e->free_count++] = chunk;
    }
}

INLINE void await_room(End *e, uint32_t count)
{
    for (unsigned looks = 0; __builtin_expect(e->index + count - e->known > 1u << e->shift, 0); rest(&looks))
        look(e);
}

INLINE void tell(End *e)
{
    if (e->index - e->known < e->quarter && e->bulk - e->bulk_known < e->bulk_quarter)
        return;
    e->known = e->index;
    e->bulk_known = e->bulk;
    atomic_store_explicit(&e->ring->bulk_freed, e->bulk, memory_order_relaxed);
    atomic_store_explicit(&e->ring->consumed, e->index, memory_order_release);
}

INLINE void put_envelope(Line *line, uint32_t message)
{
    uint64_t envelope = message | (uint64_t)1 << 32;
    memcpy(line->rest, &envelope, 8);
}

INLINE void match(const End *e, const Line *line, uint32_t message)
{
    uint64_t envelope;
    memcpy(&envelope, line->rest, 8);
    if (__builtin_expect(envelope != (message | (uint64_t)1 << 32), 0))
        fail("messages came out of order", e->variant->name, 0);
}

/* ---- line+bulk, pool: where more than 48 B go */

INLINE uint32_t reserve_bulk(End *e, uint32_t bytes)
{
    uint32_t size = e->variant->chunks, start = e->bulk, at = start & (size - 1);
    if (at + bytes > size)
        start += size - at;
    e->bulk = (start + bytes + 63) & ~63u;
    for (unsigned looks = 0; __builtin_expect(e->bulk - e->bulk_known > size, 0); rest(&looks))
        look(e);
    return start;
}

INLINE uint32_t reserve_chunk(End *e)
{
    for (unsigned looks = 0; e->free_count == 0; rest(&looks))
        look(e);
    uint8_t chunk = e->free[--e->free_count];
    e->in_flight[e->index % cells] = chunk;
    return chunk * (uint32_t)chunk_bytes;
}

/* The cell is written last, all at once: its reader looks at it all the time, and each look takes it away. */
INLINE void send_cell(End *e, const char *from, uint32_t bytes, bool in_pool)
{
    await_room(e, 1);
    Line *line = line_at(e, e->index);
    if (bytes <= inline_bytes) {
        copy_small(line->rest + 8, from, bytes);
        if (in_pool)
            e->in_flight[e->index % cells] = no_chunk;
    } else {
        uint32_t position = in_pool ? reserve_chunk(e) : reserve_bulk(e, bytes);
        char *to = e->ring->bulk + (in_pool ? position : position & (e->variant->chunks - 1));
        memcpy(to, from, bytes);
        if (demotes(e, bytes))
            demote(to, bytes);
        memcpy(line->rest + 8, &position, 4);
    }
    put_envelope(line, e->messages);
    publish(e, line, e->index, bytes);
    e->index++;
}

INLINE uint32_t receive_cell(End *e, char *to, bool in_pool)
{
    Line *line = line_at(e, e->index);
    uint32_t bytes = (uint32_t)await_turn(e, line);
    match(e, line, e->messages);
    if (bytes <= inline_bytes) {
        copy_small(to, line->rest + 8, bytes);
    } else {
        uint32_t position;
        memcpy(&position, line->rest + 8, 4);
        char *from = e->ring->bulk + (in_pool ? position : position & (e->variant->chunks - 1));
        memcpy(to, from, bytes);
        if (e->variant->claim)
            claim(from, bytes);
        if (!in_pool)
            e->bulk = (position + bytes + 63) & ~63u;
    }
    if (e->variant->claim)
        claim(line->rest, 1);
    e->index++;
    tell(e);
    return bytes;
}

/* ---- lines */

INLINE uint32_t spanned(uint32_t bytes)
{
    return bytes <= inline_bytes ? 1 : 1 + (bytes - inline_bytes + line_bytes - 1) / line_bytes;
}

INLINE void put_first(End *e, uint32_t index, const char *from, uint32_t bytes)
{
    Line *line = line_at(e, index);
    put_envelope(line, e->messages);
    copy_small(line->rest + 8, from, bytes < inline_bytes ? bytes : inline_bytes);
    publish(e, line, index, bytes);
}

/* last: the first line is written last, so there must be room for all before. */
INLINE void send_lines(End *e, const char *from, uint32_t bytes, bool last)
{
    uint32_t start = e->index;
    await_room(e, last ? spanned(bytes) : 1);
    if (!last)
        put_first(e, start, from, bytes);
    e->index++;
    for (uint32_t at = inline_bytes; at < bytes; at += line_bytes, e->index++) {
        if (!last)
            await_room(e, 1);
        Line *line = line_at(e, e->index);
        if (bytes - at >= line_bytes)
            memcpy(line->rest, from + at, line_bytes);
        else
            copy_small(line->rest, from + at, bytes - at);
        publish(e, line, e->index, 0);
        if (demotes(e, bytes))
            demote((char *)line, 1);
    }
    if (last)
        put_first(e, start, from, bytes);
}

INLINE uint32_t receive_lines(End *e, char *to, bool last)
{
    Line *line = line_at(e, e->index);
    uint32_t bytes = (uint32_t)await_turn(e, line), at = bytes < inline_bytes ? bytes : inline_bytes;
    match(e, line, e->messages);
    copy_small(to, line->rest + 8, at);
    if (e->variant->claim)
        claim(line->rest, 1);
    e->index++;
    while (at < bytes) {
        line = line_at(e, e->index);
        if (!last)
            await_turn(e, line);
        if (bytes - at >= line_bytes)
            memcpy(to + at, line->rest, line_bytes);
        else
            copy_small(to + at, line->rest, bytes - at);
        if (e->variant->claim)
            claim(line->rest, 1);
        e->index++;
        at += line_bytes;
        if (!last)
            tell(e);
    }
    tell(e);
    return bytes;
}

/* ---- one word. What the next message's word will be may hold payload of the last lap: the writer clears it before it
 * publishes, or the reader clears the first word of every line when it claims it. */

INLINE uint32_t lines_of(uint32_t bytes)
{
    return bytes <= inline_bytes ? 1 : 1 + (bytes - inline_bytes + 63) / 64;
}

INLINE void send_one_word(End *e, const char *from, uint32_t bytes)
{
    uint32_t count = lines_of(bytes), more = bytes <= inline_bytes ? 0 : bytes - inline_bytes;
    await_room(e, count + !e->variant->claim);
    Line *next = line_at(e, e->index + 1);
    uint32_t to_end = (uint32_t)((char *)line_at(e, 0) + (sizeof(Line) << e->shift) - (char *)next);
    uint32_t here = more < to_end ? more : to_end;
    if (more > 0)
        memcpy(next, from + inline_bytes, here);
    if (more > here)
        memcpy(line_at(e, 0), from + inline_bytes + here, more - here);
    if (demotes(e, bytes))
        for (uint32_t k = 1; k < count; k++)
            demote((char *)line_at(e, e->index + k), 1);
    if (!e->variant->claim)
        atomic_store_explicit(&line_at(e, e->index + count)->word, 0, memory_order_relaxed);
    put_first(e, e->index, from, bytes);
    e->index += count;
}

INLINE uint32_t receive_one_word(End *e, char *to)
{
    Line *line = line_at(e, e->index), *next = line_at(e, e->index + 1);
    uint32_t bytes = (uint32_t)await_turn(e, line), count = lines_of(bytes);
    uint32_t more = bytes <= inline_bytes ? 0 : bytes - inline_bytes;
    uint32_t to_end = (uint32_t)((char *)line_at(e, 0) + (sizeof(Line) << e->shift) - (char *)next);
    uint32_t here = more < to_end ? more : to_end;
    match(e, line, e->messages);
    copy_small(to, line->rest + 8, bytes - more);
    if (more > 0)
        memcpy(to + inline_bytes, next, here);
    if (more > here)
        memcpy(to + inline_bytes + here, line_at(e, 0), more - here);
    if (e->variant->claim)
        for (uint32_t k = 0; k < count; k++)
            atomic_store_explicit(&line_at(e, e->index + k)->word, 0, memory_order_relaxed);
    e->index += count;
    tell(e);
    return bytes;
}

/* ---- packed: the word holds the number of messages in the line, and whether the next one comes in the next line */

enum { closed_line = 128 };

/* Four times tag and 8 B; or envelope once, and six times 8 B. */
INLINE char *slot_at(const End *e, Line *line)
{
    return e->variant->chunks == 4 ? line->rest + 12 * e->slot : line->rest + 8 + 8 * e->slot;
}

INLINE void send_packed(End *e, const char *from)
{
    if (e->slot == 0)
        await_room(e, 1);
    Line *line = line_at(e, e->index);
    char *to = slot_at(e, line);
    if (e->variant->chunks == 4) {
        memcpy(to, &e->messages, 4);
        to += 4;
    } else if (e->slot == 0) {
        put_envelope(line, 1);
    }
    memcpy(to, from, 8);
    bool closed = ++e->slot == e->variant->chunks || (e->variant->streams && e->awaited);
    publish(e, line, e->index, e->slot | (closed ? closed_line : 0));
    if (closed) {
        e->slot = 0;
        e->index++;
    }
}

INLINE uint32_t receive_packed(End *e, char *to)
{
    Line *line = line_at(e, e->index);
    for (unsigned looks = 0; e->slots_here == e->slot; rest(&looks)) {
        uint64_t word = await_turn(e, line);
        e->slots_here = (uint32_t)word & ~(uint32_t)closed_line;
        e->closed = (word & closed_line) != 0;
    }
    char *from = slot_at(e, line);
    if (e->variant->chunks == 4) {
        uint32_t tag;
        memcpy(&tag, from, 4);
        if (tag != e->messages)
            fail("messages came out of order", e->variant->name, 8);
        from += 4;
    } else {
        match(e, line, 1);
    }
    memcpy(to, from, 8);
    if (++e->slot == e->slots_here && e->closed) {
        e->slot = e->slots_here = 0;
        e->index++;
        tell(e);
    }
    return 8;
}

#endif
