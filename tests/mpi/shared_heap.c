// malloc under `mpiexec --shared-heap`: every rank's blocks are where all ranks of the node reach them, any rank frees them, and a
// forked child has a copy. Elsewhere there is nothing to test.
#include "check.h"
#include <malloc.h>
#include <pthread.h>

static uint64_t next(uint64_t* seed) {
    *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
    return *seed;
}

static void* give_and_take(void* mine) {
    void* other = NULL;
    OK(MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, (rank + 1) % size, 0, &other, sizeof other, MPI_BYTE, (rank + size - 1) % size, 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return other;
}

// Blocks of all kinds and sizes, each with a pattern of its own, in several threads.
static void* allocate_and_free(void* argument) {
    enum { slots = 200, rounds = 20000 };
    uint64_t seed = 0x9e3779b97f4a7c15u * (uint64_t)(1 + rank * 16 + *(int*)argument);
    struct { unsigned char* at; size_t bytes; } live[slots] = {{0}};
    for (int i = 0; i < rounds; i++) {
        const size_t k = next(&seed) % slots, n = next(&seed) % (next(&seed) % 100 ? 2000 : 3000000);
        unsigned char* const old = live[k].at;
        const unsigned char mark = (unsigned char)(k * 7 + 1);
        if (old && live[k].bytes) CHECK(old[0] == mark && old[live[k].bytes / 2] == mark && old[live[k].bytes - 1] == mark, "block %p changed", (void*)old);
        unsigned char* p;
        switch (next(&seed) % 4) {
        case 0:
            p = realloc(old, n + 1);
            CHECK(p && (!old || !live[k].bytes || p[0] == mark), "realloc() lost what was there");
            break;
        case 1:
            free(old);
            p = calloc(1, n + 1);
            for (size_t j = 0; j < n; j++) CHECK(p[j] == 0, "calloc() of %zu bytes: byte %zu is %d", n, j, p[j]);
            break;
        case 2: {
            free(old);
            const size_t align = (size_t)16 << next(&seed) % 12;
            void* aligned = NULL;
            CHECK(posix_memalign(&aligned, align, n + 1) == 0 && (uintptr_t)aligned % align == 0, "%p is not aligned to %zu", aligned, align);
            p = aligned;
            break;
        }
        default:
            free(old);
            p = malloc(n + 1);
        }
        CHECK(p && malloc_usable_size(p) >= n + 1, "block %p of %zu bytes", (void*)p, n + 1);
        memset(p, mark, n + 1);
        live[k].at = p, live[k].bytes = n + 1;
    }
    for (size_t k = 0; k < slots; k++) free(live[k].at);
    return NULL;
}

// Another rank follows the pointer, and frees or enlarges what is behind it; that its memory is used again shows in the addresses.
static void pass_on(void) {
    enum { rounds = 3000, most = 64 };
    void* seen[most] = {0};
    int different = 0;
    for (int i = 0; i < rounds; i++) {
        const size_t bytes = i % 3 == 0 ? 1 << 20 : 1000;
        int* mine = malloc(bytes);
        CHECK(mine, "round %d", i);
        mine[0] = rank, mine[bytes / sizeof(int) - 1] = i;
        int* other = give_and_take(mine);
        CHECK(other[0] == (rank + size - 1) % size && other[bytes / sizeof(int) - 1] == i, "round %d: %d and %d", i, other[0], other[bytes / sizeof(int) - 1]);
        CHECK(malloc_usable_size(other) >= bytes, "of another rank's block");
        if (i % 2) other = realloc(other, 2 * bytes);
        CHECK(other[0] == (rank + size - 1) % size, "after realloc()");
        free(other);
        if (bytes != 1 << 20) continue;
        int k = 0;
        while (k < different && seen[k] != (void*)mine) k++;
        CHECK(k < most, "round %d: what other ranks freed is not used again", i);
        seen[k] = mine;
        if (k == different) different++;
    }
}

static void too_much(void) {
    errno = 0;
    volatile size_t bytes = (size_t)1 << 44;   // more than a slice, however few ranks there are
    CHECK(malloc(bytes) == NULL && errno == ENOMEM, "errno %d", errno);
    CHECK(calloc(bytes, bytes) == NULL && errno == ENOMEM, "errno %d", errno);
    char* p = malloc(100);
    strcpy(p, "still there");
    CHECK(realloc(p, bytes) == NULL && strcmp(p, "still there") == 0, "realloc() of too much");
    free(p);
}

static void fork_a_child(void) {
    enum { bytes = 5 << 20 };
    char* p = malloc(bytes);
    memset(p, 1, bytes);
    const pid_t child = fork();
    CHECK(child >= 0, "no fork");
    if (child == 0) {
        for (size_t i = 0; i < bytes; i++)
            if (p[i] != 1) _exit(1);
        memset(p, 2, bytes);
        int zero = 0;
        allocate_and_free(&zero);
        free(p);
        _exit(0);
    }
    memset(p, 3, bytes);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", status);
    for (size_t i = 0; i < bytes; i++) CHECK(p[i] == 3, "the child wrote to its parent's heap");
    free(p);
    CHECK(system("exit 3") == 3 << 8, "a shell");
}

int main(int argc, char** argv) {
    const char* heap = getenv("WEFT_HEAP");
    void* early = malloc(100);
    start(&argc, &argv);
    if (heap == NULL || size == 1) {
        if (rank == 0 && heap == NULL) fprintf(stderr, "mpiexec --shared-heap was not asked for\n");
        free(early);
        MPI_Finalize();
        return heap == NULL ? 77 : 0;
    }
    memset(early, rank, 100);
    MPI_Barrier(MPI_COMM_WORLD);
    const unsigned char* other = give_and_take(early);
    CHECK(other[99] == (rank + size - 1) % size, "what was allocated before MPI_Init is not shared");
    MPI_Barrier(MPI_COMM_WORLD);
    free(early);

    enum { threads = 3 };
    pthread_t thread[threads];
    int number[threads];
    for (int t = 0; t < threads; t++) number[t] = t, pthread_create(&thread[t], NULL, allocate_and_free, &number[t]);
    for (int t = 0; t < threads; t++) pthread_join(thread[t], NULL);
    pass_on();
    too_much();
    fork_a_child();
    pass_on();
    return finish();
}
