/* Bandwidth and message rate: rank 0 keeps a window of nonblocking sends in flight, rank 1 a window of receives, and
 * one short answer ends each window. Every message of a window has its own buffer, reused by the next one. */
#include "bench.h"

#include <stdlib.h>

typedef struct Stream {
    void **buffers;
    MPI_Request *requests;
    size_t bytes;
    int window, buffer_count, peer;
    uint64_t stamp; /* of the first message of the window; in step on both sides */
} Stream;

static Stream new_stream(const World *w, size_t bytes)
{
    Stream s = {.bytes = bytes, .window = w->opt.window, .buffer_count = w->opt.buffers, .peer = w->rank ^ 1, .stamp = 1};
    s.buffers = calloc((size_t)s.buffer_count, sizeof(void *));
    s.requests = calloc((size_t)s.window, sizeof(MPI_Request));
    if (!s.buffers || !s.requests)
        fail("no memory for a window of %d messages", s.window);
    for (int i = 0; i < s.buffer_count; i++)
        s.buffers[i] = new_message_buffer(w, bytes);
    return s;
}

static void end_stream(const World *w, Stream *s)
{
    for (int i = 0; i < s->buffer_count; i++)
        free_message_buffer(w, s->buffers[i]);
    free(s->buffers);
    free(s->requests);
}

static inline void send_window(Stream *s, bool fresh)
{
    int answer;
    for (int i = 0; i < s->window; i++) {
        void *buffer = s->buffers[i % s->buffer_count];
        if (fresh)
            rewrite(buffer, s->bytes, s->stamp + (uint64_t)i);
        MPI_Isend(buffer, (int)s->bytes, MPI_BYTE, s->peer, 2, MPI_COMM_WORLD, &s->requests[i]);
    }
    MPI_Waitall(s->window, s->requests, MPI_STATUSES_IGNORE);
    MPI_Recv(&answer, 1, MPI_INT, s->peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void receive_window(Stream *s)
{
    int answer = 0;
    for (int i = 0; i < s->window; i++)
        MPI_Irecv(s->buffers[i % s->buffer_count], (int)s->bytes, MPI_BYTE, s->peer, 2, MPI_COMM_WORLD,
                  &s->requests[i]);
    MPI_Waitall(s->window, s->requests, MPI_STATUSES_IGNORE);
    MPI_Send(&answer, 1, MPI_INT, s->peer, 3, MPI_COMM_WORLD);
}

static void check_window(const World *w, const Stream *s)
{
    if (w->rank != 1 || !w->opt.rewrite || s->buffer_count < s->window)
        return;
    for (int i = 0; i < s->window; i++)
        verify(s->buffers[i], s->bytes, s->stamp + (uint64_t)i, "window");
}

/* Seconds that `windows` windows took at rank 0. Large buffers are rewritten between the timed windows, all of them
 * before the first is sent again; small ones right before their send, inside. */
static double timed(const World *w, Stream *s, int64_t windows)
{
    bool inside = w->opt.rewrite && s->bytes < rewrite_timed_below;
    bool between = w->opt.rewrite && !inside;
    double took = 0;
    meet(w);
    double start = now_s();
    for (int64_t i = 0; i < windows; i++) {
        s->stamp += (uint64_t)s->window;
        if (between) {
            for (int k = 0; k < s->window && w->rank == 0; k++)
                rewrite(s->buffers[k % s->buffer_count], s->bytes, s->stamp + (uint64_t)k);
            start = now_s();
        }
        if (w->rank == 0)
            send_window(s, inside);
        else
            receive_window(s);
        if (between)
            took += now_s() - start;
    }
    if (!between)
        took = now_s() - start;
    check_window(w, s);
    return took;
}

static int64_t calibrate(const World *w, Stream *s)
{
    int64_t windows = 1;
    double total = 0;
    for (;;) {
        double start = now_s();
        double took = timed(w, s, windows);
        total += now_s() - start;
        int64_t next = (int64_t)(w->opt.window_ms * 1e-3 / (took / (double)windows));
        if (next > 4 * windows && total < w->opt.warm_ms * 1e-3)
            next = 4 * windows;
        windows = agree(w, next < 1 ? 1 : next);
        if (agree(w, total >= w->opt.warm_ms * 1e-3))
            return windows;
    }
}

static void measure(const World *w, size_t bytes, const char *name, const char *unit, double scale)
{
    double *samples = calloc((size_t)w->opt.reps, sizeof(double));
    double *lines = calloc((size_t)w->opt.reps + 1, sizeof(double));
    Stream s = new_stream(w, bytes);
    int64_t windows = calibrate(w, &s);
    lines[0] = line_ns(w);
    for (int i = 0; i < w->opt.reps; i++) {
        samples[i] = (double)windows * s.window * scale / timed(w, &s, windows);
        lines[i + 1] = line_ns(w);
    }
    report(w, name, bytes, unit, samples, w->opt.reps, lines);
    end_stream(w, &s);
    free(samples);
    free(lines);
}

int run_bandwidth(const World *w)
{
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 1, hi = w->opt.hi_bytes ? w->opt.hi_bytes : (size_t)4 << 20;
    for (size_t bytes = lo; bytes <= hi && w->rank < 2; bytes *= 2)
        measure(w, bytes, "bandwidth", "GB/s", (double)bytes * 1e-9);
    return 0;
}

int run_rate(const World *w)
{
    size_t lo = w->opt.lo_bytes ? w->opt.lo_bytes : 8, hi = w->opt.hi_bytes ? w->opt.hi_bytes : lo;
    for (size_t bytes = lo; bytes <= hi && w->rank < 2; bytes *= 2)
        measure(w, bytes, "rate", "M/s", 1e-6);
    return 0;
}

/* GB/s of a pair while all pairs stream, ranks 0 and 1, 2 and 3, ...: the answer is the even ranks'. The sender says in the
 * answer's turn whether another window follows. */
static double stream(const World *w, size_t bytes, double limit_s)
{
    Stream s = new_stream(w, bytes);
    int64_t windows = 0;
    int more = 1;
    Window t = begin(w, limit_s);
    while (more) {
        s.stamp += (uint64_t)s.window;
        windows++;
        if (w->rank & 1) {
            MPI_Recv(&more, 1, MPI_INT, s.peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            receive_window(&s);
        } else {
            more = !over(&t, windows);
            MPI_Send(&more, 1, MPI_INT, s.peer, 4, MPI_COMM_WORLD);
            send_window(&s, w->opt.rewrite);
        }
    }
    double took = now_s() - t.start;
    for (int i = 0; (w->rank & 1) && w->opt.rewrite && i < s.window && s.buffer_count >= s.window; i++)
        verify(s.buffers[i], bytes, s.stamp + (uint64_t)i, "stream");
    end_stream(w, &s);
    return w->rank & 1 ? 0 : (double)windows * s.window * (double)bytes * 1e-9 / took;
}

int run_stream(const World *w)
{
    measure_cells(w, "stream", stream, 8, "GB/s", true);
    return 0;
}
