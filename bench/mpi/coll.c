/* Collectives: how long a call takes until the last rank has it behind itself.
 *
 * With starts `together` every call begins when the last rank is ready, by a barrier of this program in memory that all ranks
 * share, and its time is from that moment until the last rank returns, by the clock that all of them read. No rank runs
 * ahead, and the contents are renewed outside the time. `none` shows what that costs: an empty call.
 * With starts `free` calls follow each other at once, and a call's time is that of the slowest rank divided by their number,
 * with new contents in each of them. */
#include "collectives.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { most_calls = 4096 }; /* of one chunk: what the board has room for */

typedef struct Board {
    _Alignas(128) atomic_uint arrived;
    _Alignas(128) atomic_uint opened;
    _Alignas(128) double opened_at[most_calls];
    double ended_at[][most_calls]; /* by rank */
} Board;

typedef struct Measurement {
    const World *w;
    const Operation *op;
    Form form;
    bool together;
    int chunk; /* calls between two looks at the clock by rank 0 */
} Measurement;

static Board *board;
static unsigned epoch;

/* Ranks with CPUs of their own spin. A library may have to go on with what its call has left behind, so a long wait gives
 * it the chance. */
static void await_opening(const World *w)
{
    bool crowded = w->size > w->opt.cpu_count;
    double began = 0;
    for (unsigned looks = 1; (int)(atomic_load_explicit(&board->opened, memory_order_acquire) - epoch) < 0; looks++) {
        if (crowded)
            sched_yield();
        else
            __builtin_ia32_pause();
        if (looks % 64)
            continue;
        double now = now_s();
        began = began > 0 ? began : now;
        int flag;
        if (now - began > 100e-6)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

static void start_together(const World *w, int call_number)
{
    epoch++;
    if (atomic_fetch_add(&board->arrived, 1) + 1 == epoch * (unsigned)w->size) {
        board->opened_at[call_number] = now_s();
        atomic_store_explicit(&board->opened, epoch, memory_order_release);
    } else {
        await_opening(w);
    }
}

/* Seconds that all calls of a chunk took; the answer is rank 0's. */
static double chunk_together(const Measurement *m, Job *j)
{
    const World *w = m->w;
    double sum = 0;
    for (int i = 0; i < m->chunk; i++) {
        fill(j, m->op);
        start_together(w, i);
        call(j, m->op, m->form);
        board->ended_at[w->rank][i] = now_s();
    }
    meet(w);
    for (int i = 0; i < m->chunk && w->rank == 0; i++) {
        double last = board->ended_at[0][i];
        for (int rank = 1; rank < w->size; rank++)
            last = board->ended_at[rank][i] > last ? board->ended_at[rank][i] : last;
        sum += last - board->opened_at[i];
    }
    return sum;
}

static double chunk_free(const Measurement *m, Job *j)
{
    const World *w = m->w;
    start_together(w, 0);
    double start = now_s(), slowest = 0;
    for (int i = 0; i < m->chunk; i++) {
        fill(j, m->op);
        call(j, m->op, m->form);
    }
    board->ended_at[w->rank][0] = now_s() - start;
    meet(w);
    for (int rank = 0; rank < w->size; rank++)
        slowest = board->ended_at[rank][0] > slowest ? board->ended_at[rank][0] : slowest;
    return slowest;
}

/* Microseconds per call over a window that ends itself; the answer is rank 0's. */
static double window(Measurement *m, Job *j, double limit_s)
{
    double start = now_s(), took = 0;
    int64_t calls = 0;
    for (;;) {
        double began = now_s();
        took += m->together ? chunk_together(m, j) : chunk_free(m, j);
        calls += m->chunk;
        double now = now_s();
        int64_t next = m->chunk;
        if (now - start >= limit_s)
            next = -next;
        else if (now - began < limit_s / 16 && m->chunk < most_calls)
            next *= 2;
        else if (now - began > limit_s / 4 && m->chunk > 1)
            next /= 2;
        next = agree(m->w, next);
        m->chunk = (int)(next < 0 ? -next : next);
        if (next < 0)
            return took / (double)calls * 1e6;
    }
}

static void measure(const World *w, const Operation *op, Form form, size_t bytes)
{
    static const char *const suffixes[] = {"", " nonblocking", " persistent"};
    Measurement m = {.w = w, .op = op, .form = form, .together = !w->opt.free_starts, .chunk = 1};
    double *samples = calloc((size_t)w->opt.reps, sizeof(double)), *lines = calloc((size_t)w->opt.reps + 1, sizeof(double));
    char name[64];
    if (!samples || !lines)
        fail("no memory for %d samples", w->opt.reps);
    Job j = new_job(w, op, form, bytes);
    fill(&j, op);
    call(&j, op, form);
    check(&j, op, w->opt.spoil);
    window(&m, &j, w->opt.warm_ms * 1e-3);
    lines[0] = line_ns(w);
    for (int i = 0; i < w->opt.reps; i++) {
        samples[i] = window(&m, &j, w->opt.window_ms * 1e-3);
        lines[i + 1] = line_ns(w);
    }
    check(&j, op, false);
    strcat(strcpy(name, op->name), suffixes[form]);
    report(w, name, bytes, "us", samples, w->opt.reps, lines);
    end_job(&j, form);
    free(samples);
    free(lines);
}

/* Whether `name` is one of the names in `list`, which commas separate; a missing list holds all. */
static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0))
            return true;
    return !list;
}

static void refuse_unknown(const char *list)
{
    int wanted = list ? 1 : 0, known = 0;
    for (const char *at = list; at && *at; at++)
        wanted += *at == ',';
    for (int i = 0; i < operation_count; i++)
        known += list && listed(list, operations[i].name);
    if (wanted != known)
        fail("--ops %s: not all of these are known; -h lists them", list);
}

static Form form_of(const char *name)
{
    static const char *const names[] = {"blocking", "nonblocking", "persistent"};
    for (int form = 0; form < 3; form++)
        if (!name || strcmp(name, names[form]) == 0)
            return (Form)form;
    fail("--form is blocking, nonblocking or persistent, not %s", name);
}

int run_coll(const World *w)
{
    Form form = form_of(w->opt.form);
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 8, hi = w->opt.hi_bytes ? w->opt.hi_bytes : (size_t)1 << 20;
    refuse_unknown(w->opt.ops);
    board = share_page(w, sizeof(Board) + sizeof board->ended_at[0] * (size_t)w->size);
    for (int i = 0; i < operation_count; i++) {
        const Operation *op = &operations[i];
        if (!listed(w->opt.ops, op->name) || (form != blocking && !op->start))
            continue;
        if (op->kind == nothing) {
            measure(w, op, form, 0);
            continue;
        }
        for (size_t bytes = lo; bytes < hi; bytes *= (size_t)w->opt.step)
            measure(w, op, form, bytes);
        measure(w, op, form, hi);
    }
    return 0;
}

/* Communicators made, used for an allreduce each where `used`, and freed: microseconds for each of them. */
static double make_and_free(const World *w, MPI_Comm *made, int count, bool used)
{
    int64_t mine = 1, sum = 0;
    meet(w);
    double start = now_s();
    for (int i = 0; i < count; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    for (int i = 0; used && i < count; i++) {
        MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, made[i]);
        if (sum != w->size)
            fail("allreduce on communicator %d: %lld instead of %d", i, (long long)sum, w->size);
    }
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&made[i]);
    meet(w);
    return (now_s() - start) / count * 1e6;
}

/* All of them exist at once. */
int run_communicators(const World *w)
{
    const int count = (int)(w->opt.messages < 10000 ? w->opt.messages : 10000);
    double *samples = calloc(2 * (size_t)w->opt.reps, sizeof(double));
    MPI_Comm *made = calloc((size_t)count, sizeof *made);
    if (!samples || !made)
        fail("no memory for %d communicators", count);
    make_and_free(w, made, 1, true);
    double before = job_mb(w);
    for (int i = 0; i < 2 * w->opt.reps; i++)
        samples[i % 2 * w->opt.reps + i / 2] = make_and_free(w, made, count, i % 2);
    double growth = job_mb(w) - before;
    report(w, "dup and free", 0, "us", samples, w->opt.reps, NULL);
    report(w, "dup, allreduce and free", 0, "us", samples + w->opt.reps, w->opt.reps, NULL);
    growth = growth > 0 ? growth : 0;
    report(w, "memory that stays", 0, "MB", &growth, 1, NULL);
    free(samples);
    free(made);
    return 0;
}
