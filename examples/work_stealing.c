/* Work that processes take from each other. Every process has tasks of its own, numbered; the number of the next one lies in a window. A
 * process draws numbers of its own counter until there are none left, then those of the others, by fetch-and-add: no task is done twice, and
 * no process waits for one that computes.
 *
 * mpicc work_stealing.c -o work_stealing && mpiexec -n 4 ./work_stealing [tasks of process 0]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Some work, more for some tasks than for others. */
static uint64_t compute(int owner, int64_t task)
{
    uint64_t x = (uint64_t)owner * 1000003u + (uint64_t)task;
    for (int64_t i = 0; i < 100 * (task % 7 + 1); i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int64_t most = argc > 1 ? atoll(argv[1]) : 4000;
    int64_t *next, done = 0, stolen = 0, all = 0;
    uint64_t result = 0, expected = 0, total;
    MPI_Win win;
    MPI_Win_allocate(sizeof *next, sizeof *next, MPI_INFO_NULL, MPI_COMM_WORLD, &next, &win);
    *next = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < size; i++) {
        const int owner = (rank + i) % size;
        const int64_t tasks = most / (owner + 1), one = 1;
        for (;;) {
            int64_t task;
            MPI_Fetch_and_op(&one, &task, MPI_INT64_T, owner, 0, MPI_SUM, win);
            MPI_Win_flush(owner, win);
            if (task >= tasks)
                break;
            result += compute(owner, task);
            done++;
            stolen += owner != rank;
        }
    }
    MPI_Win_unlock_all(win);
    for (int owner = rank; owner < size; owner += size)
        for (int64_t task = 0; task < most / (owner + 1); task++)
            expected += compute(owner, task);
    MPI_Allreduce(MPI_IN_PLACE, &expected, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&result, &total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&done, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    printf("process %d did %lld tasks, %lld of them others'\n", rank, (long long)done, (long long)stolen);
    if (rank == 0)
        printf("%lld tasks: %s\n", (long long)all, total == expected ? "right" : "wrong");
    MPI_Win_free(&win);
    MPI_Finalize();
    return total != expected;
}
