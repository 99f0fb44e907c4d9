// Eager flow control: every correct program finishes, and memory stays bounded.
//   flow order      10^5 Isend of tag 0, then Send of tag 1, which is received first
//   flow outside    10^6 messages to a receiver that is outside MPI: at most 64 MiB in both ranks together
//   flow unmatched  10^6 messages that no receive wants, ahead of one that is wanted: at most 256 MiB, which go back
//   flow both       both ranks send 10^5 messages to each other before either receives
//   flow wildcard   two floods from a rank that is not waited for, while a receive from any source waits: at most 24 MiB in the
//                   receiver; and an awaited message that lies behind a flood
//   flow probe, flow iprobe   the same, while the receiver probes
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
    const long left = rank == 1 ? share_kib() - before : 0;
    CHECK(left <= 16 * 1024, "%ld KiB are kept after all has been received", left);
}

static void both(int number) {
    char buf[64];
    fill(buf, sizeof buf, 1);
    before_kib(number);
    send_many(1 - rank, 0, number, buf);
    receive_many(1 - rank, 0, number);
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
}

// ---- a message from any source is waited for

enum { flood_tag = 0, wanted_tag = 1, go_tag = 2, number_of_sizes = 7 };
static const int flood_sizes[number_of_sizes] = {0, 8, 40, 41, 48, 49, 3000};

static void await_wanted(const char* how) {
    MPI_Request request;
    MPI_Status s;
    int got = -1, flag = 0;
    if (!strcmp(how, "wildcard")) {
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, wanted_tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        if (!strcmp(how, "probe")) MPI_Probe(MPI_ANY_SOURCE, wanted_tag, MPI_COMM_WORLD, &s);
        else while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, wanted_tag, MPI_COMM_WORLD, &flag, &s);
        MPI_Recv(&got, 1, MPI_INT, s.MPI_SOURCE, wanted_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    CHECK(got == 42, "the awaited message holds %d", got);
}

// A flood from rank 0 while rank 1 waits for rank 2: `bytes` each, one by one or all at once.
static void flood(const char* how, int number, int bytes, int at_once) {
    char* buf = malloc((size_t)bytes);
    int wanted = 42;
    memset(buf, 1, (size_t)bytes);
    if (rank == 0) {
        fill(buf, (size_t)bytes, 1);
        for (int i = 0; i < number; i++) {
            if (at_once) MPI_Isend(buf, bytes, MPI_BYTE, 1, flood_tag, MPI_COMM_WORLD, &requests[i]);
            else MPI_Send(buf, bytes, MPI_BYTE, 1, flood_tag, MPI_COMM_WORLD);
        }
        if (at_once) MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        long before = share_kib(), after;
        MPI_Send(NULL, 0, MPI_BYTE, 2, go_tag, MPI_COMM_WORLD);
        await_wanted(how);
        after = share_kib();
        for (int i = 0; i < number; i++) {
            MPI_Recv(buf, bytes, MPI_BYTE, 0, flood_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(differs(buf, (size_t)bytes, 1) < 0, "message %d is wrong", i);
        }
        printf("%s, %d messages of %d bytes: %.1f MiB in the receiver\n", how, number, bytes, (double)(after - before) / 1024);
        CHECK(after - before <= 24 * 1024, "%ld KiB", after - before);
    } else {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, go_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep_ms(1000);
        MPI_Send(&wanted, 1, MPI_INT, 1, wanted_tag, MPI_COMM_WORLD);
    }
    free(buf);
    MPI_Barrier(MPI_COMM_WORLD);
}

// What is waited for lies behind sends that are all under way.
static void behind(const char* how, int number) {
    char buf[3000];
    int wanted = 42;
    if (rank == 0) {
        fill(buf, sizeof buf, 1);
        for (int i = 0; i < number; i++)
            MPI_Isend(buf, flood_sizes[i % number_of_sizes], MPI_BYTE, 1, flood_tag, MPI_COMM_WORLD, &requests[i]);
        MPI_Send(&wanted, 1, MPI_INT, 1, wanted_tag, MPI_COMM_WORLD);
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        await_wanted(how);
        for (int i = 0; i < number; i++) {
            MPI_Status s;
            int count;
            MPI_Recv(buf, sizeof buf, MPI_BYTE, MPI_ANY_SOURCE, flood_tag, MPI_COMM_WORLD, &s);
            MPI_Get_count(&s, MPI_BYTE, &count);
            CHECK(count == flood_sizes[i % number_of_sizes] && differs(buf, (size_t)count, 1) < 0, "message %d of %d bytes is wrong", i, count);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void any_source(const char* how) {
    enum { small = 300000, larger = 20000, disorder = 20000 };
    requests = malloc(small * sizeof *requests);
    MPI_Barrier(MPI_COMM_WORLD);
    flood(how, small, 8, 0);
    flood(how, larger, 4000, 1);
    behind(how, disorder);
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(argc >= 2, "which one?");
    if (!strcmp(argv[1], "wildcard") || !strcmp(argv[1], "probe") || !strcmp(argv[1], "iprobe")) {
        CHECK(size == 3, "three ranks are needed");
        any_source(argv[1]);
        free(requests);
        return finish();
    }
    CHECK(size == 2, "two ranks are needed");
    const int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(argv[1], "order")) order(number ? number : 100000);
    else if (!strcmp(argv[1], "outside")) outside(number ? number : 1000000);
    else if (!strcmp(argv[1], "unmatched")) unmatched(number ? number : 1000000);
    else if (!strcmp(argv[1], "both")) both(number ? number : 100000);
    else CHECK(0, "%s is unknown", argv[1]);
    free(requests);
    return finish();
}
