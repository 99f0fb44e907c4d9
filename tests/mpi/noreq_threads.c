// Threads that send without requests on one communicator at once, and each complete them together: no buffer is used again before its send
// has left, no message is lost, and no thread waits for sends that were begun after its own call (two such threads could wait for each other).
// usage: noreq_threads [ROUNDS]
#include <pthread.h>
#include <weft.h>

#include "check.h"

enum { threads = 4, burst = 9, longest = 300000 };
static int rounds = 60;
static pthread_barrier_t together;

static int length_of(int i) {
    static const int sizes[burst] = {8, 0, 40, 500, 8, 5000, 20000, 8, longest};
    return sizes[i % burst];
}

static uint32_t id_of(int from, int me, int round, int i) { return (uint32_t)(((from * threads + me) * 1000 + round) * burst + i); }

static void send_all(char* out, int me, int round) {
    char* at = out;
    for (int i = 0; i < burst; at += length_of(i++)) {
        fill((unsigned char*)at, (size_t)length_of(i), id_of(rank, me, round, i));
        if (i % 2 == 0) OK(MPIX_Isend_noreq(at, length_of(i), MPI_BYTE, rank ^ 1, me, MPI_COMM_WORLD));
        else OK(MPIX_Isend_noreq(at, length_of(i), MPI_BYTE, rank ^ 1, threads + me, MPI_COMM_WORLD));
    }
}

static void receive_all(char* in, int me, int round) {
    for (int i = 0; i < burst; i++) {
        MPI_Status s;
        int count = -1;
        OK(MPI_Recv(in, longest, MPI_BYTE, rank ^ 1, i % 2 == 0 ? me : threads + me, MPI_COMM_WORLD, &s));
        OK(MPI_Get_count(&s, MPI_BYTE, &count));
        CHECK(count == length_of(i), "thread %d, round %d: %d bytes of %d", me, round, count, length_of(i));
        const long at = differs((unsigned char*)in, (size_t)count, id_of(rank ^ 1, me, round, i));
        CHECK(at < 0, "thread %d, round %d, message %d: byte %ld of %d is wrong", me, round, i, at, count);
    }
}

static void* run(void* arg) {
    const int me = (int)(intptr_t)arg;
    size_t bytes = 0;
    for (int i = 0; i < burst; i++) bytes += (size_t)length_of(i);
    char* out = malloc(bytes + 1);
    char* in = malloc(longest);
    for (int round = 0; round < rounds; round++) {
        send_all(out, me, round);
        receive_all(in, me, round);
        // Each call is for all threads' sends, so none may begin the next round's before: they are received after it.
        pthread_barrier_wait(&together);
        OK(MPIX_Comm_waitall(MPI_COMM_WORLD));
        pthread_barrier_wait(&together);
    }
    free(in);
    free(out);
    return NULL;
}

// While one thread completes its send, another begins one that is received after the first thread has gone on.
enum { first_tag = 100, later_tag, begun_tag, back_tag, large = 4 << 20 };
static void* complete_first(void* arg) {
    OK(MPIX_Comm_waitall(MPI_COMM_WORLD));
    OK(MPI_Send(NULL, 0, MPI_BYTE, rank ^ 1, back_tag, MPI_COMM_WORLD));
    return arg;
}

static void later_send(void) {
    char* data = calloc(2, large);
    if (rank % 2 == 0) {
        pthread_t first;
        OK(MPIX_Isend_noreq(data, large, MPI_BYTE, rank ^ 1, first_tag, MPI_COMM_WORLD));
        CHECK(pthread_create(&first, NULL, complete_first, NULL) == 0, "no thread");
        usleep(50000);   // it waits by now, or the test shows nothing this time
        OK(MPIX_Isend_noreq(data + large, large, MPI_BYTE, rank ^ 1, later_tag, MPI_COMM_WORLD));
        OK(MPI_Send(NULL, 0, MPI_BYTE, rank ^ 1, begun_tag, MPI_COMM_WORLD));
        pthread_join(first, NULL);
        OK(MPIX_Comm_waitall(MPI_COMM_WORLD));
    } else {
        static const int order[] = {begun_tag, first_tag, back_tag, later_tag};
        for (int i = 0; i < 4; i++) OK(MPI_Recv(data, large, MPI_BYTE, rank ^ 1, order[i], MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    free(data);
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size % 2 == 0, "ranks come in pairs");
    if (argc > 1) rounds = atoi(argv[1]);
    pthread_t thread[threads];
    pthread_barrier_init(&together, NULL, threads);
    for (int i = 0; i < threads; i++) CHECK(pthread_create(&thread[i], NULL, run, (void*)(intptr_t)i) == 0, "no thread");
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    later_send();
    return finish();
}
