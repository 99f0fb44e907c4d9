// The four thread levels: what is asked for is given, and the library says so. `levels 0..3`; `levels init` uses MPI_Init.
#include <pthread.h>

#include "check.h"

static void* elsewhere(void* arg) {
    (void)arg;
    int flag = -1, provided = -1;
    MPI_Is_thread_main(&flag);
    MPI_Query_thread(&provided);
    CHECK(!flag, "another thread takes itself for the main one");
    return NULL;
}

int main(int argc, char** argv) {
    static const int level[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    CHECK(argc == 2, "which level?");
    int flag = -1, provided = -1, queried = -1;
    MPI_Initialized(&flag);
    CHECK(!flag, "initialised before MPI_Init");
    MPI_Finalized(&flag);
    CHECK(!flag, "finalized before MPI_Init");
    const int plain = !strcmp(argv[1], "init"), want = plain ? MPI_THREAD_SINGLE : level[atoi(argv[1])];
    if (plain) MPI_Init(&argc, &argv);
    else MPI_Init_thread(&argc, &argv, want, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Query_thread(&queried);
    CHECK(plain || queried == provided, "provided %d, queried %d", provided, queried);
    CHECK(queried >= want, "asked for %d, got %d", want, queried);
    MPI_Initialized(&flag);
    CHECK(flag, "not initialised after MPI_Init");
    MPI_Is_thread_main(&flag);
    CHECK(flag, "the main thread is not the main thread");
    if (want >= MPI_THREAD_FUNNELED) {
        pthread_t thread;
        pthread_create(&thread, NULL, elsewhere, NULL);
        pthread_join(thread, NULL);
    }
    int sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size, "%d of %d ranks", sum, size);
    MPI_Finalize();
    MPI_Finalized(&flag);
    CHECK(flag, "not finalized after MPI_Finalize");
    MPI_Initialized(&flag);
    CHECK(flag, "MPI_Initialized forgets at MPI_Finalize");
    return 0;
}
