// Eager flow control: every correct program finishes, and memory stays bounded.
//   flow order      10^5 Isend of tag 0, then Send of tag 1, which is received first
//   flow outside    10^6 messages to a receiver that is outside MPI: at most 64 MiB in both ranks together
//   flow unmatched  10^6 messages that no receive wants, ahead of one that is wanted: at most 256 MiB
//   flow both       both ranks send 10^5 messages to each other before either receives
#include <signal.h>

#include "check.h"

static MPI_Request* requests;
static int payload = 8;

static void send_many(int peer, int tag, int number, const char* buf) {
    for (int i = 0; i < number; i++) MPI_Isend(buf, payload, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
}
static void receive_many(int peer, int tag, int number) {
    for (int i = 0; i < number; i++) {
        char got[64];
        MPI_Recv(got, payload, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(differs(got, (size_t)payload, 1) < 0, "message %d is wrong", i);
    }
}

// What the handles of the test itself need is touched before measuring starts.
static long before_kib(int number) {
    requests = malloc((size_t)number * sizeof *requests);
    memset(requests, 1, (size_t)number * sizeof *requests);  // not 0: that would be a calloc, which touches nothing
    // A first exchange, so that what a pair costs once is not counted.
    int peer = 1 - rank;
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 9, NULL, 0, MPI_BYTE, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return share_kib();
}
static void within(long kib, long limit_mib, const char* what) {
    long other;
    MPI_Sendrecv(&kib, 1, MPI_LONG, 1 - rank, 8, &other, 1, MPI_LONG, 1 - rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) printf("%s: %.1f MiB in the sender, %.1f MiB in the receiver, %ld MiB allowed\n", what, (double)kib / 1024, (double)other / 1024, limit_mib);
    CHECK(kib + other <= limit_mib * 1024, "%s: %ld KiB, more than %ld MiB", what, kib + other, limit_mib);
}

static void order(int number) {
    char buf[64];
    fill(buf, sizeof buf, 1);
    before_kib(number);
    if (rank == 0) {
        send_many(1, 0, number, buf);
        MPI_Send(buf, payload, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    } else {
        receive_many(0, 1, 1);
        receive_many(0, 0, number);
    }
}

static void outside(int number) {
    char buf[64];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fill(buf, sizeof buf, 1);
    long before = before_kib(number), pid = getpid(), peer_pid, after;
    MPI_Sendrecv(&pid, 1, MPI_LONG, 1 - rank, 7, &peer_pid, 1, MPI_LONG, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) {
        send_many(1, 0, number, buf);
        after = share_kib();
        kill((pid_t)peer_pid, SIGUSR1);
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    } else {
        int got;
        sigwait(&set, &got);  // outside MPI until the sender has sent all it will
        after = share_kib();
        receive_many(0, 0, number);
    }
    within(after - before, 64, "10^6 messages to a receiver outside MPI");
}

static void unmatched(int number) {
    char buf[64];
    fill(buf, sizeof buf, 1);
    long before = before_kib(number), after;
    if (rank == 0) {
        send_many(1, 0, number, buf);
        MPI_Send(buf, payload, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        after = share_kib();
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    } else {
        char got[64];
        MPI_Request request;
        MPI_Irecv(got, payload, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        after = share_kib();
        receive_many(0, 0, number);
    }
    within(after - before, 256, "10^6 unmatched messages ahead of a posted receive");
}

static void both(int number) {
    char buf[64];
    fill(buf, sizeof buf, 1);
    before_kib(number);
    send_many(1 - rank, 0, number, buf);
    receive_many(1 - rank, 0, number);
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size == 2, "two ranks are needed");
    CHECK(argc >= 2, "which one?");
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(argv[1], "order")) order(number ? number : 100000);
    else if (!strcmp(argv[1], "outside")) outside(number ? number : 1000000);
    else if (!strcmp(argv[1], "unmatched")) unmatched(number ? number : 1000000);
    else if (!strcmp(argv[1], "both")) both(number ? number : 100000);
    else CHECK(0, "%s is unknown", argv[1]);
    free(requests);
    return finish();
}
