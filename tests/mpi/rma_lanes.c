// A window of several lanes (docs/lanes.md): threads put, get and accumulate by it at once.
//   usage: rma_lanes THREADS LANES ROUNDS [unordered]
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { most_threads = 8, words = 16 };   // of each thread of each origin, in every part
static int threads, lanes, rounds, unordered;
static MPI_Win win;
static pthread_barrier_t among_threads;
static atomic_int at_work;

static MPI_Aint first_word(int origin, int thread) { return 1 + (MPI_Aint)(origin * threads + thread) * words; }
static int64_t stamp(int thread, int round, int i) { return ((int64_t)rank << 48) + ((int64_t)thread << 40) + ((int64_t)round << 8) + i; }

// What a flush has completed is at the target, while other threads use the window; and a get sees it.
static void put_and_get(int me, int target, int round) {
    int64_t out[words], in[words] = {0};
    for (int i = 0; i < words; i++) out[i] = stamp(me, round, i);
    OK(MPI_Put(out, words, MPI_INT64_T, target, first_word(rank, me), words, MPI_INT64_T, win));
    OK(round % 3 ? MPI_Win_flush(target, win) : MPI_Win_flush_all(win));
    if (round % 2) {
        OK(MPI_Get(in, words, MPI_INT64_T, target, first_word(rank, me), words, MPI_INT64_T, win));
        OK(round % 4 == 1 ? MPI_Win_flush(target, win) : MPI_Win_flush_local(target, win));
    } else {
        MPI_Request request;
        OK(MPI_Rget(in, words, MPI_INT64_T, target, first_word(rank, me), words, MPI_INT64_T, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < words; i++) CHECK(in[i] == out[i], "word %d of thread %d, round %d: %llx", i, me, round, (long long)in[i]);
}

// Nothing is lost whatever lane a sum goes by.
static void count(int target) {
    const int64_t one = 1;
    int64_t before = -1;
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, win));
    OK(MPI_Win_flush_local(target, win));
    CHECK(before >= 0, "%lld", (long long)before);
}

// Accumulates on one place that threads order among themselves are applied in that order: the last one wins.
static void replace_in_turn(int me, int target, int round) {
    int64_t last = -1;
    for (int turn = 0; turn < threads; turn++) {
        const int64_t mine = stamp(me, round, turn);
        if (turn == me) OK(MPI_Accumulate(&mine, 1, MPI_INT64_T, target, first_word(rank, 0), 1, MPI_INT64_T, MPI_REPLACE, win));
        pthread_barrier_wait(&among_threads);
    }
    if (me == 0) {
        OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &last, 1, MPI_INT64_T, target, first_word(rank, 0), 1, MPI_INT64_T, MPI_NO_OP, win));
        OK(MPI_Win_flush(target, win));
        CHECK(last == stamp(threads - 1, round, threads - 1), "round %d: %llx is not what the last thread wrote", round, (long long)last);
    }
    pthread_barrier_wait(&among_threads);
}

// A flush ends, though other threads go on with puts and flushes of their own.
static void flush_beside_others(int me, int target) {
    for (int64_t i = 0; me == 0 ? i < rounds : atomic_load(&at_work); i++) {
        OK(MPI_Put(&i, 1, MPI_INT64_T, target, first_word(rank, me), 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(target, win));
    }
    if (me == 0) atomic_store(&at_work, 0);
}

static void* work(void* argument) {
    const int me = (int)(intptr_t)argument;
    for (int i = 0; i < rounds; i++) {
        const int target = (rank + me + i) % size;
        put_and_get(me, target, i);
        count(target);
    }
    pthread_barrier_wait(&among_threads);
    for (int i = 0; i < rounds / 4 && !unordered; i++) replace_in_turn(me, (rank + i) % size, i);
    flush_beside_others(me, (rank + 1) % size);
    return NULL;
}

static void all(void) {
    pthread_t thread[most_threads];
    pthread_barrier_init(&among_threads, NULL, (unsigned)threads);
    atomic_store(&at_work, 1);
    for (int i = 1; i < threads; i++) CHECK(pthread_create(&thread[i], NULL, work, (void*)(intptr_t)i) == 0, "no thread");
    work(0);
    for (int i = 1; i < threads; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&among_threads);
}

static MPI_Info hints(void) {
    char number[16];
    MPI_Info info;
    snprintf(number, sizeof number, "%d", lanes);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_num_vcis", number));
    if (unordered) OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    return info;
}

// Where the window's accesses are messages, and the process has lanes, it tells as many as were asked for.
static void check_lanes(void) {
    MPI_Info told;
    char value[128] = "";
    int there, room = sizeof value, n = 1;
    OK(MPI_Win_get_info(win, &told));
    OK(MPI_Info_get_string(told, "weft_lane", &room, value, &there));
    OK(MPI_Info_free(&told));
    for (const char* at = value; *at; at++) n += *at == ',';
    CHECK(!there || n == lanes, "lanes %s", value);
}

int main(int argc, char** argv) {
    int level;
    int64_t* base;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 3, "usage: rma_lanes THREADS LANES ROUNDS [unordered]");
    threads = atoi(argv[1]);
    lanes = atoi(argv[2]);
    rounds = atoi(argv[3]);
    unordered = argc > 4;
    MPI_Info info = hints();
    const MPI_Aint bytes = (MPI_Aint)sizeof *base * (1 + size * threads * words);
    OK(MPI_Win_allocate(bytes, sizeof *base, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Info_free(&info));
    memset(base, 0, (size_t)bytes);
    check_lanes();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    all();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int64_t mine = base[0], sum = 0;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == (int64_t)2 * size * threads * rounds, "%lld counted", (long long)sum);
    // Epochs that all lanes take part in.
    OK(MPI_Win_fence(0, win));
    const int64_t value = 1000 + rank;
    OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK(base[0] == 1000 + (rank + size - 1) % size, "%lld after a fence", (long long)base[0]);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, 0, first_word(rank, 0), 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0)
        for (int i = 0; i < size; i++) CHECK(base[first_word(i, 0)] == 1000 + i, "%lld after a lock", (long long)base[first_word(i, 0)]);
    OK(MPI_Win_free(&win));
    return finish();
}
