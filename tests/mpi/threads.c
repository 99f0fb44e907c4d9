// MPI_THREAD_MULTIPLE under load: several threads per rank at once, each on a communicator of its own, all on one by tags,
// all taking from one pool by wildcards, and threads that wait for one another's sends within a rank.
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { threads = 4, rounds = 2000, longest = 100000 };
static MPI_Comm comms[threads];
static atomic_int received;
static atomic_long total;

struct job {
    int me;
    void (*run)(int me);
};
static void* in_thread(void* arg) {
    struct job* job = arg;
    job->run(job->me);
    return NULL;
}
static void all(void (*run)(int me)) {
    pthread_t thread[threads];
    struct job job[threads];
    for (int i = 0; i < threads; i++) {
        job[i] = (struct job){i, run};
        CHECK(pthread_create(&thread[i], NULL, in_thread, &job[i]) == 0, "no thread");
    }
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
}

static int length_of(int i) {
    static const int sizes[] = {8, 0, 40, 41, 8, 500, 8, 5000, 8, 20000, 8, 8, longest};
    return sizes[i % 13];
}

// Ping-pong with everybody's neighbour.
static void ping_pong(MPI_Comm comm, int tag, int me) {
    char* out = malloc(longest);
    char* in = malloc(longest);
    const int peer = rank ^ 1;
    if (peer < size)
        for (int i = 0; i < rounds; i++) {
            const int bytes = length_of(i + me);
            MPI_Status s;
            int count;
            const uint32_t id = (uint32_t)(i * threads + me);
            if (i % 97 == 0 || bytes < 100) fill(out, (size_t)bytes, id + (uint32_t)rank);
            if (rank < peer) {
                MPI_Send(out, bytes, MPI_BYTE, peer, tag, comm);
                MPI_Recv(in, longest, MPI_BYTE, peer, tag, comm, &s);
            } else {
                MPI_Request request;
                MPI_Irecv(in, longest, MPI_BYTE, peer, tag, comm, &request);
                MPI_Wait(&request, &s);
                MPI_Isend(out, bytes, MPI_BYTE, peer, tag, comm, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
            MPI_Get_count(&s, MPI_BYTE, &count);
            CHECK(count == bytes, "thread %d, round %d: %d bytes of %d", me, i, count, bytes);
            if (i % 97 == 0 || bytes < 100)
                CHECK(differs(in, (size_t)bytes, id + (uint32_t)peer) < 0, "thread %d, round %d: %d bytes are wrong", me, i, bytes);
        }
    free(out);
    free(in);
}
static void own_communicator(int me) { ping_pong(comms[me], 5, me); }
static void shared_communicator(int me) { ping_pong(MPI_COMM_WORLD, 100 + me, me); }

// Half of the threads send, half receive whatever comes; sums must agree.
static void pool(int me) {
    if (me < threads / 2) {
        for (int i = 0; i < rounds; i++) {
            long value = (long)rank * 1000000 + me * 100000 + i;
            const int to = (rank + 1 + i % (size > 1 ? size - 1 : 1)) % size;
            MPI_Send(&value, 1, MPI_LONG, to, i % 7, comms[0]);
        }
    } else {
        for (int i = 0; i < rounds; i++) {
            long value;
            MPI_Recv(&value, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[0], MPI_STATUS_IGNORE);
            atomic_fetch_add(&received, 1);
            atomic_fetch_add(&total, value);
        }
    }
}

// Requests made by one thread, completed by another.
static MPI_Request handed[threads][64];
static void start_receives(int me) {
    static int values[threads][64];
    for (int i = 0; i < 64; i++) MPI_Irecv(&values[me][i], 1, MPI_INT, rank, 1000 + me * 64 + i, comms[1], &handed[me][i]);
}
static void finish_another(int me) {
    const int other = (me + 1) % threads;
    for (int i = 0; i < 64; i++) MPI_Send(&i, 1, MPI_INT, rank, 1000 + me * 64 + i, comms[1]);
    MPI_Status statuses[64];
    MPI_Waitall(64, handed[other], statuses);
    for (int i = 0; i < 64; i++) CHECK(statuses[i].MPI_TAG == 1000 + other * 64 + i, "tag %d", statuses[i].MPI_TAG);
}

// A thread in a blocking receive must not keep another from sending what it waits for.
static void blocked_and_freed(int me) {
    int value = me;
    for (int i = 0; i < 200; i++) {
        if (me % 2) {
            MPI_Ssend(&i, 1, MPI_INT, rank, 3000 + me, comms[2]);
        } else {
            MPI_Recv(&value, 1, MPI_INT, rank, 3000 + me + 1, comms[2], MPI_STATUS_IGNORE);
            CHECK(value == i, "%d instead of %d", value, i);
        }
    }
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    for (int i = 0; i < threads; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    all(own_communicator);
    all(shared_communicator);
    all(pool);
    long sum = 0, mine = 0, sent = 0;
    for (int me = 0; me < threads / 2; me++)
        for (int i = 0; i < rounds; i++) sent += (long)rank * 1000000 + me * 100000 + i;
    mine = atomic_load(&total);
    long both[2] = {sent, mine}, sums[2];
    MPI_Allreduce(both, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sums[0] == sums[1], "sent %ld, received %ld", sums[0], sums[1]);
    CHECK(atomic_load(&received) == rounds * (threads - threads / 2), "%d received", atomic_load(&received));
    (void)sum;
    all(start_receives);
    all(finish_another);
    all(blocked_and_freed);
    for (int i = 0; i < threads; i++) MPI_Comm_free(&comms[i]);
    return finish();
}
