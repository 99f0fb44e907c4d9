// Windows of endpoints (MPIX_Win_create_endpoints): each endpoint is a target and an origin of its own.
//   usage: endpoints_windows ENDPOINTS ROUNDS heap|malloc     in processes of odd rank one more, as whose parts lie in that memory
//          endpoints_windows errors
#include <pthread.h>
#include <weft.h>

#include "check.h"

enum { most = 8, words = 64 };
enum { ticket = 0, neighbour = 1, guarded = 2, first_sum = 3 };   // places in every part
static MPI_Comm ep[most];
static MPI_Win win[most];
static int64_t* part[most];
static MPI_Aint sizes[most];
static int mine, rounds, total, base;

static void create(int first, int n) {
    void* bases[most];
    for (int i = 0; i < n; i++) bases[i] = part[first + i];
    OK(MPIX_Win_create_endpoints(n, bases, &sizes[first], sizeof(int64_t), MPI_INFO_NULL, &ep[first], &win[first]));
}

// Every endpoint puts into the next one's part, between fences.
static void by_fences(int me, int i) {
    const int64_t value = 1000 * i + base + me;
    OK(MPI_Win_fence(0, win[me]));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (base + me + 1) % total, neighbour, 1, MPI_INT64_T, win[me]));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win[me]));
    const int64_t want = 1000 * i + (base + me + total - 1) % total;
    CHECK(part[me][neighbour] == want, "endpoint %d: %lld, not %lld", base + me, (long long)part[me][neighbour], (long long)want);
}

// A counter of the first endpoint, a sum at every endpoint, and a number under an exclusive lock of the last one.
static void by_locks(int me, int i, int64_t* last) {
    const int64_t one = 1;
    int64_t drawn = -1, got = -1;
    const int target = (base + me + i) % total;
    OK(MPI_Win_lock_all(0, win[me]));
    OK(MPI_Fetch_and_op(&one, &drawn, MPI_INT64_T, 0, ticket, MPI_SUM, win[me]));
    OK(MPI_Win_flush(0, win[me]));
    CHECK(drawn > *last && drawn < (int64_t)total * rounds, "endpoint %d drew %lld after %lld", base + me, (long long)drawn, (long long)*last);
    *last = drawn;
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, first_sum + base + me, 1, MPI_INT64_T, MPI_SUM, win[me]));
    OK(MPI_Win_flush(target, win[me]));
    OK(MPI_Get(&got, 1, MPI_INT64_T, target, first_sum + base + me, 1, MPI_INT64_T, win[me]));
    OK(MPI_Win_unlock_all(win[me]));
    CHECK(got == i / total + 1, "endpoint %d finds %lld at %d in round %d", base + me, (long long)got, target, i);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, total - 1, 0, win[me]));
    OK(MPI_Get(&got, 1, MPI_INT64_T, total - 1, guarded, 1, MPI_INT64_T, win[me]));
    OK(MPI_Win_flush(total - 1, win[me]));
    got++;
    OK(MPI_Put(&got, 1, MPI_INT64_T, total - 1, guarded, 1, MPI_INT64_T, win[me]));
    OK(MPI_Win_unlock(total - 1, win[me]));
}

static void* work(void* argument) {
    const int me = (int)(intptr_t)argument;
    int64_t last = -1;
    if (rank % 2) create(me, 1);   // in the others one call has made all
    for (int i = 0; i < rounds; i++) by_fences(me, i);
    for (int i = 0; i < rounds; i++) by_locks(me, i, &last);
    OK(MPI_Barrier(ep[me]));
    for (int i = 0; i < total; i++) {   // in round k endpoint i adds to endpoint i + k
        const int64_t want = (rounds + total - 1 - (base + me + total - i) % total) / total;
        CHECK(part[me][first_sum + i] == want, "endpoint %d added %lld to %d, not %lld", i, (long long)part[me][first_sum + i], base + me, (long long)want);
    }
    if (base + me == 0) CHECK(part[me][ticket] == (int64_t)total * rounds, "%lld tickets", (long long)part[me][ticket]);
    if (base + me == total - 1) CHECK(part[me][guarded] == (int64_t)total * rounds, "%lld under the lock", (long long)part[me][guarded]);
    OK(MPI_Win_free(&win[me]));
    CHECK(win[me] == MPI_WIN_NULL, "the handle is still there");
    return NULL;
}

static void run(int n, int in_heap) {
    pthread_t thread[most];
    mine = n + rank % 2;
    total = size * n + size / 2;
    base = rank * n + rank / 2;
    CHECK(mine <= most && total <= words - first_sum, "too many endpoints");
    OK(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, mine, MPI_INFO_NULL, ep));
    for (int i = 0; i < mine; i++) {
        sizes[i] = words * sizeof(int64_t);
        if (in_heap) OK(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &part[i]));
        else part[i] = malloc((size_t)sizes[i]);
        memset(part[i], 0, (size_t)sizes[i]);
    }
    if (rank % 2 == 0) create(0, mine);
    for (int i = 1; i < mine; i++) CHECK(pthread_create(&thread[i], NULL, work, (void*)(intptr_t)i) == 0, "no thread");
    work(0);
    for (int i = 1; i < mine; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < mine; i++) {
        if (in_heap) OK(MPI_Free_mem(part[i]));
        else free(part[i]);
        OK(MPI_Comm_free(&ep[i]));
    }
}

static void errors(void) {
    int64_t memory[2] = {0, 0};
    void* bases[2] = {&memory[0], &memory[1]};
    MPI_Group group;
    MPI_Comm other[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPIX_Comm_create_endpoints(MPI_COMM_WORLD, 2, MPI_INFO_NULL, ep));
    MPI_Comm_set_errhandler(ep[0], MPI_ERRORS_RETURN);
    sizes[0] = sizes[1] = 8;
    OK(MPIX_Win_create_endpoints(0, NULL, NULL, 1, MPI_INFO_NULL, NULL, NULL));
    FAILS(MPI_ERR_ARG, MPIX_Win_create_endpoints(-1, bases, sizes, 1, MPI_INFO_NULL, ep, win));
    FAILS(MPI_ERR_ARG, MPIX_Win_create_endpoints(2, NULL, sizes, 1, MPI_INFO_NULL, ep, win));
    FAILS(MPI_ERR_ARG, MPIX_Win_create_endpoints(2, bases, sizes, 1, MPI_INFO_NULL, ep, NULL));
    other[0] = ep[0];
    other[1] = MPI_COMM_WORLD;
    FAILS(MPI_ERR_COMM, MPIX_Win_create_endpoints(2, bases, sizes, 1, MPI_INFO_NULL, other, win));
    other[1] = MPI_COMM_NULL;
    FAILS(MPI_ERR_COMM, MPIX_Win_create_endpoints(2, bases, sizes, 1, MPI_INFO_NULL, other, win));
    other[1] = ep[0];
    FAILS(MPI_ERR_COMM, MPIX_Win_create_endpoints(2, bases, sizes, 1, MPI_INFO_NULL, other, win));
    other[0] = MPI_COMM_WORLD;
    FAILS(MPI_ERR_COMM, MPIX_Win_create_endpoints(1, bases, sizes, 1, MPI_INFO_NULL, other, win));
    FAILS(MPI_ERR_DISP, MPIX_Win_create_endpoints(2, bases, sizes, 0, MPI_INFO_NULL, ep, win));   // by all
    sizes[1] = rank == 0 ? -1 : 8;
    FAILS(MPI_ERR_SIZE, MPIX_Win_create_endpoints(2, bases, sizes, 1, MPI_INFO_NULL, ep, win));   // one endpoint's error is all endpoints'
    sizes[1] = 8;
    OK(MPIX_Win_create_endpoints(2, bases, sizes, 1, MPI_INFO_NULL, ep, win));
    for (int i = 0; i < 2; i++) MPI_Win_set_errhandler(win[i], MPI_ERRORS_RETURN);
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_get_group(win[1], &group));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_post(MPI_GROUP_EMPTY, 0, win[0]));
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, MPI_Win_start(MPI_GROUP_EMPTY, 0, win[0]));
    FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, 2 * size, 0, win[1]));
}

// Both endpoints free their windows at once.
static void* free_one(void* which) {
    OK(MPI_Win_free(which));
    return NULL;
}

int main(int argc, char** argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 3) {
        rounds = atoi(argv[2]);
        run(atoi(argv[1]), strcmp(argv[3], "heap") == 0);
        return finish();
    }
    pthread_t other;
    errors();
    CHECK(pthread_create(&other, NULL, free_one, &win[1]) == 0, "no thread");
    free_one(&win[0]);
    pthread_join(other, NULL);
    for (int i = 0; i < 2; i++) OK(MPI_Comm_free(&ep[i]));
    return finish();
}
