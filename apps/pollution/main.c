/* weft-pollution: what a message does to the caches of a program. Two ranks read a buffer, exchange a message there and back, and read
 * the buffer again; reported is the second reading, which finds in the cache what the exchange has left there. Each line is
 * touched once, in order or at random; the message lies in the buffer itself (common) or elsewhere (separate).
 *
 * By itself it reports time, and misses of the first level where the machine's counter can be read. With --trace it runs a few
 * turns of one case for a tool that records memory accesses, and writes which address marks the phases: weft-cachesim counts the
 * misses of such a recording (`weft bench heap --caches` does all of it). */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/app.h"

enum { tag = 11, line = 64, traced_turns = 6 };
/* What the marks mean: the word stored last says what a rank does. */
enum { mark_outside, mark_first_reading, mark_send, mark_receive, mark_second_reading, mark_begin };

typedef struct Case {
    bool random, separate;
    size_t data_bytes, message_bytes;
} Case;

typedef struct Pollution {
    const World *w;
    Case now;
    unsigned char *data, *message;
    volatile uint64_t *marks; /* a page of its own */
    int counter;              /* of the kernel; -1 */
    uint64_t sum;
} Pollution;

static int open_counter(void)
{
    struct perf_event_attr about = {.type = PERF_TYPE_HW_CACHE, .size = sizeof about, .disabled = 1, .exclude_kernel = 1, .exclude_hv = 1,
                                    .config = PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                                              PERF_COUNT_HW_CACHE_RESULT_MISS << 16};
    return (int)syscall(SYS_perf_event_open, &about, 0, -1, -1, 0);
}

/* Line i of n, a power of two, at random: an odd factor visits each once. */
static size_t place(const Case *c, size_t i, size_t n) { return c->random ? (i * 0x9e3779b1u + 7) & (n - 1) : i; }

static void read_data(Pollution *p)
{
    size_t n = p->now.data_bytes / line;
    for (size_t i = 0; i < n; i++) {
        uint64_t word;
        memcpy(&word, p->data + place(&p->now, i, n) * line, sizeof word);
        p->sum += word;
    }
}

static void exchange(Pollution *p)
{
    int peer = 1 - p->w->rank, bytes = (int)p->now.message_bytes;
    for (int half = 0; half < 2; half++) {
        if (half == p->w->rank) {
            p->marks[mark_send] = 1;
            MPI_Send(p->message, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
        } else {
            p->marks[mark_receive] = 1;
            MPI_Recv(p->message, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* One turn; the seconds of the second reading. */
static double turn(Pollution *p)
{
    p->marks[mark_first_reading] = 1;
    read_data(p);
    exchange(p);
    p->marks[mark_second_reading] = 1;
    double start = now_s();
    if (p->counter >= 0)
        ioctl(p->counter, PERF_EVENT_IOC_ENABLE, 0);
    read_data(p);
    if (p->counter >= 0)
        ioctl(p->counter, PERF_EVENT_IOC_DISABLE, 0);
    double took = now_s() - start;
    p->marks[mark_outside] = 1;
    return took;
}

static uint64_t stamp_of(const Case *c) { return c->data_bytes * 5 + c->message_bytes; }

static void open_case(Pollution *p, Case now)
{
    p->now = now;
    p->data = aligned_alloc(4096, (now.data_bytes + 4095) / 4096 * 4096);
    p->message = now.separate ? aligned_alloc(4096, (now.message_bytes + 4095) / 4096 * 4096) : p->data;
    if (!p->data || !p->message)
        fail("no memory for %zu and %zu bytes", now.data_bytes, now.message_bytes);
    rewrite(p->data, now.data_bytes, stamp_of(&now));
    rewrite(p->message, now.message_bytes, stamp_of(&now));
}

/* What was read and what came back must be what was sent. */
static void close_case(Pollution *p, int64_t turns)
{
    uint64_t want = 0;
    for (size_t i = 0; i < p->now.data_bytes; i += line)
        want += stamp_of(&p->now) + i / 8;
    expect_same("pollution: the sum of all that was read", p->sum, 2 * (uint64_t)turns * want);
    verify(p->message, p->now.message_bytes, stamp_of(&p->now), "pollution");
    if (p->now.separate)
        free(p->message);
    free(p->data);
    p->sum = 0;
}

static const char *name_of(const Case *c, const char *what, char name[64])
{
    snprintf(name, 64, "%s %s, message of %zu%s", c->random ? "random" : "sequential", c->separate ? "separate" : "common",
             c->message_bytes, what);
    return name;
}

static void measure_case(Pollution *p, Case now, int64_t turns)
{
    static double ns[max_samples], missing[max_samples], lines[max_samples + 1];
    char name[64];
    double n = (double)(now.data_bytes / line);
    open_case(p, now);
    for (int64_t i = 0; i < turns / 4 + 1; i++)
        turn(p);
    lines[0] = line_ns(p->w);
    for (int rep = 0; rep < p->w->opt.reps; rep++) {
        double took = 0;
        uint64_t count = 0;
        if (p->counter >= 0)
            ioctl(p->counter, PERF_EVENT_IOC_RESET, 0);
        for (int64_t i = 0; i < turns; i++)
            took += turn(p);
        ns[rep] = took / (double)turns / n * 1e9;
        if (p->counter >= 0 && read(p->counter, &count, sizeof count) == sizeof count)
            missing[rep] = (double)count / (double)turns * line / (double)now.data_bytes;
        lines[rep + 1] = line_ns(p->w);
    }
    report(p->w, name_of(&now, "", name), now.data_bytes, "ns/line", ns, p->w->opt.reps, lines);
    if (p->counter >= 0)
        report(p->w, name_of(&now, ": misses", name), now.data_bytes, "of lines", missing, p->w->opt.reps, lines);
    close_case(p, turns / 4 + 1 + turns * p->w->opt.reps);
}

/* What a reader of the recording must know: where the marks are, and which addresses are memory that both ranks share. */
static void write_map(const Pollution *p, const char *prefix)
{
    char name[512], text[1024];
    snprintf(name, sizeof name, "%s.%d", prefix, p->w->rank);
    FILE *out = fopen(name, "w"), *maps = fopen("/proc/self/maps", "r");
    if (!out || !maps)
        fail("cannot write %s", name);
    fprintf(out, "pid %d\nmarks %llx\n", (int)getpid(), (unsigned long long)(uintptr_t)p->marks);
    while (fgets(text, sizeof text, maps)) {
        char access[8];
        if (sscanf(text, "%*s %7s", access) == 1 && access[3] == 's')
            fputs(text, out);
    }
    fclose(maps);
    if (fclose(out) != 0)
        fail("cannot write %s", name);
}

int main(int argc, char **argv)
{
    static World w;
    int message = 0, turns = 200;
    const char *trace = "", *order = "sequential", *where = "common";
    const Flag flags[] = {
        {"-m", flag_sizes, &w, "LO:HI: bytes of the data, doubling (128:32768)"},
        {"--message", flag_int, &message, "bytes of the message (as many as the data)"},
        {"--turns", flag_int, &turns, "in each repetition (200)"},
        {"--trace", flag_text, &trace, "FILE: only a few turns of one case, for a recording; the map goes to FILE.0 and FILE.1"},
        {"--order", flag_text, &order, "sequential or random, for --trace (sequential)"},
        {"--buffer", flag_text, &where, "common or separate, for --trace (common)"},
        {0}};
    w.opt.lo_bytes = 128;
    w.opt.hi_bytes = 32 << 10;
    app_start(&w, &argc, &argv, "weft-pollution: what a message leaves of a program's data in the cache; two ranks", flags, 2);
    if (w.size != 2 || w.opt.lo_bytes < line || (w.opt.lo_bytes & (w.opt.lo_bytes - 1)) != 0 || message < 0 || turns < 1)
        fail("pollution needs exactly 2 ranks, data of 64 bytes at least, a power of two, and turns");
    Pollution p = {.w = &w, .marks = aligned_alloc(4096, 4096), .counter = *trace ? -1 : open_counter()};
    if (!p.marks)
        fail("no memory for a page");
    for (size_t bytes = w.opt.lo_bytes; bytes <= w.opt.hi_bytes && !*trace; bytes *= 2)
        for (int kind = 0; kind < 4; kind++) {
            Case now = {kind % 2 != 0, kind / 2 != 0, bytes, message ? (size_t)message : bytes};
            if (now.separate || now.message_bytes <= bytes)
                measure_case(&p, now, turns);
        }
    if (*trace) {
        Case now = {strcmp(order, "random") == 0, strcmp(where, "separate") == 0, w.opt.lo_bytes, message ? (size_t)message : w.opt.lo_bytes};
        if (!now.separate && now.message_bytes > now.data_bytes)
            fail("a message in the common buffer is no larger than the data");
        open_case(&p, now);
        p.marks[mark_begin] = 1; /* whatever was stored there before means nothing */
        for (int i = 0; i < traced_turns; i++)
            turn(&p);
        close_case(&p, traced_turns);
        write_map(&p, trace);
    }
    free((void *)p.marks);
    app_end();
    return 0;
}
