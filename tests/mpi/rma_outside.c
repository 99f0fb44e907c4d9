// Passive target where the target stays outside MPI: locks, puts, gets and flushes of rank 0 end while rank 1 only looks at its own memory.
// Windows of the library's memory, and of malloc's, which the kernel copies.
#include "check.h"
#include <sys/uio.h>

enum { words = 3000, gap = 3 };
static const double patience_s = 60;   // far beyond what it takes; by messages it would never end

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Whether the kernel copies from that process, which tells one of its addresses.
static int is_copied(void) {
    static int mark = 4711;
    struct { long pid; int* at; } own = {getpid(), &mark}, other;
    int seen = 0, good;
    OK(MPI_Sendrecv(&own, sizeof own, MPI_BYTE, 1 - rank, 0, &other, sizeof other, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    struct iovec to = {&seen, sizeof seen}, from = {other.at, sizeof seen};
    const int mine = process_vm_readv((pid_t)other.pid, &to, 1, &from, 1, 0) == sizeof seen && seen == mark;
    OK(MPI_Allreduce(&mine, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return good;
}

// Rank 0's accesses. The last word is put last of all, after a flush.
static void access_from_afar(MPI_Win win, int* seen) {
    static int sent[words];
    MPI_Datatype every;
    for (int i = 0; i < words; i++) sent[i] = 7 * i + 1;
    OK(MPI_Type_vector(words / gap, 1, gap, MPI_INT, &every));
    OK(MPI_Type_commit(&every));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    OK(MPI_Put(sent, words - 1, MPI_INT, 1, 0, words - 1, MPI_INT, win));
    OK(MPI_Win_flush(1, win));
    OK(MPI_Get(seen, words / gap, MPI_INT, 1, 0, 1, every, win));
    OK(MPI_Win_flush(1, win));
    for (int i = 0; i < words / gap; i++) CHECK(seen[i] == sent[gap * i], "word %d is %d", gap * i, seen[i]);
    memset(sent, 0, sizeof sent);
    OK(MPI_Put(sent, words / gap, MPI_INT, 1, 0, 1, every, win));
    OK(MPI_Win_flush(1, win));
    sent[0] = -1;
    OK(MPI_Put(sent, 1, MPI_INT, 1, words - 1, 1, MPI_INT, win));
    OK(MPI_Win_unlock(1, win));
}

static void look(volatile int* memory) {
    for (const double end = now() + patience_s; memory[words - 1] != -1;) CHECK(now() < end, "no word has come without this rank's help");
    for (int i = 0; i < words - 1; i++) {
        const int want = i % gap == 0 ? 0 : 7 * i + 1;
        CHECK(memory[i] == want, "word %d is %d, not %d", i, memory[i], want);
    }
}

static void try_window(MPI_Win win, int* memory) {
    int* seen = malloc(words * sizeof(int));
    memset(memory, 0, words * sizeof(int));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) access_from_afar(win, seen);
    else look(memory);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(seen);
    OK(MPI_Win_free(&win));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    CHECK(size == 2, "two ranks are needed");
    const char* wire = getenv("WEFT_WIRE");
    if ((wire != NULL && strcmp(wire, "shm") != 0) || !is_copied()) {
        if (rank == 0) fprintf(stderr, "SKIPPED: these ranks share no memory, or the kernel does not copy between them\n");
        MPI_Finalize();
        return 77;
    }
    MPI_Win win;
    int* memory;
    const MPI_Aint bytes = words * sizeof(int);
    OK(MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    try_window(win, memory);
    memory = malloc((size_t)bytes);
    OK(MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    try_window(win, memory);
    free(memory);
    return finish();
}
