/* Messages per second that one core injects into the null wire, for `weft count --rates`: windows of 64 calls and then whatever completes
 * them, by every call of the critical path in turn, so that all see the same machine. The core's clock is measured in the same
 * repetition, by a chain of additions that depend on each other, as the counter of the processor ticks at another rate.
 *
 * rates REPETITIONS: a line for each repetition and call: its name, nanoseconds and ticks for a message, ticks for a cycle of the core.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft.h>
#include <x86intrin.h>

enum { window = 64, windows = 2000, tag = 1, chain = 200000 };

static char out[64];
static char *part;
static MPI_Request requests[window];
static MPI_Comm twin;
static MPI_Win win;

/* What the loop itself costs, with a call that takes all arguments and does nothing. */
__attribute__((noinline)) static void sink(const void *buf, int count, MPI_Datatype type, int dest, int marker, MPI_Comm comm, MPI_Request *request)
{
    __asm__ volatile("" : : "r"(buf), "r"(count), "r"(type), "r"(dest), "r"(marker), "r"(comm), "r"(request) : "memory");
}

static void nothing(void)
{
    for (int i = 0; i < window; i++)
        sink(out, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]);
}

static void isend(void)
{
    for (int i = 0; i < window; i++)
        MPI_Isend(out, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_injected(void)
{
    for (int i = 0; i < window; i++)
        MPI_Isend(out, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]);
}

static void isend_global(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Isend_global(out, 1, MPI_BYTE, 1, tag, twin, &requests[i]);
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_npn(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Isend_npn(out, 1, MPI_BYTE, 1, tag, twin, &requests[i]);
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_noreq(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Isend_noreq(out, 1, MPI_BYTE, 1, tag, twin);
    MPIX_Comm_waitall(twin);
}

static void isend_nomatch(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Isend_nomatch(out, 1, MPI_BYTE, 1, twin, &requests[i]);
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

static void isend_all_opts(void)
{
    for (int i = 0; i < window; i++)
        MPIX_Isend_all_opts(out, 1, MPI_BYTE, 1, MPIX_COMM_1);
    MPIX_Comm_waitall(MPIX_COMM_1);
}

static void put(void)
{
    for (int i = 0; i < window; i++)
        MPI_Put(out, 1, MPI_BYTE, 1, 0, 1, MPI_BYTE, win);
    MPI_Win_flush_all(win);
}

static const struct {
    const char *name;
    void (*run)(void);
} calls[] = {
    {"the loop and an empty call", nothing},
    {"MPI_Isend, injection alone", isend_injected},
    {"MPI_Isend", isend},
    {"MPIX_Isend_global", isend_global},
    {"MPIX_Isend_npn", isend_npn},
    {"MPIX_Isend_noreq", isend_noreq},
    {"MPIX_Isend_nomatch", isend_nomatch},
    {"MPIX_Isend_all_opts", isend_all_opts},
    {"MPI_Put", put},
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

int main(int argc, char **argv)
{
    const int repetitions = argc > 1 ? atoi(argv[1]) : 30;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPIX_Comm_dup_predefined(MPI_COMM_WORLD, MPIX_COMM_1);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int r = 0; r < repetitions; r++)
        for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
            const double clock = ticks_per_cycle(), messages = (double)windows * window, start = now_ns();
            const uint64_t begin = __rdtsc();
            for (int w = 0; w < windows; w++)
                calls[c].run();
            const double ticks = (double)(__rdtsc() - begin);
            printf("%s\t%.4f\t%.4f\t%.4f\n", calls[c].name, (now_ns() - start) / messages, ticks / messages, clock);
        }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
