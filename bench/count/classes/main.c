/* What is counted: the slope of send_numbers over the number of its sends, minus that of an empty loop. One process, whose peer is on the
 * null wire. */
#include <stdio.h>
#include <valgrind/callgrind.h>

#include "classes.h"

enum { most = 64, repeats = 5 };

static Real numbers[most];
static MPI_Request requests[most];

__attribute__((noinline)) static void empty(const Real *values, MPI_Request *to, int n)
{
    for (int i = 0; i < n; i++)
        __asm__ volatile("" : : "r"(values), "r"(to) : "memory");
}

static void count_sends(int n)
{
    char name[32];
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    send_numbers(numbers, requests, n);
    CALLGRIND_TOGGLE_COLLECT;
    snprintf(name, sizeof name, "send %d", n);
    CALLGRIND_DUMP_STATS_AT(name);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void count_nothing(int n)
{
    char name[32];
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    empty(numbers, requests, n);
    CALLGRIND_TOGGLE_COLLECT;
    snprintf(name, sizeof name, "empty %d", n);
    CALLGRIND_DUMP_STATS_AT(name);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    prepare();
    send_numbers(numbers, requests, most); /* warm: pages touched, symbols bound */
    MPI_Waitall(most, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < repeats; i++)
        for (int n = most; n >= most / 2; n /= 2) {
            count_nothing(n);
            count_sends(n);
        }
    finish();
    MPI_Finalize();
    return 0;
}
