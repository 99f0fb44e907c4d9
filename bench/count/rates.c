/* Messages per second that one core injects, for `weft count --rates`: windows of 64 calls and then whatever completes them, by every call of
 * the critical path in turn, so that all see the same machine. The core's clock is measured in the same repetition, by a chain of
 * additions that depend on each other, as the counter of the processor ticks at another rate.
 *
 * rates REPETITIONS             into the null wire, in one process
 * rates REPETITIONS GAP         the same into a link that takes one message every GAP ns and has room for a window of them
 * rates REPETITIONS paired      rank 0 to rank 1, which posts 64 receives before each window and answers it
 *
 * Prints a line for each repetition and call: its name, nanoseconds and ticks for a message, ticks for a cycle of the core.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft.h>
#include <x86intrin.h>

enum { window = 64, windows = 2000, tag = 1, chain = 200000 };

static char out[64];
static char *part;
static MPI_Request requests[window];
static MPI_Comm twin;
static MPI_Win win;
static double gap_ticks;      /* of the link; 0: there is none */
static double link_is_free;   /* when the link takes the next message */

/* A message leaves. Its sender waits while the link holds a window of earlier ones. */
static void leave(void)
{
    double now = (double)__rdtsc();
    if (link_is_free < now)
        link_is_free = now;
    link_is_free += gap_ticks;
    while (link_is_free - now > window * gap_ticks)
        now = (double)__rdtsc();
}

/* A loop of its own with the link, so that the other one pays nothing for it. */
#define WINDOW(call)                                  \
    do {                                              \
        if (gap_ticks == 0)                           \
            for (int i = 0; i < window; i++)          \
                call;                                 \
        else                                          \
            for (int i = 0; i < window; i++, leave()) \
                call;                                 \
    } while (0)

/* What the loop itself costs, with a call that takes all arguments and does nothing. */
__attribute__((noinline)) static void sink(const void *buf, int count, MPI_Datatype type, int dest, int marker, MPI_Comm comm, MPI_Request *request)
{
    __asm__ volatile("" : : "r"(buf), "r"(count), "r"(type), "r"(dest), "r"(marker), "r"(comm), "r"(request) : "memory");
}

static void nothing(void)
{
    WINDOW(sink(out, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]));
}

static void isend(void)
{
    WINDOW(MPI_Isend(out, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]));
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_injected(void)
{
    WINDOW(MPI_Isend(out, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]));
}

static void isend_global(void)
{
    WINDOW(MPIX_Isend_global(out, 1, MPI_BYTE, 1, tag, twin, &requests[i]));
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_npn(void)
{
    WINDOW(MPIX_Isend_npn(out, 1, MPI_BYTE, 1, tag, twin, &requests[i]));
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_noreq(void)
{
    WINDOW(MPIX_Isend_noreq(out, 1, MPI_BYTE, 1, tag, twin));
    MPIX_Comm_waitall(twin);
}

static void isend_nomatch(void)
{
    WINDOW(MPIX_Isend_nomatch(out, 1, MPI_BYTE, 1, twin, &requests[i]));
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_all_opts(void)
{
    WINDOW(MPIX_Isend_all_opts(out, 1, MPI_BYTE, 1, MPIX_COMM_1));
    MPIX_Comm_waitall(MPIX_COMM_1);
}

static void put(void)
{
    WINDOW(MPI_Put(out, 1, MPI_BYTE, 1, 0, 1, MPI_BYTE, win));
    MPI_Win_flush_all(win);
}

static char in[window];

static void receive_world(void)
{
    for (int i = 0; i < window; i++)
        MPI_Irecv(&in[i], 1, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[i]);
}

static void receive_twin(void)
{
    for (int i = 0; i < window; i++)
        MPI_Irecv(&in[i], 1, MPI_BYTE, 0, tag, twin, &requests[i]);
}

static void receive_unmatched(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Irecv_nomatch(&in[i], 1, MPI_BYTE, twin, &requests[i]);
}

static void receive_fixed(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Irecv_nomatch(&in[i], 1, MPI_BYTE, MPIX_COMM_1, &requests[i]);
}

/* `post`: the receives of a window; null: nothing is received. */
static const struct {
    const char *name;
    void (*run)(void);
    void (*post)(void);
} calls[] = {
    {"the loop and an empty call", nothing, NULL},
    {"MPI_Isend, injection alone", isend_injected, receive_world},
    {"MPI_Isend", isend, receive_world},
    {"MPIX_Isend_global", isend_global, receive_twin},
    {"MPIX_Isend_npn", isend_npn, receive_twin},
    {"MPIX_Isend_noreq", isend_noreq, receive_twin},
    {"MPIX_Isend_nomatch", isend_nomatch, receive_unmatched},
    {"MPIX_Isend_all_opts", isend_all_opts, receive_fixed},
    {"MPI_Put", put, NULL},
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double ticks_per_cycle(void)
{
    uint64_t x = 1;
    const uint64_t begin = __rdtsc();
    for (int i = 0; i < chain; i++)
        __asm__ volatile("add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0" : "+r"(x));
    return (double)(__rdtsc() - begin) / (4.0 * chain);
}

static void send_windows(size_t c, int paired)
{
    const double clock = ticks_per_cycle(), messages = (double)windows * window, start = now_ns();
    const uint64_t begin = __rdtsc();
    link_is_free = 0;
    for (int w = 0; w < windows; w++) {
        calls[c].run();
        if (paired && calls[c].post != NULL)
            MPI_Recv(in, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double ticks = (double)(__rdtsc() - begin);
    printf("%s\t%.4f\t%.4f\t%.4f\n", calls[c].name, (now_ns() - start) / messages, ticks / messages, clock);
}

static void receive_windows(size_t c)
{
    for (int w = 0; w < windows && calls[c].post != NULL; w++) {
        calls[c].post();
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        MPI_Send(in, 1, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    const int repetitions = argc > 1 ? atoi(argv[1]) : 30, paired = argc > 2 && strcmp(argv[2], "paired") == 0;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2 && !paired) {
        const double start = now_ns();
        const uint64_t begin = __rdtsc();
        while (now_ns() - start < 1e7) {
        }
        gap_ticks = atof(argv[2]) * (double)(__rdtsc() - begin) / (now_ns() - start);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPIX_Comm_dup_predefined(MPI_COMM_WORLD, MPIX_COMM_1);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int r = 0; r < repetitions; r++)
        for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
            if (paired)
                MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0)
                send_windows(c, paired);
            else
                receive_windows(c);
        }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
