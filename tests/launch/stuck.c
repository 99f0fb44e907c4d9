/* Jobs that never end, each in another way: what mpiexec says of them when their time is up is checked by test_pending.py. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static MPI_Comm pair;      /* ranks of equal parity, backwards, named "halo" */
static char big[1 << 21];

/* Ranks 0 and 1 wait for tags that nobody sends; the others compute. */
static void wrong_tags(void) {
    int x = rank;
    if (rank < 2) {
        MPI_Send(&x, 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (volatile long n = 0;; n++) {}
}

static void many(void) {
    MPI_Request requests[30];
    for (int i = 0; i < 30; i++) MPI_Irecv(&big[i], 1, MPI_CHAR, MPI_ANY_SOURCE, i % 2 ? MPI_ANY_TAG : i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(30, requests, MPI_STATUSES_IGNORE);
}

/* Every rank but the first sends in a way that needs a receiver; the first probes for something else. */
static void sends(void) {
    MPI_Request request;
    if (rank == 0) MPI_Probe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Ssend(big, 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    if (rank == 2) MPI_Send(big, sizeof big, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    MPI_Issend(big, 3, MPI_CHAR, 0, 3, pair, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Rank 0 never comes to the second collective. */
static void collectives(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(big, 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(big, 10, MPI_INT, 0, MPI_COMM_WORLD);
}

/* All ranks probe for what nobody sends, each by another call. */
static void probes(void) {
    MPI_Message message;
    int found = 0;
    if (rank == 0) MPI_Probe(2, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Mprobe(0, 4, pair, &message, MPI_STATUS_IGNORE);
    while (!found) MPI_Iprobe(1, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/* The last rank does not answer. */
static void wait_for_the_other(void) {
    if (rank == 0) MPI_Recv(big, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void stopped(void) {
    wait_for_the_other();
    for (;;) raise(SIGSTOP);
}

static void asleep(void) {
    wait_for_the_other();
    for (;;) sleep(1000);
}

/* Gives way to every other process of its CPU. */
static void starved(void) {
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none);
    for (volatile long n = 0;; n++) {}
}

static void* receive(void* tag) {
    MPI_Recv(big, 1, MPI_CHAR, 0, *(int*)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

static void threads(void) {
    int tags[2] = {11, 12};
    pthread_t other;
    pthread_create(&other, NULL, receive, &tags[0]);
    receive(&tags[1]);
}

static void aborting(void) {
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    many();
}

/* Programs that poll by calls that do not wait. */
static void test(void) {
    MPI_Request request;
    MPI_Irecv(big, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void testall(void) {
    MPI_Request request;
    MPI_Irecv(big, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE);
}

static void improbe(void) {
    MPI_Message message;
    for (int found = 0; !found;) MPI_Improbe(0, 1, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
}

static void parrived(void) {
    MPI_Request request;
    MPI_Precv_init(big, 4, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    for (int there = 0; !there;) MPI_Parrived(request, 0, &there);
}

/* MPI is over, the program is not. */
static void over(void) {
    MPI_Finalize();
    sleep(1000);
}

static void finalize(void) {
    if (rank == 0) MPI_Recv(big, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Finalize();
}

int main(int argc, char** argv) {
    static const struct { const char* name; void (*run)(void); } ways[] = {
        {"wrong_tags", wrong_tags}, {"many", many}, {"sends", sends}, {"collectives", collectives}, {"threads", threads},
        {"abort", aborting}, {"MPI_Test", test}, {"MPI_Testall", testall}, {"MPI_Improbe", improbe}, {"MPI_Parrived", parrived}, {"probes", probes}, {"stopped", stopped}, {"asleep", asleep}, {"starved", starved}, {"over", over}, {"finalize", finalize}};
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &pair);
    MPI_Comm_set_name(pair, "halo");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (argc == 2 && strcmp(argv[1], ways[i].name) == 0) ways[i].run();
    fprintf(stderr, "%s ended, or is unknown\n", argc > 1 ? argv[1] : "nothing");
    return 1;
}
