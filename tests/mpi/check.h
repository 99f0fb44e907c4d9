// What every multi-rank test program needs: a start, an end, and CHECK, which says what went wrong and ends the job.
// Plain C11 on mpi.h, so that the programs can be tried on any library with the standard ABI.
#ifndef WEFT_TESTS_CHECK_H
#define WEFT_TESTS_CHECK_H
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rank = -1, size = -1;

#define CHECK(cond, ...)                                                                     \
    do {                                                                                     \
        if (!(cond)) {                                                                       \
            fprintf(stderr, "%s:%d: rank %d of %d: %s: ", __FILE__, __LINE__, rank, size, #cond); \
            fprintf(stderr, __VA_ARGS__);                                                    \
            fputc('\n', stderr);                                                             \
            fflush(NULL);                                                                    \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                    \
            _exit(1);                                                                        \
        }                                                                                    \
    } while (0)

// A call that must succeed (error handlers may have been set to return).
#define OK(call)                                                          \
    do {                                                                  \
        int code_ = (call);                                               \
        CHECK(code_ == MPI_SUCCESS, "%s returned %d", #call, code_);      \
    } while (0)

// Whether the library looks at its arguments: it says in its version if it was built without (WEFT_CHECKS=OFF).
static inline int checks_arguments(void) {
    static int known = -1;
    int checks = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (checks < 0) {
        char text[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        MPI_Get_library_version(text, &length);
        checks = strstr(text, "Argument checks: off") == NULL;
        __atomic_store_n(&known, checks, __ATOMIC_RELAXED);
    }
    return checks;
}
// Whether an error is one of what a call does, not of its arguments.
static inline int is_outcome(int class) {
    return class == MPI_ERR_TRUNCATE || class == MPI_ERR_NO_MEM || class == MPI_ERR_IN_STATUS || class == MPI_ERR_OTHER ||
           class == MPI_ERR_UNSUPPORTED_OPERATION;
}

// A call that must fail with an error of class `want`. It is not made where the library would not notice.
#define FAILS(want, call)                                                                          \
    do {                                                                                           \
        if (!checks_arguments() && !is_outcome(want)) break;                                       \
        int code_ = (call), class_ = -1;                                                           \
        MPI_Error_class(code_, &class_);                                                           \
        CHECK(class_ == (want), "%s gave class %d, not %d (%s)", #call, class_, (want), #want);    \
    } while (0)

static inline void start(int* argc, char*** argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int finish(void) {
    MPI_Finalize();
    return 0;
}

// A buffer of messages. CHECK_MEMORY in the environment says whether each in turn is from MPI_Alloc_mem (a) or malloc (m): "am" is every
// other one. Any thread may call.
static inline char* new_buffer(size_t bytes) {
    static unsigned turn;
    enum { head = 64 };
    const char* const kinds = getenv("CHECK_MEMORY");
    const int mapped = kinds && *kinds && kinds[__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % strlen(kinds)] == 'a';
    char* at = mapped ? NULL : malloc(head + bytes);
    if (mapped) MPI_Alloc_mem((MPI_Aint)(head + bytes), MPI_INFO_NULL, &at);
    CHECK(at, "no memory for a buffer of %zu bytes", bytes);
    memcpy(at, &mapped, sizeof mapped);
    return at + head;
}

static inline void free_buffer(char* buffer) {
    char* const at = buffer ? buffer - 64 : NULL;
    int mapped = 0;
    if (at) memcpy(&mapped, at, sizeof mapped);
    if (mapped) MPI_Free_mem(at);
    else free(at);
}

// Reads what a child writes until it and all that holds the pipe are gone; returns the status it ended with.
static inline int read_child(pid_t child, int pipe_end, char* text, size_t room) {
    size_t length = 0;
    ssize_t got;
    while (length < room - 1 && (got = read(pipe_end, text + length, room - 1 - length)) != 0) {
        if (got < 0 && errno != EINTR) break;
        if (got > 0) length += (size_t)got;
    }
    close(pipe_end);
    text[length] = 0;
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return status;
}

// Byte `i` of the message called `id`: neighbours and equal offsets of other messages differ.
static inline unsigned char pattern(uint32_t id, size_t i) {
    return (unsigned char)(id * 131u + (uint32_t)i * 7u + (uint32_t)(i >> 8) * 29u + (uint32_t)(i >> 16) * 3u);
}
static inline void fill(void* buf, size_t bytes, uint32_t id) {
    unsigned char* p = buf;
    for (size_t i = 0; i < bytes; i++) p[i] = pattern(id, i);
}
// Offset of the first wrong byte, or -1.
static inline long differs(const void* buf, size_t bytes, uint32_t id) {
    const unsigned char* p = buf;
    for (size_t i = 0; i < bytes; i++)
        if (p[i] != pattern(id, i)) return (long)i;
    return -1;
}

// A small generator of random numbers, the same on every machine.
static inline uint32_t random32(uint64_t* state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    uint32_t x = (uint32_t)(*state >> 33) ^ (uint32_t)(*state >> 20);
    return x * 2654435761u >> 3;
}
static inline uint32_t below(uint64_t* state, uint32_t n) { return random32(state) % n; }

static inline double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static inline void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

// This process's share of memory in KiB: pages shared by n processes count 1/n.
static inline long share_kib(void) {
    FILE* f = fopen("/proc/self/smaps_rollup", "r");
    CHECK(f != NULL, "/proc/self/smaps_rollup cannot be read");
    char line[256];
    long kib = -1;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Pss: %ld kB", &kib) == 1) break;
    fclose(f);
    CHECK(kib >= 0, "no Pss line");
    return kib;
}
#endif
