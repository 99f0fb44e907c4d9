/* weft-opbench: what ownership passing is for. Two ranks compute over an array once in each iteration, then exchange a part of it with each
 * of four neighbours (here all the same rank): pack, exchange, unpack. Reported is the time of packing, exchange and unpacking of an
 * iteration, allocation and release of buffers included; every word received is read, stored, and checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_signal.h>

#include "common/arena.h"
#include "common/opi.h"

enum { neighbors = 4, tag = 6 };

typedef struct Board {
    weft_signal full[neighbors]; /* of a buffer of this rank, or a part of its array */
} Board;

typedef struct Bench {
    World *w;
    MPI_Comm comm;
    int peer;
    Arena arena;
    Opi opi;
    Board *mine, *theirs;
    size_t words;                /* of a message */
    uint64_t *array;             /* one part for each neighbour; in the arena */
    uint64_t *received;          /* likewise */
    uint64_t *send;              /* buffers of each message, one after the other */
    uint64_t *receive;           /* in the arena */
    uint64_t iteration;
    double pack_s, exchange_s, unpack_s, total_s;
    bool phases;
} Bench;

static void compute(Bench *b)
{
    b->iteration++;
    for (size_t i = 0; i < neighbors * b->words; i++)
        b->array[i] += 2 * i + 1 + (uint64_t)b->w->rank;
}

static void pack(const Bench *b, int k, uint64_t *to) { memcpy(to, b->array + (size_t)k * b->words, 8 * b->words); }

/* Stores and sums; the sum is known from the number of the iteration. */
static void unpack(Bench *b, int k, const uint64_t *from)
{
    uint64_t *to = b->received + (size_t)k * b->words, sum = 0, first = (uint64_t)k * b->words, n = b->words;
    for (size_t i = 0; i < b->words; i++) {
        to[i] = from[i];
        sum += from[i];
    }
    uint64_t want = b->iteration * (n * (2 * first + 1 + (uint64_t)b->peer) + n * (n - 1));
    if (sum != want)
        expect_same("opbench: the sum of a message", sum, want);
}

/* Adds the time since `*last` to a phase, where phases are wanted: reading the clock costs more than a small message. */
static void mark(const Bench *b, double *phase, double *last)
{
    if (!b->phases)
        return;
    double now = now_s();
    *phase += now - *last;
    *last = now;
}

static void by_message(Bench *b, int k, double *last)
{
    MPI_Request requests[2];
    pack(b, k, b->send);
    mark(b, &b->pack_s, last);
    MPI_Irecv(b->receive, (int)b->words, MPI_UINT64_T, b->peer, tag, b->comm, &requests[0]);
    MPI_Isend(b->send, (int)b->words, MPI_UINT64_T, b->peer, tag, b->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    mark(b, &b->exchange_s, last);
    unpack(b, k, b->receive);
    mark(b, &b->unpack_s, last);
}

static void by_ownership(Bench *b, int k, double *last)
{
    MPI_Request request;
    void *buffer;
    opi_alloc(&b->opi, &buffer, 8 * b->words);
    pack(b, k, buffer);
    mark(b, &b->pack_s, last);
    opi_igive(&b->opi, &buffer, (int)b->words, MPI_UINT64_T, b->peer, tag, b->comm, &request);
    opi_take(&b->opi, &buffer, (int)b->words, MPI_UINT64_T, b->peer, tag, b->comm);
    opi_wait(&b->opi, 1, &request);
    mark(b, &b->exchange_s, last);
    unpack(b, k, buffer);
    opi_free(&b->opi, &buffer);
    mark(b, &b->unpack_s, last);
}

/* Packs into the partner's buffer of this neighbour as soon as it is empty. */
static void by_shared_buffer(Bench *b, int k, double *last)
{
    size_t at = (size_t)k * b->words;
    weft_signal_wait(&b->theirs->full[k], 0);
    pack(b, k, (uint64_t *)arena_of(&b->arena, b->peer, b->receive) + at);
    mark(b, &b->pack_s, last);
    weft_signal_set(&b->theirs->full[k]);
    weft_signal_wait(&b->mine->full[k], 1);
    mark(b, &b->exchange_s, last);
    unpack(b, k, b->receive + at);
    weft_signal_clear(&b->mine->full[k]);
    mark(b, &b->unpack_s, last);
}

/* Reads the partner's array itself; the partner may go on computing when all of its parts have been read. */
static void by_fused_loop(Bench *b, int k, double *last)
{
    weft_signal_set(&b->mine->full[k]);
    weft_signal_wait(&b->theirs->full[k], 1);
    mark(b, &b->exchange_s, last);
    unpack(b, k, arena_of(&b->arena, b->peer, b->array + (size_t)k * b->words));
    weft_signal_clear(&b->theirs->full[k]);
    mark(b, &b->unpack_s, last);
}

static void iterate(Bench *b, Form form)
{
    compute(b);
    double start = now_s(), last = start;
    for (int k = 0; k < neighbors; k++) {
        if (form == form_mpi)
            by_message(b, k, &last);
        else if (form == form_opi)
            by_ownership(b, k, &last);
        else if (form == form_shared)
            by_shared_buffer(b, k, &last);
        else
            by_fused_loop(b, k, &last);
    }
    for (int k = 0; k < neighbors && form == form_fused; k++)
        weft_signal_wait(&b->mine->full[k], 0);
    b->total_s += now_s() - start;
}

/* Microseconds of an iteration, the mean of both ranks; in all and of the phases. */
static void measure(Bench *b, Form form, int64_t iterations, double us[4])
{
    MPI_Barrier(b->comm);
    b->pack_s = b->exchange_s = b->unpack_s = b->total_s = 0;
    for (int64_t i = 0; i < iterations; i++)
        iterate(b, form);
    double all[4] = {b->total_s, b->pack_s, b->exchange_s, b->unpack_s};
    for (int k = 0; k < 4; k++)
        us[k] = mean_over(b->comm, all[k]) / (double)iterations * 1e6;
}

static void open_bench(Bench *b, World *w, size_t bytes)
{
    size_t parts = neighbors * bytes;
    *b = (Bench){.w = w, .comm = MPI_COMM_WORLD, .peer = 1 - w->rank, .words = bytes / 8};
    arena_open(&b->arena, b->comm, 0, 2 * (parts + 64) + sizeof(Board));
    b->mine = arena_take(&b->arena, sizeof(Board));
    b->array = arena_take(&b->arena, parts);
    b->receive = arena_take(&b->arena, parts);
    b->theirs = b->arena.shared ? arena_of(&b->arena, b->peer, b->mine) : NULL;
    b->send = new_buffer(bytes);
    b->received = new_buffer(parts);
    opi_open(&b->opi);
}

static void close_bench(Bench *b)
{
    MPI_Barrier(b->comm);
    opi_close(&b->opi);
    free(b->send);
    free(b->received);
    arena_close(&b->arena);
}

static void measure_size(World *w, const bool on[form_count], size_t bytes, bool phases)
{
    static double samples[form_count][4][max_samples], lines[max_samples + 1];
    static const char *const names[4] = {"", " pack", " exchange", " unpack"};
    int64_t iterations[form_count] = {0};
    Bench b;
    open_bench(&b, w, bytes);
    b.phases = phases;
    for (int form = 0; form < form_count; form++) {
        double us[4];
        if (!on[form] || (form >= form_shared && !b.arena.shared))
            continue;
        measure(&b, form, 20, us);
        iterations[form] = agree(w, 1 + (int64_t)(w->opt.window_ms * 1e3 / us[0]));
    }
    lines[0] = line_ns(w);
    for (int rep = 0; rep < w->opt.reps; rep++) {
        for (int i = 0; i < form_count; i++) {
            int form = (i + rep) % form_count;
            double us[4];
            if (!iterations[form])
                continue;
            measure(&b, form, iterations[form], us);
            for (int k = 0; k < 4; k++)
                samples[form][k][rep] = us[k];
        }
        lines[rep + 1] = line_ns(w);
    }
    for (int form = 0; form < form_count; form++)
        for (int k = 0; iterations[form] && k < (phases ? 4 : 1); k++) {
            char name[64];
            snprintf(name, sizeof name, "%s%s", form_names[form], names[k]);
            report(w, name, bytes, "us", samples[form][k], w->opt.reps, lines);
        }
    close_bench(&b);
}

int main(int argc, char **argv)
{
    static World w;
    const char *forms = "all";
    bool on[form_count], phases = false;
    const Flag flags[] = {
        {"-m", flag_sizes, &w, "LO:HI: bytes of a message, doubling (8:2097152)"},
        {"--form", flag_text, &forms, "mpi, opi, shared, fused, several with commas, or all (all)"},
        {"--phases", flag_set, &phases, "also packing, exchange and unpacking by themselves; reads the clock more often"},
        {0}};
    w.opt.lo_bytes = 8;
    w.opt.hi_bytes = 2 << 20;
    w.opt.window_ms = 10;
    app_start(&w, &argc, &argv, "weft-opbench: compute, then pack, exchange and unpack with four neighbours; two ranks", flags, 2);
    if (w.size != 2 || w.opt.lo_bytes % 8 != 0)
        fail("opbench needs exactly 2 ranks, and messages of whole 8-byte words");
    parse_forms(forms, on);
    for (size_t bytes = w.opt.lo_bytes; bytes <= w.opt.hi_bytes; bytes *= 2)
        measure_size(&w, on, bytes, phases);
    app_end();
    return 0;
}
