/* weft-pipe: a sweep of message sizes as NetPIPE makes it, with two additions: the receiver reads every byte that it gets, inside the
 * time, and the sender may rewrite the buffer before it sends it again, outside the time. Two ranks, one message under way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/app.h"
#include "common/opi.h"

enum { tag = 7, perturbation = 3 };

typedef struct Choice {
    const char *form, *memory;
    bool rewrites, unread, perturbed;
} Choice;

typedef struct Pipe {
    const World *w;
    const Choice *choice;
    Opi opi;
    bool by_ownership;
    void *buffer;      /* to be given away, or of messages */
    size_t bytes;
    uint64_t stamp;    /* of the contents */
    double rewriting_s;
} Pipe;

static void *new_memory(const Choice *c, size_t bytes)
{
    void *memory;
    if (strcmp(c->memory, "malloc") == 0)
        return new_buffer(bytes);
    if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory) != MPI_SUCCESS)
        fail("MPI_Alloc_mem of %zu bytes failed", bytes);
    memset(memory, 0, bytes);
    return memory;
}

static void send_it(Pipe *p)
{
    if (p->choice->rewrites) {
        double start = now_s();
        rewrite(p->buffer, p->bytes, ++p->stamp);
        p->rewriting_s += now_s() - start;
    }
    if (p->by_ownership)
        opi_give(&p->opi, &p->buffer, (int)p->bytes, MPI_BYTE, 1 - p->w->rank, tag, MPI_COMM_WORLD);
    else
        MPI_Send(p->buffer, (int)p->bytes, MPI_BYTE, 1 - p->w->rank, tag, MPI_COMM_WORLD);
}

static void receive_it(Pipe *p)
{
    if (p->by_ownership)
        opi_take(&p->opi, &p->buffer, (int)p->bytes, MPI_BYTE, 1 - p->w->rank, tag, MPI_COMM_WORLD);
    else
        MPI_Recv(p->buffer, (int)p->bytes, MPI_BYTE, 1 - p->w->rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    p->stamp += p->choice->rewrites;
    if (!p->choice->unread)
        expect_same("pipe: the sum of a message", sum_of(p->buffer, p->bytes), sum_of_rewritten(p->bytes, p->stamp));
}

/* Microseconds one way; both ranks' rewriting is taken out, as a ping-pong is serial. */
static double window(Pipe *p, int64_t turns)
{
    MPI_Barrier(MPI_COMM_WORLD);
    p->rewriting_s = 0;
    double start = now_s();
    for (int64_t i = 0; i < turns; i++) {
        if (p->w->rank == 0) {
            send_it(p);
            receive_it(p);
        } else {
            receive_it(p);
            send_it(p);
        }
    }
    double took = now_s() - start, rewriting = 2 * mean_over(MPI_COMM_WORLD, p->rewriting_s);
    return (took - rewriting) / (double)turns / 2 * 1e6;
}

static void open_size(Pipe *p, size_t bytes)
{
    p->bytes = bytes;
    p->stamp = bytes;
    if (p->by_ownership && p->w->rank == 1)
        return; /* takes the first one */
    if (p->by_ownership)
        opi_alloc(&p->opi, &p->buffer, bytes);
    else
        p->buffer = new_memory(p->choice, bytes);
    rewrite(p->buffer, bytes, p->stamp);
}

static void close_size(Pipe *p)
{
    verify(p->w->rank == 0 || !p->by_ownership ? p->buffer : "", p->w->rank == 0 || !p->by_ownership ? p->bytes : 0, p->stamp, "pipe");
    if (p->by_ownership && p->w->rank == 0)
        opi_free(&p->opi, &p->buffer);
    else if (!p->by_ownership && strcmp(p->choice->memory, "malloc") == 0)
        free(p->buffer);
    else if (!p->by_ownership)
        MPI_Free_mem(p->buffer);
}

static void measure_size(const World *w, Pipe *p, size_t bytes)
{
    static double samples[max_samples], lines[max_samples + 1];
    open_size(p, bytes);
    double first = window(p, 10);
    int64_t turns = agree(w, 1 + (int64_t)(w->opt.window_ms * 1e3 / 2 / (first > 0.01 ? first : 0.01)));
    window(p, turns); /* warm */
    lines[0] = line_ns(w);
    for (int rep = 0; rep < w->opt.reps; rep++) {
        samples[rep] = window(p, turns);
        lines[rep + 1] = line_ns(w);
    }
    report(w, p->choice->form, bytes, "us", samples, w->opt.reps, lines);
    close_size(p);
}

int main(int argc, char **argv)
{
    static World w;
    Choice c = {.form = "mpi", .memory = "malloc"};
    const Flag flags[] = {
        {"-m", flag_sizes, &w, "LO:HI: bytes of a message, doubling (1:16777216)"},
        {"--form", flag_text, &c.form, "mpi or opi (mpi)"},
        {"--memory", flag_text, &c.memory, "malloc or alloc_mem: what the buffers of messages are (malloc)"},
        {"--rewrite", flag_set, &c.rewrites, "the sender rewrites the buffer each time, outside the time"},
        {"--unread", flag_set, &c.unread, "the receiver does not read what it gets"},
        {"--perturb", flag_set, &c.perturbed, "also sizes three bytes below and above each"},
        {0}};
    w.opt.lo_bytes = 1;
    w.opt.hi_bytes = 16 << 20;
    w.opt.window_ms = 5;
    app_start(&w, &argc, &argv, "weft-pipe: ping-pong by size, the payload read by the receiver; two ranks", flags, 2);
    if (w.size != 2)
        fail("pipe needs exactly 2 ranks");
    if ((strcmp(c.form, "mpi") != 0 && strcmp(c.form, "opi") != 0) ||
        (strcmp(c.memory, "malloc") != 0 && strcmp(c.memory, "alloc_mem") != 0))
        fail("--form is mpi or opi, --memory malloc or alloc_mem");
    Pipe p = {.w = &w, .choice = &c, .by_ownership = strcmp(c.form, "opi") == 0};
    opi_open(&p.opi);
    for (size_t bytes = w.opt.lo_bytes; bytes <= w.opt.hi_bytes; bytes *= 2) {
        if (c.perturbed && bytes > perturbation)
            measure_size(&w, &p, bytes - perturbation);
        measure_size(&w, &p, bytes);
        if (c.perturbed)
            measure_size(&w, &p, bytes + perturbation);
    }
    opi_close(&p.opi);
    app_end();
    return 0;
}
