// Atomicity: threads of all ranks accumulate on the same elements by every call at once. Nothing is lost, no number is drawn twice, and
// elements wider than an instruction are never seen half written.
// usage: rma_threads THREADS ROUNDS
#include "check.h"
#include <complex.h>
#include <pthread.h>

static int threads, rounds;
static MPI_Win win, wide;
enum { tickets, sum, swapped, row, row_length = 64, numbers = row + row_length };

static void* work(void* argument) {
    const int me = (int)(intptr_t)argument, target = 0;
    const int64_t one = 1, many[row_length] = {[0 ... row_length - 1] = 1};
    const double _Complex both = 1.0 + 1.0 * I;
    int64_t last = -1, old[row_length];
    for (int i = 0; i < rounds; i++) {
        int64_t ticket = -1;
        OK(MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, target, tickets, MPI_SUM, win));
        OK(MPI_Win_flush(target, win));
        CHECK(ticket > last && ticket < (int64_t)size * threads * rounds, "thread %d drew %lld after %lld", me, (long long)ticket, (long long)last);
        last = ticket;
        // The same element by different calls.
        if (i % 2) OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, sum, 1, MPI_INT64_T, MPI_SUM, win));
        else OK(MPI_Get_accumulate(&one, 1, MPI_INT64_T, old, 1, MPI_INT64_T, target, sum, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Accumulate(many, row_length, MPI_INT64_T, target, row, row_length, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, old, MPI_INT64_T, target, row + i % row_length, MPI_SUM, win));
        OK(MPI_Accumulate(&both, 1, MPI_C_DOUBLE_COMPLEX, target, 0, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, wide));
        double _Complex seen;
        OK(MPI_Fetch_and_op(NULL, &seen, MPI_C_DOUBLE_COMPLEX, target, 0, MPI_NO_OP, wide));
        OK(MPI_Win_flush(target, wide));
        CHECK(creal(seen) == cimag(seen), "half of an update was seen: %f, %f", creal(seen), cimag(seen));
        for (int64_t expected = 0, found = -1;; expected = found) {   // a counter made of compare-and-swap
            const int64_t next = expected + 1;
            OK(MPI_Compare_and_swap(&next, &expected, &found, MPI_INT64_T, target, swapped, win));
            OK(MPI_Win_flush(target, win));
            if (found == expected) break;
        }
    }
    return NULL;
}

int main(int argc, char** argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(level == MPI_THREAD_MULTIPLE, "the level is %d", level);
    threads = argc > 1 ? atoi(argv[1]) : 2;
    rounds = argc > 2 ? atoi(argv[2]) : 200;
    int64_t* base;
    double _Complex* pair;
    OK(MPI_Win_allocate(numbers * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_allocate(sizeof *pair, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &pair, &wide));
    memset(base, 0, numbers * 8);
    *pair = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Win_lock_all(0, wide));
    pthread_t all[16];
    for (int i = 1; i < threads; i++) pthread_create(&all[i], NULL, work, (void*)(intptr_t)i);
    work(0);
    for (int i = 1; i < threads; i++) pthread_join(all[i], NULL);
    OK(MPI_Win_unlock_all(wide));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int64_t total = (int64_t)size * threads * rounds;
    if (rank == 0) {
        CHECK(base[tickets] == total && base[sum] == total && base[swapped] == total, "of %lld: %lld tickets, %lld added, %lld swapped",
              (long long)total, (long long)base[tickets], (long long)base[sum], (long long)base[swapped]);
        int64_t in_row = 0;
        for (int i = 0; i < row_length; i++) in_row += base[row + i];
        CHECK(in_row == total * (row_length + 1), "%lld in the row", (long long)in_row);
        CHECK(creal(*pair) == (double)total && cimag(*pair) == (double)total, "the sum is %f + %f i", creal(*pair), cimag(*pair));
    }
    OK(MPI_Win_free(&wide));
    OK(MPI_Win_free(&win));
    return finish();
}
