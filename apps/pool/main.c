/* weft-pool: what it costs to free a buffer that another rank allocated, and to allocate the next one. Two ranks give each other a
 * batch of buffers, read them, and then free and allocate each in turn; that loop alone is timed. Schemes:
 *   opi       OPI_Free and OPI_Alloc, in the pool that the library has chosen (where it has none, the fallback's receiver pool)
 *   receiver  each rank keeps what it was given: a list of its own, no lock
 *   sender    a buffer returns to the rank that made it: a list with a lock for each rank
 *   malloc    free and malloc; buffers change the rank only where malloc gives memory that both ranks address
 * Receiver and sender need memory at the same address in both ranks, and are left out elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_signal.h>

#include "common/arena.h"
#include "common/opi.h"

enum { batch = 32, tag = 9, page = 4096, blocks = 8 * batch };
typedef enum Scheme { by_opi, by_receiver, by_sender, by_malloc, schemes } Scheme;
static const char *const scheme_names[schemes] = {"opi", "receiver", "sender", "malloc"};

typedef struct Block {
    struct Block *next;
    struct Shelf *maker;
    char line[48];
    uint64_t data[]; /* on a line of its own */
} Block;

typedef struct Shelf { /* the blocks that are free, of one rank; most recently freed first */
    _Alignas(64) Block *first;
    int32_t locked;
} Shelf;

typedef struct Board {
    Shelf shelf;
    weft_counter batches; /* that this rank has handed over */
    void *given[batch];
    char fill[page];
} Board;

typedef struct Pool {
    const World *w;
    Scheme scheme;
    size_t bytes;
    bool crosses;          /* whether buffers can change the rank */
    Arena arena;
    Opi opi;
    Board *mine, *theirs;
    void *held[batch];     /* buffers this rank may use */
    int64_t turns;
    double seconds;
} Pool;

static void lock(Shelf *s)
{
    int looks = 0;
    while (__atomic_exchange_n(&s->locked, 1, __ATOMIC_ACQUIRE))
        weft_wait_between_looks(&looks);
}
static void unlock(Shelf *s) { __atomic_store_n(&s->locked, 0, __ATOMIC_RELEASE); }

static void push(Shelf *s, Block *b)
{
    b->next = s->first;
    s->first = b;
}

static Block *pop(Shelf *s)
{
    Block *b = s->first;
    if (!b)
        fail("pool: no block is free, although as many were freed as allocated");
    s->first = b->next;
    return b;
}

static Block *block_of(void *data) { return (Block *)((char *)data - offsetof(Block, data)); }

static inline void release(Pool *p, void **at)
{
    if (p->scheme == by_opi) {
        opi_free(&p->opi, at);
    } else if (p->scheme == by_malloc) {
        free(*at);
    } else if (p->scheme == by_receiver) {
        push(&p->mine->shelf, block_of(*at));
    } else {
        Block *b = block_of(*at);
        lock(b->maker);
        push(b->maker, b);
        unlock(b->maker);
    }
}

static inline void acquire(Pool *p, void **at)
{
    if (p->scheme == by_opi) {
        opi_alloc(&p->opi, at, p->bytes);
    } else if (p->scheme == by_malloc) {
        *at = malloc(p->bytes);
        if (!*at)
            fail("no memory for %zu bytes", p->bytes);
    } else if (p->scheme == by_receiver) {
        *at = pop(&p->mine->shelf)->data;
    } else {
        lock(&p->mine->shelf);
        *at = pop(&p->mine->shelf)->data;
        unlock(&p->mine->shelf);
    }
}

static uint64_t mark_of(const Pool *p, int rank, int i) { return mix((uint64_t)p->turns * 64 + (uint64_t)(2 * i + rank)); }

static void hand_over_by_opi(Pool *p)
{
    MPI_Request requests[batch];
    for (int i = 0; i < batch; i++)
        opi_igive(&p->opi, &p->held[i], (int)p->bytes, MPI_BYTE, 1 - p->w->rank, tag, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < batch; i++)
        opi_take(&p->opi, &p->held[i], (int)p->bytes, MPI_BYTE, 1 - p->w->rank, tag, MPI_COMM_WORLD);
    opi_wait(&p->opi, batch, requests);
}

static void meet_partner(Pool *p)
{
    int64_t before = weft_counter_add(&p->mine->batches, 1);
    weft_counter_wait_gt(&p->theirs->batches, before);
}

/* Each writes into its buffers, hands them over, and reads what it was given. */
static void hand_over(Pool *p)
{
    p->turns++;
    for (int i = 0; i < batch; i++)
        *(uint64_t *)p->held[i] = mark_of(p, p->w->rank, i);
    if (p->scheme == by_opi) {
        hand_over_by_opi(p);
    } else if (p->crosses) {
        memcpy(p->mine->given, p->held, sizeof p->held);
        meet_partner(p);
        memcpy(p->held, p->theirs->given, sizeof p->held);
        meet_partner(p);
    }
    bool came = p->scheme == by_opi || p->crosses;
    for (int i = 0; i < batch; i++)
        expect_same("pool: the contents of a buffer", *(uint64_t *)p->held[i], mark_of(p, came ? 1 - p->w->rank : p->w->rank, i));
}

static void turn_over(Pool *p)
{
    hand_over(p);
    double start = now_s();
    for (int i = 0; i < batch; i++) {
        release(p, &p->held[i]);
        acquire(p, &p->held[i]);
    }
    p->seconds += now_s() - start;
}

/* Whether what malloc gives here can be read by the other rank at the same address. */
static bool malloc_is_shared(Pool *p)
{
    uint64_t *probe = malloc(8), seen = 0;
    if (!probe)
        fail("no memory for 8 bytes");
    *probe = mix(77 + (uint64_t)p->w->rank);
    p->mine->given[0] = probe;
    meet_partner(p);
    bool there = arena_can_read(p->theirs->given[0], &seen) && seen == mix(77 + 1 - (uint64_t)p->w->rank);
    meet_partner(p);
    free(probe);
    int mine = there, both;
    MPI_Allreduce(&mine, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return both != 0;
}

static size_t block_bytes(size_t bytes) { return (sizeof(Block) + bytes + page - 1) / page * page; }

/* False where this scheme cannot be had. */
static bool open_pool(Pool *p, const World *w, Scheme scheme, size_t bytes)
{
    *p = (Pool){.w = w, .scheme = scheme, .bytes = bytes};
    arena_open(&p->arena, MPI_COMM_WORLD, 0, sizeof(Board) + blocks * block_bytes(bytes) + page);
    p->mine = arena_take(&p->arena, sizeof(Board));
    p->theirs = p->arena.shared ? arena_of(&p->arena, 1 - w->rank, p->mine) : NULL;
    opi_open(&p->opi);
    if ((scheme == by_receiver || scheme == by_sender) && !p->arena.same_address)
        return false;
    p->crosses = p->arena.same_address && (scheme != by_malloc || malloc_is_shared(p));
    for (int i = 0; i < blocks && (scheme == by_receiver || scheme == by_sender); i++) {
        Block *b = arena_take(&p->arena, block_bytes(bytes));
        b->maker = &p->mine->shelf;
        push(&p->mine->shelf, b);
    }
    for (int i = 0; i < batch; i++)
        acquire(p, &p->held[i]);
    return true;
}

static void close_pool(Pool *p, bool opened)
{
    for (int i = 0; opened && i < batch; i++)
        release(p, &p->held[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    opi_close(&p->opi);
    arena_close(&p->arena);
}

static void measure(const World *w, Scheme scheme, size_t bytes, int64_t iterations)
{
    static double samples[max_samples], lines[max_samples + 1];
    Pool p;
    bool opened = open_pool(&p, w, scheme, bytes);
    for (int i = 0; opened && i < 10; i++)
        turn_over(&p);
    lines[0] = line_ns(w);
    for (int rep = 0; opened && rep < w->opt.reps; rep++) {
        p.seconds = 0;
        for (int64_t i = 0; i < iterations; i += batch)
            turn_over(&p);
        samples[rep] = mean_over(MPI_COMM_WORLD, p.seconds) / (double)((iterations + batch - 1) / batch * batch) * 1e9;
        lines[rep + 1] = line_ns(w);
    }
    char name[64];
    snprintf(name, sizeof name, "%s%s", scheme_names[scheme],
             scheme == by_malloc && !p.crosses ? ", own buffers" : scheme == by_opi && !p.opi.alloc ? ", by messages" : "");
    if (opened)
        report(w, name, bytes, "ns", samples, w->opt.reps, lines);
    close_pool(&p, opened);
}

int main(int argc, char **argv)
{
    static World w;
    const char *chosen = "all";
    int iterations = 5000;
    const Flag flags[] = {
        {"-m", flag_sizes, &w, "LO:HI: bytes of a buffer, doubling (8)"},
        {"--scheme", flag_text, &chosen, "opi, receiver, sender, malloc or all (all)"},
        {"--iterations", flag_int, &iterations, "pairs of free and alloc in a repetition (5000)"},
        {0}};
    w.opt.lo_bytes = w.opt.hi_bytes = 8;
    app_start(&w, &argc, &argv, "weft-pool: the time to free what another rank allocated and to allocate again; two ranks", flags, 2);
    bool any = false;
    if (w.size != 2 || w.opt.lo_bytes < 8 || iterations < 1)
        fail("pool needs exactly 2 ranks, buffers of 8 bytes at least, and iterations");
    for (size_t bytes = w.opt.lo_bytes; bytes <= w.opt.hi_bytes; bytes *= 2)
        for (int scheme = 0; scheme < schemes; scheme++)
            if (strcmp(chosen, "all") == 0 || strcmp(chosen, scheme_names[scheme]) == 0) {
                any = true;
                measure(&w, scheme, bytes, iterations);
            }
    if (!any)
        fail("there is no scheme %s; there are opi, receiver, sender, malloc and all", chosen);
    app_end();
    return 0;
}
