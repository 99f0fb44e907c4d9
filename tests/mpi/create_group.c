// Threads that create communicators from one parent at once, each with a tag of its own: all 31 bits of it count, and no
// process of one creation ever meets another's.
#include "check.h"

#include <pthread.h>

enum { threads = 6, rounds = 25 };
static const int tags[threads] = {5, 5 + (1 << 27), 5 + (1 << 28), 5 + (1 << 30), 0x7fffffff, 0x7ffffffe};
static MPI_Group world;

struct job {
    int thread;
    pthread_barrier_t* gate;
};

// Thread t leaves out process t, where there are enough.
static void* create(void* arg) {
    const struct job* j = arg;
    MPI_Group group;
    int out = j->thread % size, tag = tags[j->thread], mine[2] = {tag, 0}, all[2 * 64];
    if (size > 1) MPI_Group_excl(world, 1, &out, &group);
    else MPI_Group_incl(world, 1, &rank, &group);
    for (int i = 0; i < rounds; i++) {
        pthread_barrier_wait(j->gate);
        if (size > 1 && rank == out) continue;
        MPI_Comm c;
        int n;
        if ((j->thread + rank + i) % 3 == 0) sleep_ms(0);   // in another order on every process
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &c));
        MPI_Comm_size(c, &n);
        mine[1] = rank;
        OK(MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, c));
        for (int k = 0; k < n; k++)
            CHECK(all[2 * k] == tag && (size == 1 || all[2 * k + 1] != out), "tag %x met %x of %d", (unsigned)tag, (unsigned)all[2 * k], all[2 * k + 1]);
        MPI_Comm_free(&c);
    }
    MPI_Group_free(&group);
    return NULL;
}

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE && size <= 64, "level %d, %d ranks", provided, size);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    pthread_t t[threads];
    struct job jobs[threads];
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, threads);
    for (int i = 0; i < threads; i++) {
        jobs[i] = (struct job){(i + rank) % threads, &gate};
        pthread_create(&t[i], NULL, create, &jobs[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    MPI_Group_free(&world);
    return finish();
}
