// Windows and blocks that are larger than what a rank's slice of the shared heap has room for, at one address in all ranks. What nobody
// touches takes no memory; what is freed is there for the next.
#include "check.h"

static const MPI_Aint large = ((MPI_Aint)65 << 30) + 4096;
enum { words = 1000, rounds = 80 };   // of which all together would have more addresses than there are

// KiB that this process has in memory.
static long resident(void) {
    long pages = 0;
    FILE* f = fopen("/proc/self/statm", "r");
    CHECK(f != NULL && fscanf(f, "%*s %ld", &pages) == 1, "no /proc/self/statm");
    fclose(f);
    return pages * 4;
}

// The last words of the next rank's part, and one in its middle.
static void access_window(MPI_Win win, char* mine, MPI_Aint bytes) {
    static int64_t sent[words], seen[words];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const MPI_Aint end = bytes - (MPI_Aint)sizeof sent, middle = bytes / 2 / 8 * 8;
    for (int i = 0; i < words; i++) sent[i] = rank * 1000000 + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(sent, words, MPI_INT64_T, next, end, words, MPI_INT64_T, win));
    OK(MPI_Accumulate(sent + 7, 1, MPI_INT64_T, next, middle, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(seen, words, MPI_INT64_T, next, end, words, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    CHECK(memcmp(seen, sent, sizeof sent) == 0, "what was put is not what was got");
    int64_t here[words], sum;
    memcpy(here, mine + end, sizeof here);
    memcpy(&sum, mine + middle, sizeof sum);
    for (int i = 0; i < words; i++) CHECK(here[i] == before * 1000000 + i, "word %d is %lld", i, (long long)here[i]);
    CHECK(sum == before * 1000000 + 7 && mine[0] == 0, "%lld in the middle, %d at first", (long long)sum, mine[0]);
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(sent, 1, MPI_INT64_T, next, bytes - 7, 1, MPI_INT64_T, win));
}

static void allocated(void) {
    const long before = resident();
    char* mine;
    MPI_Win win;
    OK(MPI_Win_allocate(large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    access_window(win, mine, large);
    CHECK(resident() - before < 64 << 10, "%ld KiB more are in memory", resident() - before);
    OK(MPI_Win_free(&win));
}

// One block for all ranks of a node: parts that a slice has room for, and whose sum it has not.
static void shared(void) {
    const MPI_Aint part = (MPI_Aint)40 << 30;
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint bytes;
    int me, n, unit;
    char *mine, *last;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_rank(node, &me));
    OK(MPI_Comm_size(node, &n));
    OK(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN));
    const int code = MPI_Win_allocate_shared(part, 1, MPI_INFO_NULL, node, &mine, &win);
    if (code != MPI_SUCCESS) {   // over sockets
        FAILS(MPI_ERR_RMA_SHARED, code);
        OK(MPI_Comm_free(&node));
        return;
    }
    OK(MPI_Win_shared_query(win, n - 1, &bytes, &unit, &last));
    CHECK(bytes == part && last == mine + (n - 1 - me) * part, "%p and %p are not in a row", (void*)mine, (void*)last);
    OK(MPI_Win_fence(0, win));
    last[part - 1 - me] = (char)(10 + me);
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < n; i++) CHECK(last[part - 1 - i] == 10 + i, "rank %d's byte is %d", i, last[part - 1 - i]);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&node));
}

// The memory of MPI_Alloc_mem as a window, and in messages.
static void block(void) {
    static int64_t got[100 * words];
    int64_t* memory;
    MPI_Win win;
    OK(MPI_Alloc_mem(large, MPI_INFO_NULL, &memory));
    OK(MPI_Win_create(memory, large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    access_window(win, (char*)memory, large);
    OK(MPI_Win_free(&win));
    int64_t* const end = memory + large / 8 - 100 * words;
    for (int i = 0; i < 100 * words; i++) end[i] = rank + i;
    OK(MPI_Sendrecv(end, 100 * words, MPI_INT64_T, (rank + 1) % size, 1, got, 100 * words, MPI_INT64_T, (rank + size - 1) % size, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 100 * words; i++) CHECK(got[i] == (rank + size - 1) % size + i, "word %d is %lld", i, (long long)got[i]);
    OK(MPI_Free_mem(memory));
}

// More than there are addresses for, on all ranks and on the last alone.
static void too_large(void) {
    const MPI_Aint most = (MPI_Aint)1 << 50;
    MPI_Win win = MPI_WIN_NULL;
    char* mine;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(rank == size - 1 ? most : large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate_shared(most, 1, MPI_INFO_NULL, MPI_COMM_SELF, &mine, &win));
    FAILS(MPI_ERR_NO_MEM, MPI_Alloc_mem(most, MPI_INFO_NULL, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    allocated();
    shared();
    block();
    too_large();
    for (int i = 0; i < rounds; i++) {
        char* mine;
        MPI_Win win;
        OK(MPI_Win_allocate(large, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        CHECK(mine[0] == 0 && mine[large - 1] == 0, "what was freed is still there");
        mine[0] = mine[large - 1] = 1;
        OK(MPI_Win_free(&win));
    }
    return finish();
}
